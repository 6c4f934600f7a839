// Moves the clock of the process that it is loaded into: `node --import`, with CLOCK_OFFSET_MS in the environment. What Node
// itself keeps of time by another clock, performance.now() and timers, goes on as it was, as under an operating system whose
// time of day is wrong. Plain JavaScript, so that it can be loaded without a build.
import { subscribe } from 'node:diagnostics_channel';

const offsetMs = Number(process.env.CLOCK_OFFSET_MS);
const TrueDate = Date;
const now = () => TrueDate.now() + offsetMs;

globalThis.Date = new Proxy(TrueDate, {
  apply: () => new TrueDate(now()).toString(),
  construct: (target, args, made) => Reflect.construct(target, args.length === 0 ? [now()] : args, made),
  get: (target, name, receiver) => (name === 'now' ? now : Reflect.get(target, name, receiver)),
});

// Node's HTTP server took its own Date before this was loaded.
subscribe('http.server.request.start', ({ response }) => response.setHeader('date', new Date().toUTCString()));
