import { createServer as createHttpServer, type Server } from 'node:http';
import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import {
  DatabaseError,
  EmbeddedServerError,
  openDatabase,
  readSettings,
  SettingError,
  type OpenDatabase,
  type Settings,
} from '#database';
import { startWorker, type Worker } from '../../worker/src/worker.js';
import { createServer } from './server.js';
import { PinoLogger } from './service/logger.js';
import { Metrics } from './service/metrics.js';
import { setUpDemo, startUpText } from './start-up.js';

/** A request that is under way when the stop begins is finished, for this long at most. */
const STOP_TIMEOUT_MS = 20_000;

/** Everything that runs, in the order in which it has to stop. */
interface Running {
  readonly app: NestFastifyApplication | null;
  readonly metrics: Server | null;
  readonly worker: Worker | null;
  readonly opened: OpenDatabase;
}

async function start(settings: Settings): Promise<Running> {
  const logger = new PinoLogger(settings.logLevel);
  const opened = await openDatabase(settings, (line) => logger.info({ event: 'database', line }), fail);
  const parts: { app: NestFastifyApplication | null; metrics: Server | null; worker: Worker | null } = {
    app: null,
    metrics: null,
    worker: null,
  };
  try {
    if (settings.worker !== 'off') parts.worker = startWorker(opened.database, settings, logger);
    if (settings.worker === 'only') {
      if (settings.metricsPort !== null)
        parts.metrics = await serveMetrics(
          followed(new Metrics(opened.database), parts.worker),
          settings,
          settings.metricsPort,
        );
      process.stdout.write('\nDecision Ledger: the worker runs, without the API\n');
      return { ...parts, opened };
    }
    parts.app = await createServer(opened.database, settings, logger);
    await parts.app.init();
    followed(parts.app.get(Metrics), parts.worker);
    if (opened.embedded) await setUpDemo(parts.app, settings);
    if (settings.metricsPort !== null)
      parts.metrics = await serveMetrics(parts.app.get(Metrics), settings, settings.metricsPort);
    // Fastify's own listen: Nest's would also log a failure that is explained in one line below.
    const fastify = parts.app.getHttpAdapter().getInstance();
    const url = await fastify.listen({ port: settings.port, host: settings.host });
    process.stdout.write(startUpText(url, settings, opened.embedded));
    return { ...parts, opened };
  } catch (error) {
    await stop({ ...parts, opened });
    throw error;
  }
}

/** Finishes what is under way, then ends the connections and the embedded server. */
async function stop({ app, metrics, worker, opened }: Running): Promise<void> {
  await worker?.stop();
  await app?.close();
  metrics?.close();
  await opened.close();
}

function followed(metrics: Metrics, worker: Worker | null): Metrics {
  if (worker !== null) metrics.followWorker(worker);
  return metrics;
}

function serveMetrics(metrics: Metrics, settings: Settings, port: number): Promise<Server> {
  const server = createHttpServer((request, response) => {
    if (request.url !== '/metrics') return void response.writeHead(404).end();
    metrics.registry.metrics().then(
      (text) => response.writeHead(200, { 'content-type': metrics.registry.contentType }).end(text),
      () => response.writeHead(500).end(),
    );
  });
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, settings.host, () => resolve(server));
  });
}

/** One line for an operator; a stack only where the fault is ours. */
function explain(error: unknown): string {
  if (error instanceof SettingError || error instanceof DatabaseError || error instanceof EmbeddedServerError)
    return error.message;
  if (!(error instanceof Error)) return String(error);
  const code = 'code' in error ? error.code : null;
  const address = 'address' in error && 'port' in error ? `${String(error.address)}:${String(error.port)}` : '';
  if (code === 'EADDRINUSE') return `PORT: ${address} is taken by another program`;
  if (code === 'EACCES' && address !== '') return `PORT: this user may not listen on ${address}`;
  if (code === 'EADDRNOTAVAIL' || code === 'ENOTFOUND')
    return `HOST: this machine has no such address (${error.message})`;
  return error.stack ?? error.message;
}

function fail(error: unknown): never {
  process.stderr.write(`decision-ledger: ${explain(error)}\n`);
  process.exit(1);
}

/** A signal that comes while the service starts is kept until there is something to stop. */
const stopAsked = new Promise<void>((resolve) => {
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, () => resolve());
});

const running = await Promise.resolve()
  .then(() => start(readSettings(process.env)))
  .catch(fail);

await stopAsked;
setTimeout(
  () => fail(new DatabaseError('Not everything had finished when the time for stopping was over')),
  STOP_TIMEOUT_MS,
).unref();
await stop(running).then(() => process.exit(0), fail);
