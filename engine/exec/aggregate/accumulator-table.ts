// Creates the accumulator that computes an aggregate call. The definition of each aggregate function
// (engine/sql/functions) may name, as `column`, a kind of vectorised accumulator from the table in this file. If it
// names none, or that kind does not support the arguments, the call runs in the aggregate's interpreter, value by
// value.
//
// Accumulators of strings that ignore duplicates are wrapped here, so that without GROUP BY they get each entry of a
// dictionary only once (dictionary-arguments.ts).

import { assert } from '../../base/assert.js'
import { stateBytesMax } from '../../sql/functions/aggregates/value-states.js'
import type { AggregateFunction, CallSite, ColumnAccumulator } from '../../sql/functions/function-types.js'
import { aggregateOf, callSite } from '../../sql/functions/registry/evaluate.js'
import type { AggregateCall, Expression } from '../../sql/plan/plan.js'
import type { Value } from '../../types/value.js'
import { encodeNumbers } from '../../types/value-states.js'
import type { ExecContext } from '../batch/context.js'
import { type ValueReader, valueReader } from '../batch/values.js'
import type { Vector } from '../batch/vector.js'
import type { Accumulator } from './accumulator.js'
import { BitAccumulator, DoublesAccumulator, FirstLastAccumulator } from './cell-accumulators.js'
import { ChosenAccumulator } from './chosen-accumulator.js'
import { NumberCollector } from './collecting-accumulators.js'
import { OncePerDictionaryEntry, underlyingSymbols } from './dictionary-arguments.js'
import { DistinctAccumulator } from './distinct-accumulator.js'
import { ExtremeAccumulator, RowCountAccumulator, SumAccumulator } from './number-accumulators.js'
import {
  DistinctValuesAccumulator,
  MergedNumbersAccumulator,
  MergedValuesAccumulator,
  SortedNumbersAccumulator,
} from './state-accumulators.js'
import { StringExtremeAccumulator, SymbolExtremeAccumulator } from './string-extremes.js'

type Kind = ColumnAccumulator['kind']
type HowOf<K extends Kind> = Extract<ColumnAccumulator, { kind: K }>

/** An aggregate call, prepared for the accumulators. */
interface BoundCall {
  readonly call: AggregateCall
  /** The arguments; a symbol that is converted to a string stays a symbol. */
  readonly args: readonly Expression[]
  /** Values of constant arguments; undefined for arguments that vary by row or are bound later. */
  readonly constants: readonly (Value | undefined)[]
}

/** Returns undefined when the kind does not support this call. */
type Create<K extends Kind> = (context: ExecContext, how: HowOf<K>, bound: BoundCall) => Accumulator | undefined

const accumulators: { readonly [K in Kind]: Create<K> } = {
  rows: (context) => new RowCountAccumulator(context),
  sum: (context, { result }, { args: [argument] }) => argument && new SumAccumulator(context, argument.type, result),
  extreme: (context, { best }, { args: [argument] }) =>
    argument && new ExtremeAccumulator(context, argument.type, best),
  'string-extreme': (context, { best }, { args: [argument] }) =>
    argument?.type.name === 'SYMBOL'
      ? new SymbolExtremeAccumulator(context, best)
      : new OncePerDictionaryEntry(context, new StringExtremeAccumulator(context, best)),
  end: (context, { end }, { args: [argument] }) => argument && new FirstLastAccumulator(context, argument.type, end),
  chosen: (context, how, { call }) => new ChosenAccumulator(context, call, how),
  bits: (context, { fold }, { args: [argument] }) => argument && new BitAccumulator(context, argument.type, fold),
  distinct: (context) => new OncePerDictionaryEntry(context, new DistinctAccumulator(context)),
  doubles: (context, how) => new DoublesAccumulator(context, how),
  numbers: (context, { value }, { args, constants: [, share = null] }) =>
    args.length > 1 && typeof share !== 'number'
      ? undefined
      : new NumberCollector(context, 1, (numbers) => value(numbers, Number(share ?? 0))),
  'distinct-values': (context, _, { args: [argument], constants }) =>
    argument && new DistinctValuesAccumulator(context, argument.type, stateBytesMax(constants[1])),
  'merged-values': (context, { result }, { call, constants }) =>
    new MergedValuesAccumulator(context, call.position, result === 'count' ? null : stateBytesMax(constants[1])),
  'sorted-numbers': (context, _, { constants: [, bytesMax] }) =>
    new SortedNumbersAccumulator(context, stateBytesMax(bytesMax)),
  'merged-numbers': (context, { value }, { constants: [, second] }) =>
    new MergedNumbersAccumulator(context, (numbers) =>
      value === null ? encodeNumbers(numbers, stateBytesMax(second)) : value(numbers, Number(second)),
    ),
  points: (context, { value }) => new NumberCollector(context, 2, value),
}

/** An accumulator, and the arguments that it reads. */
export interface Created {
  readonly accumulator: Accumulator
  readonly args: readonly Expression[]
}

export function createAccumulator(context: ExecContext, call: AggregateCall): Created {
  const row = aggregateOf(call.name, call.args)
  assert(row !== undefined, `B1: no aggregate of that signature [name=${call.name}]`)
  const args = row.column?.kind === 'string-extreme' ? call.args.map(underlyingSymbols) : call.args
  const accumulator = columnAccumulator(context, row, { call, args, constants: call.args.map(constantOf) })
  if (accumulator === undefined) return { accumulator: new InterpretedAccumulator(context, call, row), args: call.args }
  return { accumulator, args: args.slice(0, accumulator.reads) }
}

function columnAccumulator(context: ExecContext, row: AggregateFunction, bound: BoundCall): Accumulator | undefined {
  const { column, columnTypes } = row
  if (column === undefined) return undefined
  if (columnTypes?.(bound.call.args.map(({ type }) => type)) === false) return undefined
  // The cast is safe, since each entry takes the rows of its own kind.
  const create = accumulators[column.kind] as Create<Kind>
  return create(context, column, bound)
}

function constantOf(argument: Expression): Value | undefined {
  return argument.kind === 'constant' ? argument.value : undefined
}

/**
 * Accumulator for any aggregate that has no vectorised one: calls the interpreter in the definition of the aggregate
 * function for each value. It is slow, but works for all types.
 */
class InterpretedAccumulator implements Accumulator {
  readonly #context: ExecContext
  readonly #interpreter: AggregateFunction['accumulator']
  readonly #site: CallSite
  /** Only the first or last row of a group matters; null: all rows do. */
  readonly #end: 'first' | 'last' | null
  #states: unknown[] = []

  constructor(context: ExecContext, call: AggregateCall, { accumulator, column }: AggregateFunction) {
    this.#context = context
    this.#interpreter = accumulator
    this.#site = callSite(call.type, call.args, call.position, context.evaluation)
    this.#end = column?.kind === 'end' ? column.end : null
  }

  add(columns: readonly Vector[], rows: number, ids: number): void {
    const { memory, strings } = this.#context
    const { init, add } = this.#interpreter
    const states = this.#states
    const readers = columns.map((column) => valueReader(memory, strings, column))
    const values: Value[] = []
    for (let row = this.#end === 'last' && ids === 0 ? rows - 1 : 0; row < rows; row++) {
      const group = ids === 0 ? 0 : memory.u32[(ids >>> 2) + row]!
      if (this.#end === 'first' && states[group] !== undefined) {
        if (ids === 0) return
        continue
      }
      states[group] ??= init()
      for (let at = 0; at < readers.length; at++) values[at] = (readers[at] as ValueReader)(row)
      add(states[group], values, this.#site)
    }
  }

  result(group: number): Value {
    const { init, result } = this.#interpreter
    return result(this.#states[group] ?? init(), this.#site)
  }

  reset(): void {
    this.#states = []
  }
}
