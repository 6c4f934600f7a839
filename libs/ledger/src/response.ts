import { Problem } from '#problem';

/** What an applied decision's answer says, apart from the time, which the database gives. */
export interface AppliedParts {
  readonly decisionId: string;
  readonly key: string;
  readonly keySource: string;
  readonly contentKey: string;
  /** RFC 8785 bytes of the effect's result. */
  readonly result: string;
  readonly effectId: string;
  readonly action: string;
  readonly ledgerEntryId: string;
  /** The provider's reference, where the effect is outside. */
  readonly externalRef: string | null;
}

/** What a refused decision's answer says, apart from the time and the winner, which the database gives. */
export interface RefusedParts {
  readonly decisionId: string;
  readonly key: string;
  readonly ledgerEntryId: string;
}

/**
 * The answer of an applied decision up to the time of recording, which comes last so that the database can complete the
 * text in the statement that records it. These bytes are promised for good: after its time the answer is written out
 * again from the ledger, by this function.
 */
export function appliedHead(parts: AppliedParts): string {
  return (
    `{"decisionId":"${parts.decisionId}","key":${JSON.stringify(parts.key)},"keySource":"${parts.keySource}",` +
    `"contentKey":"${parts.contentKey}","state":"completed","outcome":{"status":"applied","result":${parts.result}},` +
    `"effect":{"effectId":"${parts.effectId}","kind":"${parts.action}","status":"applied"${externalRefOf(parts)}},` +
    `"ledgerEntryId":"${parts.ledgerEntryId}","recordedAt":"`
  );
}

function externalRefOf({ externalRef }: AppliedParts): string {
  return externalRef === null ? '' : `,"externalRef":${JSON.stringify(externalRef)}`;
}

/** The whole answer of an applied decision. `recordedAt` is RFC 3339, as the database spells it. */
export function appliedBody(parts: AppliedParts, recordedAt: string): string {
  return `${appliedHead(parts)}${recordedAt}"}`;
}

/** The problem of a subject that is taken, up to the time of recording; the database adds the winner behind it. */
export function duplicateSubjectHead(parts: RefusedParts, action: string, place: string, requestId: string): string {
  const period = place === '' ? '' : ` for ${place}`;
  return refusedHead(
    new Problem(
      'duplicate-subject',
      `${action} has been applied to this subject${period} by another decision, the winner.`,
      {
        members: { ...parts },
      },
    ),
    requestId,
  );
}

/** The problem of an effect's own refusal, up to the time of recording. */
export function refusalHead(parts: RefusedParts, reason: string, detail: string, requestId: string): string {
  return refusedHead(new Problem('refused', detail, { members: { ...parts, reason } }), requestId);
}

function refusedHead(problem: Problem, requestId: string): string {
  return `${JSON.stringify(problem.body(requestId)).slice(0, -1)},"recordedAt":"`;
}
