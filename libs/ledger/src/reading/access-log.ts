import { Injectable } from '@nestjs/common';
import { Database } from '#database';
import { newId } from '../new-id.js';
import { Parameters } from './parameters.js';
import { whereOf } from './filters.js';
import { RECORDED, type Source } from './source.js';
import { cursorOf, pageOf, walk, type Page, type Paging } from './walk.js';

/** Who reads what, before it is answered. */
export interface Access {
  readonly tenant: string;
  readonly credentialId: string;
  readonly requestId: string;
  readonly method: string;
  /** The route's pattern, such as `/v1/decisions/{decisionId}`. */
  readonly route: string;
  /** The parameters of the query and the path, as they were sent. */
  readonly filters: Readonly<Record<string, unknown>>;
}

export interface AccessView {
  accessId: string;
  at: string;
  credentialId: string;
  requestId: string;
  method: string;
  route: string;
  filters: Record<string, unknown>;
  /** How many rows were sent; null while it is under way. */
  rows: number | null;
  /** Whether it was sent to its end. */
  finished: boolean;
}

export interface AccessFilters {
  readonly credentialId?: string;
  readonly route?: string;
  readonly from?: string;
  readonly to?: string;
}

const ACCESS_ROW = `json_build_object('accessId', a.access_id, 'at', rfc3339(a.at), 'credentialId', a.credential_id, 'requestId', a.request_id,
  'method', a.method, 'route', a.route, 'filters', a.filters::json, 'rows', e.rows, 'finished', coalesce(e.finished, false))`;

const ACCESSES: Source = {
  ...RECORDED,
  from: 'access a',
  where: 'a.tenant_id = $1',
  id: 'a.access_id',
  at: 'a.at',
  asOf: (_snapshot, time) => `a.at <= ${time}`,
};

const FILTERS = {
  credentialId: { condition: (p: string) => `a.credential_id = ${p}` },
  route: { condition: (p: string) => `a.route = ${p}` },
  from: { condition: (p: string) => `a.at >= ${p}::timestamptz` },
  to: { condition: (p: string) => `a.at < ${p}::timestamptz` },
};

/** Who looked at what, and when. Only ever added to. */
@Injectable()
export class AccessLog {
  constructor(private readonly database: Database) {}

  /** Records a reading whose rows are at hand, and is durable when it returns. */
  async note(access: Access, rows: number): Promise<void> {
    await this.write(access, newId(), rows);
  }

  /** Records that a reading begins, and is durable when it returns. Gives what `end` is told. */
  async begin(access: Access): Promise<string> {
    const accessId = newId();
    await this.write(access, accessId, null);
    return accessId;
  }

  async end(tenant: string, accessId: string, rows: number, finished: boolean): Promise<void> {
    await this.database.statement('SELECT note_access_end($1, $2, $3, $4)', [tenant, accessId, rows, finished]);
  }

  /** @throws Problem `validation-failed` for a cursor that belongs to another question, or to none */
  async list(tenant: string, filters: AccessFilters, paging: Paging): Promise<Page<AccessView>> {
    const question = ['accesses', tenant, Object.entries(filters).toSorted()];
    const from = cursorOf(question, paging);
    const parameters = new Parameters(tenant);
    const walked = await this.database.transaction(tenant, (tx) =>
      walk<AccessView>(
        tx,
        {
          question,
          parameters,
          sources: [ACCESSES],
          isOverMovingRows: true,
          conditionOf: (source) => whereOf(FILTERS, { ...filters }, source, parameters),
          row: ACCESS_ROW,
          joins: `JOIN access a ON a.access_id = p.id AND a.tenant_id = $1
                  LEFT JOIN access_end e ON e.access_id = a.access_id AND e.tenant_id = a.tenant_id`,
        },
        paging,
        from,
      ),
    );
    return pageOf(walked, paging.limit);
  }

  private async write(
    { tenant, credentialId, requestId, method, route, filters }: Access,
    accessId: string,
    rows: number | null,
  ): Promise<void> {
    await this.database.statement('SELECT note_access($1, $2, $3, $4, $5, $6, $7, $8)', [
      tenant,
      accessId,
      credentialId,
      requestId,
      method,
      route,
      JSON.stringify(filters),
      rows,
    ]);
  }
}
