import 'reflect-metadata';
import { NestFactory } from '@nestjs/core';
import { FastifyAdapter, type NestFastifyApplication } from '@nestjs/platform-fastify';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Database, Settings } from '#database';
import { Problem } from '#problem';
import { AppModule } from './app.module.js';
import {
  ClientErrors,
  parseQueryString,
  ProblemFilter,
  REQUEST_ID_HEADER,
  requestIdOf,
  Routes,
  sendProblem,
  takeJsonAsBytes,
} from './http/index.js';
import { serveDocument } from './openapi-document.js';
import type { PinoLogger } from './service/logger.js';
import { Metrics } from './service/metrics.js';

/** A key of 255 characters, each percent-encoded. */
const LONGEST_PATH_PARAMETER = 3 * 255;

const REQUEST_TIMEOUT_MS = 30_000;

/** The API on Fastify, ready to listen. */
export async function createServer(
  database: Database,
  settings: Settings,
  logger: PinoLogger,
): Promise<NestFastifyApplication> {
  const clientErrors = new ClientErrors();
  const adapter = new FastifyAdapter({
    routerOptions: { maxParamLength: LONGEST_PATH_PARAMETER, querystringParser: parseQueryString },
    genReqId: requestIdOf,
    requestIdHeader: false,
    // A request that still comes in on an open connection is answered like any other; then the connection ends.
    return503OnClosing: false,
    // A path that cannot be decoded never reaches a route or its filter.
    frameworkErrors: (_error: Error, request: FastifyRequest, reply: FastifyReply) => {
      void reply.header(REQUEST_ID_HEADER, request.id);
      const detail = 'The path of the request cannot be decoded.';
      sendProblem(
        reply,
        new Problem('malformed-request', detail, { members: { errors: [{ pointer: '', detail }] } }),
        request.id,
      );
    },
    clientErrorHandler: clientErrors.handle,
    // Whoever does not finish sending a request gives its place up.
    requestTimeout: REQUEST_TIMEOUT_MS,
    // Without this, Node answers a request without Host itself, with nothing that says why.
    http: { requireHostHeader: false },
  });
  const fastify = adapter.getInstance<FastifyInstance>();
  clientErrors.follow(fastify.server);
  const routes = new Routes(fastify);
  takeJsonAsBytes(fastify);
  const app = await NestFactory.create<NestFastifyApplication>(
    AppModule.register(database, settings, logger),
    adapter,
    {
      bodyParser: false,
      logger,
      abortOnError: false,
    },
  );
  followRequests(fastify, app.get(Metrics));
  app.useGlobalFilters(new ProblemFilter(routes));
  await serveDocument(app);
  return app;
}

/** Every answer carries its request's id; every request is timed from the moment its headers are there. */
function followRequests(fastify: FastifyInstance, metrics: Metrics): void {
  fastify.decorateRequest('caller', null);
  fastify.decorateRequest('startedAt', 0);
  fastify.addHook('onRequest', async (request, reply) => {
    request.startedAt = performance.now();
    metrics.arrived(request);
    void reply.header(REQUEST_ID_HEADER, request.id);
    if (request.raw.httpVersion === '1.1' && request.headers.host === undefined) throw withoutHost();
  });
  // A connection that is busy when the stop begins would otherwise be kept for a next request that never comes.
  let isClosing = false;
  fastify.addHook('preClose', async () => void (isClosing = true));
  fastify.addHook('onSend', async (_request, reply) => {
    if (isClosing) void reply.header('connection', 'close');
  });
  fastify.addHook('onResponse', async (request) => metrics.answered(request));
  fastify.addHook('onRequestAbort', async (request) => metrics.answered(request));
}

/** RFC 9112, section 3.2: a request of HTTP/1.1 without Host is answered 400. */
function withoutHost(): Problem {
  const detail = 'The request has no Host header.';
  return new Problem('malformed-request', detail, { members: { errors: [{ pointer: '', detail }] } });
}
