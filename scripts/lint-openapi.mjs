import { join } from 'node:path';

import { createConfig, formatProblems, getTotals, lint } from '@redocly/openapi-core';

import { ROOT } from './project.mjs';

// Lints the committed document by Redocly's recommended rules. A warning counts as a failure: nobody reads the second one.
const config = await createConfig({
  extends: ['recommended'],
  // Health and metrics take nothing that a caller could get wrong.
  rules: { 'operation-4xx-response': 'off' },
});
const problems = await lint({ ref: join(ROOT, 'openapi/openapi.json'), config });
const totals = getTotals(problems);
if (totals.errors + totals.warnings > 0) {
  formatProblems(problems, { totals, cwd: ROOT, version: '' });
  process.exitCode = 1;
}
