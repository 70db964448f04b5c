// Operator: groups of any keys, shared. The lead does the first chunk into its own groups. When that shows many groups for
// its rows, partial groups would be as many as the rows, and it begins anew with partitions (aggregate-partitioned.ts), or
// goes on alone; else threads make groups of the other chunks (partial-groups.ts), which are added in the order of the
// chunks: so groups come in the order of their first rows.

import type { Plan } from '../plan/plan.js'
import { createStates } from './accumulate.js'
import { ResultColumns } from './aggregate.js'
import { isSpreadable, PartitionedGroups, partitionWorker } from './aggregate-partitioned.js'
import type { ExecContext } from './context.js'
import { PartialGroups } from './partial-groups.js'
import { scanShape } from './scan-slices.js'
import { type ChunkWorker, LeadRun, type ShareDetails } from './share.js'
import { listPieces } from './share-pieces.js'
import { type ChunkedPieces, chunkedAsTold, chunkedPieces, RowChunks, rowsOf, sharedScan } from './share-rows.js'
import { soloSharing } from './share-solo.js'
import { isBatch, type Operator, type Pull } from './vector.js'

type AggregatePlan = Extract<Plan, { kind: 'aggregate' }>

/** Chunks made longer, for fewer groups in all of them, are no fewer than that. */
const chunksMin = 4

/** Different rows are groups without aggregates. */
export function distinctGroups({ input, columns }: Extract<Plan, { kind: 'distinct' }>): AggregatePlan {
  const keys = columns.map(({ type }, index) => ({ kind: 'column' as const, index, type, position: 0 }))
  return { kind: 'aggregate', input, columns, keys, aggregates: [] }
}

/** undefined: no other thread could help. `dense` as of aggregateOperator; `told`: the plan of the query that it is. */
export function sharedAggregate(
  context: ExecContext,
  plan: AggregatePlan,
  dense: boolean,
  told: Plan = plan,
): Operator | undefined {
  const scan = sharedScan(plan.input)
  if (scan === undefined || !isMergeable(context, plan)) return undefined
  const chunked = chunkedPieces(context, scanShape(context, scan))
  const { pieces, chunkPieces } = chunked
  if (pieces.length <= chunkPieces) return undefined
  const space = context.space.child()
  context.onEnd(() => space.freeAll())
  const total = new PartialGroups({ ...context, space }, plan, dense)
  const output = new ResultColumns(context, plan, total.states)
  let input: Operator | null = rowsOf(context, plan.input, pieces.slice(0, chunkPieces))
  let stage: 'first' | 'alone' | 'shared' | 'over' = 'first'
  let lead: LeadRun | null = null
  let partitioned: PartitionedGroups | null = null
  let next = 0
  const rest = { pieces: pieces.slice(chunkPieces), chunkPieces }

  const advance = (): Pull => {
    if (lead !== null) {
      const outcome = lead.step()
      if (outcome === 'done') stage = 'over'
      return outcome === 'waiting' ? 'waiting' : 'working'
    }
    const batch = input?.pull() ?? null
    if (isBatch(batch)) {
      total.add(batch)
      if (stage === 'first' && total.surelyMany) input = null
    } else if (batch !== null) return batch
    else if (stage === 'alone') stage = 'over'
    else if (total.chunkTimes * chunkPieces * chunksMin <= rest.pieces.length) {
      stage = 'shared'
      lead = leadOf(context, { plan, told }, { ...rest, chunkPieces: chunkPieces * total.chunkTimes }, dense, total)
    } else if (!total.coded && isSpreadable(plan, pieces, dense)) {
      space.freeAll()
      partitioned = new PartitionedGroups(context, { plan: told, input: plan.input, shape: plan }, pieces)
    } else {
      stage = 'alone'
      input = rowsOf(context, plan.input, rest.pieces)
    }
    return 'working'
  }
  const pull = (): Pull => {
    if (partitioned !== null) return partitioned.pull()
    if (stage !== 'over') return advance()
    const { grouping } = total
    const rows = Math.min(output.rowsMax, total.count - next)
    if (rows <= 0) return null
    const from = next
    next += rows
    const keys = grouping?.keys.batchAt(from, from + rows)?.vectors ?? []
    return output.batch(keys, rows, (row) => grouping?.idAt(from + row) ?? 0)
  }
  return { pull }
}

/** What a helper does for it. */
export function helpAggregate(
  context: ExecContext,
  plan: AggregatePlan,
  dense: boolean,
  details: ShareDetails,
): ChunkWorker | undefined {
  const scan = sharedScan(plan.input)
  const chunked = scan === undefined ? undefined : chunkedAsTold(context, scanShape(context, scan), details)
  if (chunked === undefined) return undefined
  const { partitions } = details
  return partitions === undefined
    ? workerOf(context, plan, chunked, dense)
    : partitionWorker(context, { plan, input: plan.input, shape: plan }, chunked, partitions)
}

/** Only sums, counts, means and extremes of numbers can be added up. */
function isMergeable(context: ExecContext, plan: AggregatePlan): boolean {
  const space = context.space.child()
  const states = createStates({ ...context, space, rowsMax: 64 }, plan.aggregates)
  space.freeAll()
  return states.every(({ partial }) => partial !== undefined)
}

function leadOf(
  context: ExecContext,
  { plan, told }: { readonly plan: AggregatePlan; readonly told: Plan },
  rest: ChunkedPieces,
  dense: boolean,
  total: PartialGroups,
): LeadRun {
  const { pieces, chunkPieces } = rest
  return new LeadRun(context.memory, context.sharing ?? soloSharing(context.space), {
    plan: told,
    worker: workerOf(context, plan, rest, dense),
    chunks: Math.ceil(pieces.length / chunkPieces),
    details: () => ({ pieces: listPieces(pieces), chunkPieces, counts: null }),
    merge: (result) => total.merge(result),
  })
}

function workerOf(context: ExecContext, plan: AggregatePlan, chunked: ChunkedPieces, dense: boolean): RowChunks {
  return new RowChunks(context, plan.input, chunked, (own) => new PartialGroups(own, plan, dense))
}
