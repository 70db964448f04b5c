// Block-wise nested loop: joins whose rows cannot be divided by keys, because there are no equal keys, or because
// almost all rows have the same ones. Both sides are written to temporary files. The build side is read block by block;
// each block becomes a hash table, in which the rows of the probe side are looked up.
//
// Rows come in the same order as in a join in memory: that of the probe side, and for each probe row that of the build
// side; build rows without a match come last. So the pairs of each block are written as a sorted run, and the runs are
// merged. A join may have any number of pairs: when the runs of some probe rows become too large, a smaller part of the
// probe side is joined at a time, in the end a single row. For a single row, the build rows are read in order and
// compared with it, so its pairs are returned without a run. If the order does not matter, all pairs are returned as
// they are found.

import { assert } from '../../base/assert.js'
import { isShortage } from '../../base/errors.js'
import type { SharedMemory } from '../../memory/shared-memory.js'
import type { Expression, Plan } from '../../sql/plan/plan.js'
import { rewriteExpression } from '../../sql/typing/walk-expression.js'
import type { ExecContext, WorkingRows } from '../batch/context.js'
import { GatheredBatch } from '../batch/selection.js'
import { type Batch, batchRowsMax, isBatch, type Vector } from '../batch/vector.js'
import type { Steps } from '../join/join-build.js'
import { nullVectors } from '../join/join-pairs.js'
import { isUnordered, marksRight, probesRight } from '../join/join-sides.js'
import { SortRuns } from '../sort/sort-runs.js'
import { type Build, undividedLevels, written } from './spilled-steps.js'
import {
  contextWith,
  nextWorkingId,
  pick,
  rankColumn,
  ranked,
  skipping,
  storedInput,
  workingPlan,
} from './stored-rows.js'

type JoinPlan = Extract<Plan, { kind: 'join' }>

/** Bytes of a block's rows, as a fraction of the free memory of queries. Its hash table and growing need more. */
const blockShare = 1 / 8
/** Blocks are not smaller than this many rows or, where rows are long, this many bytes. */
const blockRowsMin = 1024
const blockBytesMin = 1024 * 1024
/**
 * Bytes of pairs that are written before a smaller part of the probe side is joined at a time: as many as there is
 * memory, but no more than this.
 */
const pairBytesMax = 64 * 1024 * 1024
const pairBytesMin = 1024 * 1024
/** The part is so many times smaller then; it grows again when its pairs have so many times fewer bytes. */
const shrinkage = 16
const growth = 4
/** Bytes of a row in the hash table. */
const tableBytes = 16
/** Bytes of a pair beside the columns of both sides. */
const rankBytes = 8
const ascending = { descending: false, nullsFirst: false }

interface Side {
  readonly plan: Plan
  readonly keys: readonly number[]
  /** Its first column among those of the join. */
  readonly first: number
  /** Whether each row has its number in the input as a last column. */
  readonly ranked: boolean
}

interface Shape {
  readonly plan: JoinPlan
  readonly probe: Side
  readonly build: Side
  /** Whether the probe side is the right one. */
  readonly turned: boolean
  /** Whether probe rows without a match are returned. */
  readonly outer: boolean
  /** Whether build rows without a match are returned. */
  readonly full: boolean
  /** Whether the order of the probe side matters. */
  readonly ordered: boolean
}

/** Whether a join that outgrows the memory is computed this way. */
export function joinsBlocks({ spillLevel = 0 }: ExecContext, { join, leftKeys }: JoinPlan): boolean {
  if (join === 'asof' || join === 'lt' || join === 'splice') return false
  return leftKeys.length === 0 || spillLevel >= undividedLevels
}

/** Whether the rows come in the same order as in memory. */
export function keepsBlockOrder(context: ExecContext, { join, left }: JoinPlan): boolean {
  return (join !== 'inner' && join !== 'cross') || !isUnordered(context, left)
}

/** `skip`: rows of the result that were already returned. */
export function* blockSteps(context: ExecContext, plan: JoinPlan, build: Build, skip: number): Steps {
  const shape = shapeOf(context, plan)
  const probe = yield* storedInput(context, shape.probe.plan, build)
  const built = yield* storedInput(context, shape.build.plan, build)
  context.profile?.note('nested loop over blocks on disk')
  yield* skipping(new BlockJoin(context, shape, build, probe, built).rows(), skip)
}

function shapeOf(context: ExecContext, plan: JoinPlan): Shape {
  const { join, left, right, leftKeys, rightKeys } = plan
  const marked = marksRight(context, plan)
  const turned = probesRight(context, plan)
  const outer = (join === 'left' || join === 'right' || join === 'full') && !marked
  const full = join === 'full' || marked
  const ordered = keepsBlockOrder(context, plan)
  const sides = { left: { plan: left, keys: leftKeys, first: 0 }, right: rightSide(left, right, rightKeys) }
  const [probe, build] = turned ? [sides.right, sides.left] : [sides.left, sides.right]
  return {
    ...{ plan, turned, outer, full, ordered },
    probe: { ...probe, ranked: ordered },
    build: { ...build, ranked: full },
  }
}

function rightSide({ columns }: Plan, plan: Plan, keys: readonly number[]): Omit<Side, 'ranked'> {
  return { plan, keys, first: columns.length }
}

/** Rows of a side as the input of a join. */
interface Input {
  readonly side: Side
  readonly rows: WorkingRows
}

class BlockJoin {
  readonly #context: ExecContext
  readonly #shape: Shape
  readonly #build: Build
  readonly #probe: WorkingRows
  readonly #built: WorkingRows
  /** The build rows with a match, if those without one are returned. */
  readonly #builtMarks: Marks | null
  readonly #pairBytes: number
  readonly #pairBytesMax: number
  readonly #blockRowsMin: number
  #blockRows: number
  #scope: Scope | null = null

  constructor(context: ExecContext, shape: Shape, build: Build, probe: WorkingRows, built: WorkingRows) {
    this.#context = context
    this.#shape = shape
    this.#build = build
    this.#probe = probe
    this.#built = built
    this.#builtMarks = shape.full ? new Marks(context, 0, built.rows) : null
    const builtBytes = bytesOfRow(built) + tableBytes
    this.#blockRowsMin = Math.max(1, Math.min(blockRowsMin, Math.floor(blockBytesMin / builtBytes)))
    this.#blockRows = Math.max(this.#blockRowsMin, Math.floor((context.arena.left * blockShare) / builtBytes))
    this.#pairBytes = bytesOfRow(probe) + bytesOfRow(built) + rankBytes
    this.#pairBytesMax = Math.max(pairBytesMin, Math.min(pairBytesMax, context.arena.left))
    context.onEnd(() => this.#scope?.end())
  }

  *rows(): Steps {
    if (this.#shape.ordered) yield* this.#inOrder()
    else yield* this.#asFound()
    if (this.#builtMarks === null) return
    const { context } = this.#begin()
    for (const pulled of this.#unmatched(context, this.#built, this.#builtMarks, this.#shape.build)) {
      yield this.#withoutRank(pulled)
    }
  }

  /** Memory and files for a part of the work; those of the part before are freed. */
  #begin(): Scope {
    this.#scope?.end()
    this.#scope = new Scope(this.#context)
    return this.#scope
  }

  /** The pairs of one block after the other. */
  *#asFound(): Steps {
    for (let from = 0; from < this.#built.rows; ) {
      const to = Math.min(this.#built.rows, from + this.#blockRows)
      let returned = false
      try {
        const { context } = this.#begin()
        for (const pulled of this.#pairs(context, this.#probeInput(this.#probe), this.#block(from, to), null)) {
          returned ||= isBatch(pulled)
          yield pulled
        }
        from = to
      } catch (error) {
        if (returned || !this.#shrinksFor(error)) throw error
      }
    }
  }

  /** Whether smaller blocks may suffice after this error. */
  #shrinksFor(error: unknown): boolean {
    if (!isShortage(error) || this.#blockRows <= this.#blockRowsMin) return false
    this.#blockRows = Math.max(this.#blockRowsMin, this.#blockRows >>> 1)
    return true
  }

  /** The pairs of some probe rows after the other. */
  *#inOrder(): Steps {
    const { rows } = this.#probe
    let step = this.#firstStep()
    for (let from = 0; from < rows; ) {
      const to = Math.min(rows, from + step)
      const bytes = to === from + 1 ? yield* this.#pairsOfRow(from) : yield* this.#sortedPairs(from, to)
      if (bytes === 'short') continue
      if (bytes > this.#pairBytesMax && to > from + 1) {
        step = Math.max(1, Math.floor((to - from) / shrinkage))
        continue
      }
      from = to
      if (bytes < this.#pairBytesMax / shrinkage) step = Math.min(rows, step * growth)
    }
  }

  /** Without a condition it is known how many pairs there will be. */
  #firstStep(): number {
    const { leftKeys, residual } = this.#shape.plan
    if (leftKeys.length > 0 || residual !== null) return Math.max(1, this.#probe.rows)
    return Math.max(1, Math.floor(this.#pairBytesMax / (this.#pairBytes * Math.max(1, this.#built.rows))))
  }

  /**
   * Returns how many bytes the pairs have in files. If these are too many, or memory was too short for a block, no pair
   * has been returned.
   */
  *#sortedPairs(from: number, to: number): Generator<Batch | 'working' | 'waiting', number | 'short', undefined> {
    const { outer, plan } = this.#shape
    const { context } = this.#begin()
    const rank = plan.columns.length
    const columns = [...plan.columns, rankColumn]
    let returned = false
    try {
      const runs = new SortRuns(context, { columns, keys: [{ index: rank, ...ascending }], limit: null })
      const marks = outer ? new Marks(context, from, to - from) : null
      const probe = partOf(this.#probe, from, to)
      const bytes = yield* this.#writePairs(context, runs, this.#probeInput(probe, from), marks)
      if (bytes === 'short' || bytes > this.#pairBytesMax) return bytes
      if (marks !== null) yield* written(runs, this.#unmatched(context, probe, marks, this.#shape.probe, from))
      if (runs.isEmpty) return bytes
      runs.merge()
      for (let pulled = runs.next(); pulled !== null; pulled = runs.next()) {
        returned ||= isBatch(pulled)
        yield this.#withoutRank(pulled)
      }
      return bytes
    } catch (error) {
      if (returned || !isShortage(error)) throw error
      return Number.POSITIVE_INFINITY
    }
  }

  /** Writes the pairs of each block as a run, until they have too many bytes; returns how many. */
  *#writePairs(
    context: ExecContext,
    runs: SortRuns,
    probe: Input,
    marks: Marks | null,
  ): Generator<'working' | 'waiting', number | 'short', undefined> {
    try {
      for (let first = 0; first < this.#built.rows; first += this.#blockRows) {
        const block = this.#block(first, Math.min(this.#built.rows, first + this.#blockRows))
        const scope = new Scope(context)
        context.onEnd(() => scope.end())
        for (const progress of written(runs, this.#pairs(scope.context, probe, block, marks))) {
          if (runs.bytes > this.#pairBytesMax) return runs.bytes
          yield progress
        }
        scope.end()
      }
      return runs.bytes
    } catch (error) {
      if (this.#shrinksFor(error)) return 'short'
      throw error
    }
  }

  /** The pairs of a single probe row; returns about how many bytes they have. */
  *#pairsOfRow(row: number): Generator<Batch | 'working' | 'waiting', number, undefined> {
    const { context } = this.#begin()
    const probe = partOf(this.#probe, row, row + 1)
    let rows = 0
    for (const pulled of this.#pairs(context, this.#block(0, this.#built.rows), this.#probeInput(probe, row), null)) {
      if (isBatch(pulled)) rows += pulled.rows
      yield this.#withoutRank(pulled)
    }
    if (rows === 0 && this.#shape.outer) {
      const marks = new Marks(context, row, 1)
      for (const pulled of this.#unmatched(context, probe, marks, this.#shape.probe, row))
        yield this.#withoutRank(pulled)
    }
    return rows * this.#pairBytes
  }

  #probeInput(rows: WorkingRows, first = 0): Input {
    const side = this.#shape.probe
    return { side, rows: side.ranked ? ranked(rows, first) : rows }
  }

  #block(from: number, to: number): Input {
    const side = this.#shape.build
    const rows = partOf(this.#built, from, to)
    return { side, rows: side.ranked ? ranked(rows, from) : rows }
  }

  /**
   * The matching rows of two inputs, in the order of `left`: the columns of the join and, if the order matters, the rank
   * of the probe row. `right` must fit in memory.
   */
  *#pairs(context: ExecContext, left: Input, right: Input, marks: Marks | null): Steps {
    const id = nextWorkingId(context)
    const working = contextWith(context, [
      [id, left.rows],
      [id - 1, right.rows],
    ])
    const { plan, probe } = this.#shape
    const pairs = pairPlan(plan, left.side, right.side, id)
    const width = columnsOf(left.side).length
    const placeOf = placesOf(left.side, right.side)
    const rankOf = ({ side }: Input): number => side.plan.columns.length + (side === left.side ? 0 : width)
    const [rank, builtRank] = left.side === probe ? [rankOf(left), rankOf(right)] : [rankOf(right), rankOf(left)]
    const output = [...plan.columns.map((_, index) => placeOf(index)), ...(probe.ranked ? [rank] : [])]
    const rows = this.#build({ ...working, temporary: undefined }, pairs)
    for (let batch = rows.pull(); batch !== null; batch = rows.pull()) {
      if (!isBatch(batch)) {
        yield batch
        continue
      }
      this.#builtMarks?.add(batch.vectors[builtRank], batch.rows)
      marks?.add(batch.vectors[rank], batch.rows)
      yield { rows: batch.rows, vectors: pick(batch.vectors, output) }
    }
  }

  /** Rows of a side without a match, with their ranks, and NULLs for the other side. */
  *#unmatched(context: ExecContext, rows: WorkingRows, marks: Marks, side: Side, first = 0): Steps {
    const { probe, build, turned } = this.#shape
    const types = [...side.plan.columns, rankColumn].map(({ type }) => type)
    const gathered = new GatheredBatch(context, types)
    const index = context.arena.take(batchRowsMax * 4)
    const other = side === probe ? build : probe
    const nulls = nullVectors(
      context,
      other.plan.columns.map(({ type }) => type),
    )
    const source = ranked(rows, first).read(context)
    for (let batch = source.pull(); batch !== null; batch = source.pull()) {
      const count = isBatch(batch) ? marks.missing(batch.vectors[types.length - 1], batch.rows, index) : 0
      if (!isBatch(batch) || count === 0) {
        yield 'working'
        continue
      }
      const own = gathered.gather(batch.vectors, index, count).vectors
      const isLeft = (side === probe) !== turned
      const vectors = isLeft ? [...own.slice(0, -1), ...nulls] : [...nulls, ...own.slice(0, -1)]
      yield { rows: count, vectors: [...vectors, ...own.slice(-1)] }
    }
  }

  #withoutRank(pulled: Batch | 'working' | 'waiting'): Batch | 'working' | 'waiting' {
    if (!isBatch(pulled)) return pulled
    return { rows: pulled.rows, vectors: pulled.vectors.slice(0, this.#shape.plan.columns.length) }
  }
}

function columnsOf({ plan, ranked: isRanked }: Side): Plan['columns'] {
  return isRanked ? [...plan.columns, rankColumn] : plan.columns
}

/** Where the columns of the join are after both sides with their ranks. */
function placesOf(left: Side, right: Side): (index: number) => number {
  const width = columnsOf(left).length
  return (index) =>
    index >= left.first && index < left.first + left.plan.columns.length
      ? index - left.first
      : width + index - right.first
}

/** The inner join of both sides, whose rows are the working rows `id` and `id - 1`. */
function pairPlan(plan: JoinPlan, left: Side, right: Side, id: number): JoinPlan {
  const placeOf = placesOf(left, right)
  const moved = (expression: Expression): Expression =>
    rewriteExpression(expression, (part) =>
      part.kind === 'column' ? { ...part, index: placeOf(part.index) } : undefined,
    )
  return {
    ...{ ...plan, join: 'inner', leftKeys: left.keys, rightKeys: right.keys },
    left: workingPlan(id, columnsOf(left)),
    right: workingPlan(id - 1, columnsOf(right)),
    columns: [...columnsOf(left), ...columnsOf(right)],
    residual: plan.residual === null ? null : moved(plan.residual),
  }
}

/** Average bytes of a row in its file. */
function bytesOfRow({ stored, rows }: WorkingRows): number {
  return (stored?.bytes ?? 0) / Math.max(1, rows)
}

/** Rows of an input that was stored. */
function partOf({ stored }: WorkingRows, from: number, to: number): WorkingRows {
  assert(stored !== undefined, 'B2: both sides of a join of blocks are in files')
  return stored.between(from, to)
}

/** Memory and files that are freed before the query ends. */
class Scope {
  readonly context: ExecContext
  readonly #endings: (() => void)[] = []

  constructor(context: ExecContext) {
    const onEnd = (ending: () => void): void => void this.#endings.push(ending)
    this.context = { ...context, arena: context.arena.child(), onEnd }
  }

  end(): void {
    for (const ending of this.#endings.splice(0)) ending()
    this.context.arena.freeAll()
  }
}

/** A bit for each row of a range of ranks. Their lower halves suffice. */
class Marks {
  readonly #memory: SharedMemory
  readonly #bits: number
  readonly #first: number

  constructor({ arena, memory }: ExecContext, first: number, rows: number) {
    const bytes = Math.ceil(rows / 8) + 1
    this.#memory = memory
    this.#first = first
    this.#bits = arena.take(bytes)
    memory.u8.fill(0, this.#bits, this.#bits + bytes)
  }

  add(ranks: Vector | undefined, rows: number): void {
    const { u8, u32 } = this.#memory
    for (let row = 0, word = (ranks?.address ?? 0) >>> 2; row < rows; row++, word += 2) {
      const rank = (u32[word]! - this.#first) >>> 0
      u8[this.#bits + (rank >>> 3)]! |= 1 << (rank & 7)
    }
  }

  /** Writes the numbers of the rows without a mark (u32); returns how many. */
  missing(ranks: Vector | undefined, rows: number, out: number): number {
    const { u8, u32 } = this.#memory
    let count = 0
    for (let row = 0, word = (ranks?.address ?? 0) >>> 2; row < rows; row++, word += 2) {
      const rank = (u32[word]! - this.#first) >>> 0
      if (((u8[this.#bits + (rank >>> 3)]! >>> (rank & 7)) & 1) === 0) u32[(out >>> 2) + count++] = row
    }
    return count
  }
}
