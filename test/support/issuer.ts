import { randomUUID } from 'node:crypto';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { exportJWK, generateKeyPair, SignJWT, type CryptoKey, type JWK, type JWTPayload } from 'jose';

export interface IssuerKey {
  readonly kid: string;
  readonly alg: string;
  readonly privateKey: CryptoKey | Uint8Array;
  readonly jwk: JWK;
}

/** What a token says beyond the usual: a member that is undefined is left out. */
export interface Wish {
  readonly claims?: Readonly<Record<string, unknown>>;
  readonly header?: Readonly<Record<string, unknown>>;
  readonly key?: IssuerKey;
}

/** An OpenID provider on this machine: metadata, a key set, and tokens. */
export interface Issuer {
  readonly url: string;
  /** Members of the metadata that are not as they should be. */
  metadata: Record<string, unknown>;
  /** What is answered instead of the key set. */
  keysAnswer: { status: number; body: string; headers?: Record<string, string> } | null;
  /** How often each path was asked for. */
  asked(path: string): number;
  /** A good token for `acme`, or what is wished for. */
  token(wish?: Wish): Promise<string>;
  /** A key of this issuer; published unless it is said otherwise. */
  addKey(alg: string, isPublished?: boolean): Promise<IssuerKey>;
  withdraw(key: IssuerKey): void;
  /** Stops listening, and listens again on the same port. */
  down(): Promise<void>;
  up(): Promise<void>;
}

export const AUDIENCE = 'decision-ledger';
export const seconds = (): number => Math.floor(Date.now() / 1_000);

/** @param port 0 takes a free one */
export async function startIssuer(port = 0): Promise<Issuer> {
  const published: IssuerKey[] = [];
  const paths: string[] = [];
  let server: Server | null = null;
  let listening = port;

  const up = async (): Promise<void> => {
    server = createServer((request, response) => {
      const path = request.url ?? '';
      paths.push(path);
      const { status, body, headers = {} } = answer(path);
      response.writeHead(status, { 'content-type': 'application/json', connection: 'close', ...headers }).end(body);
    });
    await new Promise<void>((resolve) => server?.listen(listening, '127.0.0.1', resolve));
    listening = (server.address() as AddressInfo).port;
  };
  const answer = (path: string): NonNullable<Issuer['keysAnswer']> => {
    if (path === '/.well-known/openid-configuration')
      return { status: 200, body: JSON.stringify({ issuer: url, jwks_uri: `${url}/keys`, ...issuer.metadata }) };
    if (path === '/keys')
      return issuer.keysAnswer ?? { status: 200, body: JSON.stringify({ keys: published.map(({ jwk }) => jwk) }) };
    return { status: 404, body: '{}' };
  };
  await up();
  const url = `http://127.0.0.1:${listening}`;

  const issuer: Issuer = {
    url,
    metadata: {},
    keysAnswer: null,
    asked: (path) => paths.filter((one) => one === path).length,
    async token({ claims = {}, header = {}, key = published[0] } = {}) {
      if (key === undefined) throw new Error('The issuer has no key');
      const payload: JWTPayload = JSON.parse(
        JSON.stringify({
          iss: url,
          aud: AUDIENCE,
          sub: 'agent-7',
          tenant: 'acme',
          role: 'orchestrator',
          iat: seconds(),
          exp: seconds() + 300,
          jti: randomUUID(),
          ...claims,
        }),
      );
      const protectedHeader = { alg: key.alg, kid: key.kid, typ: 'at+jwt', ...header };
      return new SignJWT(payload).setProtectedHeader(protectedHeader).sign(key.privateKey);
    },
    async addKey(alg, isPublished = true) {
      const { publicKey, privateKey } = await generateKeyPair(alg, { extractable: true });
      const kid = randomUUID();
      const key = { kid, alg, privateKey, jwk: { ...(await exportJWK(publicKey)), kid, alg, use: 'sig' } };
      if (isPublished) published.push(key);
      return key;
    },
    withdraw: (key) => void published.splice(published.indexOf(key), 1),
    async down() {
      await new Promise((resolve) => server?.close(resolve));
    },
    up,
  };
  return issuer;
}

/** The JWT with another payload under the signature that it had. */
export function withPayload(jwt: string, changes: Readonly<Record<string, unknown>>): string {
  const [header = '', payload = '', signature = ''] = jwt.split('.');
  const claims: Record<string, unknown> = JSON.parse(Buffer.from(payload, 'base64url').toString());
  return [header, base64url({ ...claims, ...changes }), signature].join('.');
}

/** The JWT with another header, and perhaps without its signature. */
export function withHeader(jwt: string, header: unknown, isSigned = true): string {
  const [, payload = '', signature = ''] = jwt.split('.');
  return [base64url(header), payload, isSigned ? signature : ''].join('.');
}

const base64url = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64url');
