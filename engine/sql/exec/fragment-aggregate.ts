// Operator: filter, keys and aggregates over a table in one generated loop. Groups are dense numbers, so that the state is
// an array; it works where the kernels know every aggregate, the filter and the keys.
//
// Pieces are cut into chunks by their order alone; every chunk has a state of its own, and states are merged in the order
// of the chunks: the same rows give the same bits, whoever computed a chunk.

import { pageRowsMax } from '../../base/limits.js'
import type { FragmentAggregate, FragmentExpression } from '../../kernels/jit/fragment.js'
import type { AggregateFragment } from '../../kernels/jit/jit.js'
import { type DataType, dataType } from '../../types/column-types.js'
import type { Value } from '../../types/value.js'
import type { AggregateCall, Expression } from '../plan/plan.js'
import type { ExecContext } from './context.js'
import { type DenseKey, denseKey, type KeySource } from './fragment-keys.js'
import { FragmentInputs } from './fragments.js'
import { covers, type Piece, runsOf } from './pieces.js'
import { type ScanShape, type Slice, SliceReader } from './scan-slices.js'
import type { Vector } from './vector.js'
import { orderedView } from './view-piece.js'

const groupsMax = 65_536
const stateBytesMax = 16 * 1024 * 1024
const chunksMax = 32

export interface FragmentQuery {
  readonly keys: readonly Expression[]
  readonly aggregates: readonly AggregateCall[]
  /** A key of buckets, behind the others. */
  readonly bucket: ((source: KeySource) => DenseKey | undefined) | null
}

/** Rows of results: the keys in their order (a sample's bucket last), then the aggregates. */
export interface FragmentRun {
  /** Works on one piece; false at the end. */
  step(): boolean
  /** Groups in order of their first rows; bucket by bucket where there is one. */
  results(): Iterable<{ readonly keys: readonly Value[]; readonly aggregates: readonly Value[] }>
}

const known: ReadonlySet<string> = new Set(['count', 'sum', 'avg', 'min', 'max'])

/** undefined: generated code cannot do it. */
export function fragmentRun(context: ExecContext, query: FragmentQuery, scan: ScanShape): FragmentRun | undefined {
  const { jit, memory, partAccess } = context
  if (jit === null || !query.aggregates.every(({ name, args }) => known.has(name) && args.length <= 1)) return undefined
  const dictionaries = new Map(scan.snapshot.version.dictionaries)
  const inputs = new FragmentInputs(context, (column) => dictionaries.get(scan.columnIds[column] as number) ?? 0)
  const predicate = scan.filter === null ? null : inputs.expression(scan.filter)
  if (scan.filter !== null && predicate === null) return undefined
  const aggregates = fragmentAggregates(query.aggregates, inputs)
  if (aggregates === undefined) return undefined
  const runs = runsOf(memory, partAccess, scan.snapshot, scan.ranges, context.space)
  const keys = fragmentKeys(query, { context, shape: scan, runs, inputs })
  if (keys === undefined) return undefined
  const groups = keys.reduce((product, { count }) => product * count, 1)
  if (groups > groupsMax) return undefined
  const shape = { columns: inputs.types, predicate, keys: keys.map(({ key }) => key) }
  const presence: FragmentAggregate[] = keys.length > 0 ? [{ name: 'count', arg: null }] : []
  const fragment = jit.aggregate({ ...shape, aggregates: [...aggregates, ...presence] })
  if (fragment === null || fragment.stateBytes(groups) > stateBytesMax) return undefined
  const pieces = runs.flatMap((run) => run.pieces)
  const dense = { fragment, inputs, scan, keys, groups, pieces, aggregates: aggregates.length }
  if (keys.length === 0) return new DenseAggregation(context, { ...dense, firsts: null })
  const firsts = jit.aggregate({ ...shape, aggregates: [{ name: 'first', arg: null }] })
  return firsts === null ? undefined : new DenseAggregation(context, { ...dense, firsts })
}

function fragmentAggregates(calls: readonly AggregateCall[], inputs: FragmentInputs): FragmentAggregate[] | undefined {
  const found: FragmentAggregate[] = []
  for (const { name, args } of calls) {
    const [argument] = args
    const arg: FragmentExpression | null = argument === undefined ? null : inputs.expression(argument)
    if (argument !== undefined && arg === null) return undefined
    found.push({ name, arg })
  }
  return found
}

/** Buckets come last, so that the groups of one bucket are neighbours. */
function fragmentKeys({ keys, bucket }: FragmentQuery, source: KeySource): DenseKey[] | undefined {
  const found: DenseKey[] = []
  for (const [place, key] of keys.entries()) {
    const dense = denseKey(source, key)
    if (dense === undefined) return undefined
    found.push({ ...dense, place })
  }
  const last = bucket?.(source)
  if (bucket !== null && last === undefined) return undefined
  if (last !== undefined) found.push({ ...last, place: keys.length })
  const isBucket = ({ bucketOf }: DenseKey): number => (bucketOf === undefined ? 0 : 1)
  return found.sort((a, b) => isBucket(a) - isBucket(b))
}

interface DenseQuery {
  readonly fragment: AggregateFragment
  readonly inputs: FragmentInputs
  readonly scan: ScanShape
  readonly keys: readonly DenseKey[]
  readonly groups: number
  readonly pieces: readonly Piece[]
  readonly aggregates: number
  /** Finds first rows; null without keys. */
  readonly firsts: AggregateFragment | null
}

/** A fragment with its block and a state. */
interface Loop {
  readonly fragment: AggregateFragment
  readonly block: number
  readonly state: number
}

function startLoop({ space }: ExecContext, { inputs, keys, groups }: DenseQuery, fragment: AggregateFragment): Loop {
  const block = space.keep(fragment.blockBytes)
  fragment.writeConstants(block)
  inputs.bindLookups(fragment, block)
  keys.forEach(({ count }, index) => fragment.setCount(block, index, count))
  return { fragment, block, state: space.take(fragment.stateBytes(groups)) }
}

class DenseAggregation implements FragmentRun {
  readonly #context: ExecContext
  readonly #query: DenseQuery
  readonly #reader: SliceReader
  readonly #main: Loop
  readonly #firsts: Loop | null
  readonly #total: number
  readonly #chunkPieces: number
  /** First row of each group that had rows, else -1. */
  readonly #firstRows: Float64Array
  #unseen: number
  #next = 0
  #row = 0

  constructor(context: ExecContext, query: DenseQuery) {
    const { fragment, firsts, groups, scan, pieces } = query
    this.#context = context
    this.#query = query
    this.#reader = new SliceReader(context, { ...scan, filter: null })
    this.#main = startLoop(context, query, fragment)
    this.#firsts = firsts === null ? null : startLoop(context, query, firsts)
    this.#total = context.space.take(fragment.stateBytes(groups))
    this.#chunkPieces = Math.max(1, Math.ceil(pieces.length / chunksMax))
    this.#firstRows = new Float64Array(firsts === null ? 0 : groups).fill(-1)
    this.#unseen = this.#firstRows.length
    fragment.init(this.#total, groups)
  }

  step(): boolean {
    const { pieces, fragment, groups } = this.#query
    const piece = pieces[this.#next]
    if (piece === undefined) return false
    if (this.#next % this.#chunkPieces === 0) fragment.init(this.#main.state, groups)
    this.#next++
    this.#runPiece(piece)
    if (this.#next % this.#chunkPieces !== 0 && this.#next < pieces.length) return true
    fragment.fold(this.#main.state, groups)
    fragment.merge(this.#main.state, this.#total, groups)
    return true
  }

  #runPiece(piece: Piece): void {
    const { ranges, snapshot } = this.#query.scan
    const cut = !piece.sorted && !covers(ranges, piece.minTs, piece.maxTs)
    const { timestampId, columns } = snapshot.version.schema
    const typeOf = (id: number): DataType => columns.find((column) => column.id === id)?.type ?? dataType('LONG')
    const view = cut || piece.superseded !== 0 ? orderedView(this.#context, piece, timestampId, typeOf) : piece
    try {
      const slices = this.#reader.slices(view)
      this.#runSlices(this.#main, view, slices)
      if (this.#unseen > 0 && this.#hasNew(piece)) this.#findFirsts(view, slices)
    } finally {
      view.release()
    }
    this.#row += piece.rows
  }

  #runSlices({ fragment, block, state }: Loop, view: Piece, slices: readonly Slice[]): void {
    const { groups, inputs } = this.#query
    for (const { from, to } of slices) {
      for (let row = from; row < to; row += pageRowsMax) {
        const vectors: Vector[] = this.#reader.vectors(view, row, inputs.columns, true)
        inputs.bind(fragment, block, vectors)
        fragment.run(block, Math.min(pageRowsMax, to - row), state, groups, this.#row + row)
      }
    }
  }

  /** Group ids that the piece can have: those of its buckets. */
  #groupsOf({ minTs, maxTs }: Piece): { readonly from: number; readonly to: number } {
    const { keys, groups } = this.#query
    const last = keys[keys.length - 1]
    if (last?.bucketOf === undefined) return { from: 0, to: groups }
    const perBucket = groups / last.count
    const at = (ts: bigint): number => Math.min(last.count - 1, Math.max(0, last.bucketOf?.(ts) ?? 0))
    return { from: at(minTs) * perBucket, to: (at(maxTs) + 1) * perBucket }
  }

  /** Whether a group has rows that had none before this piece. */
  #hasNew(piece: Piece): boolean {
    const { fragment, state } = this.#main
    fragment.fold(state, this.#query.groups)
    const { from, to } = this.#groupsOf(piece)
    const { u32 } = this.#context.memory
    const count = fragment.plan.record.outputs[this.#query.aggregates]?.cell.offset ?? 0
    for (let group = from; group < to; group++) {
      if (this.#firstRows[group] === -1 && u32[(state + group * fragment.recordBytes + count) >>> 2] !== 0) return true
    }
    return false
  }

  #findFirsts(view: Piece, slices: readonly Slice[]): void {
    const firsts = this.#firsts as Loop
    const { groups } = this.#query
    firsts.fragment.init(firsts.state, groups)
    this.#runSlices(firsts, view, slices)
    firsts.fragment.fold(firsts.state, groups)
    const { from, to } = this.#groupsOf(view)
    for (let group = from; group < to; group++) {
      if (this.#firstRows[group] !== -1) continue
      const row = firsts.fragment.result(firsts.state, group, 0)
      if (typeof row !== 'number') continue
      this.#firstRows[group] = row
      this.#unseen--
    }
  }

  *results(): Iterable<{ readonly keys: readonly Value[]; readonly aggregates: readonly Value[] }> {
    const { keys } = this.#query
    if (keys.length === 0) {
      yield { keys: [], aggregates: this.#values(0) }
      return
    }
    const perBucket = keys.reduce(
      (product, { count, bucketOf }) => (bucketOf === undefined ? product * count : product),
      1,
    )
    const buckets = this.#query.groups / perBucket
    for (let bucket = 0; bucket < buckets; bucket++) {
      for (const group of this.#present(bucket * perBucket, perBucket)) {
        yield { keys: this.#keyValues(group), aggregates: this.#values(group) }
      }
    }
  }

  /** Groups that had rows, in order of their first rows. */
  #present(from: number, count: number): number[] {
    const found: number[] = []
    for (let group = from; group < from + count; group++) if (this.#firstRows[group] !== -1) found.push(group)
    const rowOf = (group: number): number => this.#firstRows[group] as number
    return found.sort((a, b) => rowOf(a) - rowOf(b))
  }

  #keyValues(group: number): Value[] {
    let rest = group
    const values: Value[] = []
    for (const { count, valueAt, place } of this.#query.keys) {
      const part = rest % count
      rest = (rest - part) / count
      values[place] = valueAt(part)
    }
    return values
  }

  #values(group: number): Value[] {
    const { fragment, aggregates } = this.#query
    return Array.from({ length: aggregates }, (_, index) => fragment.result(this.#total, group, index))
  }
}
