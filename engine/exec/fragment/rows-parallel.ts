// RowChunks: processes a chunk (a range of the input) of a parallel plan on one thread. It scans, filters, projects and
// joins the rows of the chunk, and passes them to a consumer (ChunkRows), such as a partial aggregation. The operators
// and memory of a chunk are its own, so that they can be freed together.

import type { Plan } from '../../sql/plan/plan.js'
import { isStable } from '../../sql/plan/volatile.js'
import type { ExecContext } from '../batch/context.js'
import type { QueryArena } from '../batch/query-arena.js'
import { Symbols } from '../batch/symbols.js'
import { type Batch, isBatch, type Operator } from '../batch/vector.js'
import { joinRowsOf, probeOperator } from '../join/join.js'
import type { BuiltJoin } from '../join/join-built.js'
import { probedPlan } from '../join/join-sides.js'
import { filterOperator } from '../operators/filter.js'
import { projectOperator } from '../operators/project.js'
import { type ChunkWorker, type FragmentDetails, morselsPerChunk } from '../parallel/coordinator.js'
import { singleThread } from '../parallel/single-thread.js'
import { pickMorsels } from '../scan/morsel-list.js'
import type { ScanMorsel } from '../scan/morsels.js'
import { scanOperator } from '../scan/scan.js'
import type { ScanCount } from '../scan/scan-progress.js'
import { type ScanShape, scanShape } from '../scan/scan-shape.js'
import type { WantedRows } from '../scan/scan-slices.js'
import { scanRuns } from '../scan/zones.js'

export type ScanPlan = Extract<Plan, { kind: 'scan' }>

/** The unordered scan below filters and projections that are deterministic, so that threads can share it. */
export function parallelScan(plan: Plan): ScanPlan | undefined {
  const scan = stableScan(plan)
  return scan?.order === 'any' ? scan : undefined
}

/** The scan below deterministic filters and projections; undefined when there is none. */
export function stableScan(plan: Plan): ScanPlan | undefined {
  switch (plan.kind) {
    case 'scan':
      return plan.filter === null || isStable(plan.filter) ? plan : undefined
    case 'filter':
      return isStable(plan.predicate) ? stableScan(plan.input) : undefined
    case 'project':
      return plan.expressions.every(isStable) ? stableScan(plan.input) : undefined
    default:
      return undefined
  }
}

/** The plan's operators over the given morsels. `joins`: build sides of the joins in the plan, from the top down. */
export function rowsOf(
  context: ExecContext,
  plan: Plan,
  { morsels, joins = [], count }: ChosenMorsels,
  wanted: WantedRows | null = null,
): Operator {
  switch (plan.kind) {
    case 'filter':
      return filterOperator(
        context,
        rowsOf(context, plan.input, { morsels, joins, count }, wanted),
        plan.columns,
        plan.predicate,
      )
    case 'project':
      return projectOperator(context, rowsOf(context, plan.input, { morsels, joins, count }, wanted), plan.expressions)
    case 'join': {
      const [built = {}, ...below] = joins
      const own = { ...context, joinRows: joinRowsOf(context, plan) }
      return probeOperator(
        own,
        rowsOf(own, probedPlan(context, plan), { morsels, joins: below, count }, wanted),
        built,
        plan,
      )
    }
    default:
      return scanOperator(context, scanShape(context, plan as ScanPlan), morsels, wanted, count)
  }
}

export interface ChosenMorsels {
  readonly morsels: readonly ScanMorsel[]
  readonly joins?: readonly BuiltJoin[]
  /** Counts the rows of the whole scan, of which these may be a part. */
  readonly count?: ScanCount | undefined
}

export interface ChunkedMorsels extends ChosenMorsels {
  readonly chunkMorsels: number
}

/** `chosen`: the morsels to read, if not all. */
export function chunkedMorsels(context: ExecContext, scan: ScanShape, chosen?: readonly ScanMorsel[]): ChunkedMorsels {
  const morsels = chosen ?? morselsOf(context, scan)
  return { morsels, chunkMorsels: morselsPerChunk(context.parallelism ?? singleThread(context.arena), morsels) }
}

/** The chunks on a worker thread; undefined when it does not find the same morsels. */
export function chunkedAsDetailed(
  context: ExecContext,
  scan: ScanShape,
  { morsels, chunkMorsels, joins = [] }: FragmentDetails,
): ChunkedMorsels | undefined {
  const picked = pickMorsels(morselsOf(context, scan), morsels)
  return picked === undefined ? undefined : { morsels: picked, chunkMorsels, joins }
}

/** The morsels in the order of the rows. */
export function morselsOf(context: ExecContext, scan: ScanShape): ScanMorsel[] {
  return scanRuns(context, scan).flatMap((run) => run.morsels)
}

/** Collects the rows of a chunk. */
export interface ChunkRows {
  readonly wanted?: WantedRows | null
  add(batch: Batch): void
  /** Address of the result, in the arena of the collector's context. */
  result(): number
}

export class RowChunks implements ChunkWorker {
  readonly #context: ExecContext
  readonly #input: Plan
  readonly #chunked: ChunkedMorsels
  readonly #collect: (context: ExecContext, chunk: number) => ChunkRows
  /** The arena of each result. */
  readonly #arenas = new Map<number, QueryArena>()
  #arena: QueryArena | null = null
  #endings: (() => void)[] = []
  #rows: { readonly input: Operator; readonly collected: ChunkRows } | null = null

  constructor(
    context: ExecContext,
    input: Plan,
    chunked: ChunkedMorsels,
    collect: (context: ExecContext, chunk: number) => ChunkRows,
  ) {
    this.#context = context
    this.#input = input
    this.#chunked = chunked
    this.#collect = collect
    context.onEnd(() => {
      this.#abandon()
      for (const arena of this.#arenas.values()) arena.freeAll()
      this.#arenas.clear()
    })
  }

  begin(chunk: number): void {
    this.#abandon()
    const { morsels, chunkMorsels, joins = [] } = this.#chunked
    const arena = this.#context.arena.child()
    this.#arena = arena
    const onEnd = (release: () => void): number => this.#endings.push(release)
    const context = { ...this.#context, arena, symbols: new Symbols(arena), onEnd }
    const collected = this.#collect(context, chunk)
    const chosen = morsels.slice(chunk * chunkMorsels, (chunk + 1) * chunkMorsels)
    this.#rows = { input: rowsOf(context, this.#input, { morsels: chosen, joins }, collected.wanted), collected }
  }

  step(): boolean | 'waiting' {
    if (this.#rows === null) return false
    const batch = this.#rows.input.pull()
    if (isBatch(batch)) this.#rows.collected.add(batch)
    return batch === 'waiting' ? batch : batch !== null
  }

  result(): number {
    const result = this.#rows?.collected.result() ?? 0
    if (this.#arena !== null) this.#arenas.set(result, this.#arena)
    this.#arena = null
    this.#abandon()
    return result
  }

  recycle(result: number): void {
    this.#arenas.get(result)?.freeAll()
    this.#arenas.delete(result)
  }

  #abandon(): void {
    for (const release of this.#endings.splice(0)) release()
    this.#arena?.freeAll()
    this.#arena = null
    this.#rows = null
  }
}
