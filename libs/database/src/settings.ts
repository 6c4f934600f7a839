import { resolve } from 'node:path';

/** What an operator may set, by environment variable. README lists them with their meaning. */
export interface Settings {
  /** TCP port of the API; 0 takes a free one. */
  readonly port: number;
  readonly host: string;
  /** The service's login; null runs the embedded server in `dataDir`. */
  readonly databaseUrl: string | null;
  /** The owner's login, for migrations; without it the service's login is used. */
  readonly databaseOwnerUrl: string | null;
  readonly dataDir: string;
  /** Connections of one process to the database. */
  readonly poolSize: number;
  /** How many decisions of one tenant may wait in one process until they are recorded; more are refused with `503`. */
  readonly maxQueuedDecisions: number;
  /** Replaces every action's retention, for trials of expiry. */
  readonly responseRetentionOverrideSeconds: number | null;
  readonly pruneIntervalSeconds: number;
  readonly sweepIntervalSeconds: number;
  /** The hosts that effects may be dispatched to; none unless they are named. */
  readonly dispatchAllowedHosts: readonly AllowedHost[];
  /**
   * A secret by the name of its variable, as it is now; undefined if there is none, or if the name is that of a setting of
   * the service itself. Asked only for names that an action states. The value MUST NOT be kept or logged.
   */
  readonly secret: (name: string) => string | undefined;
  /** What the names of the tenants' logs begin with, and the names of the keys that sign them. */
  readonly logOrigin: string;
  /** The private key that signs checkpoints; null keeps one in `dataDir`. MUST NOT be logged. */
  readonly logSigningKey: string | null;
  /** The one before it: for as long as it is set, it signs too. */
  readonly logPreviousSigningKey: string | null;
  readonly sealIntervalMs: number;
  /** Whose JWTs are taken beside the service's own tokens; null takes none. */
  readonly identityProvider: IdentityProviderSettings | null;
  /** A port of its own for /metrics; null leaves it beside the API. */
  readonly metricsPort: number | null;
  /** Whether this process runs the worker: beside the API, not at all, or nothing else. */
  readonly worker: 'on' | 'off' | 'only';
  readonly logLevel: 'debug' | 'info' | 'warn' | 'error' | 'silent';
}

/** A host that may be called: its name or address as URLs spell it, and its port, or null for every port. */
export interface AllowedHost {
  readonly host: string;
  readonly port: number | null;
}

/** An OpenID provider, and how its tokens say who is calling. */
export interface IdentityProviderSettings {
  /** As the provider spells it, in `iss` and in its metadata. */
  readonly issuer: string;
  readonly audience: string;
  /** The names of the claims that hold the tenant's slug, and the role or roles. */
  readonly tenantClaim: string;
  readonly roleClaim: string;
}

/** A setting that cannot be used. The message names it and says why. */
export class SettingError extends Error {}

const LARGEST_SECONDS = 10 * 365 * 86_400;

const HOST_ENTRY = /^(\[[0-9a-f:.]+\]|[a-z0-9_]([a-z0-9._-]*[a-z0-9_])?)(?::(\d{1,5}))?$/i;
const LARGEST_PORT = 65_535;

/** As a note's key may be called (C2SP signed-note), in ASCII: no space, no plus; a tenant is added after a slash. */
const LOG_ORIGIN = /^[!-*,-.0-~]([!-*,-~]{0,198}[!-*,-.0-~])?$/;
const LONGEST_ISSUER = 512;
/** What RFC 6750, section 3, lets an answer repeat, without the space. */
const CLAIM_NAME = /^[!#-[\]-~]{1,255}$/;
const LOOPBACK = /^(localhost|127(\.\d{1,3}){3}|\[::1\])$/;

/** Variables by which a PostgreSQL client finds its password; no action may have them sent anywhere. */
const DATABASE_VARIABLE = /^(PG|POSTGRES|DATABASE_)/i;

/**
 * Reads the settings from an environment. This is the only place in the service that knows the names of the variables.
 *
 * @throws SettingError for the first variable that cannot be used.
 */
export function readSettings(env: Readonly<Record<string, string | undefined>>): Settings {
  const own = new Set<string>();

  const text = (name: string): string | null => {
    own.add(name);
    return env[name]?.trim() || null;
  };

  const whole = (name: string, least: number, most: number): number | null => {
    const value = text(name);
    if (value === null) return null;
    if (!/^\d{1,10}$/.test(value) || Number(value) < least || Number(value) > most) {
      throw new SettingError(`${name} must be a whole number from ${least} to ${most}, not "${value}"`);
    }
    return Number(value);
  };

  const oneOf = <T extends string>(name: string, choices: readonly T[], otherwise: T): T => {
    const value = text(name);
    if (value === null) return otherwise;
    const choice = choices.find((candidate) => candidate === value);
    if (choice === undefined) throw new SettingError(`${name} must be one of ${choices.join(', ')}, not "${value}"`);
    return choice;
  };

  const databaseUrl = (name: string): string | null => {
    const value = text(name);
    if (value === null) return null;
    // The value may hold a password, so the message must not repeat it.
    if (!URL.canParse(value) || !/^postgres(ql)?:$/.test(new URL(value).protocol)) {
      throw new SettingError(`${name} must be a URL of the form postgres://user:password@host:port/database`);
    }
    return value;
  };

  const origin = (name: string): string | null => {
    const value = text(name);
    if (value === null || LOG_ORIGIN.test(value)) return value;
    throw new SettingError(
      `${name} must be 1 to 200 characters of ASCII without a space, a plus or a slash at either end, such as log.example.org; not "${value}"`,
    );
  };

  const claimName = (name: string, otherwise: string): string => {
    const value = text(name) ?? otherwise;
    if (!CLAIM_NAME.test(value))
      throw new SettingError(`${name} must be the name of a claim, without spaces or quotes, not "${value}"`);
    return value;
  };

  const identityProvider = (): IdentityProviderSettings | null => {
    const issuer = text('OIDC_ISSUER');
    const audience = text('OIDC_AUDIENCE');
    const tenantClaim = claimName('OIDC_TENANT_CLAIM', 'tenant');
    const roleClaim = claimName('OIDC_ROLE_CLAIM', 'role');
    if (issuer === null && audience === null) return null;
    if (audience === null)
      throw new SettingError('OIDC_AUDIENCE must be set beside OIDC_ISSUER: a token is good for whom it names');
    if (issuer === null) throw new SettingError('OIDC_ISSUER must be set beside OIDC_AUDIENCE');
    if (!isIssuer(issuer))
      throw new SettingError(
        `OIDC_ISSUER must be a URL of the form https://host/path, of at most ${LONGEST_ISSUER} characters (http only on loopback)`,
      );
    return Object.freeze({ issuer, audience, tenantClaim, roleClaim });
  };

  return Object.freeze({
    port: whole('PORT', 0, LARGEST_PORT) ?? 3000,
    host: text('HOST') ?? '127.0.0.1',
    databaseUrl: databaseUrl('DATABASE_URL'),
    databaseOwnerUrl: databaseUrl('DATABASE_OWNER_URL'),
    dataDir: resolve(text('DATA_DIR') ?? '.data'),
    poolSize: whole('DATABASE_POOL_SIZE', 1, 1_000) ?? 10,
    maxQueuedDecisions: whole('MAX_QUEUED_DECISIONS', 1, 1_000_000) ?? 20_000,
    responseRetentionOverrideSeconds: whole('RESPONSE_RETENTION_OVERRIDE_SECONDS', 0, LARGEST_SECONDS),
    pruneIntervalSeconds: whole('PRUNE_INTERVAL_SECONDS', 1, 86_400) ?? 60,
    sweepIntervalSeconds: whole('SWEEP_INTERVAL_SECONDS', 1, 86_400) ?? 5,
    dispatchAllowedHosts: allowedHosts(text('DISPATCH_ALLOWED_HOSTS') ?? ''),
    logOrigin: origin('LOG_ORIGIN') ?? 'decision-ledger.local',
    logSigningKey: text('LOG_SIGNING_KEY'),
    logPreviousSigningKey: text('LOG_PREVIOUS_SIGNING_KEY'),
    sealIntervalMs: whole('SEAL_INTERVAL_MS', 10, 3_600_000) ?? 500,
    secret: (name: string) =>
      own.has(name) || DATABASE_VARIABLE.test(name) ? undefined : env[name]?.trim() || undefined,
    identityProvider: identityProvider(),
    metricsPort: whole('METRICS_PORT', 0, LARGEST_PORT),
    worker: oneOf('WORKER', ['on', 'off', 'only'], 'on'),
    logLevel: oneOf('LOG_LEVEL', ['debug', 'info', 'warn', 'error', 'silent'], 'info'),
  });
}

/** Whether nobody on the way can change what comes from there: https, or http that does not leave the machine. */
export function isSafeFromOthers({ protocol, hostname }: URL): boolean {
  return protocol === 'https:' || (protocol === 'http:' && LOOPBACK.test(hostname));
}

/** OpenID Connect Discovery 1.0, section 3: a URL without query and fragment. Nor with a password, which would be logged. */
function isIssuer(text: string): boolean {
  if (!/^[!-~]+$/.test(text) || text.length > LONGEST_ISSUER || /[?#@\\]/.test(text) || !URL.canParse(text))
    return false;
  return isSafeFromOthers(new URL(text));
}

/** Reads `host` or `host:port`, divided by commas. The URL parser gives each host the one spelling that calls will have. */
function allowedHosts(list: string): readonly AllowedHost[] {
  const entries = list.split(',').map((entry) => entry.trim());
  if (entries.length === 1 && entries[0] === '') return [];
  return entries.map((entry) => {
    const [, host, , port] = HOST_ENTRY.exec(entry) ?? [];
    if (
      host === undefined ||
      !URL.canParse(`http://${host}`) ||
      Number(port ?? 1) < 1 ||
      Number(port ?? 1) > LARGEST_PORT
    ) {
      throw new SettingError(
        `DISPATCH_ALLOWED_HOSTS must be a list of host or host:port, divided by commas; "${entry}" is neither`,
      );
    }
    return Object.freeze({ host: new URL(`http://${host}`).hostname, port: port === undefined ? null : Number(port) });
  });
}
