import { Body, Controller, Delete, Get, HttpCode, Param, Post, Req } from '@nestjs/common';
import { ApiTags } from '@nestjs/swagger';
import type { FastifyRequest } from 'fastify';
import { Credentials, type CredentialView, type NewCredential, type TenantTokens } from '#access';
import { callerOf, strictBody } from '../http/index.js';
import { CreateTenantDoc, IssueCredentialDoc, ListCredentialsDoc, RevokeCredentialDoc } from './access.docs.js';
import { NewCredentialRequest, NewTenantRequest } from './access.dto.js';

@ApiTags('Tenants and credentials')
@Controller('v1')
export class AccessController {
  constructor(private readonly credentials: Credentials) {}

  @Post('tenants')
  @CreateTenantDoc()
  async createTenant(
    @Body(strictBody(NewTenantRequest)) { tenant }: NewTenantRequest,
  ): Promise<{ tenant: string; credentials: TenantTokens }> {
    return { tenant, credentials: await this.credentials.createTenant(tenant) };
  }

  @Post('credentials')
  @IssueCredentialDoc()
  async issue(
    @Req() req: FastifyRequest,
    @Body(strictBody(NewCredentialRequest)) { role, name, expiresAt }: NewCredentialRequest,
  ): Promise<NewCredential> {
    return this.credentials.issue(callerOf(req), role, name, expiresAt ?? null);
  }

  @Get('credentials')
  @ListCredentialsDoc()
  async list(@Req() req: FastifyRequest): Promise<{ items: CredentialView[] }> {
    return { items: await this.credentials.list(callerOf(req)) };
  }

  @Delete('credentials/:credentialId')
  @HttpCode(204)
  @RevokeCredentialDoc()
  async revoke(@Req() req: FastifyRequest, @Param('credentialId') credentialId: string): Promise<void> {
    await this.credentials.revoke(callerOf(req), credentialId);
  }
}
