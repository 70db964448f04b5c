// From a plan whose fragment another thread shares to the work on its chunks.

import type { Plan } from '../plan/plan.js'
import { scanShape } from './build.js'
import type { ExecContext } from './context.js'
import { helpFragment } from './fragment-operators.js'
import type { ChunkWorker, ShareDetails } from './share.js'

/** undefined: this thread cannot help. */
export function buildHelper(context: ExecContext, plan: Plan, details: ShareDetails): ChunkWorker | undefined {
  if (!('input' in plan) || plan.input.kind !== 'scan') return undefined
  return helpFragment(context, plan, scanShape(context, plan.input), details)
}
