import type { Random } from './bad-case.js';
import { attemptFactOf, DECISION_FACTS, factOf, type Filters, type Records } from './reading-model.js';

const OFFSETS = ['Z', '+04:00', '-03:30', '+00:00', '+14:00'] as const;

/** A time of a row, or a microsecond beside it, as somewhere in the world would write it. */
export function someTime(random: Random, time: string): string {
  const offset = random.pick(...OFFSETS);
  const [sign, hours, minutes] =
    offset === 'Z' ? ['+', 0, 0] : [offset[0], Number(offset.slice(1, 3)), Number(offset.slice(4))];
  const shift = (sign === '-' ? -1 : 1) * (hours * 60 + minutes) * 60_000;
  const local = new Date(Date.parse(`${time.slice(0, 19)}Z`) + shift).toISOString().slice(0, 19);
  const fraction = Math.min(999_999, Number(time.slice(20, 26)) + random.whole(0, 1));
  return `${local}.${String(fraction).padStart(6, '0')}${offset}`;
}

/** Some filters that one row answers, as a rule, and at times one more that it need not. */
export function someFilters(random: Random, { decisions, attempts }: Records, isOfAttempts = false): Filters {
  const decision = random.pick(...decisions);
  const attempt = random.pick(...attempts.filter(({ decisionId }) => decisionId === decision.decisionId));
  const filters: Record<string, string> = {};
  const names = [...DECISION_FACTS, 'stepId', 'runId', 'credentialId', 'recordedFrom', 'recordedTo'];
  if (isOfAttempts) names.push('disposition');
  for (let count = random.whole(0, 4); count > 0; count -= 1) {
    const name = random.pick(...names);
    const from = random.whole(0, 9) === 0 ? random.pick(...decisions) : decision;
    const time = isOfAttempts ? random.pick(...attempts).receivedAt : random.pick(...decisions).recordedAt;
    const value = name.startsWith('recorded')
      ? time === null
        ? null
        : someTime(random, time)
      : (factOf(from, name) ?? attemptFactOf(attempt, name));
    if (value !== null) filters[name] = value;
  }
  return filters;
}
