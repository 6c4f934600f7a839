import { Ajv2020, type ErrorObject, type ValidateFunction } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import type { ProblemPlace } from '#problem';

/** Tells what is wrong with `inputs.params`; null if nothing is. */
export type ParamsCheck = (params: unknown) => ProblemPlace | null;

/** A schema that cannot be compiled. The message says why. */
export class ParamsSchemaError extends Error {}

/**
 * Compiles an action's JSON Schema 2020-12.
 *
 * @throws ParamsSchemaError if it is no schema, or refers to something outside itself.
 */
export function compileParamsSchema(schema: Record<string, unknown>): ParamsCheck {
  const validate = compile(schema);
  return (params) => {
    try {
      return validate(params) ? null : placeOf(validate.errors?.[0]);
    } catch (error) {
      // A schema that refers to itself without end compiles, and only runs out of stack on data.
      if (error instanceof RangeError)
        return { pointer: '/inputs/params', detail: 'the schema of the action does not come to an end on this value' };
      throw error;
    }
  };
}

/** An instance for each schema: two tenants may use one `$id`. */
function compile(schema: Record<string, unknown>): ValidateFunction {
  const ajv = new Ajv2020({ strict: false, validateFormats: true, addUsedSchema: false, logger: false });
  addFormats.default(ajv);
  try {
    const validate = ajv.compile(schema);
    if ('$async' in validate) throw new ParamsSchemaError('an asynchronous schema is not supported');
    return validate;
  } catch (error) {
    throw error instanceof Error ? new ParamsSchemaError(error.message) : error;
  }
}

function placeOf(error: ErrorObject | undefined): ProblemPlace {
  const path = `/inputs/params${error?.instancePath ?? ''}`;
  const member: unknown =
    error?.params['missingProperty'] ?? error?.params['additionalProperty'] ?? error?.params['unevaluatedProperty'];
  const pointer = typeof member === 'string' ? `${path}/${member.replaceAll('~', '~0').replaceAll('/', '~1')}` : path;
  return { pointer, detail: error?.message ?? 'breaks the schema of the action' };
}
