import { describe, expect, test } from '@jest/globals';
import { readSettings, SettingError } from '#database';
import { DispatchTargets } from '#effects';

function targets(list: string): DispatchTargets {
  const { dispatchAllowedHosts, secret } = readSettings({ DISPATCH_ALLOWED_HOSTS: list });
  return new DispatchTargets(dispatchAllowedHosts, secret);
}

const NOT_PUBLIC = [
  ...['0.0.0.0', '10.0.0.1', '10.255.255.255', '100.64.0.1', '127.0.0.1', '127.255.255.254', '169.254.169.254'],
  ...[
    '172.16.0.1',
    '172.31.255.255',
    '192.0.0.170',
    '192.0.2.1',
    '192.168.1.1',
    '192.88.99.1',
    '198.18.0.1',
    '198.51.100.7',
  ],
  ...['203.0.113.7', '224.0.0.1', '239.255.255.250', '240.0.0.1', '255.255.255.255'],
  ...[
    '::',
    '::1',
    '::127.0.0.1',
    '::ffff:127.0.0.1',
    '::ffff:8.8.8.8',
    '64:ff9b::7f00:1',
    '100::1',
    '2001::1',
    '2001:db8::1',
  ],
  ...['2002:7f00:1::', '4000::1', 'fc00::1', 'fd12:3456::1', 'fe80::1', 'fe80::1%eth0', 'fec0::1', 'ff02::1'],
  ...['', 'example.com', '1.2.3', '999.1.1.1'],
];
const PUBLIC = [
  '8.8.8.8',
  '1.1.1.1',
  '172.32.0.1',
  '100.128.0.1',
  '192.167.1.1',
  '2606:4700::1111',
  '2a00:1450:4001::64',
];

describe('an address that a name stands for', () => {
  const named = targets('pay.example,localhost');

  test.each(NOT_PUBLIC)('%s is not called', (address) => {
    expect(named.allowsAddress(new URL('http://pay.example/'), address)).toBe(false);
  });

  test.each(PUBLIC)('%s is called', (address) => {
    expect(named.allowsAddress(new URL('http://pay.example/'), address)).toBe(true);
  });

  test.each(['127.0.0.1', '127.0.0.53', '::1'])(
    '%s is called for localhost, if localhost is on the list',
    (address) => {
      expect(named.allowsAddress(new URL('http://localhost:8080/'), address)).toBe(true);
      expect(named.allowsAddress(new URL('http://pay.example/'), address)).toBe(false);
    },
  );

  test.each(['10.0.0.1', '169.254.169.254', 'fe80::1', '::ffff:127.0.0.1'])(
    '%s is not called for localhost either',
    (address) => {
      expect(named.allowsAddress(new URL('http://localhost/'), address)).toBe(false);
    },
  );

  test.each(['10.1.2.3', 'fd12:3456::1', '::ffff:10.1.2.3', '::1'])(
    '%s is called if the list has that very address',
    (address) => {
      const listed = targets(`pay.example,${address.includes(':') ? `[${address}]` : address}:443`);
      expect(listed.allowsAddress(new URL('https://pay.example/'), address)).toBe(true);
      expect(listed.allowsAddress(new URL('https://pay.example:444/'), address)).toBe(false);
      expect(listed.allowsAddress(new URL('https://pay.example/'), '10.1.2.4')).toBe(false);
    },
  );

  test('is compared whatever its spelling', () => {
    const listed = targets('pay.example,[FD12:3456:0:0::1]');
    expect(listed.allowsAddress(new URL('http://pay.example/'), 'fd12:3456:0:0:0:0:0:1')).toBe(true);
  });
});

describe('a URL with an address in it', () => {
  const listed = targets('127.0.0.1,8.8.8.8,[::ffff:10.0.0.1]');
  const isAllowed = (url: string): boolean => listed.allowsHost(new URL(url)) && listed.allowsLiteral(new URL(url));

  test.each([
    'http://127.0.0.1/',
    'http://0177.0.0.1/',
    'http://2130706433/',
    'http://127.1/',
    'http://0x7f000001/',
    'http://127。0。0。1/',
  ])('%s is the address that is listed', (url) => expect(isAllowed(url)).toBe(true));

  test.each([
    'http://[::ffff:127.0.0.1]/',
    'http://[::7f00:1]/',
    'http://127.0.0.2/',
    'http://0/',
    'http://[::]/',
    'http://10.0.0.1/',
    'http://localhost/',
  ])('%s is another', (url) => expect(isAllowed(url)).toBe(false));

  test('a mapped one is called if it is listed as that', () => {
    expect(isAllowed('http://[::ffff:a00:1]/')).toBe(true);
  });
});

describe('the lookup of a connection', () => {
  interface Found {
    readonly error: NodeJS.ErrnoException | null;
    readonly address: unknown;
  }
  const ZONE: Readonly<Record<string, readonly string[]>> = {
    'pay.example': ['8.8.8.8', '2606:4700::1111'],
    'evil.example': ['10.0.0.7'],
    'mixed.example': ['8.8.8.8', '169.254.169.254'],
    'mapped.example': ['::ffff:127.0.0.1'],
    'loop.example': ['127.0.0.1'],
    localhost: ['127.0.0.1', '::1'],
  };
  const { dispatchAllowedHosts } = readSettings({ DISPATCH_ALLOWED_HOSTS: Object.keys(ZONE).join(',') });
  const zoned = new DispatchTargets(
    dispatchAllowedHosts,
    () => undefined,
    (hostname, _options, found) =>
      found(
        null,
        (ZONE[hostname] ?? []).map((address) => ({ address, family: address.includes(':') ? 6 : 4 })),
      ),
  );
  const resolve = (of: DispatchTargets, hostname: string, all: boolean): Promise<Found> =>
    new Promise((done) =>
      of.lookupFor(new URL(`http://${hostname}/`))(hostname, { all }, (error, address) => done({ error, address })),
    );

  test.each(['pay.example', 'localhost'])('gives the addresses of %s that it has checked', async (hostname) => {
    const every = await resolve(zoned, hostname, true);
    expect([every.error, (every.address as { address: string }[]).map(({ address }) => address)]).toEqual([
      null,
      ZONE[hostname],
    ]);
    expect(await resolve(zoned, hostname, false)).toEqual({ error: null, address: ZONE[hostname]?.[0] });
  });

  test.each(['evil.example', 'mixed.example', 'mapped.example', 'loop.example'])(
    'gives none for %s',
    async (hostname) => {
      for (const all of [true, false]) {
        const { error, address } = await resolve(zoned, hostname, all);
        expect([error?.code, address]).toEqual(['ADDRESS_NOT_ALLOWED', []]);
      }
    },
  );

  test('fails for a name without an address, and for one that nobody knows', async () => {
    expect((await resolve(zoned, 'empty.example', true)).error).not.toBeNull();
    const { error } = await resolve(targets('no-such-host.invalid'), 'no-such-host.invalid', true);
    expect(error?.code).toMatch(/ENOTFOUND|EAI_AGAIN/);
  });
});

describe('DISPATCH_ALLOWED_HOSTS', () => {
  test.each([
    'http://pay.example',
    'pay.example/x',
    '*',
    '*.example',
    'pay.example:',
    'pay.example:0',
    'pay.example:65536',
    'a b',
    'a,,b',
    '::1',
    'user@pay.example',
    '[::1',
    '1.2.3.999',
  ])('%j stops the start', (list) => {
    expect(() => readSettings({ DISPATCH_ALLOWED_HOSTS: list })).toThrow(SettingError);
    expect(() => readSettings({ DISPATCH_ALLOWED_HOSTS: list })).toThrow(/DISPATCH_ALLOWED_HOSTS/);
  });

  test('allows nothing unless it is set', () => {
    expect(readSettings({}).dispatchAllowedHosts).toEqual([]);
    expect(targets('').allowsHost(new URL('https://pay.example/'))).toBe(false);
  });
});
