/**
 * What is wrong with the value of a JSON number, as a sentence; null if nothing is.
 *
 * RFC 8785, section 3.2.2.3 writes a number as ECMAScript does, after rounding it to a double. Where the rounding changes
 * the decimal value, two different numbers could become one, and so could two decisions. Such a number is refused. An
 * integer literal (no fraction, no exponent) must also stay within ±(2^53−1), the range in which every reader agrees
 * (RFC 7493, section 2.2).
 *
 * @param literal a number by the grammar of RFC 8259, section 6, of any length; the time is linear in it
 */
export function numberFlaw(literal: string): string | null {
  if (isIntegerLiteral(literal)) {
    // No literal outside the range rounds into it, because 2^53 itself is a double.
    return Number.isSafeInteger(Number(literal)) ? null : 'The integer is outside ±(2^53−1); send it as a string.';
  }
  const canonical = String(Number(literal));
  if (canonical === literal || isSameDecimal(canonical, literal)) return null;
  return `The number would become ${canonical}, which is another value; send it as a string.`;
}

function isIntegerLiteral(literal: string): boolean {
  return !literal.includes('.') && !literal.includes('e') && !literal.includes('E');
}

function isSameDecimal(canonical: string, literal: string): boolean {
  // "Infinity" keeps its letters, which no literal has.
  const a = decimal(canonical);
  const b = decimal(literal);
  return a.digits === b.digits && a.exponent === b.exponent;
}

/**
 * A literal's magnitude as 0.<digits> × 10^exponent, with neither a leading nor a trailing zero; zero has no digits and
 * the exponent 0. The sign is left out: rounding to a double never changes it.
 *
 * Where an exponent is too long for `Number` to hold exactly, the double is zero or infinite, and its digits decide alone.
 */
function decimal(literal: string): { digits: string; exponent: number } {
  const start = literal.startsWith('-') ? 1 : 0;
  const e = Math.max(literal.indexOf('e'), literal.indexOf('E'));
  const end = e === -1 ? literal.length : e;
  const point = literal.indexOf('.');
  const whole = literal.slice(start, point === -1 ? end : point);
  const all = point === -1 ? whole : whole + literal.slice(point + 1, end);
  const digits = withoutOuterZeros(all);
  if (digits.text === '') return { digits: '', exponent: 0 };
  const written = e === -1 ? 0 : Number(literal.slice(e + 1));
  return { digits: digits.text, exponent: written + whole.length - digits.leading };
}

/** Loops, where `/0+$/` would be quadratic on a long run of zeros that a one follows. */
function withoutOuterZeros(digits: string): { text: string; leading: number } {
  let from = 0;
  let to = digits.length;
  while (from < to && digits.charCodeAt(from) === 0x30) from++;
  while (to > from && digits.charCodeAt(to - 1) === 0x30) to--;
  return { text: digits.slice(from, to), leading: from };
}
