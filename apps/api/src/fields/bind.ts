import type { Type } from '@nestjs/common';
import { validateSync } from 'class-validator';
import type { ProblemPlace } from '#problem';
import { fieldsOf } from './field.js';

const escapePointer = (name: string): string => name.replaceAll('~', '~0').replaceAll('/', '~1');

const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** A request bound to its class, or every place in it that breaks a rule. */
export type Bound<T> =
  { readonly value: T; readonly places: null } | { readonly value: null; readonly places: readonly ProblemPlace[] };

/**
 * Binds a JSON value to the class that declares its fields, and checks it. Members that the class does not declare are
 * refused, never dropped. Values are taken as they are: a member called `__proto__` inside `params` is data like any other.
 *
 * @param pointer where the value stands in the body (RFC 6901)
 */
export function bind<T extends object>(type: Type<T>, value: unknown, pointer = ''): Bound<T> {
  const places: ProblemPlace[] = [];
  const instance = bindInto(type, value, pointer, places);
  return places.length === 0 && instance !== null ? { value: instance, places: null } : { value: null, places };
}

function bindInto<T extends object>(type: Type<T>, value: unknown, pointer: string, places: ProblemPlace[]): T | null {
  if (!isRecord(value)) {
    places.push({ pointer, detail: 'must be an object' });
    return null;
  }
  const fields = fieldsOf(type);
  const known = new Set(fields.map(({ name }) => name));
  for (const name of Object.keys(value)) {
    if (!known.has(name))
      places.push({ pointer: `${pointer}/${escapePointer(name)}`, detail: 'is not a member of this request' });
  }
  const instance = new type();
  const absent = new Set<string>();
  for (const { name, isOptional, child } of fields) {
    if (!Object.hasOwn(value, name)) {
      absent.add(name);
      if (!isOptional) places.push({ pointer: `${pointer}/${name}`, detail: 'is required' });
    } else {
      const member =
        child !== null && isRecord(value[name])
          ? bindInto(child(), value[name], `${pointer}/${name}`, places)
          : value[name];
      Object.defineProperty(instance, name, { value: member, enumerable: true, writable: true, configurable: true });
    }
  }
  for (const { property, constraints } of validateSync(instance, {
    stopAtFirstError: true,
    forbidUnknownValues: false,
    validationError: { target: false, value: false },
  })) {
    if (!absent.has(property))
      places.push({
        pointer: `${pointer}/${property}`,
        detail: Object.values(constraints ?? {})[0] ?? 'breaks a rule',
      });
  }
  return instance;
}
