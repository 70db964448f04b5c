// Operator: ORDER BY .. LIMIT over chunks of the input, on several threads where there are some. A thread sorts a chunk
// and returns its first rows, as many as the limit; the coordinator sorts these again. It takes the results in the
// order of the chunks and sorts stably, so rows with equal keys keep their order.
//
// The result of a chunk has the layout of result-columns.ts.

import type { Plan } from '../../sql/plan/plan.js'
import type { ExecContext } from '../batch/context.js'
import { batchRowsMax, type Operator, type Pull } from '../batch/vector.js'
import { type ChunkWorker, CoordinatorRun, type FragmentDetails } from '../parallel/coordinator.js'
import { batchOf, columnsBytes, rowsAt, writeColumns } from '../parallel/result-columns.js'
import { singleThread } from '../parallel/single-thread.js'
import { listMorsels } from '../scan/morsel-list.js'
import { rowCount } from '../scan/morsels.js'
import { type ScanShape, scanShape } from '../scan/scan-shape.js'
import type { Bound } from '../scan/sort-bound.js'
import { topMorsels, wantedRows } from '../scan/top-rows.js'
import { SortedRows } from '../sort/sort.js'
import {
  type ChunkedMorsels,
  chunkedAsDetailed,
  chunkedMorsels,
  morselsOf,
  parallelScan,
  RowChunks,
} from './rows-parallel.js'

type SortPlan = Extract<Plan, { kind: 'sort' }>

/** For larger limits, keeping the first rows of each chunk does not pay off. */
const limitMax = 10_000

/** undefined when all rows are needed, or no other thread could help. */
export function parallelSort(context: ExecContext, plan: SortPlan): Operator | undefined {
  const scan = parallelScan(plan.input)
  if (scan === undefined || plan.limit === null || plan.limit > limitMax) return undefined
  const shape = scanShape(context, scan)
  const top = topMorsels(context, plan, shape, morselsOf(context, shape))
  const chunked = chunkedMorsels(context, shape, top.morsels)
  const { morsels, chunkMorsels } = chunked
  if (morsels.length <= chunkMorsels && top.word === null) return undefined
  const { memory } = context
  const types = plan.columns.map(({ type }) => type)
  const rows = new SortedRows(context, plan)
  const coordinator = new CoordinatorRun(memory, context.parallelism ?? singleThread(context.arena), {
    plan,
    worker: workerOf(context, plan, shape, chunked, { word: top.word }),
    chunks: Math.ceil(morsels.length / chunkMorsels),
    details: () => ({ morsels: listMorsels(morsels), chunkMorsels, counts: null }),
    merge: (result) => {
      for (let from = 0; from < rowsAt(memory, result); from += batchRowsMax) {
        const batch = batchOf(memory, result, types, from)
        if (batch !== null) rows.add(batch)
      }
    },
    counted: context.progress?.chunked(shape.snapshot, rowCount(morsels)),
  })
  const pull = (): Pull => {
    if (rows.sorted) return rows.next()
    const outcome = coordinator.step()
    if (outcome === 'done') rows.sort()
    return outcome === 'waiting' ? 'waiting' : 'working'
  }
  return { pull }
}

/** A worker's work for this operator. */
export function sortWorker(context: ExecContext, plan: SortPlan, details: FragmentDetails): ChunkWorker | undefined {
  const scan = parallelScan(plan.input)
  if (scan === undefined) return undefined
  const shape = scanShape(context, scan)
  const chunked = chunkedAsDetailed(context, shape, details)
  return chunked === undefined ? undefined : workerOf(context, plan, shape, chunked, { word: null })
}

/** The chunks of a thread share the bound: rows that one chunk rules out are dropped in later chunks as well. */
function workerOf(
  context: ExecContext,
  plan: SortPlan,
  scan: ScanShape,
  chunked: ChunkedMorsels,
  bound: Bound,
): RowChunks {
  return new RowChunks(context, plan.input, chunked, (own) => {
    const rows = new SortedRows(own, plan, bound)
    return {
      wanted: wantedRows(own, plan, scan, bound),
      add: (batch) => rows.add(batch),
      result: () => {
        rows.prune()
        const address = own.arena.take(columnsBytes(plan.columns.length))
        writeColumns(own, address, rows.store, plan.columns.length)
        return address
      },
    }
  })
}
