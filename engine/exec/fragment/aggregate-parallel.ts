// Operator: hash aggregate on several threads. The coordinator (the thread that runs the query) first aggregates one
// chunk of the rows alone, to see how many groups there are.
//
//   few groups    every thread aggregates chunks of its own (partial-groups.ts), and the coordinator merges the results
//                 in the order of the chunks, so groups come in order of first appearance
//   many groups   the results of chunks would be hardly smaller than their rows, so the aggregation starts again, with
//                 the rows partitioned by key (aggregate-partitioned.ts); if the plan cannot be partitioned, or strings
//                 that are dictionary-encoded are faster without it, the coordinator aggregates the other rows alone

import type { Plan } from '../../sql/plan/plan.js'
import { hidesRows } from '../../storage/memtable/removed-rows.js'
import { PartialAccumulators } from '../aggregate/accumulators.js'
import { ResultColumns } from '../aggregate/aggregate.js'
import { PartialGroups } from '../aggregate/partial-groups.js'
import type { ExecContext } from '../batch/context.js'
import { isBatch, type Operator, type Pull } from '../batch/vector.js'
import { operatorOf, type Steps } from '../join/join-build.js'
import type { BuiltJoin } from '../join/join-built.js'
import { keysOfOneTable } from '../join/join-sides.js'
import { type ChunkWorker, CoordinatorRun, type FragmentDetails } from '../parallel/coordinator.js'
import { singleThread } from '../parallel/single-thread.js'
import { byTime } from '../scan/full-scan.js'
import { listMorsels } from '../scan/morsel-list.js'
import { rowCount, type ScanMorsel } from '../scan/morsels.js'
import { scanShape } from '../scan/scan-shape.js'
import { isPartitionable, PartitionedGroups, partitionWorker } from './aggregate-partitioned.js'
import { buildJoins, probedScan } from './join-parallel.js'
import {
  type ChunkedMorsels,
  chunkedAsDetailed,
  chunkedMorsels,
  morselsOf,
  parallelScan,
  RowChunks,
  rowsOf,
  type ScanPlan,
  stableScan,
} from './rows-parallel.js'

type AggregatePlan = Extract<Plan, { kind: 'aggregate' }>

/** Chunks are not enlarged to reduce the number of partial groups if fewer than this many would remain. */
const chunksMin = 4

/** DISTINCT as a grouping without aggregates. */
export function distinctGroups({ input, columns }: Extract<Plan, { kind: 'distinct' }>): AggregatePlan {
  const keys = columns.map(({ type }, index) => ({ kind: 'column' as const, index, type, position: 0 }))
  return { kind: 'aggregate', input, columns, keys, aggregates: [] }
}

type Build = (context: ExecContext, plan: Plan) => Operator

/**
 * undefined when no other thread could take part. `sharedPlan`: the node of the query's plan that workers build;
 * `build`: builds operators of other plans.
 */
export function parallelAggregate(
  context: ExecContext,
  plan: AggregatePlan,
  build: Build,
  sharedPlan: Plan = plan,
): Operator | undefined {
  const inOrder = orderedMorsels(context, plan)
  const own = inOrder === undefined ? plan : inAnyOrder(plan)
  const scan = sharedScan(context, own)
  if (scan === undefined) return undefined
  const isJoined = parallelScan(own.input) === undefined
  // Without other threads, joins that build their sides themselves can spill.
  if (isJoined && context.parallelism === undefined) return undefined
  const shape = scanShape(context, scan)
  const cut = chunkedMorsels(context, shape, inOrder)
  if (cut.morsels.length <= cut.chunkMorsels) return undefined
  const chunked = { ...cut, count: context.progress?.begin(shape.snapshot, rowCount(cut.morsels)) }
  return isJoined
    ? operatorOf(joinedGroups(context, own, sharedPlan, chunked, build))
    : parallelGroups(context, own, sharedPlan, chunked)
}

/** The scan whose rows threads can aggregate in parts: the states of the aggregates can be merged. */
export function sharedScan(context: ExecContext, { input, aggregates }: AggregatePlan): ScanPlan | undefined {
  const scan = probedScan(context, input)
  return scan === undefined || PartialAccumulators.ofCalls(context, aggregates) === null ? undefined : scan
}

/** Morsels of a scan in timestamp order; undefined if no order is required, or they overlap. */
function orderedMorsels(context: ExecContext, { input }: AggregatePlan): readonly ScanMorsel[] | undefined {
  const scan = stableScan(input)
  if (scan?.order !== 'ascending') return undefined
  const shape = scanShape(context, scan)
  return hidesRows(shape.snapshot.version) ? undefined : byTime(morselsOf(context, shape))
}

/** The plan over a scan without an order, which reads the morsels as listed. */
function inAnyOrder(plan: AggregatePlan): AggregatePlan {
  const relaxed = (input: Plan): Plan => {
    if (input.kind === 'scan') return { ...input, order: 'any' }
    return input.kind === 'filter' || input.kind === 'project' ? { ...input, input: relaxed(input.input) } : input
  }
  return { ...plan, input: relaxed(plan.input) }
}

function* joinedGroups(
  context: ExecContext,
  plan: AggregatePlan,
  sharedPlan: Plan,
  chunked: ChunkedMorsels,
  build: Build,
): Steps {
  const joins = yield* buildJoins(context, plan.input, build)
  const groups = parallelGroups(context, plan, sharedPlan, { ...chunked, joins })
  for (let pulled = groups.pull(); pulled !== null; pulled = groups.pull()) yield pulled
}

function parallelGroups(
  context: ExecContext,
  plan: AggregatePlan,
  sharedPlan: Plan,
  chunked: ChunkedMorsels,
): Operator {
  const { morsels, chunkMorsels, joins = [], count } = chunked
  const dense = keysOfOneTable(plan.input, plan.keys)
  const arena = context.arena.child()
  const total = new PartialGroups({ ...context, arena }, plan, dense)
  const output = new ResultColumns(context, plan, total.accumulators)
  let input: Operator | null = rowsOf(context, plan.input, { morsels: morsels.slice(0, chunkMorsels), joins, count })
  let stage: 'first' | 'alone' | 'shared' | 'over' = 'first'
  let coordinator: CoordinatorRun | null = null
  let partitioned: PartitionedGroups | null = null
  let next = 0
  const rest = { morsels: morsels.slice(chunkMorsels), chunkMorsels, joins, count }
  const spreadable = isPartitionable(plan, morsels, dense) && joins.every(isUnique)

  const advance = (): Pull => {
    if (coordinator !== null) {
      const outcome = coordinator.step()
      if (outcome === 'done') stage = 'over'
      return outcome === 'waiting' ? 'waiting' : 'working'
    }
    const batch = input?.pull() ?? null
    if (isBatch(batch)) {
      total.add(batch)
      // Partitioning reads all rows again from the start, so this chunk need not be finished.
      if (stage === 'first' && spreadable && total.hasManyGroups) input = null
    } else if (batch !== null) return batch
    else if (stage === 'alone') stage = 'over'
    else if (total.chunkTimes * chunkMorsels * chunksMin <= rest.morsels.length) {
      stage = 'shared'
      coordinator = coordinatorOf(
        context,
        { plan, sharedPlan },
        { ...rest, chunkMorsels: chunkMorsels * total.chunkTimes },
        dense,
        total,
      )
    } else if (spreadable && (!total.encoded || total.hasManyGroups)) {
      arena.freeAll()
      partitioned = new PartitionedGroups(context, { plan: sharedPlan, input: plan.input, shape: plan }, chunked)
    } else {
      stage = 'alone'
      input = rowsOf(context, plan.input, rest)
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

/** A worker's work for this operator. */
export function aggregateWorker(
  context: ExecContext,
  requested: AggregatePlan,
  details: FragmentDetails,
): ChunkWorker | undefined {
  const plan = stableScan(requested.input)?.order === 'ascending' ? inAnyOrder(requested) : requested
  const scan = probedScan(context, plan.input)
  const chunked = scan === undefined ? undefined : chunkedAsDetailed(context, scanShape(context, scan), details)
  if (chunked === undefined) return undefined
  const { partitions } = details
  return partitions === undefined
    ? workerOf(context, plan, chunked, keysOfOneTable(plan.input, plan.keys))
    : partitionWorker(context, { plan, input: plan.input, shape: plan }, chunked, partitions)
}

/** Ranks number the rows of the probe side, so each of these may have at most one match. */
function isUnique({ buckets }: BuiltJoin): boolean {
  return buckets?.unique === true
}

function coordinatorOf(
  context: ExecContext,
  { plan, sharedPlan }: { readonly plan: AggregatePlan; readonly sharedPlan: Plan },
  rest: ChunkedMorsels,
  dense: boolean,
  total: PartialGroups,
): CoordinatorRun {
  const { morsels, chunkMorsels, joins = [], count } = rest
  return new CoordinatorRun(context.memory, context.parallelism ?? singleThread(context.arena), {
    plan: sharedPlan,
    worker: workerOf(context, plan, rest, dense),
    chunks: Math.ceil(morsels.length / chunkMorsels),
    details: () => ({ morsels: listMorsels(morsels), chunkMorsels, counts: null, joins }),
    merge: (result) => total.merge(result),
    counted: count === undefined ? undefined : { count, rows: rowCount(morsels) },
  })
}

function workerOf(context: ExecContext, plan: AggregatePlan, chunked: ChunkedMorsels, dense: boolean): RowChunks {
  return new RowChunks(context, plan.input, chunked, (own) => new PartialGroups(own, plan, dense))
}
