import { fork } from 'node:child_process';
import { once } from 'node:events';

/** In a child: answers jobs one after the other, and ends with the parent. Ctrl-C is the parent's to handle. */
export function serveJobs(handlers) {
  process.on('SIGINT', () => undefined);
  process.on('disconnect', () => process.exit(0));
  process.on('message', ({ name, job }) => {
    Promise.resolve()
      .then(() => handlers[name](job))
      .then(
        (result) => process.send({ result: result ?? null }),
        (error) => process.send({ error: error instanceof Error ? error.stack : String(error) }),
      );
  });
}

/** In the parent: a child that takes jobs, one at a time. */
export class JobProcess {
  #child;
  #pending;

  constructor(file) {
    this.#child = fork(file, { stdio: ['ignore', 'ignore', 'inherit', 'ipc'] });
    this.#child.on('message', ({ error, result }) => {
      if (error === undefined) this.#pending?.resolve(result);
      else this.#pending?.reject(new Error(error));
    });
    this.#child.on('exit', (code) => this.#pending?.reject(new Error(`A load process ended with ${code}`)));
  }

  run(name, job) {
    return new Promise((resolve, reject) => {
      this.#pending = { resolve, reject };
      this.#child.send({ name, job });
    });
  }

  async stop() {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    const gone = once(this.#child, 'exit');
    this.#child.kill('SIGKILL');
    await gone;
  }
}
