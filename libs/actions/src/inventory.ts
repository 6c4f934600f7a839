import { Injectable } from '@nestjs/common';
import { BriefCache, Database, violatedConstraint, type BriefValue, type Transaction } from '#database';
import { canonicalJson, type JsonObject } from '#key';
import { Problem, validationFailed } from '#problem';
import { LRUCache } from 'lru-cache';
import type { Action, ActionRules } from './action.js';
import { compileParamsSchema, ParamsSchemaError, type ParamsCheck } from './params-schema.js';

/** Two admins may put the same action at once; the second then sees the first's version and counts on from it. */
const PUT_TRIES = 5;
const COMPILED_SCHEMAS = 1_000;

interface ActionRow {
  action: string;
  version: number;
  rules: string;
  updated_at: string;
}

const LATEST = `SELECT DISTINCT ON (action) action, version, rules, rfc3339(created_at) AS updated_at
                  FROM action_version
                 WHERE tenant_id = $1 AND ($2::text IS NULL OR action = $2)
                 ORDER BY action, version DESC`;

/** A version of an action, and the credential that made it; null for one that came with the first start. */
export interface MadeAction extends Action {
  credentialId: string | null;
}

const VERSIONS = `SELECT action, version, rules, rfc3339(created_at) AS updated_at, credential_id
                    FROM action_version WHERE tenant_id = $1 AND action = $2 ORDER BY version`;

/** What may be decided, and under which rules. */
@Injectable()
export class Inventory {
  private readonly actions = new BriefCache<ReadonlyMap<string, Action>>((tenant) => this.read(tenant));
  private readonly checks = new LRUCache<string, ParamsCheck>({ max: COMPILED_SCHEMAS });

  constructor(private readonly database: Database) {}

  /** The actions of a tenant by name, each in its latest version, at most a second old. */
  async all(tenant: string): Promise<ReadonlyMap<string, Action>> {
    return (await this.actions.get(tenant)) ?? new Map();
  }

  /** @throws Problem `not-found` */
  async get(tenant: string, action: string): Promise<Action> {
    const [row] = await this.database.transaction(tenant, (tx) => tx.query<ActionRow[]>(LATEST, [tenant, action]));
    if (row === undefined) throw new Problem('not-found', 'The inventory has no such action.');
    return actionOf(row);
  }

  /** Every version of an action, the first one first. @throws Problem `not-found` */
  async versions(tenant: string, action: string): Promise<MadeAction[]> {
    const rows = await this.database.transaction(tenant, (tx) =>
      tx.query<(ActionRow & { credential_id: string | null })[]>(VERSIONS, [tenant, action]),
    );
    if (rows.length === 0) throw new Problem('not-found', 'The inventory has no such action.');
    return rows.map((row) => ({ ...actionOf(row), credentialId: row.credential_id }));
  }

  async list(tenant: string): Promise<Action[]> {
    const rows = await this.database.transaction(tenant, (tx) => tx.query<ActionRow[]>(LATEST, [tenant, null]));
    return rows.map(actionOf);
  }

  /**
   * Puts an action into the inventory, or makes a new version of it if the rules differ.
   *
   * @throws Problem `validation-failed` if `paramsSchema` is not a JSON Schema
   */
  async put(
    tenant: string,
    action: string,
    rules: ActionRules,
    credentialId: string | null,
  ): Promise<{ action: Action; created: boolean }> {
    checkSchema(rules);
    const text = canonicalJson(plain(rules));
    for (let tries = 1; ; tries += 1) {
      try {
        const put = await this.database.transaction(tenant, (tx) => putVersion(tx, tenant, action, text, credentialId));
        this.actions.forget(tenant);
        return put;
      } catch (error) {
        if (tries === PUT_TRIES || violatedConstraint(error) !== 'action_version_pkey') throw error;
      }
    }
  }

  /** What is wrong with the params of a decision under the action's schema; null if nothing is. */
  checkParams(tenant: string, action: Action, params: JsonObject): ReturnType<ParamsCheck> {
    if (action.paramsSchema === undefined) return null;
    const key = `${tenant} ${action.action} ${action.version}`;
    const check = this.checks.get(key) ?? compileParamsSchema(action.paramsSchema);
    this.checks.set(key, check);
    return check(params);
  }

  private async read(tenant: string): Promise<BriefValue<ReadonlyMap<string, Action>>> {
    const actions = await this.list(tenant);
    return { value: new Map(actions.map((action) => [action.action, action])) };
  }
}

async function putVersion(
  tx: Transaction,
  tenant: string,
  action: string,
  rules: string,
  credentialId: string | null,
): Promise<{ action: Action; created: boolean }> {
  const [latest] = await tx.query<ActionRow[]>(LATEST, [tenant, action]);
  if (latest?.rules === rules) return { action: actionOf(latest), created: false };
  const [row] = await tx.query<ActionRow[]>(
    `INSERT INTO action_version (tenant_id, action, version, rules, credential_id) VALUES ($1, $2, $3, $4, $5)
     RETURNING action, version, rules, rfc3339(created_at) AS updated_at`,
    [tenant, action, (latest?.version ?? 0) + 1, rules, credentialId],
  );
  if (row === undefined) throw new Error('INSERT … RETURNING gave no row');
  return { action: actionOf(row), created: latest === undefined };
}

function actionOf({ action, version, rules, updated_at }: ActionRow): Action {
  const parsed: ActionRules = JSON.parse(rules);
  return { action, version, ...parsed, updatedAt: updated_at };
}

function checkSchema({ paramsSchema }: ActionRules): void {
  if (paramsSchema === undefined) return;
  try {
    compileParamsSchema(paramsSchema);
  } catch (error) {
    if (!(error instanceof ParamsSchemaError)) throw error;
    throw validationFailed([
      { pointer: '/paramsSchema', detail: `is not a JSON Schema 2020-12 that can be used: ${error.message}` },
    ]);
  }
}

/** The rules as plain JSON, without the members that are not there. */
function plain(rules: ActionRules): JsonObject {
  const copy: JsonObject = JSON.parse(JSON.stringify(rules));
  return copy;
}
