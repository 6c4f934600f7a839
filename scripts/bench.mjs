import { prepare } from './prepare.mjs';

await prepare({ development: true });
await import('../bench/run.mjs');
