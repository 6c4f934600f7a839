import { isIP } from 'node:net';
import ipaddr from 'ipaddr.js';

/** The only part of IPv6 that is given out for the public network (RFC 4291, section 2.4; IANA's registry). */
const GLOBAL_UNICAST_V6 = ipaddr.IPv6.parseCIDR('2000::/3');

/** The address that a host of a URL is, without brackets; null if it is a name. */
export function addressOfHost(hostname: string): string | null {
  const bare = hostname.startsWith('[') ? hostname.slice(1, -1) : hostname;
  return isIP(bare) === 0 ? null : bare;
}

/** An address in the one spelling that URLs have, so that two spellings of one address compare as equal; null for none. */
export function canonicalAddress(address: string): string | null {
  const family = isIP(address);
  const url = `http://${family === 6 ? `[${address}]` : address}`;
  return family !== 0 && URL.canParse(url) ? new URL(url).hostname : null;
}

/**
 * Whether an address belongs to the public network. Private, loopback, link-local, shared (RFC 6598), multicast,
 * unspecified and reserved ones do not, and neither does IPv6 that stands for an IPv4 address (mapped, translated, 6to4,
 * Teredo): what such an address reaches depends on who routes it.
 */
export function isPublicAddress(address: string): boolean {
  // The parser also takes what only old programs call an address, such as 1.2.3.
  if (isIP(address) === 0) return false;
  const parsed = ipaddr.parse(address);
  if (parsed.range() !== 'unicast') return false;
  return parsed.kind() === 'ipv4' || parsed.match(GLOBAL_UNICAST_V6);
}

/** Whether an address is this machine's own. */
export function isLoopbackAddress(address: string): boolean {
  return isIP(address) !== 0 && ipaddr.parse(address).range() === 'loopback';
}
