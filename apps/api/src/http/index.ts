export { AccessGuard } from './access.guard.js';
export { Allow } from './allow.js';
export { takeJsonAsBytes } from './json-body.js';
export { Documented, type ProblemDoc, type RouteDoc } from './documented.js';
export { ProblemFilter, sendProblem } from './problem.filter.js';
export { arrivalOf, callerOf, decisionIdOf, REQUEST_ID_HEADER, requestIdOf } from './request-context.js';
export { Routes } from './routes.js';
export { readJson, strictBody, strictQuery } from './strict.pipe.js';
