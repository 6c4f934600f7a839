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
      // The page of the description has wildcards of its own, for its files.
      if (!pattern.startsWith('/v1/') && pattern.includes('*')) continue;
      if (!matches(pattern, path)) continue;
      for (const method of known) methods.add(method);
    }
    return [...methods].toSorted();
  }
}

function matches(pattern: string, path: string): boolean {
  if (pattern.endsWith('/*')) return path.startsWith(pattern.slice(0, -1));
  const wanted = pattern.split('/');
  const given = path.split('/');
  return (
    wanted.length === given.length &&
    wanted.every((part, index) => (part.startsWith(':') ? given[index] !== '' : part === given[index]))
  );
}
