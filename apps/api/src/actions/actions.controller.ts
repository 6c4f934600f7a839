import { Body, Controller, Get, Param, Put, Req, Res } from '@nestjs/common';
import { ApiTags } from '@nestjs/swagger';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { ACTION_NAME, ACTION_NAME_LENGTH, Inventory, type Action, type MadeAction } from '#actions';
import { DispatchTargets } from '#effects';
import { Problem, validationFailed } from '#problem';
import { callerOf, strictBody } from '../http/index.js';
import { GetActionDoc, ListActionsDoc, ListVersionsDoc, PutActionDoc } from './actions.docs.js';
import { PutActionRequest, rulesOf } from './actions.dto.js';
import { checkTarget } from './check-target.js';

const isName = (action: string): boolean => action.length <= ACTION_NAME_LENGTH && ACTION_NAME.test(action);

@ApiTags('Actions')
@Controller('v1/actions')
export class ActionsController {
  constructor(
    private readonly inventory: Inventory,
    private readonly targets: DispatchTargets,
  ) {}

  @Put(':action')
  @PutActionDoc()
  async put(
    @Req() req: FastifyRequest,
    @Res() reply: FastifyReply,
    @Param('action') name: string,
    @Body(strictBody(PutActionRequest)) body: PutActionRequest,
  ): Promise<void> {
    if (!isName(name)) {
      throw validationFailed([
        {
          pointer: 'action',
          detail: `must be words of a–z, 0–9, _ and -, joined by dots, of at most ${ACTION_NAME_LENGTH} characters`,
        },
      ]);
    }
    const rules = rulesOf(body);
    checkTarget(rules, this.targets);
    const { tenant, credentialId } = callerOf(req);
    const { action, created } = await this.inventory.put(tenant, name, rules, credentialId);
    void reply.code(created ? 201 : 200).send(action);
  }

  @Get()
  @ListActionsDoc()
  async list(@Req() req: FastifyRequest): Promise<{ items: Action[] }> {
    return { items: await this.inventory.list(callerOf(req).tenant) };
  }

  @Get(':action')
  @GetActionDoc()
  async get(@Req() req: FastifyRequest, @Param('action') name: string): Promise<Action> {
    if (!isName(name)) throw new Problem('not-found', 'The inventory has no such action.');
    return this.inventory.get(callerOf(req).tenant, name);
  }

  @Get(':action/versions')
  @ListVersionsDoc()
  async versions(@Req() req: FastifyRequest, @Param('action') name: string): Promise<{ items: MadeAction[] }> {
    if (!isName(name)) throw new Problem('not-found', 'The inventory has no such action.');
    return { items: await this.inventory.versions(callerOf(req).tenant, name) };
  }
}
