import { Module, type DynamicModule } from '@nestjs/common';
import { Database, type Settings } from '#database';
import { Authenticator } from './authenticator.js';
import { Credentials } from './credentials.js';
import { IdentityProvider } from './identity-provider.js';

@Module({})
export class AccessModule {
  static register({ identityProvider }: Settings): DynamicModule {
    const provider = identityProvider === null ? null : new IdentityProvider(identityProvider);
    return {
      module: AccessModule,
      providers: [
        {
          provide: Authenticator,
          useFactory: (database: Database) => new Authenticator(database, provider),
          inject: [Database],
        },
        Credentials,
      ],
      exports: [Authenticator, Credentials],
    };
  }
}
