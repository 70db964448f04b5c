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
import { type ScanShape, SliceReader } from './scan-slices.js'
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

/** Rows of results: the keys (the bucket last), then the aggregates. */
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
  const runs = runsOf(memory, partAccess, scan.snapshot, scan.ranges)
  const keys = fragmentKeys(query, { context, shape: scan, runs, inputs })
  if (keys === undefined) return undefined
  const groups = keys.reduce((product, { count }) => product * count, 1)
  if (groups > groupsMax) return undefined
  const presence: FragmentAggregate[] = keys.length > 0 ? [{ name: 'first', arg: null }] : []
  const fragment = jit.aggregate({
    columns: inputs.types,
    predicate,
    aggregates: [...aggregates, ...presence],
    keys: keys.map(({ key }) => key),
  })
  if (fragment === null || fragment.stateBytes(groups) > stateBytesMax) return undefined
  const pieces = runs.flatMap((run) => run.pieces)
  return new DenseAggregation(context, { fragment, inputs, scan, keys, groups, pieces, aggregates: aggregates.length })
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

function fragmentKeys({ keys, bucket }: FragmentQuery, source: KeySource): DenseKey[] | undefined {
  const found: DenseKey[] = []
  for (const key of keys) {
    const dense = denseKey(source, key)
    if (dense === undefined) return undefined
    found.push(dense)
  }
  if (bucket === null) return found
  const last = bucket(source)
  return last === undefined ? undefined : [...found, last]
}

interface DenseQuery {
  readonly fragment: AggregateFragment
  readonly inputs: FragmentInputs
  readonly scan: ScanShape
  readonly keys: readonly DenseKey[]
  readonly groups: number
  readonly pieces: readonly Piece[]
  readonly aggregates: number
}

class DenseAggregation implements FragmentRun {
  readonly #context: ExecContext
  readonly #query: DenseQuery
  readonly #reader: SliceReader
  readonly #block: number
  readonly #total: number
  readonly #state: number
  readonly #chunkPieces: number
  #next = 0
  #row = 0

  constructor(context: ExecContext, query: DenseQuery) {
    const { fragment, groups, inputs, keys, scan, pieces } = query
    this.#context = context
    this.#query = query
    this.#reader = new SliceReader(context, { ...scan, filter: null })
    this.#block = context.space.keep(fragment.blockBytes)
    this.#total = context.space.take(fragment.stateBytes(groups))
    this.#state = context.space.take(fragment.stateBytes(groups))
    this.#chunkPieces = Math.max(1, Math.ceil(pieces.length / chunksMax))
    fragment.writeConstants(this.#block)
    inputs.bindLookups(fragment, this.#block)
    keys.forEach(({ count }, index) => fragment.setCount(this.#block, index, count))
    fragment.init(this.#total, groups)
  }

  step(): boolean {
    const { pieces, fragment, groups } = this.#query
    const piece = pieces[this.#next]
    if (piece === undefined) return false
    if (this.#next % this.#chunkPieces === 0) fragment.init(this.#state, groups)
    this.#next++
    this.#runPiece(piece)
    if (this.#next % this.#chunkPieces !== 0 && this.#next < pieces.length) return true
    fragment.fold(this.#state, groups)
    fragment.merge(this.#state, this.#total, groups)
    return true
  }

  #runPiece(piece: Piece): void {
    const { scan, fragment, groups, inputs } = this.#query
    const { ranges, snapshot } = scan
    const cut = !piece.sorted && !covers(ranges, piece.minTs, piece.maxTs)
    const { timestampId, columns } = snapshot.version.schema
    const typeOf = (id: number): DataType => columns.find((column) => column.id === id)?.type ?? dataType('LONG')
    const view = cut || piece.superseded !== 0 ? orderedView(this.#context, piece, timestampId, typeOf) : piece
    try {
      for (const { from, to } of this.#reader.slices(view)) {
        for (let row = from; row < to; row += pageRowsMax) {
          const vectors: Vector[] = this.#reader.vectors(view, row, inputs.columns, true)
          inputs.bind(fragment, this.#block, vectors)
          fragment.run(this.#block, Math.min(pageRowsMax, to - row), this.#state, groups, this.#row + row)
        }
      }
    } finally {
      view.release()
    }
    this.#row += piece.rows
  }

  *results(): Iterable<{ readonly keys: readonly Value[]; readonly aggregates: readonly Value[] }> {
    const { keys } = this.#query
    if (keys.length === 0) {
      yield { keys: [], aggregates: this.#values(0) }
      return
    }
    const perBucket = keys.reduce((product, { count, bucket }) => (bucket ? product : product * count), 1)
    const buckets = this.#query.groups / perBucket
    for (let bucket = 0; bucket < buckets; bucket++) {
      for (const group of this.#present(bucket * perBucket, perBucket)) {
        yield { keys: this.#keyValues(group), aggregates: this.#values(group) }
      }
    }
  }

  /** Groups that had rows, in order of their first rows. */
  #present(from: number, count: number): number[] {
    const { fragment, aggregates } = this.#query
    const found: { readonly group: number; readonly row: number }[] = []
    for (let group = from; group < from + count; group++) {
      const row = fragment.result(this.#total, group, aggregates)
      if (typeof row === 'number') found.push({ group, row })
    }
    return found.sort((a, b) => a.row - b.row).map(({ group }) => group)
  }

  #keyValues(group: number): Value[] {
    let rest = group
    return this.#query.keys.map(({ count, valueOf }) => {
      const part = rest % count
      rest = (rest - part) / count
      return valueOf(part)
    })
  }

  #values(group: number): Value[] {
    const { fragment, aggregates } = this.#query
    return Array.from({ length: aggregates }, (_, index) => fragment.result(this.#total, group, index))
  }
}
