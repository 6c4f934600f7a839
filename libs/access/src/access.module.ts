import { Module } from '@nestjs/common';
import { Authenticator } from './authenticator.js';
import { Credentials } from './credentials.js';

@Module({ providers: [Authenticator, Credentials], exports: [Authenticator, Credentials] })
export class AccessModule {}
