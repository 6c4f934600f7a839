import { setStage } from '../support/stage.js';
import { type FakeRules, startFakeLedger } from './fake-ledger.js';
import { type FaultyProxy, startFaultyProxy } from './faulty-proxy.js';

/** What the client's tests decide. */
export const ACTIONS: Readonly<Record<string, FakeRules>> = {
  'note.add': { execution: 'transactional' },
  'case.close': { execution: 'transactional', uniqueness: 'subject' },
  'refund.create': { execution: 'caller', leaseSeconds: 30 },
  'refund.once': { execution: 'caller', leaseSeconds: 30, sameContent: 'refuse' },
  'crew.dispatch': { execution: 'caller', leaseSeconds: 2 },
  'wire.send': { execution: 'caller', leaseSeconds: 2, onExpiredLease: 'unknown' },
};

/** A ledger for the client, behind a road on which a test may place accidents. */
export interface Ledger {
  /** Of the road. */
  readonly url: string;
  readonly token: string;
  readonly tenant: string;
  readonly road: FaultyProxy;
  stop(): Promise<void>;
}

/** The ledgers that the client is tested against: the fake, and with `CLIENT_TEST_SERVICE=1` the service, as it was built. */
export const LEDGERS: readonly (readonly [string, () => Promise<Ledger>])[] = [
  ['a ledger in memory', fakeLedger],
  ...(process.env['CLIENT_TEST_SERVICE'] === '1' ? ([['the service', serviceLedger]] as const) : []),
];

export async function fakeLedger(more: Readonly<Record<string, FakeRules>> = {}): Promise<Ledger> {
  const fake = await startFakeLedger({ ...ACTIONS, ...more });
  return behindRoad(fake.url, fake.token, fake.tenant, () => fake.stop());
}

async function serviceLedger(): Promise<Ledger> {
  const stage = await setStage({ actions: ACTIONS });
  return behindRoad(stage.service.url, stage.tokens.orchestrator, stage.tenant, () => stage.clear());
}

async function behindRoad(target: string, token: string, tenant: string, stop: () => Promise<void>): Promise<Ledger> {
  const road = await startFaultyProxy(target);
  return {
    url: road.url,
    token,
    tenant,
    road,
    async stop() {
      await road.stop();
      await stop();
    },
  };
}
