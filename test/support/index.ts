export { Client, inputs, type Reply } from './client.js';
export { freshDatabase, type TestDatabase } from './database.js';
export { clientsOf, createTenant, operator, startService, type Service, type Tokens } from './service.js';
