import { Module, type DynamicModule } from '@nestjs/common';
import { APP_GUARD } from '@nestjs/core';
import { AccessModule } from '#access';
import { ActionsModule } from '#actions';
import { Database, type Settings } from '#database';
import { DispatchTargets, EffectsModule } from '#effects';
import { LedgerModule } from '#ledger';
import { LogReader } from '#log';
import { EXAMPLE_HANDLERS } from '../../../examples/index.js';
import { AccessController } from './access/access.controller.js';
import { ActionsController } from './actions/actions.controller.js';
import { AttemptLog } from './decisions/attempt-log.js';
import { DecisionsController } from './decisions/decisions.controller.js';
import { LeasesController } from './leases/leases.controller.js';
import { AccessGuard } from './http/index.js';
import { LogController } from './log/log.controller.js';
import { AccessLogController } from './reading/access-log.controller.js';
import { AttemptsController } from './reading/attempts.controller.js';
import { DecisionReadingController } from './reading/decisions.controller.js';
import { EntriesController } from './reading/entries.controller.js';
import { ExportsController } from './reading/exports.controller.js';
import { IdempotencyRecordsController } from './reading/idempotency-records.controller.js';
import { PinoLogger } from './service/logger.js';
import { Metrics } from './service/metrics.js';
import { MetricsController } from './service/metrics.controller.js';
import { ServiceController } from './service/service.controller.js';

@Module({})
class DatabaseModule {
  static register(database: Database, logger: PinoLogger): DynamicModule {
    return {
      module: DatabaseModule,
      global: true,
      providers: [
        { provide: Database, useValue: database },
        { provide: PinoLogger, useValue: logger },
      ],
      exports: [Database, PinoLogger],
    };
  }
}

@Module({})
export class AppModule {
  static register(database: Database, settings: Settings, logger: PinoLogger): DynamicModule {
    return {
      module: AppModule,
      imports: [
        DatabaseModule.register(database, logger),
        AccessModule.register(settings),
        ActionsModule,
        EffectsModule.register(EXAMPLE_HANDLERS),
        LedgerModule.register(settings),
      ],
      controllers: [
        DecisionsController,
        LeasesController,
        DecisionReadingController,
        AttemptsController,
        EntriesController,
        ExportsController,
        IdempotencyRecordsController,
        LogController,
        AccessLogController,
        ActionsController,
        AccessController,
        ServiceController,
        ...(settings.metricsPort === null ? [MetricsController] : []),
      ],
      providers: [
        Metrics,
        AttemptLog,
        LogReader,
        {
          provide: DispatchTargets,
          useValue: new DispatchTargets(settings.dispatchAllowedHosts, settings.secret),
        },
        { provide: APP_GUARD, useClass: AccessGuard },
      ],
    };
  }
}
