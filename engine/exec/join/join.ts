// Operator: joins. For joins by equal keys and cross joins, a lookup table is built from all rows of one side; the rows
// of the other side, the probe side, are looked up in it batch by batch. A condition beyond the equal keys (residual)
// is evaluated over the matching pairs before any columns that it does not need are gathered.
//
//   inner left full cross   the right side is built, rows come in the order of the left
//   right                   the left side is built, rows come in the order of the right (exception: marksRight())
//   asof lt splice          by time: asof.ts, asof-splice.ts
//
// An inner join whose result may have any order builds its left side if that is far smaller than the right side. A
// cross join returns one batch of pairs at a time, so that it can be cancelled.

import { assert, nonNull } from '../../base/assert.js'
import { expandModes, noRow, settleStateBytes } from '../../kernels/join.js'
import type { Expression, Plan } from '../../sql/plan/plan.js'
import { inputsOf } from '../../sql/plan/walk-plan.js'
import type { DataType } from '../../types/column-types.js'
import type { ExecContext } from '../batch/context.js'
import { rowsFor } from '../batch/small-batches.js'
import { type Batch, batchRowsMax, isBatch, type Operator, type Vector } from '../batch/vector.js'
import { compileVector, type VectorEvaluator } from '../expression/expression.js'
import { columnsOf } from '../expression/expression-shape.js'
import { scanOperator } from '../scan/scan.js'
import { scanShape } from '../scan/scan-shape.js'
import { asofJoin } from './asof.js'
import { spliceJoin } from './asof-splice.js'
import { buildBuckets } from './join-buckets.js'
import { buildListing, operatorOf, type Steps } from './join-build.js'
import type { BuiltJoin } from './join-built.js'
import { JoinColumns } from './join-columns.js'
import { JoinKeys } from './join-keys.js'
import { bucketMatches, codeMatches, type Matches, type Pairing } from './join-matches.js'
import { nullVectors, SideGather } from './join-pairs.js'
import { marksRight, probesRight, rowsKnown } from './join-sides.js'
import { wantedMatches } from './join-wanted.js'

export type JoinPlan = Extract<Plan, { kind: 'join' }>

export function joinOperator(context: ExecContext, left: Operator, right: Operator, plan: JoinPlan): Operator {
  switch (plan.join) {
    case 'asof':
    case 'lt':
      return asofJoin(context, left, right, plan)
    case 'splice':
      return spliceJoin(context, left, right, plan)
    default:
      return operatorOf(hashJoin(context, left, right, plan))
  }
}

/** One side of the join: column types, key columns, and a gatherer for the output. */
interface Side {
  readonly types: readonly DataType[]
  readonly keys: readonly number[]
  readonly gather: SideGather
  /** Columns that the residual condition reads. */
  readonly tested: ReadonlySet<number>
}

function sideOf(context: ExecContext, { columns }: Plan, keys: readonly number[], tested: readonly number[]): Side {
  const types = columns.map(({ type }) => type)
  return { types, keys, gather: new SideGather(context, types, context.joinRows), tested: new Set(tested) }
}

/** The properties of a join that all threads share. */
interface Sides {
  readonly probe: Side
  readonly build: Side
  /** Whether the probe side is the right one. */
  readonly turned: boolean
  /** Whether probe rows without a match are returned. */
  readonly outer: boolean
  /** Whether build rows without a match are returned. */
  readonly full: boolean
}

function sidesOf(context: ExecContext, plan: JoinPlan): Sides {
  const { residual, join } = plan
  const marked = marksRight(context, plan)
  const width = plan.left.columns.length
  const read = residual === null ? [] : columnsOf(residual)
  const left = sideOf(
    context,
    plan.left,
    plan.leftKeys,
    read.filter((index) => index < width),
  )
  const right = sideOf(
    context,
    plan.right,
    plan.rightKeys,
    read.filter((index) => index >= width).map((index) => index - width),
  )
  const turned = probesRight(context, plan)
  const [probe, build] = turned ? [right, left] : [left, right]
  const outer = join === 'left' || join === 'right' || join === 'full'
  return { probe, build, turned, outer: outer && !marked, full: join === 'full' || marked }
}

function* hashJoin(context: ExecContext, left: Operator, right: Operator, plan: JoinPlan): Steps {
  const sides = sidesOf(context, plan)
  const [probe, build] = sides.turned ? [right, left] : [left, right]
  const built = yield* buildSide(context, build, plan)
  const selects = plan.leftKeys.length > 0 && marksRight(context, plan)
  const matching = selects ? matchingRows(context, built, plan) : probe
  yield* pairsOf(context, matching, sides, built, plan)
}

/** The scan of a left side that is probed, without most rows that have no match: of these only the keys are read. */
function matchingRows(context: ExecContext, built: BuiltSide, plan: JoinPlan): Operator {
  const { left, leftKeys: columns } = plan
  assert(left.kind === 'scan', 'B2: the left side is a scan with row ids')
  const { arena } = context
  const rowsMax = batchRowsMax
  const pairing = { probeRows: arena.take(rowsMax * 4), buildRows: arena.take(rowsMax * 4), rowsMax }
  const matches = matchesOf(context, built, plan, pairing)
  const { rows, vectors } = builtRows(built)
  const keys = plan.rightKeys.flatMap((index) => vectors[index] ?? [])
  const shape = scanShape(context, left)
  return scanOperator(context, shape, null, wantedMatches(context, shape, columns, { rows, keys }, matches, pairing))
}

/** Maximal rows of a batch of this join and the joins below it. */
export function joinRowsOf({ joinRows }: ExecContext, plan: JoinPlan): number {
  return joinRows ?? rowsFor(joinedColumns(plan))
}

function joinedColumns(plan: Plan): number {
  const own = plan.kind === 'join' ? plan.columns.length : 0
  return inputsOf(plan).reduce((sum, input) => sum + joinedColumns(input), own)
}

/** The build side; `keys` if this thread has built it. */
interface BuiltSide extends BuiltJoin {
  readonly keys?: JoinKeys | JoinColumns
}

export function* buildSide(
  context: ExecContext,
  input: Operator,
  plan: JoinPlan,
): Generator<'working' | 'waiting', BuiltSide, undefined> {
  const [left, right] = keyTypes(plan)
  const [from, keyColumns] = probesRight(context, plan) ? [plan.left, plan.leftKeys] : [plan.right, plan.rightKeys]
  const types = from.columns.map(({ type }) => type)
  if (isDense(left, right)) {
    const keys = new JoinKeys(context, left, right)
    return { listing: yield* buildListing(context, input, types, keyColumns, keys), keys }
  }
  const keys = new JoinColumns(context, left, right)
  const known = rowsKnown(context, from)
  return { buckets: yield* buildBuckets(context, input, types, keyColumns, keys, known), keys }
}

/** Without keys, or with one symbol key, codes are dense: rows are listed by code. */
function isDense(left: readonly DataType[], right: readonly DataType[]): boolean {
  return left.length === 0 || (left.length === 1 && left[0]?.name === 'SYMBOL' && right[0]?.name === 'SYMBOL')
}

function keyTypes({ left, right, leftKeys, rightKeys }: JoinPlan): [DataType[], DataType[]] {
  return [
    leftKeys.map((index) => left.columns[index]?.type as DataType),
    rightKeys.map((index) => right.columns[index]?.type as DataType),
  ]
}

/** Operator: the probe side of a join whose build side exists already, as on worker threads. */
export function probeOperator(context: ExecContext, probe: Operator, built: BuiltSide, plan: JoinPlan): Operator {
  return operatorOf(pairsOf(context, probe, sidesOf(context, plan), built, plan))
}

function* pairsOf(context: ExecContext, input: Operator, sides: Sides, built: BuiltSide, plan: JoinPlan): Steps {
  const { rows } = builtRows(built)
  if (rows === 0 && !sides.outer) return
  const shape = { ...sides, residual: plan.residual }
  const pairs = new Pairs(context, shape, built, plan)
  for (;;) {
    const batch = input.pull()
    if (batch === null) break
    if (isBatch(batch)) yield* pairs.probe(batch)
    else yield batch
  }
  if (shape.full) yield* pairs.unmatched()
}

interface BuiltRows {
  readonly rows: number
  readonly vectors: readonly Vector[]
  /** Whether a probe row has at most one match. */
  readonly unique?: boolean
}

function builtRows({ listing, buckets }: BuiltSide): BuiltRows {
  return listing ?? buckets ?? { rows: 0, vectors: [] }
}

function matchesOf(context: ExecContext, built: BuiltSide, plan: JoinPlan, pairing: Pairing): Matches {
  const { listing, buckets, keys } = built
  const [left, right] = keyTypes(plan)
  if (buckets !== undefined) {
    const own = keys instanceof JoinColumns ? keys : new JoinColumns(context, left, right, buckets.bases)
    return bucketMatches(context, buckets, own, pairing)
  }
  const codes = nonNull(listing)
  const own = keys instanceof JoinKeys ? keys : new JoinKeys(context, left, right, codes.base)
  return codeMatches(context, codes, own, pairing)
}

interface PairShape extends Sides {
  readonly residual: Expression | null
}

class Pairs {
  readonly #context: ExecContext
  readonly #shape: PairShape
  readonly #built: BuiltRows
  readonly #matches: Matches
  readonly #test: VectorEvaluator | null
  readonly #probeRows: number
  readonly #buildRows: number
  readonly #settle: number
  /** A byte for each pair, all 1: used where there is no residual condition. */
  readonly #ones: number
  /** A byte for each build row: whether it had a match. */
  readonly #marks: number
  /** Maximal rows of a batch. */
  readonly #rowsMax: number

  constructor(context: ExecContext, shape: PairShape, built: BuiltSide, plan: JoinPlan) {
    const { arena, memory, joinRows = batchRowsMax } = context
    this.#context = context
    this.#rowsMax = joinRows
    this.#shape = shape
    this.#built = builtRows(built)
    this.#test = shape.residual === null ? null : compileVector(shape.residual, { ...context, rowsMax: joinRows })
    this.#probeRows = arena.take(joinRows * 4)
    this.#buildRows = arena.take(joinRows * 4)
    const pairing = { probeRows: this.#probeRows, buildRows: this.#buildRows, rowsMax: joinRows }
    this.#matches = matchesOf(context, built, plan, pairing)
    this.#settle = arena.keep(settleStateBytes)
    this.#ones = this.#settles && this.#test === null ? arena.take(joinRows) : 0
    if (this.#ones !== 0) memory.u8.fill(1, this.#ones, this.#ones + joinRows)
    const { rows } = this.#built
    this.#marks = shape.full ? arena.take(rows) : 0
    if (shape.full) memory.u8.fill(0, this.#marks, this.#marks + rows)
  }

  /** Whether it takes all pairs of a row to know that it has no match. */
  get #settles(): boolean {
    return this.#shape.outer && !this.#turnsToNone && (this.#test !== null || this.#matches.verifies)
  }

  /** Whether the only match of a row is replaced by noRow where the condition fails. */
  get #turnsToNone(): boolean {
    return this.#shape.outer && this.#built.unique === true && !this.#matches.verifies
  }

  *probe(batch: Batch): Steps {
    const { probe, outer, full } = this.#shape
    const { memory, kernels } = this.#context
    const mode = !outer ? expandModes.matches : this.#settles ? expandModes.andNone : expandModes.orNone
    const keys = probe.keys.map((index) => batch.vectors[index] as Vector)
    this.#matches.begin(keys, batch.rows)
    memory.u32[this.#settle >>> 2] = 0
    for (let found = this.#rowsMax; found === this.#rowsMax; ) {
      found = this.#matches.next(mode)
      const equal = this.#matches.verify(found)
      const retained = this.#test === null && !this.#settles ? equal : this.#tested(batch, equal)
      if (full) kernels.join.markRows(this.#buildRows, retained, this.#marks)
      // With unique matches and as many pairs as rows, the pairs are all rows in their order.
      const whole = retained === batch.rows && this.#built.unique === true
      yield retained === 0 ? 'working' : this.#batch(batch.vectors, retained, null, whole)
    }
  }

  /** Returns the build rows without a match, with NULLs for the probe side. */
  *unmatched(): Steps {
    const { memory, kernels } = this.#context
    const { rows } = this.#built
    const nulls = nullVectors(this.#context, this.#shape.probe.types)
    for (let from = 0; from < rows; ) {
      const found = kernels.join.rowsMarked(this.#marks, 0, from, rows, this.#rowsMax, this.#buildRows)
      if (found === 0) return
      from = memory.u32[(this.#buildRows >>> 2) + found - 1]! + 1
      const built = this.#shape.build.gather.gather(this.#buildSide(false), found, null)
      yield { rows: found, vectors: this.#arranged(nulls, built) }
    }
  }

  /** Drops the pairs for which the residual condition is false; returns how many are left. */
  #tested(batch: Batch, count: number): number {
    if (count === 0) return 0
    const address = this.#test?.(this.#batch(batch.vectors, count, this.#shape)).address ?? this.#ones
    if (this.#turnsToNone) return this.#turned(address, count)
    return this.#context.kernels.join.settle(this.#settle, address, this.#probeRows, this.#buildRows, count)
  }

  #turned(mask: number, count: number): number {
    const { u8, u32 } = this.#context.memory
    const first = this.#buildRows >>> 2
    for (let index = 0; index < count; index++) if (u8[mask + index] === 0) u32[first + index] = noRow
    return count
  }

  /**
   * The pairs as columns: all columns, or only those that the condition reads. `whole`: all probe rows in order, so
   * they need no gather.
   */
  #batch(probed: readonly Vector[], rows: number, only: PairShape | null, whole = false): Batch {
    const { probe, build, outer } = this.#shape
    const side = { vectors: probed, index: this.#probeRows, mayLack: false }
    const own = whole
      ? probed.slice(0, probe.types.length)
      : probe.gather.gather(side, rows, only?.probe.tested ?? null)
    const other = build.gather.gather(this.#buildSide(outer), rows, only?.build.tested ?? null)
    return { rows, vectors: this.#arranged(own, other) }
  }

  #buildSide(mayLack: boolean): { vectors: readonly Vector[]; index: number; mayLack: boolean } {
    return { vectors: this.#built.vectors, index: this.#buildRows, mayLack }
  }

  #arranged(probed: readonly Vector[], built: readonly Vector[]): Vector[] {
    return this.#shape.turned ? [...built, ...probed] : [...probed, ...built]
  }
}
