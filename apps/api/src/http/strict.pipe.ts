import type { PipeTransform, Type } from '@nestjs/common';
import { parseStrictJson, StrictJsonError, type JsonValue } from '#key';
import { Problem, validationFailed, type ProblemPlace } from '#problem';
import { bind } from '../fields/index.js';
import { UNDECODABLE } from './query-string.js';

/** Bytes of a body as a JSON value. @throws Problem `malformed-request` with the place */
export function readJson(bytes: unknown): JsonValue {
  try {
    return parseStrictJson(bytes instanceof Uint8Array ? bytes : new Uint8Array());
  } catch (error) {
    if (!(error instanceof StrictJsonError)) throw error;
    const { pointer, detail } = error;
    throw new Problem('malformed-request', detail, { members: { errors: [{ pointer, detail }] } });
  }
}

/** A JSON body, bound to the class that declares its fields. @throws Problem `malformed-request`, `validation-failed` */
export function strictBody<T extends object>(type: Type<T>): PipeTransform<unknown, T> {
  return {
    transform(bytes) {
      const { value, places } = bind(type, readJson(bytes));
      if (places !== null) throw validationFailed(places);
      return value;
    },
  };
}

/** A query, bound to the class that declares its parameters: each at most once, none empty, none unknown. */
export function strictQuery<T extends object>(type: Type<T>): PipeTransform<unknown, T> {
  return {
    transform(query) {
      const { value, places } = bind(type, query);
      const named = [
        ...repeatedOrEmpty(query),
        ...(places ?? []).map(({ pointer, detail }) => ({ pointer: pointer.slice(1), detail })),
      ];
      if (value === null || named.length > 0) throw validationFailed(firstOfEach(named));
      return value;
    },
  };
}

function repeatedOrEmpty(query: unknown): ProblemPlace[] {
  return Object.entries(query ?? {}).flatMap(([pointer, value]: [string, unknown]) => {
    if (Array.isArray(value)) return [{ pointer, detail: 'is given more than once' }];
    if (value === UNDECODABLE) return [{ pointer, detail: 'is not percent-encoded UTF-8' }];
    return value === '' ? [{ pointer, detail: 'is empty: leave it out instead' }] : [];
  });
}

function firstOfEach(places: readonly ProblemPlace[]): ProblemPlace[] {
  return places.filter(({ pointer }, index) => places.findIndex((other) => other.pointer === pointer) === index);
}
