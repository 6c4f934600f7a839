import { createContext, Script } from 'node:vm';
import { Ajv2020, type ErrorObject, type ValidateFunction } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import type { ProblemPlace } from '#problem';

/** Tells what is wrong with `inputs.params`; null if nothing is. */
export type ParamsCheck = (params: unknown) => ProblemPlace | null;

/** A schema that cannot be compiled. The message says why. */
export class ParamsSchemaError extends Error {}

/** A schema comes from a tenant's admin, and must not be able to keep the process from everybody else. */
const COMPILE_TIMEOUT_MS = 1_000;
const VALIDATE_TIMEOUT_MS = 250;

/**
 * Compiles an action's JSON Schema 2020-12.
 *
 * @throws ParamsSchemaError if it is no schema, refers to something outside itself, or takes too long.
 */
export function compileParamsSchema(schema: Record<string, unknown>): ParamsCheck {
  const validate = compile(schema);
  return (params) => {
    try {
      return inTime(VALIDATE_TIMEOUT_MS, () => validate(params)) ? null : placeOf(validate.errors?.[0]);
    } catch (error) {
      // A schema may refer to itself without end, or hold a pattern that backtracks without end, and show it only on data.
      if (error instanceof RangeError || isTimeout(error)) {
        return { pointer: '/inputs/params', detail: 'the schema of the action does not come to an end on this value' };
      }
      throw error;
    }
  };
}

/** An instance for each schema: two tenants may use one `$id`. */
function compile(schema: Record<string, unknown>): ValidateFunction {
  const ajv = new Ajv2020({
    strict: false,
    logger: false,
    // `toString` and `constructor` are members of the params only if they were sent.
    ownProperties: true,
    // A reference that is used again and again is compiled once, not copied each time.
    inlineRefs: false,
  });
  addFormats.default(ajv);
  try {
    const validate = inTime(COMPILE_TIMEOUT_MS, () => ajv.compile(schema));
    if ('$async' in validate) throw new ParamsSchemaError('an asynchronous schema is not supported');
    return validate;
  } catch (error) {
    if (isTimeout(error)) throw new ParamsSchemaError('it takes too long to compile');
    throw error instanceof Error ? new ParamsSchemaError(error.message) : error;
  }
}

const SANDBOX: { work: (() => unknown) | null } = { work: null };
const CONTEXT = createContext(SANDBOX);
const CALL_WORK = new Script('work()');

/** Runs something that a schema has a say in, and interrupts it, whatever it is doing, when its time is over. */
function inTime<T>(timeoutMs: number, work: () => T): T {
  const results: T[] = [];
  SANDBOX.work = () => void results.push(work());
  CALL_WORK.runInContext(CONTEXT, { timeout: timeoutMs });
  const [result] = results;
  if (result === undefined) throw new Error('The script ended without a result');
  return result;
}

function isTimeout(error: unknown): boolean {
  // It is made in the script's own realm, whose Error is another.
  return (
    typeof error === 'object' && error !== null && 'code' in error && error.code === 'ERR_SCRIPT_EXECUTION_TIMEOUT'
  );
}

function placeOf(error: ErrorObject | undefined): ProblemPlace {
  const path = `/inputs/params${error?.instancePath ?? ''}`;
  const member: unknown =
    error?.params['missingProperty'] ?? error?.params['additionalProperty'] ?? error?.params['unevaluatedProperty'];
  const pointer = typeof member === 'string' ? `${path}/${member.replaceAll('~', '~0').replaceAll('/', '~1')}` : path;
  return { pointer, detail: error?.message ?? 'breaks the schema of the action' };
}
