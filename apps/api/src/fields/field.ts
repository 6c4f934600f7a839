import { applyDecorators, type Type } from '@nestjs/common';
import { ApiProperty, type ApiPropertyOptions } from '@nestjs/swagger';

/** What is known of a field of a request beside its rules. */
export interface Field {
  readonly name: string;
  readonly isOptional: boolean;
  /** The class of an object that is bound and checked in its turn. */
  readonly child: (() => Type<object>) | null;
}

const FIELDS = new WeakMap<object, Field[]>();

/** The fields of a request's class, those of the class it extends first, in the order in which they are declared. */
export function fieldsOf(type: Type<object>): readonly Field[] {
  return declaredBy(type.prototype);
}

function declaredBy(prototype: object | null): Field[] {
  if (prototype === null) return [];
  return [...declaredBy(Object.getPrototypeOf(prototype)), ...(FIELDS.get(prototype) ?? [])];
}

export interface FieldOptions {
  /** In an auditor's words. */
  readonly description: string;
  readonly example?: unknown;
  readonly optional?: boolean;
}

/**
 * Declares a field once: how OpenAPI shows it, which rules `class-validator` checks, and that it may be sent at all. The
 * kinds of field in `kinds.ts` are made of this.
 */
export function field(
  { optional = false, ...options }: FieldOptions,
  schema: ApiPropertyOptions,
  rules: readonly PropertyDecorator[],
  child: (() => Type<object>) | null = null,
): PropertyDecorator {
  const remember: PropertyDecorator = (prototype, name) => {
    FIELDS.set(prototype, [...(FIELDS.get(prototype) ?? []), { name: String(name), isOptional: optional, child }]);
  };
  return applyDecorators(
    remember,
    ApiProperty({ ...schema, ...options, required: !optional } as ApiPropertyOptions),
    ...rules,
  );
}
