import { Controller, Get } from '@nestjs/common';
import { ApiTags } from '@nestjs/swagger';
import { Database, missingMigrations } from '#database';
import { Problem } from '#problem';
import { Documented } from '../http/index.js';

@ApiTags('Service')
@Controller()
export class ServiceController {
  constructor(private readonly database: Database) {}

  @Get('healthz')
  @Documented({
    id: 'health',
    summary: 'Is the process alive?',
    description: 'Answers for as long as the process can answer at all; the database is not asked.',
    answers: [{ status: 200, description: 'It is.', example: { status: 'ok' } }],
  })
  health(): { status: string } {
    return { status: 'ok' };
  }

  @Get('readyz')
  @Documented({
    id: 'readiness',
    summary: 'Can it record decisions?',
    description: 'Asks the database, and whether its schema is the one that this version was built for.',
    answers: [{ status: 200, description: 'It can.', example: { status: 'ready' } }],
    problems: [
      {
        code: 'unavailable',
        detail: 'The database cannot be reached at the moment. Send the same request again with the same key.',
      },
    ],
  })
  async readiness(): Promise<{ status: string }> {
    const missing = await missingMigrations(this.database.dataSource);
    if (missing.length > 0) throw new Problem('unavailable', `The schema lacks ${missing.length} migrations.`);
    return { status: 'ready' };
  }
}
