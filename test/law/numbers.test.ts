import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { createHash } from 'node:crypto';
import { canonicalJson, parseStrictJson, StrictJsonError } from '#key';
import { publishedDoubles } from './published-doubles.js';

describe("the published file of RFC 8785's numbers", () => {
  test('the first 100,000 lines are written as the file has them, by the hashes of its prefixes', () => {
    const hash = createHash('sha256');
    const hashes = new Map<number, string>();
    let lines = 0;
    for (const { hex, value } of publishedDoubles(100_000)) {
      hash.update(`${hex},${canonicalJson(value)}\n`);
      lines++;
      if (lines === 1_000 || lines === 10_000 || lines === 100_000) hashes.set(lines, hash.copy().digest('hex'));
    }
    expect(Object.fromEntries(hashes)).toEqual({
      1_000: 'be18b62b6f69cdab33a7e0dae0d9cfa869fda80ddc712221570f9f40a5878687',
      10_000: 'b9f7a8e75ef22a835685a52ccba7f7d6bdc99e34b010992cbc5864cd12be6892',
      100_000: '22776e6d4b49fa294a0d0f349268e5c28808fe7e0cb2bcbe28f63894e494d4c7',
    });
  });

  test('each of its forms is accepted again, except integer literals outside ±(2^53−1)', () => {
    for (const { value } of publishedDoubles(20_000)) {
      const form = canonicalJson(value);
      const isRefused = /^-?\d+$/.test(form) && !Number.isSafeInteger(value);
      expect([form, isAccepted(form)]).toEqual([form, !isRefused]);
    }
  });
});

describe('numbers that would lose something', () => {
  const digits = (min: number, max: number): fc.Arbitrary<string> =>
    fc.array(fc.constantFrom(...'00012345678999'), { minLength: min, maxLength: max }).map((units) => units.join(''));
  const whole = digits(1, 25).map((d) => d.replace(/^0+(?=\d)/, ''));
  const fraction = fc.oneof(
    fc.constant(''),
    digits(1, 25).map((d) => `.${d}`),
  );
  const exponent = fc.oneof(
    fc.constant(''),
    fc
      .tuple(
        fc.constantFrom('e', 'E'),
        fc.constantFrom('', '+', '-'),
        fc.constantFrom('', '00'),
        fc.oneof(fc.nat(30), fc.nat(420)),
      )
      .map((parts) => parts.join('')),
  );
  const minus = fc.constantFrom('', '-');
  const anyLiteral = fc.tuple(minus, whole, fraction, exponent).map((parts) => parts.join(''));

  /** Around what a double holds: its form with the last digit changed, or with a digit more. */
  const nearDouble = fc
    .tuple(fc.double({ noNaN: true, noDefaultInfinity: true }), fc.nat(9), fc.constantFrom('keep', 'change', 'append'))
    .map(([value, digit, how]) => {
      const [mantissa = '', e] = value.toExponential().split('e');
      const changed = { keep: mantissa, change: mantissa.slice(0, -1) + digit, append: `${mantissa}${digit}` }[how];
      // A mantissa of one digit has no point; "append" would make a leading zero of "0".
      return /^-?0\d/.test(changed) || !/\d$/.test(changed) ? `${mantissa}e${e}` : `${changed}e${e}`;
    });

  /** Integers around 2^53 and around powers of ten, with and without a fraction of zeros. */
  const nearLimit = fc
    .tuple(
      fc.constantFrom(2n ** 53n, 10n ** 15n, 10n ** 16n, 10n ** 17n, 10n ** 21n, 2n ** 63n),
      fc.bigInt({ min: -20n, max: 20n }),
      minus,
      fc.constantFrom('', '.0', '.000', 'e0', 'E+00', '.5'),
    )
    .map(([base, offset, sign, tail]) => `${sign}${base + offset}${tail}`);

  test.each<[name: string, literal: fc.Arbitrary<string>]>([
    ['any decimal', anyLiteral],
    ['neighbours of doubles', nearDouble],
    ['neighbours of the limits', nearLimit],
  ])(
    '%s: accepted exactly where the decimal value of the RFC 8785 form is the same, counted in BigInt',
    (_name, literal) => {
      fc.assert(
        fc.property(literal, (number) => {
          expect([number, isAccepted(number)]).toEqual([number, isExact(number)]);
        }),
        { seed: 8785, numRuns: 20_000 },
      );
    },
  );

  test('two literals of different values never have one canonical form', () => {
    const pair = fc.tuple(nearDouble, nearDouble).chain(([a, b]) => fc.constantFrom([a, b], [a, a.replace('e', '0e')]));
    fc.assert(
      fc.property(fc.oneof(pair, fc.tuple(nearLimit, nearLimit)), ([a = '0', b = '0']) => {
        if (!isAccepted(a) || !isAccepted(b)) return;
        const isOneForm =
          canonicalJson(parseStrictJson(Buffer.from(a))) === canonicalJson(parseStrictJson(Buffer.from(b)));
        expect([a, b, isOneForm]).toEqual([a, b, isEqualDecimal(a, b)]);
      }),
      { seed: 8785, numRuns: 5_000 },
    );
  });
});

function isAccepted(number: string): boolean {
  try {
    parseStrictJson(Buffer.from(number));
    return true;
  } catch (error) {
    if (error instanceof StrictJsonError) return false;
    throw error;
  }
}

/** The rule once more, by another way: whole numbers of BigInt at a common power of ten instead of digits in strings. */
function isExact(number: string): boolean {
  const double = Number(number);
  if (/^-?\d+$/.test(number)) return BigInt(number) < 2n ** 53n && BigInt(number) > -(2n ** 53n);
  return Number.isFinite(double) && isEqualDecimal(number, String(double));
}

function isEqualDecimal(a: string, b: string): boolean {
  const x = scaled(a);
  const y = scaled(b);
  const power = x.power < y.power ? x.power : y.power;
  return x.units * 10n ** (x.power - power) === y.units * 10n ** (y.power - power);
}

function scaled(number: string): { units: bigint; power: bigint } {
  const match = /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/.exec(number);
  if (match === null) throw new Error(`not a number: ${number}`);
  const [, sign = '', whole = '', fraction = '', exponent = '0'] = match;
  return {
    units: BigInt(whole + fraction) * (sign === '-' ? -1n : 1n),
    power: BigInt(exponent) - BigInt(fraction.length),
  };
}
