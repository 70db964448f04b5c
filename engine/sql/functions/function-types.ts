// Types of the entries in the tables of SQL functions: one for scalar functions, one for aggregates. Every scalar
// function has `eval`, which evaluates one row and defines the result. Faster implementations are optional, must return
// the same, and may leave rows to `eval`. column/column-function.ts describes how to add a function.

import { SqlError } from '../../base/errors.js'
import type { ColumnType, DataType } from '../../types/column-types.js'
import type { SampleInterval } from '../../types/timestamp-floor.js'
import type { Value } from '../../types/value.js'
import type { SessionSettings } from '../pg-catalog/session-options.js'
import type { ColumnFunction } from './column/column-function.js'
import type { Random } from './random-generator.js'

/** TEXT: STRING, VARCHAR, SYMBOL, CHAR. TIME: TIMESTAMP and TIMESTAMP_NS. ANY: any type. */
export type TypePattern = ColumnType | 'TEXT' | 'TIME' | 'ANY'

/** State that all calls of a statement share. */
export interface EvaluationContext {
  /** Value of now(), constant during a statement. */
  readonly nowMicros: bigint
  /** Value of systimestamp(), read at each call. */
  readonly clockMicros: () => bigint
  readonly random: Random
  readonly user: string
  /** Throws if the query has been cancelled or timed out. Called between values that take long to compute. */
  readonly alive?: () => void
  /** Reloads the settings; returns whether they are in force. Absent where there are none. */
  readonly reload?: () => boolean
  /** Settings of the session; absent without a session. */
  readonly settings?: SessionSettings | undefined
}

/** A call within an expression. */
export interface CallSite {
  readonly type: DataType
  readonly argTypes: readonly DataType[]
  readonly position: number
  readonly context: EvaluationContext
  /** State of stateful functions, and data derived from constant arguments. */
  readonly memo: Map<string, unknown>
}

/** How often the result changes: never (pure), per statement, or per row. The first two are folded when planning. */
export type Volatility = 'pure' | 'statement' | 'row'

/** What is known of an argument when a call is bound. */
export interface BoundArgument {
  readonly type: DataType
  /** undefined if the argument is not constant. */
  readonly constant: Value | undefined
  /** A parameter without a value: the constant is NULL for now. */
  readonly described?: boolean
  /** Derived from the time of the statement. */
  readonly ofStatement?: boolean
  readonly position: number
}

/** Whether the argument is NULL, rather than a parameter without a value. */
export function isNullConstant(argument: BoundArgument | undefined): boolean {
  return argument?.constant === null && argument.described !== true
}

export function divisionByZero(operator: string, position: number): SqlError {
  return new SqlError(`'${operator}' operation failed: Division by zero`, position)
}

export interface ScalarFunction {
  readonly name: string
  readonly takes: readonly TypePattern[]
  /** Type of additional variadic arguments. */
  readonly more?: TypePattern
  /** Does not match an untyped NULL, which has no digits. */
  readonly typedOnly?: true
  /** Result type. FIRST: that of the first argument. A function derives it from the arguments. */
  readonly gives: ColumnType | 'FIRST' | ((args: readonly BoundArgument[]) => DataType)
  readonly description: string
  /** An example expression and its result as text; null if the result is not deterministic. */
  readonly example: readonly [string, string] | null
  /** Default: pure. `row`: the result may differ at each call (rnd_*, systimestamp). */
  readonly volatility?: Volatility
  /** The function is called with NULL arguments; otherwise any NULL argument makes the result NULL. */
  readonly seesNull?: boolean
  /** Throws SqlError for arguments that can be rejected before any row is read. */
  readonly check?: (args: readonly BoundArgument[], position: number) => void
  eval(args: readonly Value[], site: CallSite): Value
  /** Vectorised implementation. */
  readonly column?: ColumnFunction
  /**
   * For functions of one timestamp and constants: the interval within which the result is constant, so that it is
   * computed once per interval. The timestamp is undefined among the arguments. Null if there is no such interval for
   * these constants.
   */
  readonly constantWithin?: (args: readonly (Value | undefined)[]) => SampleInterval | null
  /** Never throws, so it may be evaluated for rows whose result is not needed. */
  readonly total?: boolean
  /** Evaluates arguments only until the result is known, so that errors of the others do not occur. */
  readonly lazy?: true
}

/**
 * The exact implementation of an aggregate, over plain objects. `merge` adds the accumulator of later rows to that of
 * earlier ones.
 */
export interface Accumulator<State> {
  /** The accumulator consists of a few numbers, so moving windows may keep one for each row. */
  readonly small?: true
  readonly init: () => State
  add(state: State, args: readonly Value[], site: CallSite): void
  readonly merge: (state: State, other: State, site: CallSite) => void
  readonly result: (state: State, site: CallSite) => Value
}

/** Rows of one or two numbers in columns, with NaN for NULL. Offsets are in elements of the arrays. */
export interface NumberRows {
  readonly count: number
  readonly numbers: Float64Array
  readonly x: number
  /** Offset of the second number; that of x if there is only one. */
  readonly y: number
  /** Group ids of the rows start at `ids`; 0 means that all rows belong to group 0. */
  readonly groups: Uint32Array
  readonly ids: number
}

/**
 * Vectorised accumulator of a few doubles per group, initially 0, over rows of one or two numbers. Rows with NULL are
 * skipped.
 */
export interface DoublesState {
  /** Doubles per group, an even number. */
  readonly words: number
  readonly add: (cells: Float64Array, at: number, x: number, y: number) => void
  /**
   * Like `add` for many rows, with bit-identical results, in a loop without calls. If absent, `add` is called for each
   * row.
   */
  readonly addRows?: (cells: Float64Array, first: number, rows: NumberRows) => void
  /** Merges the accumulator of later rows. */
  readonly merge: (cells: Float64Array, at: number, others: Float64Array, from: number) => void
  readonly result: (cells: Float64Array, at: number) => number | null
}

/**
 * The result over all numbers of a group. They contain no NaN and may be reordered. `share` is the constant second
 * argument, or 0.
 */
export type CollectedNumbers = (numbers: Float64Array, share: number) => number | null

/**
 * The result over all numbers of a group and their timestamps, in row order. A timestamp is 64 bits as two words, the
 * lower one first.
 */
type CollectedPoints = (numbers: Float64Array, times: Int32Array) => number | null

export type Extreme = 'min' | 'max'

/**
 * The vectorised accumulator of an aggregate: a kind of engine/exec/aggregate/accumulator-table.ts and its parameters.
 * All kinds but `rows` and `end` ignore NULL.
 */
export type ColumnAccumulator =
  /** Counts rows. */
  | { readonly kind: 'rows' }
  /** Sum and count of numbers. */
  | { readonly kind: 'sum'; readonly result: 'count' | 'sum' | 'mean' }
  /** Smallest or largest number. */
  | { readonly kind: 'extreme'; readonly best: Extreme }
  /** Smallest or largest string. */
  | { readonly kind: 'string-extreme'; readonly best: Extreme }
  /** Value of the first or last row, at most 8 bytes. */
  | { readonly kind: 'end'; readonly end: 'first' | 'last' }
  /**
   * Value of the row in which the second argument, a number, is smallest or largest. `present`: rows without a value
   * are skipped.
   */
  | { readonly kind: 'chosen'; readonly best: Extreme; readonly present?: true }
  /** Bitwise operation over integers or booleans. */
  | { readonly kind: 'bits'; readonly fold: 'and' | 'or' | 'xor' }
  /** Number of distinct values. */
  | { readonly kind: 'distinct' }
  /** A few doubles per group, updated row by row. */
  | ({ readonly kind: 'doubles' } & DoublesState)
  /** All numbers of a group at once. A second argument must be constant. */
  | { readonly kind: 'numbers'; readonly value: CollectedNumbers }
  /** The state of the distinct values, of at most as many bytes as a constant second argument says. */
  | { readonly kind: 'distinct-values' }
  /** The number of distinct values in such states, or the state of all of them, as above. */
  | { readonly kind: 'merged-values'; readonly result: 'count' | 'values' }
  /** The state of all numbers, of at most as many bytes as a constant second argument says. */
  | { readonly kind: 'sorted-numbers' }
  /** The result over all numbers in such states; null: the state of all of them, as above. */
  | { readonly kind: 'merged-numbers'; readonly value: CollectedNumbers | null }
  /** All numbers of a group and their timestamps at once. */
  | { readonly kind: 'points'; readonly value: CollectedPoints }

export interface AggregateFunction {
  readonly name: string
  readonly takes: readonly TypePattern[]
  readonly gives: ScalarFunction['gives']
  readonly description: string
  /** An example expression over `long_sequence(5)` (column x: 1 to 5) and its result as text. */
  readonly example: readonly [string, string] | null
  /** As for scalar functions. */
  readonly check?: ScalarFunction['check']
  /** The result depends on row order, so rows must come in the order of the table. */
  readonly ordered?: true
  readonly accumulator: Accumulator<unknown>
  /** Vectorised implementation. If absent, the executor reads each value and calls `accumulator`. */
  readonly column?: ColumnAccumulator
  /** Argument types that `column` supports; absent: all types of the overload. */
  readonly columnTypes?: (types: readonly DataType[]) => boolean
}

/** Hides the accumulator's state type from the table. */
export function accumulator<State>(parts: Accumulator<State>): Accumulator<unknown> {
  return parts as Accumulator<unknown>
}

/** Infinite results are NULL, as everywhere in this dialect. */
export function finiteOrNull(value: number | null): number | null {
  return value !== null && Number.isFinite(value) ? value : null
}

/** Both implementations of an aggregate whose state is a few doubles. */
export function overNumbers(
  state: DoublesState,
): Pick<AggregateFunction, 'accumulator'> & { readonly column: { readonly kind: 'doubles' } & DoublesState } {
  const { words, add, merge, result } = state
  return {
    column: { kind: 'doubles', ...state },
    accumulator: accumulator<Float64Array>({
      small: true,
      init: () => new Float64Array(words),
      add: (cells, [x, y = 0]) => {
        if (typeof x === 'number' && typeof y === 'number') add(cells, 0, x, y)
      },
      merge: (cells, other) => merge(cells, 0, other, 0),
      result: (cells) => finiteOrNull(result(cells, 0)),
    }),
  }
}
