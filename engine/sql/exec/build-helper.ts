// From a plan whose fragment another thread shares to the work on its chunks.

import type { Plan } from '../plan/plan.js'
import { distinctGroups, helpAggregate } from './aggregate-shared.js'
import type { ExecContext } from './context.js'
import { helpRowGroups } from './encode-parquet-rows.js'
import { helpExport } from './encode-parquet-shared.js'
import { helpRows } from './encode-rows-shared.js'
import { helpSorted, helpSortedGroups } from './encode-sorted-shared.js'
import { helpTable } from './encode-table-shared.js'
import { helpFragment } from './fragment-operators.js'
import type { Encoding } from './messages.js'
import { rowFormOf } from './row-forms.js'
import { scanShape } from './scan-shape.js'
import type { ChunkWorker, ShareDetails } from './share.js'
import { helpSort } from './sort-shared.js'

/** undefined: this thread cannot help. */
export function buildHelper(
  context: ExecContext,
  plan: Plan,
  details: ShareDetails,
  encoding: Encoding,
): ChunkWorker | undefined {
  if (details.counts === null) {
    if (encoding.kind === 'parquet') {
      if (details.range !== undefined) return helpExport(context, plan, encoding, details)
      if (details.times !== undefined) return helpRowGroups(context, plan, encoding, details)
      if (details.sorted !== undefined) return helpSortedGroups(context, plan, encoding, details)
    }
    const form = rowFormOf(encoding)
    if (form !== undefined) {
      if (details.range !== undefined) return helpTable(context, plan, form, details)
      if (details.times !== undefined) return helpRows(context, plan, form, details)
      if (details.sorted !== undefined) return helpSorted(context, plan, form, details)
    }
    if (plan.kind === 'sort') return helpSort(context, plan, details)
    const groups = plan.kind === 'distinct' ? distinctGroups(plan) : plan
    return groups.kind === 'aggregate' ? helpAggregate(context, groups, details) : undefined
  }
  if (!('input' in plan) || plan.input.kind !== 'scan') return undefined
  return helpFragment(context, plan, scanShape(context, plan.input), details)
}
