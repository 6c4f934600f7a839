import type { Client } from 'pg';

export const TENANTS: readonly string[];

export interface PopulationOptions {
  readonly decisions?: number;
  readonly seed?: number;
  readonly tenants?: readonly string[];
  readonly until?: string;
  readonly say?: (text: string) => void;
}

export function populate(
  client: Client,
  options?: PopulationOptions,
): Promise<{ readonly decisions: number; readonly attempts: number }>;
