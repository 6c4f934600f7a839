import type { EffectHandler } from './effect-handler.js';

/** The handlers by the name of their action. */
export class EffectHandlers {
  private readonly byAction: ReadonlyMap<string, EffectHandler>;

  /** @throws Error if two handlers want the same action */
  constructor(handlers: readonly EffectHandler[]) {
    this.byAction = new Map(handlers.map((handler) => [handler.action, handler]));
    if (this.byAction.size < handlers.length) throw new Error('Two effect handlers are registered for one action');
  }

  /** The handler of an action, or null where the effect is declarative. */
  of(action: string): EffectHandler | null {
    return this.byAction.get(action) ?? null;
  }
}
