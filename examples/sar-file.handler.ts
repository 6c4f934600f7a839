import { Injectable } from '@nestjs/common';
import { isReportingPeriod } from '#actions';
import type { Transaction } from '#database';
import { applied, refused, type DecidedEffect, type EffectHandler, type EffectOutcome } from '#effects';

/**
 * `sar.file`: files a suspicious activity report for a case, once for each reporting period. The inventory says so with
 * `subject-and-period`; the table says so too, whatever the inventory says.
 */
@Injectable()
export class SarFileHandler implements EffectHandler {
  readonly action = 'sar.file';

  async apply(tx: Transaction, { tenant, decisionId, effectId, inputs }: DecidedEffect): Promise<EffectOutcome> {
    const { subject, params } = inputs;
    const period = params['reportingPeriod'];
    if (typeof period !== 'string' || !isReportingPeriod(period)) {
      return refused('no-reporting-period', 'params.reportingPeriod is not a reporting period.');
    }
    const filed = await tx.query<unknown[]>(
      `INSERT INTO sar_filing (tenant_id, filing_id, decision_id, subject_type, subject_id, reporting_period) VALUES ($1, $2, $3, $4, $5, $6)
       ON CONFLICT ON CONSTRAINT sar_filing_once DO NOTHING RETURNING filing_id`,
      [tenant, effectId, decisionId, subject.type, subject.id, period],
    );
    if (filed.length === 0) return refused('already-filed', 'A report for this case and period has been filed.');
    return applied({ filingId: effectId });
  }
}
