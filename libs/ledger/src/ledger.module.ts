import { Module, type DynamicModule } from '@nestjs/common';
import { ActionsModule } from '#actions';
import { Ledger } from './ledger.js';
import { Leases } from './leases.js';
import { AccessLog } from './reading/access-log.js';
import { AttemptReader } from './reading/attempt-reader.js';
import { DecisionExport } from './reading/decision-export.js';
import { DecisionReader } from './reading/decision-reader.js';
import { EntryReader } from './reading/entry-reader.js';
import { LEDGER_SETTINGS, type LedgerSettings } from './ledger-settings.js';

const READERS = [DecisionReader, AttemptReader, EntryReader, DecisionExport, AccessLog];

@Module({})
export class LedgerModule {
  static register(settings: LedgerSettings): DynamicModule {
    return {
      module: LedgerModule,
      imports: [ActionsModule],
      providers: [Ledger, Leases, ...READERS, { provide: LEDGER_SETTINGS, useValue: settings }],
      exports: [Ledger, Leases, ...READERS],
    };
  }
}
