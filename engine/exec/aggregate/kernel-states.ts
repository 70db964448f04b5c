// States of sum, avg, count, min and max of numbers in shared memory, fed by kernels/aggregate.
//
// With keys: 16-byte cells per group, {sum, count} or {min, max}; sums of LONG have 24, counts 8. Without keys: one STATS.
// sum and avg of the same argument each keep their own cells. States of other kinds: number-states.ts, kept-states.ts,
// text-extremes.ts, symbol-extremes.ts, bit-states.ts, distinct-states.ts, chosen-states.ts,
// collected-states.ts.

import { aggregateKinds, initStats, type NumberStorage, statsBytes } from '../../kernels/aggregate.js'
import { aggregateOf } from '../../sql/functions/registry/evaluate.js'
import { isDistinctCount } from '../../sql/plan/count-distinct.js'
import type { AggregateCall, Expression } from '../../sql/plan/plan.js'
import { type DataType, storageOf } from '../../types/column-types.js'
import { longMin } from '../../types/number.js'
import type { Value } from '../../types/value.js'
import { longSum, wideSum } from '../../types/wide-sum.js'
import { CellMemory } from '../batch/cell-memory.js'
import type { ExecContext } from '../batch/context.js'
import type { Vector } from '../batch/vector.js'
import { compileVector } from '../expression/expression.js'
import { isText } from '../expression/expression-shape.js'
import { addFloats, addIntegers, partialCells, widenFloats, widenIntegers } from './accumulate-partials.js'
import { bitStates } from './bit-states.js'
import { chosenStates } from './chosen-states.js'
import { collectedStates } from './collected-states.js'
import { DistinctCounts } from './distinct-states.js'
import type { GroupStates, PartialStates } from './group-states.js'
import { keptStates } from './kept-states.js'
import { NumberStates } from './number-states.js'
import { SymbolExtremes } from './symbol-extremes.js'
import { TextExtremes } from './text-extremes.js'

/** undefined: no kernel does this. */
export function kernelStates(context: ExecContext, call: AggregateCall): GroupStates | undefined {
  const [argument, ...more] = call.args
  const { numbers, ...others } = aggregateOf(call.name, call.args) ?? {}
  if (numbers !== undefined) return new NumberStates(context, call.args, numbers)
  const collected = collectedStates(context, call, others)
  if (collected !== undefined) return collected
  if ((call.name === 'first' || call.name === 'last') && argument !== undefined && more.length === 0)
    return keptStates(context, call.name, argument)
  if (argument !== undefined && isDistinctCount(call)) {
    return new DistinctCounts(context, compileVector(argument, context))
  }
  const chosen = chosenStates(context, call)
  if (chosen !== undefined || more.length > 0) return chosen
  if (argument === undefined) return call.name === 'count' ? new RowCounts(context) : undefined
  if ((call.name === 'min' || call.name === 'max') && isText(argument.type) && isText(call.type)) {
    const symbols = symbolsBehind(argument)
    if (symbols !== undefined) return new SymbolExtremes(context, compileVector(symbols, context), call.name)
    return new TextExtremes(context, compileVector(argument, context), call.name)
  }
  const bits = bitStates(context, call, argument)
  if (bits !== undefined) return bits
  const kind = storageKind(argument.type)
  if (kind === undefined) return undefined
  const evaluate = compileVector(argument, context)
  switch (call.name) {
    case 'count':
      return argument.type.name === 'SYMBOL' ? undefined : new Sums(context, kind, evaluate, countOf)
    case 'sum':
      return new Sums(context, kind, evaluate, sumOf(kind))
    case 'avg':
      return new Sums(context, kind, evaluate, averageOf(kind))
    case 'min':
    case 'max':
      return new Extremes(context, kind, evaluate, call.name, argument.type)
    default:
      return undefined
  }
}

/** What is turned into texts: min and max take no symbols. */
function symbolsBehind(argument: Expression): Expression | undefined {
  if (argument.kind !== 'call' || (argument.name !== 'convert' && argument.name !== 'cast')) return undefined
  const [source] = argument.args
  return source?.type.name === 'SYMBOL' ? source : undefined
}

const numeric: ReadonlySet<string> = new Set([
  'SHORT',
  'INT',
  'LONG',
  'FLOAT',
  'DOUBLE',
  'DATE',
  'TIMESTAMP',
  'TIMESTAMP_NS',
])

/** Numbers whose NULL the kernels know. */
function storageKind(type: DataType): NumberStorage | undefined {
  return numeric.has(type.name) ? (storageOf(type) as NumberStorage) : undefined
}

interface Cells {
  readonly memory: ExecContext['memory']
  readonly floating: boolean
}

/** `high`: where the sum of the high words of LONGs is. */
type Finish = (cells: Cells, word: number, high: number) => Value

const countAt = ({ memory, floating }: Cells, word: number): number =>
  floating ? memory.f64[word + 1]! : Number(memory.i64[word + 1]!)

const countOf: Finish = (cells, word) => BigInt(countAt(cells, word))

function sumOf(kind: NumberStorage): Finish {
  return (cells, word, high) => {
    if (countAt(cells, word) === 0) return null
    const { memory, floating } = cells
    if (kind === 'i64') return longSum(wideSum(memory, word, high))
    if (!floating) return memory.i64[word]!
    const sum = memory.f64[word]!
    const shown = kind === 'f32' ? Math.fround(sum) : sum
    return Number.isFinite(shown) ? shown : null
  }
}

function averageOf(kind: NumberStorage): Finish {
  return (cells, word, high) => {
    const count = countAt(cells, word)
    if (count === 0) return null
    const { memory, floating } = cells
    const exact = kind === 'i64' ? wideSum(memory, word, high) : memory.i64[word]!
    const mean = (floating ? memory.f64[word]! : Number(exact)) / count
    return Number.isFinite(mean) ? mean : null
  }
}

type Evaluate = (batch: Parameters<GroupStates['add']>[0]) => Vector

class RowCounts implements GroupStates {
  readonly partial: PartialStates
  readonly #context: ExecContext
  readonly #cells: CellMemory
  #total = 0

  constructor(context: ExecContext) {
    this.#context = context
    const { i64 } = context.memory
    this.#cells = new CellMemory(context, 8, (from, to) => {
      i64.fill(0n, (this.#cells.address >>> 3) + from, (this.#cells.address >>> 3) + to)
    })
    this.partial = partialCells(context, this.#cells, 8, {
      combine: (into, source) => addIntegers(context.memory, into, source, 1),
      valueAt: (place) => i64[place]!,
      firstIsValue: true,
    })
  }

  add({ rows }: { readonly rows: number }, ids: number, groups: number): void {
    if (ids === 0) {
      this.#total += rows
      return
    }
    this.#cells.grow(groups)
    this.#context.kernels.aggregate.groupCounts(ids, 0, rows, groups, this.#cells.address)
  }

  result(group: number): Value {
    if (this.#cells.groups === 0) return BigInt(this.#total)
    if (group >= this.#cells.groups) return 0n
    return this.#context.memory.i64[(this.#cells.address >>> 3) + group]!
  }

  empty(): Value {
    return 0n
  }

  reset(): void {
    this.#total = 0
    this.#cells.reset()
  }
}

class Sums implements GroupStates {
  readonly partial: PartialStates
  readonly #context: ExecContext
  readonly #kind: NumberStorage
  readonly #evaluate: Evaluate
  readonly #finish: Finish
  readonly #cells: CellMemory
  readonly #view: Cells
  readonly #stats: number
  /** Of 8 bytes, in a cell. */
  readonly #words: number

  constructor(context: ExecContext, kind: NumberStorage, evaluate: Evaluate, finish: Finish) {
    this.#context = context
    this.#kind = kind
    this.#evaluate = evaluate
    this.#finish = finish
    this.#view = { memory: context.memory, floating: kind === 'f64' || kind === 'f32' }
    this.#stats = context.space.keep(statsBytes)
    const { i64 } = context.memory
    const words = kind === 'i64' ? 3 : 2
    this.#words = words
    this.#cells = new CellMemory(context, words * 8, (from, to) => {
      i64.fill(0n, (this.#cells.address >>> 3) + from * words, (this.#cells.address >>> 3) + to * words)
    })
    const { memory } = context
    const combine = this.#view.floating
      ? (into: number, source: number) => addFloats(memory, into, source)
      : (into: number, source: number) => addIntegers(memory, into, source, words)
    const valueAt = (place: number): Value => this.#finish(this.#view, place, place + 2)
    const doubles =
      kind === 'f64' && finish !== countOf
        ? { doubleAt: (place: number) => (valueAt(place) as number | null) ?? Number.NaN }
        : {}
    this.partial = partialCells(context, this.#cells, words * 8, { combine, valueAt, ...doubles })
    this.reset()
  }

  add(batch: Parameters<GroupStates['add']>[0], ids: number, groups: number): void {
    const { aggregate } = this.#context.kernels
    const { address } = this.#evaluate(batch)
    const kind = aggregateKinds[this.#kind]
    if (ids === 0) {
      aggregate.sum(kind, address, 0, batch.rows, this.#stats)
      return
    }
    this.#cells.grow(groups)
    aggregate.groupSums(kind, address, ids, 0, batch.rows, groups, this.#cells.address)
  }

  result(group: number): Value {
    const { memory } = this.#context
    if (this.#cells.groups > 0) {
      if (group >= this.#cells.groups) return this.empty()
      const place = (this.#cells.address >>> 3) + group * this.#words
      return this.#finish(this.#view, place, place + 2)
    }
    // STATS counts in integers whatever the sum is.
    const word = this.#stats >>> 3
    const count = memory.i64[word + 1]!
    if (this.#view.floating) memory.f64[word + 1] = Number(count)
    const value = this.#finish(this.#view, word, word + 4)
    memory.i64[word + 1] = count
    return value
  }

  empty(): Value {
    return this.#finish === countOf ? 0n : null
  }

  reset(): void {
    this.#cells.reset()
    initStats(this.#context.memory, this.#stats, this.#kind)
  }
}

class Extremes implements GroupStates {
  readonly partial: PartialStates
  readonly #context: ExecContext
  readonly #kind: NumberStorage
  readonly #evaluate: Evaluate
  readonly #offset: 0 | 1
  readonly #type: DataType
  readonly #cells: CellMemory
  readonly #stats: number

  constructor(context: ExecContext, kind: NumberStorage, evaluate: Evaluate, name: 'min' | 'max', type: DataType) {
    this.#context = context
    this.#kind = kind
    this.#evaluate = evaluate
    this.#offset = name === 'min' ? 0 : 1
    this.#type = type
    this.#stats = context.space.keep(statsBytes)
    this.#cells = new CellMemory(context, 16, (from, to) => this.#clear(from, to))
    const { memory } = context
    const widen = kind === 'f64' || kind === 'f32' ? widenFloats : widenIntegers
    this.partial = partialCells(context, this.#cells, 16, {
      combine: (into, source) => widen(memory, into, source),
      valueAt: (place) => this.#value(memory, place),
    })
    this.reset()
  }

  add(batch: Parameters<GroupStates['add']>[0], ids: number, groups: number): void {
    const { aggregate } = this.#context.kernels
    const { address } = this.#evaluate(batch)
    const kind = aggregateKinds[this.#kind]
    if (ids === 0) {
      aggregate.stats(kind, address, 0, batch.rows, this.#stats)
      return
    }
    this.#cells.grow(groups)
    aggregate.groupExtremes(kind, address, ids, 0, batch.rows, groups, this.#cells.address)
  }

  result(group: number): Value {
    const { memory } = this.#context
    const keyed = this.#cells.groups > 0
    if (keyed && group >= this.#cells.groups) return null
    const word = keyed ? (this.#cells.address >>> 3) + group * 2 : (this.#stats >>> 3) + 2
    return this.#value(memory, word)
  }

  empty(): Value {
    return null
  }

  reset(): void {
    this.#cells.reset()
    initStats(this.#context.memory, this.#stats, this.#kind)
  }

  /** Nothing seen leaves the smallest value above the largest. */
  #value({ f64, i64 }: ExecContext['memory'], word: number): Value {
    const at = word + this.#offset
    if (this.#kind === 'f64' || this.#kind === 'f32') {
      return f64[word]! > f64[word + 1]! ? null : f64[at]!
    }
    if (i64[word]! > i64[word + 1]!) return null
    const value = i64[at]!
    return this.#kind === 'i64' ? value : Number(value)
  }

  #clear(from: number, to: number): void {
    const { f64, i64 } = this.#context.memory
    const floating = this.#kind === 'f64' || this.#kind === 'f32'
    const first = this.#cells.address >>> 3
    for (let group = from; group < to; group++) {
      const word = first + group * 2
      if (floating) {
        f64[word] = Number.POSITIVE_INFINITY
        f64[word + 1] = Number.NEGATIVE_INFINITY
      } else {
        i64[word] = 0x7fff_ffff_ffff_ffffn
        i64[word + 1] = longMin
      }
    }
    void this.#type
  }
}
