import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { PROJECT_ROOT } from '#database';

const SHIFTED_CLOCK = pathToFileURL(join(PROJECT_ROOT, 'test/support/shifted-clock.mjs')).href;

/** What starts a process of the service with a clock that is wrong by so much; more than 0 is ahead. */
export function shifted(offsetMs: number): Readonly<Record<string, string>> {
  return { NODE_OPTIONS: `--import=${SHIFTED_CLOCK}`, CLOCK_OFFSET_MS: String(offsetMs) };
}
