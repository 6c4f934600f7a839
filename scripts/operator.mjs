import { prepare } from './prepare.mjs';

await prepare();
await import('../dist/apps/operator/src/main.js');
