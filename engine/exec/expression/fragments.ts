// Translates bound expressions to the input of the code generator (kernels/jit), which compiles them to WebAssembly.
// The columns that the expressions use are numbered consecutively. A condition on one symbol column (dictionary-encoded
// strings) becomes a comparison of symbol ids, or a lookup in a table that has the condition's result for each symbol.

import type { FragmentExpression } from '../../kernels/jit/fragment.js'
import type { Fragment } from '../../kernels/jit/jit.js'
import { dictionaryCount } from '../../memory/column-layout.js'
import type { Expression } from '../../sql/plan/plan.js'
import { type DataType, dataType, widthOf } from '../../types/column-types.js'
import type { TimestampUnit } from '../../types/timestamp-calendar.js'
import { isTimeUnit, ticksPerUnit } from '../../types/timestamp-floor.js'
import type { ExecContext } from '../batch/context.js'
import type { SymbolPredicate } from '../batch/query-state.js'
import { unwantedSymbols, wantedSymbols } from '../batch/symbol-matches.js'
import type { Vector } from '../batch/vector.js'
import { symbolPredicate } from './symbol-predicate.js'

/** Conditions on more symbols than this use the lookup table. */
const comparedMax = 4
/**
 * Conditions are not evaluated for all entries of larger dictionaries; such a condition stays out of the generated
 * code.
 */
const lookupEntriesMax = 65_536

const plainInt: DataType = { name: 'INT', a: 0, b: 0 }
const plainByte: DataType = { name: 'BYTE', a: 0, b: 0 }
/** The ids of a dictionary with at most this many entries, and -1 for NULL, fit one byte. */
const narrowEntriesMax = 128

export class FragmentInputs {
  /** Types of the used columns, in the fragment's order. */
  readonly types: DataType[] = []
  /** The indexes of the same columns in the batch. */
  readonly columns: number[] = []
  readonly #context: ExecContext
  /** The dictionary of an input column, or 0 when it is not known; then there are no lookup tables. */
  readonly #dictionaryOf: (column: number) => number
  readonly #predicates: SymbolPredicate[] = []
  /** Index of the first column that holds symbols as bytes (SliceReader.vectors); 0 when there are none. */
  readonly narrowFrom: number

  constructor(context: ExecContext, dictionaryOf: (column: number) => number, narrowFrom = 0) {
    this.#context = context
    this.#dictionaryOf = dictionaryOf
    this.narrowFrom = narrowFrom
  }

  /** null when the code generator does not support the expression. */
  expression(expression: Expression): FragmentExpression | null {
    switch (expression.kind) {
      case 'column':
        return { kind: 'column', index: this.#use(expression.index, expression.type), type: expression.type }
      case 'constant':
        return expression.type.name === 'SYMBOL' ? null : expression
      case 'subquery': {
        const result = this.#context.evaluation.subqueries[expression.index]
        return result?.mode === 'scalar' ? { kind: 'constant', value: result.value, type: expression.type } : null
      }
      case 'constants':
        return null
      case 'call':
        return this.#lookup(expression) ?? this.#call(equivalent(expression) ?? expression)
    }
  }

  /** The ids of a symbol column: as bytes if the dictionary is small enough. */
  symbol(column: number): FragmentExpression {
    const dictionary = this.narrowFrom === 0 ? 0 : this.#dictionaryOf(column)
    const isNarrow = dictionary !== 0 && dictionaryCount(this.#context.memory, dictionary) <= narrowEntriesMax
    if (isNarrow) return { kind: 'column', index: this.#use(this.narrowFrom + column, plainByte), type: plainByte }
    const type: DataType = { name: 'SYMBOL', a: 0, b: 0 }
    return { kind: 'column', index: this.#use(column, type), type }
  }

  /** Sets the addresses of the fragment's columns to those of a batch, from row `from` on. */
  bind(fragment: Fragment, block: number, vectors: readonly Vector[], from = 0): void {
    for (let index = 0; index < this.columns.length; index++) {
      const { address, type } = vectors[this.columns[index] as number] as Vector
      fragment.setColumn(block, index, from === 0 ? address : address + from * widthOf(type))
    }
  }

  /** Sets the addresses of the lookup tables. They need no update, because the rows of a snapshot have no newer ids. */
  bindLookups(fragment: Fragment, block: number): void {
    fragment.lookups.forEach((table, slot) => {
      const predicate = this.#predicates[table] as SymbolPredicate
      const dictionary = this.#dictionaryOf(predicate.column)
      const count = dictionaryCount(this.#context.memory, dictionary)
      fragment.setLookup(block, slot, predicate.tableFor(dictionary, count), count + 1)
    })
  }

  #use(column: number, type: DataType): number {
    const known = this.columns.findIndex((used, index) => used === column && this.types[index]?.name === type.name)
    if (known >= 0) return known
    this.types.push(type)
    return this.columns.push(column) - 1
  }

  #lookup(expression: Expression): FragmentExpression | null {
    const predicate = symbolPredicate(expression, this.#context)
    if (predicate === undefined) return null
    const dictionary = this.#dictionaryOf(predicate.column)
    const count = dictionary === 0 ? 0 : dictionaryCount(this.#context.memory, dictionary)
    if (dictionary === 0 || count > lookupEntriesMax) return null
    const compared = this.#comparison(expression, predicate.column, dictionary, count)
    if (compared !== undefined) return compared
    const column = this.#use(predicate.column, { name: 'SYMBOL', a: 0, b: 0 })
    return { kind: 'lookup', column, table: this.#predicates.push(predicate) - 1, type: expression.type }
  }

  /**
   * Compares ids as integers: SIMD compares several at once, while a lookup reads one at a time. undefined when the
   * condition names too many symbols, or none that exists.
   */
  #comparison(
    expression: Expression,
    column: number,
    dictionary: number,
    count: number,
  ): FragmentExpression | undefined {
    const { type } = expression
    const unwanted = unwantedSymbols(expression, this.#context)
    const named = unwanted ?? wantedSymbols(expression, this.#context)
    if (named === undefined || named.strings > comparedMax) return undefined
    const [first, ...others] = named.idsIn(dictionary, count).map((id) => this.#equals(column, id, type))
    if (first === undefined) return undefined
    const any = others.reduce<FragmentExpression>((a, b) => ({ kind: 'call', name: 'or', args: [a, b], type }), first)
    return unwanted !== undefined ? { kind: 'call', name: 'not', args: [any], type } : any
  }

  #equals(column: number, id: number, type: DataType): FragmentExpression {
    const symbol = this.symbol(column)
    const number: FragmentExpression =
      symbol.type.name === 'BYTE' ? symbol : { kind: 'column', index: this.#use(column, plainInt), type: plainInt }
    return { kind: 'call', name: '=', args: [number, { kind: 'constant', value: id, type: number.type }], type }
  }

  #call(expression: Expression): FragmentExpression | null {
    if (expression.kind !== 'call') return this.expression(expression)
    const { name, args, type } = expression
    const parts: FragmentExpression[] = []
    for (const argument of args) {
      // Two symbol columns may have different dictionaries.
      const part = argument.type.name === 'SYMBOL' ? null : this.expression(argument)
      if (part === null) return null
      parts.push(part)
    }
    return { kind: 'call', name, args: parts, type }
  }
}

// Calls that are rewritten to arithmetic, so that generated kernels can compute them:
//
//   dateadd   with a constant unit of fixed length: the timestamp plus a number of ticks. Kernels report no errors, so
//             the sum must be within 64 bits: the number of ticks is small, and the unit is microseconds
//   datediff  the same: the absolute difference in ticks, divided

type Call = Extract<Expression, { kind: 'call' }>

const long = dataType('LONG')

/**
 * Maximum number of microseconds that a kernel adds, some 9,000 years. A sum beyond 64 bits, which is an error, would
 * need a timestamp beyond the year 285,000. Nanoseconds of 64 bits end in 2262, so they are always checked.
 */
const addedMax = 1n << 58n
const intMax = 1n << 31n

/** undefined when there is no equivalent. */
export function equivalent(call: Call): Expression | undefined {
  const [first, second, third] = call.args
  if (call.args.length !== 3 || first === undefined || second === undefined || third === undefined) return undefined
  if (call.name === 'dateadd') return moved(call, first, second, third)
  return call.name === 'datediff' ? distance(call, first, second, third) : undefined
}

function moved(call: Call, unit: Expression, count: Expression, time: Expression): Expression | undefined {
  const ticks = fixedTicks(unit, time)
  if (ticks === undefined || time.type.name !== call.type.name || time.type.name !== 'TIMESTAMP') return undefined
  const isNumber = count.kind === 'constant' && typeof count.value === 'number'
  const most = isNumber ? BigInt(Math.abs(Number(count.value))) : intMax
  if (most * ticks > addedMax) return undefined
  return { ...call, name: '+', args: [time, times(count, ticks)] }
}

function times(count: Expression, ticks: bigint): Expression {
  const { position } = count
  if (count.kind === 'constant' && typeof count.value === 'number')
    return longConstant(BigInt(count.value) * ticks, position)
  const wide: Expression = { kind: 'call', name: 'cast', args: [count], type: long, position }
  return { kind: 'call', name: '*', args: [wide, longConstant(ticks, position)], type: long, position }
}

function distance(call: Call, unit: Expression, from: Expression, to: Expression): Expression | undefined {
  const ticks = fixedTicks(unit, from)
  if (ticks === undefined || from.type.name !== to.type.name || call.type.name !== 'LONG') return undefined
  const { position } = call
  const step = (name: string, args: readonly Expression[]): Expression => ({
    kind: 'call',
    name,
    args,
    type: long,
    position,
  })
  const difference = step('abs', [step('-', [to, from])])
  return ticks === 1n ? difference : step('/', [difference, longConstant(ticks, position)])
}

/**
 * Ticks of a constant time unit in the timestamp's resolution; undefined for months and years, which vary, and for
 * units finer than a tick.
 */
function fixedTicks(unit: Expression, { type }: Expression): bigint | undefined {
  if (unit.kind !== 'constant' || (type.name !== 'TIMESTAMP' && type.name !== 'TIMESTAMP_NS')) return undefined
  const letter = unit.value === 'u' ? 'U' : unit.value
  if (typeof letter !== 'string' || !isTimeUnit(letter)) return undefined
  if (letter === 'n' && type.name === 'TIMESTAMP') return undefined
  return ticksPerUnit(letter, type.name as TimestampUnit) ?? undefined
}

function longConstant(value: bigint, position: number): Expression {
  return { kind: 'constant', value, type: long, position }
}
