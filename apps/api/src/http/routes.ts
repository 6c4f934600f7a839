import type { FastifyInstance } from 'fastify';

/** The routes as they were registered, to tell a path that knows other methods (405) from one that is not there (404). */
export class Routes {
  private readonly methodsByPattern = new Map<string, Set<string>>();

  constructor(fastify: FastifyInstance) {
    fastify.addHook('onRoute', ({ url, method }) => {
      const methods = this.methodsByPattern.get(url) ?? new Set();
      for (const name of [method].flat()) methods.add(name);
      this.methodsByPattern.set(url, methods);
    });
  }

  /** The methods that a path knows; none if there is no such path. */
  methodsOf(path: string): readonly string[] {
    const methods = new Set<string>();
    for (const [pattern, known] of this.methodsByPattern) {
      if (pattern.includes('*') || !matches(pattern, path)) continue;
      for (const method of known) methods.add(method);
    }
    return [...methods].toSorted();
  }
}

function matches(pattern: string, path: string): boolean {
  const wanted = pattern.split('/');
  const given = path.split('/');
  return (
    wanted.length === given.length &&
    wanted.every((part, index) => (part.startsWith(':') ? given[index] !== '' : part === given[index]))
  );
}
