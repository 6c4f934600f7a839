import { prepare } from './prepare.mjs';

await prepare();
// In this very process, so that signals reach the service and not a parent that would have to pass them on.
await import('../dist/apps/api/src/main.js');
