import { secretVariable, type ActionRules } from '#actions';
import type { DispatchTargets } from '#effects';
import { Problem } from '#problem';

/**
 * Whether this service may call where an action wants to be dispatched, with what it wants to show there.
 *
 * @throws Problem `host-not-allowed`, `unknown-secret`
 */
export function checkTarget({ dispatch }: ActionRules, targets: DispatchTargets): void {
  if (dispatch === undefined) return;
  const url = new URL(dispatch.url);
  if (!targets.allowsHost(url)) {
    throw new Problem('host-not-allowed', `The operator has not allowed calls to ${url.host}.`);
  }
  for (const [name, source] of Object.entries(dispatch.secretHeaders)) {
    if (targets.secret(secretVariable(source) ?? '') === undefined)
      throw new Problem('unknown-secret', `The environment has no such secret as the header ${name} is to have.`);
  }
}
