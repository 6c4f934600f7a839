/** What a JSON text can stand for (RFC 8259), as `JSON.parse` gives it. */
export type JsonValue = null | boolean | number | string | JsonValue[] | JsonObject;

/** A JSON object: plain, own and enumerable members only. A member may have any name, `__proto__` too. */
export type JsonObject = { [name: string]: JsonValue };

/** A name as a reference token of a JSON Pointer, with the slash before it (RFC 6901, section 3). */
export function pointerToken(name: string | number): string {
  return typeof name === 'number' ? `/${name}` : `/${name.replaceAll('~', '~0').replaceAll('/', '~1')}`;
}
