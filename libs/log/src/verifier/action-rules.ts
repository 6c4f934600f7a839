import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { JsonObject } from '#key';
import type { Leaf } from '../pure/leaf.js';
import { isMissing, isObject, parseObject } from './files.js';

/** What the versions of the actions say of "once": an answer of `GET /v1/actions/{action}/versions` a file. */
export class ActionRules {
  private readonly uniqueness = new Map<string, string>();

  /** Reads the folder's files; a folder that is not there says nothing of any action. */
  static async read(folder: string): Promise<ActionRules> {
    const rules = new ActionRules();
    for (const name of await filesIn(folder)) rules.add(parseObject(await readFile(join(folder, name))));
    return rules;
  }

  /**
   * What only one applied entry may have, for the rules under which the entry was made; null if they allow any number.
   * Undefined if the rules are not known.
   */
  placeOf({ action, actionVersion, subject, reportingPeriod }: Leaf): string | null | undefined {
    const subjectPlace = [action, subject.type, subject.id];
    switch (this.uniqueness.get(`${action} ${actionVersion}`)) {
      case 'none':
        return null;
      case 'subject':
        return JSON.stringify(subjectPlace);
      case 'subject-and-period':
        return JSON.stringify([...subjectPlace, reportingPeriod]);
      default:
        return undefined;
    }
  }

  private add(answer: JsonObject): void {
    const items = Array.isArray(answer['items']) ? answer['items'] : [answer];
    for (const item of items.filter(isObject)) {
      const { action, version, uniqueness } = item;
      if (typeof action === 'string' && typeof version === 'number' && typeof uniqueness === 'string')
        this.uniqueness.set(`${action} ${version}`, uniqueness);
    }
  }
}

async function filesIn(folder: string): Promise<string[]> {
  try {
    return (await readdir(folder)).filter((name) => name.endsWith('.json')).toSorted();
  } catch (error) {
    if (isMissing(error)) return [];
    throw error;
  }
}
