export { Effect } from './effect.entity.js';
export { applied, refused, type DecidedEffect, type EffectHandler, type EffectOutcome } from './effect-handler.js';
export { EffectHandlers } from './effect-handlers.js';
export { Hold } from './hold.entity.js';
export { EffectsModule } from './effects.module.js';
