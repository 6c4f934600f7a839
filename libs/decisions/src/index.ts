export { Attempt } from './attempt.entity.js';
export { DecisionRecord } from './decision-record.entity.js';
