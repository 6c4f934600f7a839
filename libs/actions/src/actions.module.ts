import { Module } from '@nestjs/common';
import { Inventory } from './inventory.js';

@Module({ providers: [Inventory], exports: [Inventory] })
export class ActionsModule {}
