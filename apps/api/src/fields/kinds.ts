import type { Type } from '@nestjs/common';
import {
  ArrayMaxSize,
  ArrayMinSize,
  IsArray,
  IsIn,
  IsInt,
  IsObject,
  IsString,
  Matches,
  Max,
  Min,
  ValidateBy,
} from 'class-validator';
import { field, type FieldOptions } from './field.js';
import { isRfc3339 } from './rfc3339.js';

const MAX_TEXT = 255;

/** Counts code points, as the contract does; a text of no more UTF-16 units than allowed need not be counted. */
function hasLength(value: unknown, least: number, most: number): boolean {
  if (typeof value !== 'string' || value.length < least || value.includes('\u0000')) return false;
  return value.length <= most || (value.length <= 2 * most && [...value].length <= most);
}

const codePoints = (least: number, most: number): PropertyDecorator =>
  ValidateBy({
    name: 'codePoints',
    validator: {
      validate: (value) => hasLength(value, least, most),
      defaultMessage: () => `must be ${least} to ${most} characters`,
    },
  });

/** Text as it was sent: nothing is trimmed, folded or normalised. Lengths in code points. */
export function Text({ max = MAX_TEXT, ...options }: FieldOptions & { max?: number }): PropertyDecorator {
  return field(options, { type: 'string', minLength: 1, maxLength: max }, [
    codePoints(1, max),
    IsString({ message: 'must be text' }),
  ]);
}

/** Text of a fixed form. `form` says in words what `pattern` says in signs. */
export function Name({
  pattern,
  form,
  max = MAX_TEXT,
  ...options
}: FieldOptions & { pattern: RegExp; form: string; max?: number }): PropertyDecorator {
  return field(options, { type: 'string', pattern: pattern.source, maxLength: max }, [
    Matches(pattern, { message: `must be ${form}` }),
    codePoints(1, max),
    IsString({ message: 'must be text' }),
  ]);
}

/** SHA-256 as 64 lower-case hex digits. */
export function Sha256Hex(options: FieldOptions): PropertyDecorator {
  return Name({ ...options, pattern: /^[0-9a-f]{64}$/, form: '64 lower-case hex digits' });
}

/** One of a few words. */
export function OneOf<const T extends string>({
  values,
  ...options
}: FieldOptions & { values: readonly T[]; default?: T }): PropertyDecorator {
  return field(options, { type: 'string', enum: [...values] }, [
    IsIn([...values], { message: `must be one of ${values.join(', ')}` }),
  ]);
}

/** A list of a few words, joined by commas, each at most once. */
export function Names({ values, ...options }: FieldOptions & { values: readonly string[] }): PropertyDecorator {
  const isList = (value: unknown): boolean => {
    const names = typeof value === 'string' ? value.split(',') : [];
    return names.length > 0 && names.every((name) => values.includes(name)) && new Set(names).size === names.length;
  };
  const message = `must be a list, with commas and each at most once, of ${values.join(', ')}`;
  const word = `(${values.join('|')})`;
  return field(options, { type: 'string', pattern: `^${word}(,${word})*$` }, [
    ValidateBy({ name: 'names', validator: { validate: isList, defaultMessage: () => message } }),
  ]);
}

/** A whole number. */
export function Whole({
  min,
  max,
  ...options
}: FieldOptions & { min: number; max: number; default?: number }): PropertyDecorator {
  const message = `must be a whole number from ${min} to ${max}`;
  return field(options, { type: 'integer', minimum: min, maximum: max }, [
    Min(min, { message }),
    Max(max, { message }),
    IsInt({ message }),
  ]);
}

/** A whole number in the text of a query. */
export function WholeText({
  min,
  max,
  ...options
}: FieldOptions & { min: number; max: number; default?: number }): PropertyDecorator {
  const message = `must be a whole number from ${min} to ${max}`;
  const isWhole = (value: unknown): boolean =>
    typeof value === 'string' && /^(0|[1-9]\d{0,9})$/.test(value) && Number(value) >= min && Number(value) <= max;
  return field(options, { type: 'integer', minimum: min, maximum: max }, [
    ValidateBy({ name: 'wholeText', validator: { validate: isWhole, defaultMessage: () => message } }),
  ]);
}

/** A time of RFC 3339 with its offset, to the microsecond at most. */
export function Time(options: FieldOptions): PropertyDecorator {
  const message =
    'must be a time of RFC 3339 with an offset, at most to the microsecond, such as 2026-11-30T17:36:00.123456Z';
  return field(options, { type: 'string', format: 'date-time' }, [
    ValidateBy({
      name: 'rfc3339',
      validator: { validate: (value) => typeof value === 'string' && isRfc3339(value), defaultMessage: () => message },
    }),
  ]);
}

/** An idempotency key as JSON carries it. Its syntax has a problem of its own, so only its type is checked here. */
export function Key(options: FieldOptions): PropertyDecorator {
  return field(options, { type: 'string', minLength: 1, maxLength: MAX_TEXT }, [IsString({ message: 'must be text' })]);
}

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;

/** An id that this service has given. */
export function Id(options: FieldOptions): PropertyDecorator {
  return field(options, { type: 'string', format: 'uuid' }, [
    Matches(UUID, { message: 'must be a UUID in lower case' }),
  ]);
}

/** Any JSON object. */
export function JsonMap(options: FieldOptions): PropertyDecorator {
  return field(options, { type: 'object', additionalProperties: true }, [IsObject({ message: 'must be an object' })]);
}

/** Any JSON value. */
export function Json(options: FieldOptions): PropertyDecorator {
  return field(options, {}, [ValidateBy({ name: 'json', validator: { validate: () => true } })]);
}

/** `true`, and nothing else. */
export function Yes(options: FieldOptions): PropertyDecorator {
  return field(options, { type: 'boolean', enum: [true] }, [IsIn([true], { message: 'must be true' })]);
}

/** An object with fields of its own. */
export function Child(type: () => Type<object>, { description, optional }: FieldOptions): PropertyDecorator {
  return field(
    { description, ...(optional === undefined ? {} : { optional }) },
    // Swagger tells a function that gives a class from a class by its name, `type`.
    { type: () => type() },
    [IsObject({ message: 'must be an object' })],
    type,
  );
}

/** A list of objects that are each bound and checked on their own, so that a bad one can be answered on its own. */
export function Items(
  type: () => Type<object>,
  { min, max, ...options }: FieldOptions & { min: number; max: number },
): PropertyDecorator {
  const message = `must be a list of ${min} to ${max} items`;
  return field(options, { type: () => type(), isArray: true, minItems: min, maxItems: max }, [
    ArrayMinSize(min, { message }),
    ArrayMaxSize(max, { message }),
    IsArray({ message }),
  ]);
}
