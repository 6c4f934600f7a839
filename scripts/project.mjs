import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';

export const ROOT = dirname(dirname(fileURLToPath(import.meta.url)));

/** Something that the user can see to; its message is all that is to be said. */
export class Failure extends Error {}
