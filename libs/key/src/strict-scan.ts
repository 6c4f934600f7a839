import { numberFlaw } from './exact-number.js';
import { pointerToken } from './json-value.js';

const SPACE = 0x20;
const QUOTE = 0x22;
const COMMA = 0x2c;
const MINUS = 0x2d;
const POINT = 0x2e;
const ZERO = 0x30;
const NINE = 0x39;
const COLON = 0x3a;
const OPEN_BRACKET = 0x5b;
const BACKSLASH = 0x5c;
const CLOSE_BRACKET = 0x5d;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;

/** So many decimal digits survive the way to a double and back, whichever they are (DBL_DIG of IEEE 754 binary64). */
const ALWAYS_EXACT_DIGITS = 15;

/** An open array or object: `names` is null for an array. `step` is the index or member name where the scan now is. */
interface Frame {
  names: Set<string> | null;
  step: string | number;
}

/** What a JSON text must not contain: `pointer` is the place (RFC 6901; '' for the root), `detail` an English sentence. */
export class StrictJsonError extends Error {
  override readonly name = 'StrictJsonError';

  constructor(
    readonly pointer: string,
    readonly detail: string,
  ) {
    super(pointer === '' ? detail : `${pointer}: ${detail}`);
  }
}

/**
 * One pass over a JSON text for everything that `JSON.parse` lets through, and for the place of what it does not.
 *
 * Written by hand: jsonc-parser's `visit` calls itself for each level, so that a body of brackets overflows the stack. Its
 * scanner is as fast as this pass, but it is made for comments and unfinished files: it reads on after faults, and each of
 * the rules below would stand around it all the same. This pass keeps its own stack, looks at each character once and stops
 * at the first fault.
 */
export class StrictScan {
  private at = 0;
  private readonly frames: Frame[] = [];

  /** @param text well-formed Unicode: its surrogates come in pairs, so that only an escape can make a lone one */
  constructor(
    private readonly text: string,
    private readonly maxDepth: number,
  ) {}

  /** @throws StrictJsonError at the first fault; whatever passes is a text for `JSON.parse` too */
  run(): void {
    do this.openToScalar();
    while (this.closeToComma());
  }

  /** Whether the scan has read the whole text, so that a fault may be no more than its breaking off there. */
  get isAtEnd(): boolean {
    return this.at >= this.text.length;
  }

  /** Reads from where a value begins to behind the first value in it that is a scalar or an empty container. */
  private openToScalar(): void {
    for (;;) {
      const c = this.skipSpace();
      if (c === OPEN_BRACE) {
        const names = new Set<string>();
        const frame = this.open({ names, step: '' });
        if (this.closed(CLOSE_BRACE)) return;
        this.memberName(frame, names);
      } else if (c === OPEN_BRACKET) {
        this.open({ names: null, step: 0 });
        if (this.closed(CLOSE_BRACKET)) return;
      } else {
        this.scalar(c);
        return;
      }
    }
  }

  /** Reads on from behind a value: true where another value must follow, false at the end of the text. */
  private closeToComma(): boolean {
    for (;;) {
      const c = this.skipSpace();
      const frame = this.frames.at(-1);
      if (frame === undefined) {
        if (!this.isAtEnd) this.expected('the end of the text');
        return false;
      }
      if (c === COMMA) {
        this.at++;
        if (frame.names !== null) this.memberName(frame, frame.names);
        else if (typeof frame.step === 'number') frame.step++;
        return true;
      }
      if (!this.closed(frame.names === null ? CLOSE_BRACKET : CLOSE_BRACE)) {
        this.expected(frame.names === null ? '"," or "]"' : '"," or "}"', 'container');
      }
    }
  }

  private open(frame: Frame): Frame {
    if (this.frames.length >= this.maxDepth) {
      this.fail(`More than ${this.maxDepth} arrays and objects are inside one another.`);
    }
    this.at++;
    this.frames.push(frame);
    return frame;
  }

  private closed(bracket: number): boolean {
    if (this.skipSpace() !== bracket) return false;
    this.at++;
    this.frames.pop();
    return true;
  }

  private memberName(frame: Frame, names: Set<string>): void {
    if (this.skipSpace() !== QUOTE) this.expected('a member name', 'container');
    const start = this.at;
    const escaped = this.string('container');
    const name: string = escaped
      ? JSON.parse(this.text.slice(start, this.at))
      : this.text.slice(start + 1, this.at - 1);
    frame.step = name;
    if (names.has(name)) this.fail('A member of this name is there twice.');
    names.add(name);
    if (this.skipSpace() !== COLON) this.expected('":"');
    this.at++;
  }

  private scalar(c: number): void {
    if (c === QUOTE) this.string('value');
    else if (c === MINUS || isDigit(c)) this.number();
    else if (this.text.startsWith('true', this.at) || this.text.startsWith('null', this.at)) this.at += 4;
    else if (this.text.startsWith('false', this.at)) this.at += 5;
    else this.expected('a value');
  }

  /** Reads a string from its opening to behind its closing quote; true if there are escapes in it. */
  private string(place: Place): boolean {
    const { text } = this;
    let escaped = false;
    let at = this.at + 1;
    for (;;) {
      const c = text.charCodeAt(at);
      if (c === QUOTE) break;
      if (c === BACKSLASH) {
        escaped = true;
        at = this.escape(at, place);
      } else if (c >= SPACE) {
        at++;
      } else {
        this.at = at;
        if (at >= text.length) this.fail('The string is not closed.', place);
        this.fail(`The control character ${codePointName(c)} in a string must be escaped.`, place);
      }
    }
    this.at = at + 1;
    return escaped;
  }

  /** Reads one escape, or the two of a surrogate pair, from the backslash at `at`; returns where the string goes on. */
  private escape(at: number, place: Place): number {
    const c = this.text.charAt(at + 1);
    if (c !== 'u') {
      this.at = at + 1;
      if (c === '' || !'"\\/bfnrt'.includes(c)) this.expected('an escape such as \\n or \\u0041', place);
      return at + 2;
    }
    const unit = this.hex(at + 2, place);
    if (unit === 0) this.fail('U+0000 is not allowed.', place);
    if (unit < 0xd800 || unit > 0xdfff) return at + 6;
    const low = unit < 0xdc00 && this.text.startsWith('\\u', at + 6) ? this.hex(at + 8, place) : 0;
    if (low < 0xdc00 || low > 0xdfff) this.fail('A lone surrogate is not allowed.', place);
    return at + 12;
  }

  private hex(start: number, place: Place): number {
    let value = 0;
    for (let at = start; at < start + 4; at++) {
      const digit = '0123456789abcdefABCDEF'.indexOf(this.text.charAt(at) || ' ');
      this.at = at;
      if (digit < 0) this.expected('four hexadecimal digits', place);
      value = value * 16 + (digit < 16 ? digit : digit - 6);
    }
    return value;
  }

  private number(): void {
    const start = this.at;
    if (this.text.charCodeAt(this.at) === MINUS) this.at++;
    if (this.text.charCodeAt(this.at) === ZERO) this.at++;
    else this.digits();
    if (this.text.charCodeAt(this.at) === POINT) {
      this.at++;
      this.digits();
    }
    const mantissa = this.at - start;
    const e = this.text.charAt(this.at);
    if (e === 'e' || e === 'E') {
      this.at++;
      const sign = this.text.charAt(this.at);
      if (sign === '+' || sign === '-') this.at++;
      this.digits();
    } else if (mantissa <= ALWAYS_EXACT_DIGITS) {
      return;
    }
    const flaw = numberFlaw(this.text.slice(start, this.at));
    if (flaw !== null) this.fail(flaw);
  }

  private digits(): void {
    if (!isDigit(this.text.charCodeAt(this.at))) this.expected('a digit');
    do this.at++;
    while (isDigit(this.text.charCodeAt(this.at)));
  }

  /** Moves to the next character that is no white space (RFC 8259, section 2) and returns it; NaN at the end. */
  private skipSpace(): number {
    const { text } = this;
    let c = text.charCodeAt(this.at);
    while (c === SPACE || c === 0x0a || c === 0x0d || c === 0x09) c = text.charCodeAt(++this.at);
    return c;
  }

  private expected(what: string, place: Place = 'value'): never {
    const byte = Buffer.byteLength(this.text.slice(0, this.at));
    const code = this.text.codePointAt(this.at);
    const found = code === undefined ? 'the end of the text' : codePointName(code);
    this.fail(`Expected ${what} at byte ${byte}, found ${found}.`, place);
  }

  private fail(detail: string, place: Place = 'value'): never {
    const frames = place === 'value' ? this.frames : this.frames.slice(0, -1);
    throw new StrictJsonError(frames.map((frame) => pointerToken(frame.step)).join(''), detail);
  }
}

/** Where a fault is: in the value that is being read, or, before its index or name is known, in what contains it. */
type Place = 'value' | 'container';

function isDigit(c: number): boolean {
  return c >= ZERO && c <= NINE;
}

/** Printable ASCII as itself, everything else by number: a message must not carry what a terminal or a log would obey. */
function codePointName(code: number): string {
  if (code > SPACE && code < 0x7f) return JSON.stringify(String.fromCharCode(code));
  return `U+${code.toString(16).toUpperCase().padStart(4, '0')}`;
}
