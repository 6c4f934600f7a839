import { writeFileSync } from 'node:fs';

/** Tells scripts/test.mjs how a run of Jest ended: one line of JSON in the file that COUNT_FILE names. */
export default class CountReporter {
  onRunComplete(_contexts, results) {
    const passed = results.numPassedTests;
    // A suite that could not even be loaded has no tests that could fail.
    const failed = results.numFailedTests + results.numRuntimeErrorTestSuites;
    writeFileSync(process.env['COUNT_FILE'], JSON.stringify({ passed, failed }));
  }
}
