/** A JSON object that came from outside: nothing is known of its members. */
export type Members = Readonly<Record<string, unknown>>;

export function isMembers(value: unknown): value is Members {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The member as a text; null if it is absent or something else. */
export function textOf(members: Members, name: string): string | null {
  const value = members[name];
  return typeof value === 'string' ? value : null;
}

/** The member as an object; null if it is absent or something else. */
export function membersOf(members: Members, name: string): Members | null {
  const value = members[name];
  return isMembers(value) ? value : null;
}

/** The value of a JSON text; undefined, which no JSON text stands for, if it is none. */
export function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
