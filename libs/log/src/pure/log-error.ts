/** Something of a log that is not what its format says, or not signed by who should have signed it. */
export class LogError extends Error {
  override readonly name = 'LogError';
}
