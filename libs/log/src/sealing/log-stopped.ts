/**
 * The log of a tenant must not go on: a checkpoint now could contradict one that somebody holds. The message is for an
 * operator, who alone can tell what happened; docs/operating.md says what to do.
 */
export class LogStopped extends Error {
  override readonly name = 'LogStopped';

  constructor(tenant: string, why: string) {
    super(`The log of ${tenant} is not sealed further: ${why} See "When the log stops" in docs/operating.md.`);
  }
}
