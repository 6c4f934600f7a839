import { randomBytes, randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import {
  canonicalJson,
  deriveContentKey,
  downstreamDigest,
  downstreamKeys,
  fingerprint,
  parseIdempotencyKey,
} from '#key';

const TENANT = 'acme';
const TOKEN = 'dlk_fake_orchestrator';

export interface FakeRules {
  readonly execution: 'transactional' | 'caller' | 'dispatched';
  readonly uniqueness?: 'none' | 'subject';
  readonly sameContent?: 'replay' | 'refuse' | 'allow';
  readonly leaseSeconds?: number;
  readonly onExpiredLease?: 'reclaim' | 'unknown';
}

interface Reply {
  readonly status: number;
  readonly text: string;
  readonly headers?: Readonly<Record<string, string>>;
}

interface Decision {
  readonly decisionId: string;
  readonly key: string;
  readonly contentKey: string;
  readonly print: string;
  readonly keys: ReturnType<typeof downstreamKeys>;
  readonly action: string;
  readonly subject: string;
  state: 'in_flight' | 'completed' | 'failed' | 'unknown';
  lease: { token: string; number: number; nonce: string | null; untilMs: number };
  stored: Reply | null;
  /** The last report and what was answered to it. */
  report: { text: string; reply: Reply } | null;
}

/** What came over the socket: the fake looks into it without asking first. */
// eslint-disable-next-line typescript/no-explicit-any
type Loose = any;

/** A service of the contract's sections 1, 4 and 6, for the client's tests: in memory, one tenant, no log, no reading. */
export async function startFakeLedger(rules: Readonly<Record<string, FakeRules>>) {
  const fake = new Fake(new Map(Object.entries(rules)));
  const server = createServer((request, response) => {
    void fake.answer(request).then(({ status, text, headers }) => {
      const type = status < 400 ? 'application/json' : 'application/problem+json';
      return response.writeHead(status, { 'content-type': type, 'x-request-id': randomUUID(), ...headers }).end(text);
    });
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    token: TOKEN,
    tenant: TENANT,
    async stop() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

class Fake {
  readonly #byKey = new Map<string, Decision>();
  readonly #byId = new Map<string, Decision>();

  constructor(private readonly rules: ReadonlyMap<string, FakeRules>) {}

  async answer(request: IncomingMessage): Promise<Reply> {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    if (request.headers.authorization !== `Bearer ${TOKEN}`) return problem(401, 'unauthenticated');
    const bytes = Buffer.concat(chunks);
    if (bytes.length > 256 * 1024) return problem(413, 'too-large');
    const body = JSON.parse(bytes.toString());
    const [, decisionId = '', route = ''] = /^\/v1\/decisions\/([^/]+)\/(\w+)$/.exec(request.url ?? '') ?? [];
    if (request.url === '/v1/decisions') return this.#register(body, request);
    const decision = this.#byId.get(decisionId);
    if (decision === undefined) return problem(404, 'not-found');
    if (route === 'lease') return this.#renew(decision, body.leaseToken);
    return this.#report(decision, route, body);
  }

  async #register(body: Loose, request: IncomingMessage): Promise<Reply> {
    const { inputs, note = null, leaseNonce = null } = body;
    if (inputs.tenantId !== undefined && inputs.tenantId !== TENANT) return problem(403, 'tenant-mismatch');
    const content = deriveContentKey({ ...inputs, tenantId: TENANT });
    const header = request.headers['idempotency-key'];
    const key = typeof header === 'string' ? parseIdempotencyKey(header) : content.key;
    if (key.startsWith('dk_') && key !== content.key) return problem(422, 'key-derivation-mismatch');
    const print = fingerprint(content.canonical, note).toString('hex');
    const prefer = /wait=(\d+)/.exec(String(request.headers['prefer'] ?? ''))?.[1];
    const deadline = performance.now() + (prefer === undefined ? 100 : Number(prefer) * 1000);
    for (;;) {
      const reply = this.#attempt({ key, print, contentKey: content.key, sha256: content.sha256, inputs, leaseNonce });
      if (reply.status !== 409 || JSON.parse(reply.text).code !== 'in-flight') return reply;
      if (performance.now() >= deadline) return reply;
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
  }

  #attempt(asked: Loose): Reply {
    const { key, print, contentKey, inputs, leaseNonce } = asked;
    const known = this.#byKey.get(key);
    if (known !== undefined) {
      if (known.print !== print) return problem(422, 'fingerprint-mismatch', facts(known));
      return this.#again(known, leaseNonce);
    }
    const rules = this.rules.get(inputs.action);
    if (rules === undefined) return problem(422, 'unknown-action');
    const subject = canonicalJson(inputs.subject);
    const twin = [...this.#byId.values()].find((one) => one.contentKey === contentKey);
    if (twin !== undefined && rules.sameContent !== 'allow') {
      if (rules.sameContent === 'refuse') return problem(409, 'same-content', { winner: winnerOf(twin) });
      this.#byKey.set(key, twin);
      return this.#again(twin, leaseNonce);
    }
    const digest = key === contentKey ? asked.sha256 : downstreamDigest({ tenantId: TENANT, key });
    const decision: Decision = {
      decisionId: randomUUID(),
      key,
      contentKey,
      print,
      keys: downstreamKeys({ key, digest }),
      action: inputs.action,
      subject,
      state: 'in_flight',
      lease: { token: '', number: 0, nonce: null, untilMs: 0 },
      stored: null,
      report: null,
    };
    const holder = [...this.#byId.values()].find((one) => one.action === inputs.action && one.subject === subject);
    if (rules.uniqueness === 'subject' && holder !== undefined && holder.stored?.status !== 409) {
      if (holder.state !== 'completed') return inFlight(holder);
      this.#keep(decision);
      return this.#store(decision, { status: 'refused', reason: 'duplicate-subject', winner: winnerOf(holder) });
    }
    this.#keep(decision);
    if (rules.execution === 'transactional') return this.#store(decision, { status: 'applied', result: inputs.params });
    if (rules.execution === 'dispatched') return json(202, facts(decision));
    return this.#claim(decision, leaseNonce);
  }

  #again(decision: Decision, nonce: string | null): Reply {
    const { state, lease, action } = decision;
    if (decision.stored !== null) return replayed(decision.stored);
    if (this.rules.get(action)?.execution === 'dispatched') {
      return this.#store(decision, { status: 'applied', result: { dispatched: true } });
    }
    if (state === 'failed') return this.#claim(decision, nonce);
    if (state === 'unknown') return problem(409, 'outcome-unknown', facts(decision));
    const isOver = performance.now() >= lease.untilMs;
    if (!isOver && nonce !== null && nonce === lease.nonce) return claimed(decision);
    if (!isOver) return inFlight(decision);
    if (this.rules.get(action)?.onExpiredLease === 'unknown') decision.state = 'unknown';
    return decision.state === 'unknown'
      ? problem(409, 'outcome-unknown', facts(decision))
      : this.#claim(decision, nonce);
  }

  #claim(decision: Decision, nonce: string | null): Reply {
    const token = randomBytes(16).toString('base64url');
    decision.state = 'in_flight';
    decision.lease = { token, number: decision.lease.number + 1, nonce, untilMs: this.#until(decision) };
    return claimed(decision);
  }

  #renew(decision: Decision, token: string): Reply {
    const { lease, state } = decision;
    if (state !== 'in_flight' || lease.token !== token) return problem(409, 'lease-lost', facts(decision));
    lease.untilMs = this.#until(decision);
    return json(200, { lockedUntil: time(lease.untilMs) });
  }

  #report(decision: Decision, route: string, body: Loose): Reply {
    const { leaseToken, outcome } = body;
    if (leaseToken !== decision.lease.token) return problem(409, 'lease-lost', facts(decision));
    const text = canonicalJson([route, outcome ?? [body.reason, body.effect]]);
    if (decision.report !== null && decision.state !== 'in_flight' && decision.state !== 'unknown') {
      return decision.report.text === text
        ? replayed(decision.report.reply)
        : problem(422, 'fingerprint-mismatch', facts(decision));
    }
    const reply = route === 'completion' ? this.#complete(decision, outcome) : this.#fail(decision, body);
    if (reply.status !== 400) decision.report = { text, reply };
    return reply;
  }

  #complete(decision: Decision, outcome: Loose): Reply {
    const reason = outcome.reason as unknown;
    if (outcome.status === 'refused' && (typeof reason !== 'string' || reason.length === 0 || reason.length > 255)) {
      return problem(400, 'validation-failed', { detail: 'reason: 1–255 characters' });
    }
    const reply = this.#store(decision, outcome);
    return reply.status === 201 ? { ...reply, status: 200 } : reply;
  }

  #fail(decision: Decision, { effect }: Loose): Reply {
    decision.state = effect === 'none' ? 'failed' : 'unknown';
    return json(200, { decisionId: decision.decisionId, state: decision.state });
  }

  #store(decision: Decision, outcome: Loose): Reply {
    decision.state = 'completed';
    const { decisionId, key, contentKey, action } = decision;
    const record = { decisionId, key, ledgerEntryId: randomUUID(), recordedAt: time(performance.now()) };
    if (outcome.status === 'refused') {
      const { reason, detail, winner } = outcome;
      const code = winner === undefined ? 'refused' : 'duplicate-subject';
      const told = { ...record, reason, ...(detail ? { detail } : {}), ...(winner ? { winner } : {}) };
      decision.stored = problem(409, code, told);
      return decision.stored;
    }
    const { result, externalRef } = outcome;
    const effect = { effectId: randomUUID(), kind: action, status: 'applied', ...(externalRef ? { externalRef } : {}) };
    const keySource = key === contentKey ? 'content' : 'client';
    const body = {
      ...record,
      keySource,
      contentKey,
      state: 'completed',
      outcome: { status: 'applied', result },
      effect,
    };
    decision.stored = json(201, body);
    return decision.stored;
  }

  #keep(decision: Decision): void {
    this.#byKey.set(decision.key, decision);
    this.#byId.set(decision.decisionId, decision);
  }

  #until({ action }: Decision): number {
    return performance.now() + (this.rules.get(action)?.leaseSeconds ?? 30) * 1000;
  }
}

function claimed(decision: Decision): Reply {
  const { decisionId, key, contentKey, lease, keys } = decision;
  const told = { token: lease.token, number: lease.number, lockedUntil: time(lease.untilMs) };
  const keySource = key === contentKey ? 'content' : 'client';
  return json(202, { decisionId, key, keySource, contentKey, state: 'in_flight', lease: told, downstreamKeys: keys });
}

function inFlight(decision: Decision): Reply {
  return { ...problem(409, 'in-flight', facts(decision)), headers: { 'retry-after': '1' } };
}

function facts({ decisionId, state }: Decision): Record<string, unknown> {
  return { decisionId, state };
}

function winnerOf({ decisionId, key }: Decision): Record<string, string> {
  return { decisionId, key, recordedAt: time(performance.now()) };
}

function replayed(reply: Reply): Reply {
  return { ...reply, headers: { ...reply.headers, 'idempotent-replayed': 'true' } };
}

function json(status: number, body: unknown): Reply {
  return { status, text: JSON.stringify(body) };
}

const RETRYABLE = new Set(['in-flight', 'too-many-requests', 'internal', 'unavailable']);

function problem(status: number, code: string, more: Record<string, unknown> = {}): Reply {
  const type = `urn:decision-ledger:problem:${code}`;
  return json(status, {
    type,
    title: code,
    status,
    code,
    retryable: RETRYABLE.has(code),
    requestId: randomUUID(),
    ...more,
  });
}

/** A moment of `performance.now()` as the contract writes times. */
function time(ms: number): string {
  return new Date(performance.timeOrigin + ms).toISOString().replace('Z', '000Z');
}
