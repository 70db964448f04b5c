// What a row of the function tables says. `eval` evaluates a scalar function for one row: it is exact, the reference
// of everything that the executor does faster, and its fall-back. How to add a function: column/column-function.ts.

import type { ColumnType, DataType } from '../../types/column-types.js'
import type { Value } from '../../types/value.js'
import type { SessionSettings } from '../pg-catalog/session-options.js'
import type { SampleInterval } from '../plan/plan.js'
import type { ColumnFunction } from './column/column-function.js'
import type { Random } from './random-generator.js'

/** TEXT: STRING, VARCHAR, SYMBOL, CHAR. TIME: TIMESTAMP and TIMESTAMP_NS. ANY: whatever comes. */
export type TypePattern = ColumnType | 'TEXT' | 'TIME' | 'ANY'

/** What a statement's evaluation shares. */
export interface EvaluationContext {
  /** now(), the same throughout a statement. */
  readonly nowMicros: bigint
  /** systimestamp(), new at every call. */
  readonly clockMicros: () => bigint
  readonly random: Random
  readonly user: string
  /** Throws when the query is over: asked where a single value took its time. */
  readonly alive?: () => void
  /** Reads the settings again; whether they are in force. Absent where there are none. */
  readonly reload?: () => boolean
  /** Options of the session; absent where no session is known. */
  readonly settings?: SessionSettings | undefined
}

/** One call in one expression. */
export interface CallSite {
  readonly type: DataType
  readonly argTypes: readonly DataType[]
  readonly position: number
  readonly context: EvaluationContext
  /** State of stateful functions, and what was prepared from constant arguments. */
  readonly memo: Map<string, unknown>
}

/** How much an overload's result depends on the moment: constants are folded at planning. */
export type Volatility = 'pure' | 'statement' | 'row'

/** What is known of an argument when a call is bound. */
export interface BoundArgument {
  readonly type: DataType
  /** undefined: not a constant. */
  readonly constant: Value | undefined
  /** A parameter without a value yet: the constant is NULL for now. */
  readonly described?: boolean
  /** Made of the time of the statement. */
  readonly ofStatement?: boolean
  readonly position: number
}

/** Whether it is NULL, and not just unknown as yet. */
export function isNullConstant(argument: BoundArgument | undefined): boolean {
  return argument?.constant === null && argument.described !== true
}

export interface ScalarFunction {
  readonly name: string
  readonly takes: readonly TypePattern[]
  /** Further arguments, any number of them. */
  readonly more?: TypePattern
  /** The NULL literal is none of its arguments: it has no digits. */
  readonly typedOnly?: true
  /** FIRST: the first argument's type. A function decides by the arguments. */
  readonly gives: ColumnType | 'FIRST' | ((args: readonly BoundArgument[]) => DataType)
  readonly says: string
  /** Expression and its result as text; null where the result is not fixed. */
  readonly example: readonly [string, string] | null
  /** Default: pure. `row`: every call may differ (rnd_*, systimestamp). */
  readonly volatility?: Volatility
  /** NULL arguments are passed on; else any NULL argument gives NULL without a call. */
  readonly seesNull?: boolean
  /** Throws SqlError for arguments that can be judged before any row is read. */
  readonly check?: (args: readonly BoundArgument[], position: number) => void
  readonly eval: (args: readonly Value[], site: CallSite) => Value
  /** The same for all rows of a batch at once. */
  readonly column?: ColumnFunction
  /**
   * Of a function of one timestamp and constants: the interval within which the result stays the same. The timestamp is
   * undefined among the arguments. null: there is none for these constants.
   */
  readonly steady?: (args: readonly (Value | undefined)[]) => SampleInterval | null
  /** Never throws, so it may be evaluated for rows whose result nobody needs. */
  readonly total?: boolean
  /** Evaluates arguments only until the result is known: their errors count only where they are needed. */
  readonly lazy?: true
}

/** An aggregate's exact interpreter. States are plain objects; `merge` adds the second, later one to the first. */
export interface Accumulator<State> {
  /** A state is a few numbers: moving windows may keep one for each row. */
  readonly small?: true
  readonly init: () => State
  readonly add: (state: State, args: readonly Value[], site: CallSite) => void
  readonly merge: (state: State, other: State, site: CallSite) => void
  readonly result: (state: State, site: CallSite) => Value
}

/** Rows of one or two numbers as columns, NaN where there is none; places are those of the arrays' elements. */
export interface NumberRows {
  readonly count: number
  readonly numbers: Float64Array
  readonly x: number
  /** That of x where there is one number. */
  readonly y: number
  /** Numbers of the rows' groups; at 0: all rows are of group 0. */
  readonly groups: Uint32Array
  readonly ids: number
}

/** State of an aggregate over rows of one or two numbers as doubles, all of them 0 at first. Rows with NULL are left out. */
export interface DoublesState {
  /** Doubles of a state, an even number. */
  readonly words: number
  readonly add: (cells: Float64Array, at: number, x: number, y: number) => void
  /** The same for many rows, to the last bit: a loop that calls nothing. Missing: `add` is called for each row. */
  readonly addRows?: (cells: Float64Array, first: number, rows: NumberRows) => void
  /** Adds the state of later rows. */
  readonly merge: (cells: Float64Array, at: number, others: Float64Array, from: number) => void
  readonly result: (cells: Float64Array, at: number) => number | null
}

/** The value over all numbers of a group, none of them NaN, whose order it may change. `share`: the constant second argument, or 0. */
export type CollectedNumbers = (numbers: Float64Array, share: number) => number | null

/** The value over numbers and the times that are theirs, 64 bits each as two words, the lower one first, in the order of rows. */
export type CollectedPoints = (numbers: Float64Array, times: Int32Array) => number | null

export type Extreme = 'min' | 'max'

/**
 * How an aggregate is carried out over columns: an accumulator of engine/exec/aggregate/accumulator-table.ts, by its kind, and
 * what that needs to know. NULL is left out by all of them but `rows` and `end`.
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
  /** Value of the first or last row, of at most 8 bytes. */
  | { readonly kind: 'end'; readonly end: 'first' | 'last' }
  /** Value of the row where the second argument, a number, is best. `present`: rows without a value are left out. */
  | { readonly kind: 'chosen'; readonly best: Extreme; readonly present?: true }
  /** Bitwise operation over integers or truth values. */
  | { readonly kind: 'bits'; readonly fold: 'and' | 'or' | 'xor' }
  /** Number of different values. */
  | { readonly kind: 'distinct' }
  /** A few doubles a group, updated row by row. */
  | ({ readonly kind: 'doubles' } & DoublesState)
  /** All numbers of a group at once; the second argument, when there is one, must be a constant. */
  | { readonly kind: 'numbers'; readonly value: CollectedNumbers }
  /** All numbers of a group and their times at once. */
  | { readonly kind: 'points'; readonly value: CollectedPoints }

export interface AggregateFunction {
  readonly name: string
  readonly takes: readonly TypePattern[]
  readonly gives: ScalarFunction['gives']
  readonly says: string
  /** Expression over `long_sequence(5)` (column x: 1 to 5) and its result as text. */
  readonly example: readonly [string, string] | null
  /** As of scalar functions. */
  readonly check?: ScalarFunction['check']
  /** The result depends on the order of rows: they must come in that of the table. */
  readonly ordered?: true
  readonly accumulator: Accumulator<unknown>
  /** The same over columns. Absent: the executor reads each value and calls `accumulator`. */
  readonly column?: ColumnAccumulator
  /** The types of arguments that `column` is for. Absent: all that the row takes. */
  readonly columnTypes?: (types: readonly DataType[]) => boolean
}

/** Keeps the state's type within one row of a table. */
export function accumulator<State>(parts: Accumulator<State>): Accumulator<unknown> {
  return parts as Accumulator<unknown>
}

/** What is infinite is NULL, as it is everywhere. */
export function finiteOrNull(value: number | null): number | null {
  return value !== null && Number.isFinite(value) ? value : null
}

/** Both forms of an aggregate whose state is a few doubles. */
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
