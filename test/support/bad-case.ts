import { inputs } from './client.js';
import { seeded } from './rounds.js';
import { requestBytes } from './wire.js';

/** Whom and what a bad request may name: everything in it exists. */
export interface Scene {
  readonly tokens: Readonly<Record<'admin' | 'orchestrator' | 'auditor' | 'operator', string>>;
  readonly decisionId: string;
  /** The client key of that decision, and the key that its content gives. */
  readonly key: string;
  readonly contentKey: string;
  readonly credentialId: string;
}

/** One bad request. */
export interface Attempt {
  /** What a person needs to see it again. */
  readonly sent: string;
  readonly bytes: Buffer;
  /** The place that the answer must name, where the request has one fault in one place. */
  readonly pointer?: string;
}

/** A kind of bad request, of which many are made. */
export interface Variant {
  readonly name: string;
  /** The status that the contract gives it, or `4xx` where the contract names none. */
  readonly status: number | '4xx';
  readonly code?: string;
  make(random: Random, scene: Scene): Attempt;
}

/** Choices that are the same at every run. */
export class Random {
  private readonly next: () => number;

  constructor(seed: string) {
    this.next = seeded([...seed].reduce((hash, char) => (Math.imul(hash, 31) + (char.codePointAt(0) ?? 0)) | 0, 7));
  }

  /** A whole number from `least` to `most`. */
  whole(least: number, most: number): number {
    return least + Math.floor(this.next() * (most - least + 1));
  }

  pick<T>(...choices: readonly T[]): T {
    const choice = choices[this.whole(0, choices.length - 1)];
    if (choice === undefined) throw new Error('There is nothing to choose from');
    return choice;
  }

  /** Text of one to `most` characters that stand for themselves in JSON, in a header and in a path. */
  word(most = 12): string {
    const letters = 'abcdefghijklmnopqrstuvwxyz0123456789';
    return Array.from({ length: this.whole(1, most) }, () => letters[this.whole(0, letters.length - 1)]).join('');
  }
}

export type Role = keyof Scene['tokens'];

export const JSON_TYPE = 'Content-Type: application/json';

export const bearer = (scene: Scene, role: Role): string => `Authorization: Bearer ${scene.tokens[role]}`;

/** A request with a JSON body, by a caller who may send it. */
export function jsonRequest(
  scene: Scene,
  { method = 'POST', path = '/v1/decisions', role = 'orchestrator' as Role, lines = [] as readonly string[] },
  body: Buffer | string,
): Attempt {
  const text = body.toString('latin1');
  return {
    sent: `${method} ${path} ${lines.join(' | ')} ${text.length > 300 ? `${text.slice(0, 300)}… (${text.length})` : text}`,
    bytes: requestBytes(method, path, [bearer(scene, role), JSON_TYPE, ...lines], body),
  };
}

/** A request without a body. */
export function plainRequest(
  scene: Scene,
  method: string,
  path: string,
  role: Role,
  lines: readonly string[] = [],
): Attempt {
  return {
    sent: `${method} ${path.slice(0, 300)} ${lines.join(' | ')}`,
    bytes: requestBytes(method, path, [bearer(scene, role), ...lines]),
  };
}

/** A decision that would be recorded if nothing were wrong with it; no two are the same. */
export function decision(random: Random, changes: Readonly<Record<string, unknown>> = {}): Record<string, unknown> {
  return { inputs: inputs({ subject: { type: 'bad', id: `${random.word()}-${random.whole(0, 1e9)}` }, ...changes }) };
}

/** Names that every JavaScript object answers to. */
export const PROTOTYPE_NAMES = [
  '__proto__',
  'constructor',
  'toString',
  'hasOwnProperty',
  'valueOf',
  'prototype',
  'toJSON',
] as const;
