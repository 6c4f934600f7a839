import { sha256 } from './canonical.js';

const UNIT_SEPARATOR = '\u001f';

/**
 * The digest from which the downstream forms of a client key are made: SHA-256, 32 bytes, over the tenant, U+001F and the
 * key. Neither can contain U+001F, so no two pairs share a preimage. For a content key the digest is the `sha256` of
 * `deriveContentKey`.
 *
 * @throws TypeError if either contains U+001F
 */
export function downstreamDigest(identity: { tenantId: string; key: string }): Buffer {
  const { tenantId, key } = identity;
  if (tenantId.includes(UNIT_SEPARATOR) || key.includes(UNIT_SEPARATOR)) {
    throw new TypeError('Neither a tenant nor a key may contain U+001F, which separates them.');
  }
  return sha256(tenantId + UNIT_SEPARATOR + key);
}

/**
 * A key in the forms that providers take: as it is, 40 or 32 lower-case hex digits, or a UUID of version 4 and variant 10
 * (RFC 9562, section 5.4) whose other 122 bits are the digest's first ones. Equal identities give equal forms.
 *
 * @param identity `digest`: 32 bytes, from {@link downstreamDigest} or `deriveContentKey`
 * @throws TypeError if the digest has another length
 */
export function downstreamKeys(identity: { key: string; digest: Buffer }): {
  key: string;
  hex40: string;
  hex32: string;
  uuid4: string;
} {
  if (identity.digest.length !== 32) throw new TypeError('A digest of 32 bytes is needed.');
  const hex = identity.digest.toString('hex');
  return { key: identity.key, hex40: hex.slice(0, 40), hex32: hex.slice(0, 32), uuid4: uuid4(identity.digest) };
}

function uuid4(digest: Buffer): string {
  const bytes = Buffer.from(digest.subarray(0, 16));
  bytes.writeUInt8((bytes.readUInt8(6) & 0x0f) | 0x40, 6);
  bytes.writeUInt8((bytes.readUInt8(8) & 0x3f) | 0x80, 8);
  const hex = bytes.toString('hex');
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join('-');
}
