import fc from 'fast-check';
import type { JsonObject, JsonValue } from '#key';

/** Any well-formed Unicode without U+0000; the separators and look-alikes that break careless keys come up often. */
export const text: fc.Arbitrary<string> = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 12 }).map((s) => s.replaceAll('\0', '')),
  fc
    .array(fc.constantFrom('a', 'A', ' ', ':', '|', '\u001f', '"', '\\', '\n', 'é', 'e\u0301', '\u{1F600}', ','), {
      maxLength: 6,
    })
    .map((units) => units.join('')),
);

const memberName = fc.oneof(text, fc.constantFrom('__proto__', 'constructor', 'toJSON', 'length', '1', '10', ''));

/** A number whose RFC 8785 form strict parsing takes back: a form without point or exponent stays within ±(2^53−1). */
const number = fc
  .oneof(
    fc.maxSafeInteger(),
    fc.integer({ min: -1000, max: 1000 }),
    fc.integer({ min: -100_000, max: 100_000 }).map((cents) => cents / 100),
    fc.double({ noNaN: true, noDefaultInfinity: true }),
  )
  .filter((n) => !Number.isInteger(n) || Number.isSafeInteger(n) || Math.abs(n) >= 1e21)
  // Zero has one form, whatever its sign.
  .map((n) => (n === 0 ? 0 : n));

/** Any JSON value of moderate size that strict parsing accepts. */
export const jsonValue: fc.Arbitrary<JsonValue> = fc.letrec<{ value: JsonValue }>((tie) => ({
  value: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    fc.oneof(fc.constant(null), fc.boolean(), number, text),
    fc.array(tie('value'), { maxLength: 4 }),
    members(tie('value')),
  ),
})).value;

/** Any JSON object of moderate size that strict parsing accepts. */
export const jsonObject: fc.Arbitrary<JsonObject> = members(jsonValue);

function members(value: fc.Arbitrary<JsonValue>): fc.Arbitrary<JsonObject> {
  return fc
    .uniqueArray(fc.tuple(memberName, value), { maxLength: 4, selector: ([name]) => name })
    .map((entries) => Object.fromEntries(entries));
}

/**
 * One of the many texts that mean the same value: members in any order, any white space, other spellings of numbers and
 * any characters escaped, as the choices say.
 */
export function spelling(value: JsonValue, choices: Iterator<number>): string {
  const choose = (count: number): number => Number(choices.next().value) % count;
  const space = (): string => ['', '', ' ', '\n', '\t', '\r\n  '][choose(6)] ?? '';
  const write = (v: JsonValue): string => space() + bare(v) + space();
  const bare = (v: JsonValue): string => {
    if (typeof v === 'string') return spellString(v, choose);
    if (typeof v === 'number') return spellNumber(v, choose);
    if (v === null || typeof v === 'boolean') return String(v);
    if (Array.isArray(v)) return `[${v.map(write).join(',') || space()}]`;
    const entries = shuffled(Object.entries(v), choose);
    const texts = entries.map(([name, member]) => `${space()}${spellString(name, choose)}${space()}:${write(member)}`);
    return `{${texts.join(',') || space()}}`;
  };
  return write(value);
}

type Choose = (count: number) => number;

function spellString(value: string, choose: Choose): string {
  let out = '"';
  for (let i = 0; i < value.length; i++) {
    const unit = value.charCodeAt(i);
    const isSurrogate = unit >= 0xd800 && unit <= 0xdfff;
    const hex = unit.toString(16).padStart(4, '0');
    // Half of a pair cannot be escaped alone: the other half would be a lone surrogate in the text.
    if (isSurrogate && unit < 0xdc00 && choose(2) === 0) {
      out += `\\u${hex}\\u${value.charCodeAt(++i).toString(16).toUpperCase()}`;
    } else if (isSurrogate) {
      out += value.slice(i, i + 2);
      i++;
    } else if (choose(4) === 0) {
      out += `\\u${choose(2) === 0 ? hex : hex.toUpperCase()}`;
    } else if (unit === 0x2f && choose(2) === 0) {
      out += '\\/';
    } else {
      out += JSON.stringify(value.charAt(i)).slice(1, -1);
    }
  }
  return `${out}"`;
}

/** The same decimal value, written otherwise: with zeros behind the point, or with another exponent. */
function spellNumber(value: number, choose: Choose): string {
  const plain = String(value);
  const [mantissa = '', exponent = '0'] = plain.split('e');
  const e = ['e', 'E'][choose(2)] ?? 'e';
  switch (choose(5)) {
    case 0:
      return plain.includes('e') ? plain : `${plain}${plain.includes('.') ? '' : '.'}${'0'.repeat(1 + choose(30))}`;
    case 1:
      return `${mantissa}${e}${Number(exponent) < 0 ? '-' : '+'}0${Math.abs(Number(exponent))}`;
    case 2: {
      // Shifted by whole digits: 1.5 becomes 15e-1, and 100 becomes 100000e-3.
      const [whole = '', fraction = ''] = mantissa.split('.');
      const zeros = choose(4);
      const digits = `${whole}${fraction}${'0'.repeat(zeros)}`.replace(/^(-?)0+(?=\d)/, '$1');
      return `${digits}${e}${Number(exponent) - fraction.length - zeros}`;
    }
    case 3:
      return value === 0 ? '-0' : plain;
    default:
      return plain;
  }
}

function shuffled<T>(items: T[], choose: Choose): T[] {
  const rest = [...items];
  const out: T[] = [];
  while (rest.length > 0) out.push(...rest.splice(choose(rest.length), 1));
  return out;
}
