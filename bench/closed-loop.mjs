/**
 * Keeps one item under way in each lane for a time: a lane sends its next item when the last was answered. What is
 * answered after the end is waited for and not counted. If there are no more items before that, it ends with the last
 * answer, and all are counted.
 *
 * @param lanes functions that send one item and resolve when it is answered
 * @param seconds how long; Infinity if `next` alone ends it
 * @param next the next item, or undefined when there are no more
 * @returns rate and percentiles of the answers that are counted
 */
export async function closedLoop(lanes, seconds, next) {
  const latencies_ms = [];
  const begin = performance.now();
  const end = begin + seconds * 1000;
  let lastAnsweredAt = begin;
  let ranOut = false;

  async function drive(send) {
    for (let sentAt = performance.now(); sentAt < end;) {
      const item = next();
      if (item === undefined) {
        ranOut = true;
        return;
      }
      await send(item);
      const answeredAt = performance.now();
      if (answeredAt <= end) {
        latencies_ms.push(answeredAt - sentAt);
        lastAnsweredAt = answeredAt;
      }
      sentAt = answeredAt;
    }
  }

  await Promise.all(lanes.map(drive));
  return {
    perSecond: (latencies_ms.length * 1000) / ((ranOut ? lastAnsweredAt : end) - begin),
    ...percentilesOf(latencies_ms),
  };
}

/** In milliseconds, as they are given. */
export function percentilesOf(latencies_ms) {
  const sorted = latencies_ms.toSorted((a, b) => a - b);
  return { p50Ms: percentile(sorted, 0.5), p99Ms: percentile(sorted, 0.99) };
}

/** Nearest rank. */
function percentile(sorted, share) {
  return sorted[Math.max(0, Math.ceil(sorted.length * share) - 1)] ?? 0;
}
