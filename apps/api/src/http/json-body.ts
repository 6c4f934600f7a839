import type { FastifyInstance, FastifyRequest } from 'fastify';
import { Problem } from '#problem';

const KIB = 1024;
export const BODY_LIMIT_BYTES = 256 * KIB;
export const BATCH_BODY_LIMIT_BYTES = 4 * KIB * KIB;
const BATCH_ROUTE = '/v1/decisions/batch';

const CHARSET = /;\s*charset\s*=\s*"?([^";\s]+)/i;

const limitOf = (request: FastifyRequest): number =>
  request.routeOptions.url === BATCH_ROUTE ? BATCH_BODY_LIMIT_BYTES : BODY_LIMIT_BYTES;

function tooLarge(request: FastifyRequest): Problem {
  return new Problem('too-large', `The body is larger than the ${limitOf(request) / KIB} KiB that this route takes.`);
}

export const unsupportedMediaType = (): Problem =>
  new Problem('unsupported-media-type', 'Send the body as application/json in UTF-8, without a content coding.');

/**
 * Takes JSON bodies as bytes. What is in them is looked at after the credential, and by a parser that sees what
 * `JSON.parse` cannot; size and media type come first (contract, section 1, order of checks).
 */
export function takeJsonAsBytes(fastify: FastifyInstance): void {
  fastify.removeAllContentTypeParsers();
  fastify.addHook('preParsing', async (request, _reply, payload) => {
    if (Number(request.headers['content-length'] ?? 0) > limitOf(request)) throw tooLarge(request);
    if ((request.headers['content-encoding'] ?? 'identity').toLowerCase() !== 'identity') throw unsupportedMediaType();
    return payload;
  });
  fastify.addContentTypeParser(
    'application/json',
    { parseAs: 'buffer', bodyLimit: BATCH_BODY_LIMIT_BYTES },
    async (request: FastifyRequest, body: Buffer) => {
      const charset = CHARSET.exec(request.headers['content-type'] ?? '')?.[1];
      if (charset !== undefined && charset.toLowerCase() !== 'utf-8') throw unsupportedMediaType();
      if (body.length > limitOf(request)) throw tooLarge(request);
      return body;
    },
  );
}
