import { Module, type DynamicModule, type Type } from '@nestjs/common';
import type { EffectHandler } from './effect-handler.js';
import { EffectHandlers } from './effect-handlers.js';

@Module({})
export class EffectsModule {
  /** @param handlers the providers that apply an action's effect in TypeScript; every other action's effect is declarative */
  static register(handlers: readonly Type<EffectHandler>[]): DynamicModule {
    return {
      module: EffectsModule,
      global: true,
      providers: [
        ...handlers,
        {
          provide: EffectHandlers,
          useFactory: (...instances: EffectHandler[]) => new EffectHandlers(instances),
          inject: [...handlers],
        },
      ],
      exports: [EffectHandlers],
    };
  }
}
