import { SetMetadata, type CustomDecorator } from '@nestjs/common';
import type { Role } from '#access';

export const ALLOWED_ROLES = 'allowed-roles';

/** The roles that may use a route. A route that names none is open to everyone, without a credential. */
export const Allow = (...roles: readonly Role[]): CustomDecorator => SetMetadata(ALLOWED_ROLES, roles);

export const TAKES_QUERY = 'takes-query';

/** A route that looks at its query, and refuses what it does not know there. */
export const TakesQuery = (): CustomDecorator => SetMetadata(TAKES_QUERY, true);
