import { spawn } from 'node:child_process';
import { constants } from 'node:os';

const running = new Set();
let interruptedBy;

/** The signal that this process was told to end by, if it was. */
export const interruption = () => interruptedBy;

/** The exit code by which a shell reports a death by this signal. */
export const exitCodeOf = (signal) => 128 + (constants.signals[signal] ?? 0);

/** Until `release` is called, a signal ends the child processes first, and us when they are gone. */
export function holdSignals() {
  const handlers = ['SIGINT', 'SIGTERM', 'SIGHUP'].map((signal) => {
    const handler = () => {
      interruptedBy ??= signal;
      for (const child of running) child.kill(signal);
    };
    process.on(signal, handler);
    return [signal, handler];
  });
  return () => {
    for (const [signal, handler] of handlers) process.off(signal, handler);
  };
}

/** Runs a program to its end. Output that is not inherited is collected, both streams in one. */
export function run(program, args, options = {}) {
  return new Promise((resolve, reject) => {
    const child = spawn(program, args, { stdio: ['ignore', 'pipe', 'pipe'], ...options });
    let output = '';
    for (const stream of [child.stdout, child.stderr]) {
      stream?.setEncoding('utf8').on('data', (text) => (output += text));
    }
    running.add(child);
    child.once('error', (error) => {
      running.delete(child);
      reject(error);
    });
    child.once('close', (code, signal) => {
      running.delete(child);
      resolve({ code: code ?? exitCodeOf(signal), output });
    });
    if (interruptedBy) child.kill(interruptedBy);
  });
}
