// Operator: groups of any keys, shared. The lead does the first chunk into its own groups. When that shows many groups for
// its rows, partial groups would be as many as the rows, and it goes on alone; else threads make groups of the other
// chunks, which are added in the order of the chunks: so groups come in the order of their first rows.
//
// Layout of a chunk's result: the keys (share-columns.ts), then from a 64-byte boundary on 16 bytes a group of each
// aggregate, one aggregate after the other.

import type { Plan } from '../plan/plan.js'
import { createStates } from './accumulate.js'
import { type AggregateShape, ResultColumns } from './aggregate.js'
import type { ExecContext } from './context.js'
import { compileVector, type VectorEvaluator } from './expression.js'
import { createGrouping, type Grouping } from './group-keys.js'
import { type GroupStates, type PartialStates, partialBytes } from './group-states.js'
import { scanShape } from './scan-slices.js'
import { type ChunkWorker, LeadRun, type ShareDetails } from './share.js'
import { batchOf, columnsBytes, rowsAt, writeColumns } from './share-columns.js'
import { listPieces } from './share-pieces.js'
import {
  type ChunkedPieces,
  type ChunkRows,
  chunkedAsTold,
  chunkedPieces,
  RowChunks,
  rowsOf,
  sharedScan,
} from './share-rows.js'
import { soloSharing } from './share-solo.js'
import { eachPiece, shortContext } from './short-batches.js'
import { type Batch, batchRowsMax, isBatch, type Operator, type Pull } from './vector.js'

type AggregatePlan = Extract<Plan, { kind: 'aggregate' }>

/** Partial groups are worth their merge as long as this many rows of the first chunk fell into each. */
const rowsPerGroupMin = 8
const groupsSmall = 1024

/** undefined: no other thread could help. `dense` as of aggregateOperator. */
export function sharedAggregate(context: ExecContext, plan: AggregatePlan, dense: boolean): Operator | undefined {
  const scan = sharedScan(plan.input)
  if (scan === undefined || !isMergeable(context, plan)) return undefined
  const chunked = chunkedPieces(context, scanShape(context, scan))
  const { pieces, chunkPieces } = chunked
  if (pieces.length <= chunkPieces) return undefined
  const total = new Groups(context, plan, dense)
  const output = new ResultColumns(context, plan, total.states)
  let input: Operator | null = rowsOf(context, plan.input, pieces.slice(0, chunkPieces))
  let stage: 'first' | 'alone' | 'shared' | 'over' = 'first'
  let lead: LeadRun | null = null
  let next = 0
  const rest = { pieces: pieces.slice(chunkPieces), chunkPieces }

  const advance = (): Pull => {
    if (lead !== null) {
      const outcome = lead.step()
      if (outcome === 'done') stage = 'over'
      return outcome === 'waiting' ? 'waiting' : 'working'
    }
    const batch = input?.pull() ?? null
    if (isBatch(batch)) total.add(batch)
    else if (batch !== null) return batch
    else if (stage === 'alone') stage = 'over'
    else if (total.worthSharing) {
      stage = 'shared'
      lead = leadOf(context, plan, rest, dense, total)
    } else {
      stage = 'alone'
      input = rowsOf(context, plan.input, rest.pieces)
    }
    return 'working'
  }
  const pull = (): Pull => {
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
  return chunked === undefined ? undefined : workerOf(context, plan, chunked, dense)
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
  plan: AggregatePlan,
  rest: ChunkedPieces,
  dense: boolean,
  total: Groups,
): LeadRun {
  const { pieces, chunkPieces } = rest
  return new LeadRun(context.memory, context.sharing ?? soloSharing(context.space), {
    plan,
    worker: workerOf(context, plan, rest, dense),
    chunks: Math.ceil(pieces.length / chunkPieces),
    details: () => ({ pieces: listPieces(pieces), chunkPieces, counts: null }),
    merge: (result) => total.merge(result),
  })
}

function workerOf(context: ExecContext, plan: AggregatePlan, chunked: ChunkedPieces, dense: boolean): RowChunks {
  return new RowChunks(context, plan.input, chunked, (own) => new Groups(own, plan, dense))
}

class Groups implements ChunkRows {
  readonly grouping: Grouping | null
  readonly states: readonly GroupStates[]
  readonly #context: ExecContext
  readonly #shape: AggregateShape
  readonly #keys: readonly VectorEvaluator[]
  /** Group numbers of rows where there are no keys. */
  readonly #zeros: number
  #rows = 0

  constructor(context: ExecContext, shape: AggregateShape, dense: boolean) {
    const { keys, aggregates } = shape
    this.#context = context
    this.#shape = shape
    const own = shortContext(context, aggregates.length)
    this.#keys = keys.map((key) => compileVector(key, context))
    const types = keys.map(({ type }) => type)
    this.grouping = keys.length > 0 ? createGrouping(context, types, dense) : null
    this.states = createStates(own, aggregates)
    this.#zeros = keys.length > 0 ? 0 : context.space.take(batchRowsMax * 4)
    if (this.#zeros !== 0) context.memory.u8.fill(0, this.#zeros, this.#zeros + batchRowsMax * 4)
  }

  get count(): number {
    return this.grouping?.count ?? 1
  }

  get worthSharing(): boolean {
    return this.count <= Math.max(groupsSmall, this.#rows / rowsPerGroupMin)
  }

  add(batch: Batch): void {
    this.#rows += batch.rows
    this.#assign(
      this.#keys.map((evaluate) => evaluate(batch)),
      batch.rows,
    )
    eachPiece(batch, this.states.length, (piece, from) => {
      for (const state of this.states) state.add(piece, this.#ids + from * 4, this.#size)
    })
  }

  result(): number {
    const { space } = this.#context
    const count = this.#rows === 0 ? 0 : this.count
    const head = this.#headBytes
    const address = space.take(head + count * partialBytes * this.states.length)
    const { memory } = this.#context
    if (this.grouping === null) memory.u32[address >>> 2] = count
    else writeColumns(this.#context, address, this.grouping.keys, this.#keys.length)
    const ids = Array.from({ length: count }, (_, index) => this.grouping?.idAt(index) ?? 0)
    this.#partials.forEach((partial, index) => {
      partial.save(ids, address + head + index * count * partialBytes)
    })
    return address
  }

  /** Adds the result of later rows. */
  merge(result: number): void {
    const { memory } = this.#context
    const count = rowsAt(memory, result)
    const types = this.#shape.keys.map(({ type }) => type)
    for (let from = 0; from < count; from += batchRowsMax) {
      const rows = Math.min(batchRowsMax, count - from)
      this.#assign(batchOf(memory, result, types, from)?.vectors ?? [], rows)
      this.#partials.forEach((partial, index) => {
        const at = result + this.#headBytes + (index * count + from) * partialBytes
        partial.merge(at, rows, this.#ids, this.#size)
      })
    }
  }

  get #headBytes(): number {
    return (columnsBytes(this.#keys.length) + 63) & ~63
  }

  get #partials(): PartialStates[] {
    return this.states.flatMap(({ partial }) => (partial === undefined ? [] : [partial]))
  }

  get #ids(): number {
    return this.grouping?.ids ?? this.#zeros
  }

  get #size(): number {
    return this.grouping?.size ?? 1
  }

  #assign(keys: Parameters<Grouping['assign']>[0], rows: number): void {
    this.grouping?.assign(keys, rows, 0)
  }
}
