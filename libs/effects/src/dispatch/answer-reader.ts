import { createHash } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { parseStrictJson, StrictJsonError, type JsonValue } from '#key';

const KIB = 1024;
/** A JSON answer up to here is the result; of a longer one only its hash is kept. */
const MOST_JSON_BYTES = 64 * KIB;
/** Nothing is read beyond this, not even to be hashed. */
export const MOST_READ_BYTES = 16 * KIB * KIB;

const JSON_MEDIA_TYPE = /^application\/(?:[\w.+-]+\+)?json\s*(?:;|$)/i;
const CONTENT_TYPE_LENGTH = 255;
/** A part of a secret that is shorter is no secret: "Bearer" is one. */
const SECRET_PART_LENGTH = 8;

/** Takes in a successful answer: all of it is hashed, and no more is held than may become the result. */
export class AnswerReader {
  private readonly hash = createHash('sha256');
  private readonly chunks: Buffer[] = [];
  private bytes = 0;

  constructor(
    private readonly response: IncomingMessage,
    /** The values that were sent as secrets: an answer that repeats one must not be kept. */
    private readonly secrets: readonly string[],
  ) {}

  /** False: enough has been read. */
  take(chunk: Buffer): boolean {
    const part = chunk.subarray(0, MOST_READ_BYTES - this.bytes);
    this.bytes += part.length;
    this.hash.update(part);
    if (this.bytes <= MOST_JSON_BYTES) this.chunks.push(part);
    return this.bytes < MOST_READ_BYTES;
  }

  /**
   * What is recorded: the answer, if it is JSON that can be read in only one way; else what identifies it. An answer that
   * broke off says so: the effect has happened, and what was read of it is all that is known.
   */
  result(isWhole: boolean): JsonValue {
    const contentType = this.response.headers['content-type'] ?? null;
    const json = isWhole && JSON_MEDIA_TYPE.test(contentType ?? '') ? this.json() : undefined;
    if (json !== undefined) return json;
    return {
      status: this.response.statusCode ?? 0,
      contentType:
        contentType === null || this.repeatsSecret(contentType) ? null : contentType.slice(0, CONTENT_TYPE_LENGTH),
      bytes: this.bytes,
      sha256: this.hash.digest('hex'),
      ...(isWhole ? {} : { truncated: true }),
    };
  }

  private json(): JsonValue | undefined {
    if (this.bytes > MOST_JSON_BYTES) return undefined;
    try {
      const value = parseStrictJson(Buffer.concat(this.chunks));
      return this.repeatsSecret(JSON.stringify(value)) ? undefined : value;
    } catch (error) {
      if (error instanceof StrictJsonError) return undefined;
      throw error;
    }
  }

  /** Whether a text has a secret in it, as it is or as JSON writes it; also without its scheme, as in `Bearer …`. */
  private repeatsSecret(text: string): boolean {
    return this.secrets.some((secret) =>
      [secret, ...secret.split(/\s+/).filter((part) => part.length >= SECRET_PART_LENGTH)].some(
        (part) => text.includes(part) || text.includes(JSON.stringify(part).slice(1, -1)),
      ),
    );
  }
}
