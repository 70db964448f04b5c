// Operator: joins. By equal keys (or none: a cross join) one side is built, its rows listed by key, and the other side
// is probed batch by batch; pairs of row numbers pass the residual condition before any other column is gathered.
//
//   inner left full cross   the right side is built, rows come in the order of the left
//   right                   the left side is built, rows come in the order of the right
//   asof lt splice          by time: asof.ts, asof-splice.ts
//
// An inner join whose rows need no order builds its left side when that is far smaller. A cross join makes one batch of
// pairs at a pull, so that the owner can stop it.

import { expandModes, expandStateBytes, settleStateBytes } from '../../kernels/join.js'
import type { DataType } from '../../types/column-types.js'
import type { Expression, Plan } from '../plan/plan.js'
import { asofJoin } from './asof.js'
import { spliceJoin } from './asof-splice.js'
import type { ExecContext } from './context.js'
import { columnsOf, compileVector, type VectorEvaluator } from './expression.js'
import { buildListing, type Listing, operatorOf, type Steps } from './join-build.js'
import { JoinKeys } from './join-keys.js'
import { nullVectors, SideGather } from './join-pairs.js'
import { buildsLeft } from './join-sides.js'
import { type Batch, batchRowsMax, isBatch, type Operator, type Vector } from './vector.js'

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

/** One side of the join: its types, its keys, and its columns in pairs. */
interface Side {
  readonly input: Operator
  readonly types: readonly DataType[]
  readonly keys: readonly number[]
  readonly gather: SideGather
  /** Columns that the residual condition reads. */
  readonly tested: ReadonlySet<number>
}

function sideOf(
  context: ExecContext,
  input: Operator,
  { columns }: Plan,
  keys: readonly number[],
  tested: readonly number[],
): Side {
  const types = columns.map(({ type }) => type)
  return { input, types, keys, gather: new SideGather(context, types, context.joinRows), tested: new Set(tested) }
}

function* hashJoin(context: ExecContext, left: Operator, right: Operator, plan: JoinPlan): Steps {
  const { residual, join } = plan
  const width = plan.left.columns.length
  const read = residual === null ? [] : columnsOf(residual)
  const leftSide = sideOf(
    context,
    left,
    plan.left,
    plan.leftKeys,
    read.filter((index) => index < width),
  )
  const rightSide = sideOf(
    context,
    right,
    plan.right,
    plan.rightKeys,
    read.filter((index) => index >= width).map((index) => index - width),
  )
  const turned = join === 'right' || buildsLeft(context, plan)
  const [probe, build] = turned ? [rightSide, leftSide] : [leftSide, rightSide]
  const outer = join === 'left' || join === 'right' || join === 'full'
  const keys = new JoinKeys(context, keyTypes(leftSide), keyTypes(rightSide))
  const listing = yield* buildListing(context, build.input, build.types, build.keys, keys)
  if (listing.rows === 0 && !outer) return
  const pairs = new Pairs(context, { probe, build, turned, outer, full: join === 'full', residual }, listing, keys)
  for (;;) {
    const batch = probe.input.pull()
    if (batch === null) break
    if (isBatch(batch)) yield* pairs.probe(batch)
    else yield batch
  }
  if (join === 'full') yield* pairs.unmatched()
}

function keyTypes({ keys, types }: Side): DataType[] {
  return keys.map((index) => types[index] as DataType)
}

interface PairShape {
  readonly probe: Side
  readonly build: Side
  /** The probe side is the right one. */
  readonly turned: boolean
  /** Rows of the probe side without a match are kept. */
  readonly outer: boolean
  /** So are those of the build side. */
  readonly full: boolean
  readonly residual: Expression | null
}

class Pairs {
  readonly #context: ExecContext
  readonly #shape: PairShape
  readonly #listing: Listing
  readonly #keys: JoinKeys
  readonly #test: VectorEvaluator | null
  readonly #codes: number
  readonly #probeRows: number
  readonly #buildRows: number
  readonly #expand: number
  readonly #settle: number
  /** A byte per build row: it had a match. */
  readonly #marks: number
  /** Of a batch that is given. */
  readonly #rowsMax: number

  constructor(context: ExecContext, shape: PairShape, listing: Listing, keys: JoinKeys) {
    const { space, memory, joinRows = batchRowsMax } = context
    this.#context = context
    this.#rowsMax = joinRows
    this.#shape = shape
    this.#listing = listing
    this.#keys = keys
    this.#test = shape.residual === null ? null : compileVector(shape.residual, { ...context, rowsMax: joinRows })
    this.#codes = space.take(batchRowsMax * 4)
    this.#probeRows = space.take(joinRows * 4)
    this.#buildRows = space.take(joinRows * 4)
    this.#expand = space.keep(expandStateBytes)
    this.#settle = space.keep(settleStateBytes)
    this.#marks = shape.full ? space.take(listing.rows) : 0
    if (shape.full) memory.u8.fill(0, this.#marks, this.#marks + listing.rows)
  }

  *probe(batch: Batch): Steps {
    const { probe, outer, full } = this.#shape
    const { memory, kernels } = this.#context
    const { starts, list, codeCount } = this.#listing
    const mode = !outer ? expandModes.matches : this.#test === null ? expandModes.orNone : expandModes.andNone
    this.#keys.number(
      probe.keys.map((index) => batch.vectors[index] as Vector),
      batch.rows,
      this.#codes,
    )
    memory.u32.fill(0, this.#expand >>> 2, (this.#expand >>> 2) + 2)
    memory.u32[this.#settle >>> 2] = 0
    for (let found = this.#rowsMax; found === this.#rowsMax; ) {
      found = kernels.join.expand(
        this.#expand,
        this.#codes,
        batch.rows,
        starts,
        codeCount,
        list,
        mode,
        this.#probeRows,
        this.#buildRows,
        this.#rowsMax,
      )
      const kept = this.#test === null ? found : this.#tested(batch, found, this.#test)
      if (full) kernels.join.markRows(this.#buildRows, kept, this.#marks)
      yield kept === 0 ? 'working' : this.#batch(batch.vectors, kept, null)
    }
  }

  /** Build rows that never had a match, with NULLs for the probe side. */
  *unmatched(): Steps {
    const { memory, kernels } = this.#context
    const { rows } = this.#listing
    const nulls = nullVectors(this.#context, this.#shape.probe.types)
    for (let from = 0; from < rows; ) {
      const found = kernels.join.rowsMarked(this.#marks, 0, from, rows, this.#rowsMax, this.#buildRows)
      if (found === 0) return
      from = (memory.u32[(this.#buildRows >>> 2) + found - 1] as number) + 1
      const built = this.#shape.build.gather.gather(this.#buildSide(false), found, null)
      yield { rows: found, vectors: this.#arranged(nulls, built) }
    }
  }

  /** Drops the pairs for which the residual condition does not hold; returns how many stay. */
  #tested(batch: Batch, count: number, test: VectorEvaluator): number {
    if (count === 0) return 0
    const { address } = test(this.#batch(batch.vectors, count, this.#shape))
    return this.#context.kernels.join.settle(this.#settle, address, this.#probeRows, this.#buildRows, count)
  }

  /** Pairs as columns: all, or only those that the condition reads. */
  #batch(probed: readonly Vector[], rows: number, only: PairShape | null): Batch {
    const { probe, build, outer } = this.#shape
    const side = { vectors: probed, index: this.#probeRows, mayLack: false }
    const own = probe.gather.gather(side, rows, only?.probe.tested ?? null)
    const other = build.gather.gather(this.#buildSide(outer), rows, only?.build.tested ?? null)
    return { rows, vectors: this.#arranged(own, other) }
  }

  #buildSide(mayLack: boolean): { vectors: readonly Vector[]; index: number; mayLack: boolean } {
    return { vectors: this.#listing.vectors, index: this.#buildRows, mayLack }
  }

  #arranged(probed: readonly Vector[], built: readonly Vector[]): Vector[] {
    return this.#shape.turned ? [...built, ...probed] : [...probed, ...built]
  }
}
