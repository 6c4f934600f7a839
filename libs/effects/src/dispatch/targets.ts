import { lookup, type LookupAddress, type LookupAllOptions } from 'node:dns';
import type { LookupFunction } from 'node:net';
import { addressOfHost, canonicalAddress, isLoopbackAddress, isPublicAddress } from './address.js';

const DEFAULT_PORTS: Readonly<Record<string, number>> = { 'http:': 80, 'https:': 443 };

export const ADDRESS_NOT_ALLOWED = 'ADDRESS_NOT_ALLOWED';

/** A name that resolved to an address which may not be called. */
class AddressNotAllowed extends Error {
  readonly code = ADDRESS_NOT_ALLOWED;
}

/** A host of the operator's list; without a port, all its ports. */
interface Allowed {
  readonly host: string;
  readonly port: number | null;
}

/** Gives every address of a name, as `dns.lookup` does. */
type Resolve = (
  hostname: string,
  options: LookupAllOptions,
  found: (error: NodeJS.ErrnoException | null, addresses: LookupAddress[]) => void,
) => void;

/** What may be called, and with which secrets. Both are the operator's to say, not a tenant's. */
export class DispatchTargets {
  constructor(
    private readonly allowed: readonly Allowed[],
    /** The secret of a variable, if there is one. */
    readonly secret: (variable: string) => string | undefined,
    private readonly resolve: Resolve = lookup,
  ) {}

  /** Whether the host of a URL is on the list. What its name resolves to is looked at by {@link allowsAddress}. */
  allowsHost(url: URL): boolean {
    return this.lists(url.hostname, portOf(url));
  }

  /**
   * Whether an address that a host stands for may be called: any public one; any other only if the list has that very
   * address, or, for this machine itself, if the host is `localhost`. A name on the list is not enough: whoever runs its
   * zone could point it at a neighbour of the service.
   */
  allowsAddress(url: URL, address: string): boolean {
    if (isPublicAddress(address)) return true;
    const canonical = canonicalAddress(address);
    if (canonical !== null && this.lists(canonical, portOf(url))) return true;
    return url.hostname === 'localhost' && isLoopbackAddress(address);
  }

  /** Whether a URL whose host is an address may be called; names are left to {@link lookupFor}, since they must be resolved first. */
  allowsLiteral(url: URL): boolean {
    const address = addressOfHost(url.hostname);
    return address === null || this.allowsAddress(url, address);
  }

  /**
   * Resolves the name of a call, and gives the very addresses that were checked to whoever connects: between a check and a
   * second resolution the name could change its mind. One bad address among several refuses them all.
   */
  lookupFor(url: URL): LookupFunction {
    return (hostname, options, callback) => {
      this.resolve(hostname, { ...options, all: true }, (error, found) => {
        const [first] = found ?? [];
        if (error !== null || first === undefined) callback(error ?? new Error('The name has no address'), []);
        else if (!found.every(({ address }) => this.allowsAddress(url, address)))
          callback(new AddressNotAllowed('The name resolves to an address that may not be called'), []);
        else if (options.all === true) callback(null, found);
        else callback(null, first.address, first.family);
      });
    };
  }

  private lists(host: string, port: number): boolean {
    return this.allowed.some((entry) => entry.host === host && (entry.port === null || entry.port === port));
  }
}

export function portOf(url: URL): number {
  return url.port === '' ? (DEFAULT_PORTS[url.protocol] ?? 0) : Number(url.port);
}
