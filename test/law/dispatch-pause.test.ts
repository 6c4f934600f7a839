import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { Breakers, pauseMs } from '#effects';

describe('the pause before the next try', () => {
  test('is anywhere from nothing up to twice as much each time, and never beyond half a minute', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 50 }),
        fc.double({ min: 0, max: 0.999999, noNaN: true }),
        (tries, drawn) => {
          const most = Math.min(30_000, 200 * 2 ** (tries - 1));
          expect(pauseMs(tries, null, () => drawn)).toBeCloseTo(drawn * most, 6);
        },
      ),
    );
  });

  test('is never shorter than the downstream asked for', () => {
    expect(pauseMs(1, 5_000, () => 0.5)).toBe(5_000);
    expect(pauseMs(20, 5_000, () => 0.999)).toBeGreaterThan(5_000);
  });
});

describe('a circuit', () => {
  let now = 0;
  const fail = (breakers: Breakers, times: number): void => {
    for (let n = 0; n < times; n += 1) breakers.report('a', 'down');
  };

  test('opens after five failures in a row, and for its host only', () => {
    const breakers = new Breakers(() => now);
    fail(breakers, 4);
    breakers.report('a', 'up');
    fail(breakers, 4);
    expect(breakers.admit('a')).toBeNull();
    fail(breakers, 1);
    expect(breakers.admit('a')).toBe(1_000);
    expect(breakers.admit('b')).toBeNull();
  });

  test('lets one call through when its time is over, and stays open longer each time that this fails', () => {
    now = 0;
    const breakers = new Breakers(() => now);
    fail(breakers, 5);
    for (const openMs of [1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000]) {
      expect(breakers.admit('a')).toBe(openMs);
      now += openMs;
      expect(breakers.admit('a')).toBeNull();
      expect(breakers.admit('a')).toBe(1_000);
      fail(breakers, 1);
    }
    now += 30_000;
    expect(breakers.admit('a')).toBeNull();
    breakers.report('a', 'up');
    fail(breakers, 4);
    expect(breakers.admit('a')).toBeNull();
  });

  test('a probe that ended for a reason of ours leaves the way to the next', () => {
    now = 0;
    const breakers = new Breakers(() => now);
    fail(breakers, 5);
    now = 1_000;
    expect(breakers.admit('a')).toBeNull();
    breakers.report('a', 'nothing');
    expect(breakers.admit('a')).toBeNull();
  });

  test('failures of calls that were under way when it opened keep it open no longer', () => {
    now = 0;
    const breakers = new Breakers(() => now);
    fail(breakers, 12);
    expect(breakers.admit('a')).toBe(1_000);
  });
});
