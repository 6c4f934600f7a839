import { Module, type DynamicModule } from '@nestjs/common';
import { ActionsModule } from '#actions';
import { DecisionReader } from './decision-reader.js';
import { Ledger } from './ledger.js';
import { Leases } from './leases.js';
import { LEDGER_SETTINGS, type LedgerSettings } from './ledger-settings.js';

@Module({})
export class LedgerModule {
  static register(settings: LedgerSettings): DynamicModule {
    return {
      module: LedgerModule,
      imports: [ActionsModule],
      providers: [Ledger, Leases, DecisionReader, { provide: LEDGER_SETTINGS, useValue: settings }],
      exports: [Ledger, Leases, DecisionReader],
    };
  }
}
