export { PROBLEMS, isProblemCode, type ProblemCode } from './catalogue.js';
export { Problem, validationFailed, type ProblemExtras, type ProblemPlace } from './problem.js';
