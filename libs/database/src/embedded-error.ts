/** Anything that keeps the embedded server from running. The message is one line that an operator can act on. */
export class EmbeddedServerError extends Error {
  override readonly name: string = 'EmbeddedServerError';
}

/** The data directory belongs to a service that runs; waiting or retrying does not help. */
export class DataDirInUseError extends EmbeddedServerError {
  override readonly name = 'DataDirInUseError';

  constructor(dataDir: string, ownerPid: number | undefined) {
    super(`DATA_DIR ${dataDir} is in use by a running service${ownerPid ? ` (process ${ownerPid})` : ''}`);
  }
}

const SYSTEM_ERRORS: Readonly<Record<string, string>> = {
  EACCES: 'permission denied',
  EPERM: 'operation not permitted',
  EROFS: 'the file system is read-only',
  ENOSPC: 'no space is left on the device',
  EDQUOT: 'the disk quota is used up',
  ENOENT: 'no such file or folder',
  ENOTDIR: 'a file stands where a folder is needed',
  EEXIST: 'a file stands where a folder is needed',
  ELOOP: 'too many symbolic links',
  ENAMETOOLONG: 'the path is too long',
  EIO: 'the device reports an input/output error',
  EMFILE: 'too many open files',
};

export function errorCode(error: unknown): string | undefined {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : undefined;
}

/**
 * Turns an error of the file system into one line about the data directory. Errors that are no errors of the file system
 * are bugs of ours and keep their stack trace.
 */
export function asOperatorError(dataDir: string, error: unknown): unknown {
  const code = errorCode(error);
  if (error instanceof EmbeddedServerError || !(error instanceof Error) || !code || !('syscall' in error)) return error;
  const path = 'path' in error && typeof error.path === 'string' && error.path !== dataDir ? ` at ${error.path}` : '';
  return new EmbeddedServerError(`DATA_DIR ${dataDir} cannot be used: ${SYSTEM_ERRORS[code] ?? code}${path}`, {
    cause: error,
  });
}
