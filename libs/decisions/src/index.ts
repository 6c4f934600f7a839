export { Attempt } from './attempt.entity.js';
export { ContentHold } from './content-hold.entity.js';
export { DecisionRecord } from './decision-record.entity.js';
