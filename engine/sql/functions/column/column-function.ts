// The type ColumnFunction: how a SQL function is evaluated for a whole vector instead of row by row. SQL functions are
// defined in the folders of engine/sql/functions, by tables with one entry for each; an entry may have a ColumnFunction
// as `column`, beside `eval`, which evaluates one row.
//
// To add a function:
//   1. Add its entry to the table of its family (engine/sql/functions): name, argument types, result type, `eval`.
//   2. `eval` alone is sufficient: the executor calls it row by row.
//   3. A function of one or two numbers is `...overNumbers(f)`, which derives `eval` and `column` from f.
//   4. A function whose result is constant within a time interval returns that interval from `constantWithin` (say,
//      `{ count: 1, unit: 'd' }`) and is evaluated once per interval. It needs no `column`.
//   5. Any other function that must be fast has a `column`, in this folder, that plans a loop over vectors for a call.
//
// No other file changes. The executor (engine/exec/expression/expression.ts) does what all functions need: it evaluates
// calls whose arguments are constants once, and calls of a dictionary-encoded argument once per dictionary entry; it
// evaluates arguments to vectors, decodes symbols, allocates the result, and calls `eval` for rows that the loop does
// not handle.

import type { Kernels } from '../../../kernels/load.js'
import type { SharedMemory } from '../../../memory/shared-memory.js'
import type { DataType } from '../../../types/column-types.js'
import type { Value } from '../../../types/value.js'
import type { Expression } from '../../plan/plan.js'
import type { NumberBits, WholeNumbers } from './whole-numbers.js'

export type Call = Extract<Expression, { kind: 'call' }>

/**
 * Plans a loop for a call; undefined if the call must use `eval`. Scalar sub-queries have run before, so they are
 * constants here.
 */
export type ColumnFunction = (call: Call, context: ColumnContext) => ColumnPlan | DictionaryPlan | undefined

/** What a vectorised call may use. Addresses are valid while the query runs. */
export interface ColumnContext {
  readonly memory: SharedMemory
  readonly kernels: Kernels
  /** Maximum number of rows in a batch. */
  readonly rowsMax: number
  allocate(bytes: number): number
  /** Allocates the values as a vector of the type; returns its address. */
  vector(type: DataType, values: readonly Value[]): number
  /** Reserves memory for the bytes of strings, valid until the next batch. */
  reserve(bytes: number): number
  /** The set of integers that a sub-query has returned. */
  listOf(subquery: number): WholeNumbers
  /** The numbers as a bit map, built once per query; undefined if their range is too large. */
  bitsOf(numbers: WholeNumbers): NumberBits | undefined
}

export interface ColumnPlan {
  /** Expressions to evaluate to vectors first: arguments of the call, or replacements for them. */
  readonly args: readonly Expression[]
  /**
   * Writes the results of the first `rows` rows to `out`. Vectors of strings and symbols consist of entries {address
   * u32, bytes i32}. Returns the number of rows that `eval` must compute.
   */
  readonly run: (rows: number, vectors: readonly number[], out: number) => number
  /** Whether `run` did not compute the row, as seen from its output. Required if `run` ever returns more than 0. */
  readonly isLeft?: (out: number, row: number) => boolean
}

/** A dictionary-encoded result. */
export interface DictionaryPlan {
  /** An INT: index of the row's value in the dictionary. */
  readonly codes: Expression
  readonly dictionary: readonly Value[]
}

/** Types whose vectors consist of string entries. */
export function isText({ name }: DataType): boolean {
  return name === 'VARCHAR' || name === 'STRING'
}

/** Whether the argument is a vector of strings. Constants are excluded: `eval` handles them. */
export function isTextVector(argument: Expression | undefined): argument is Expression {
  return argument !== undefined && isText(argument.type) && argument.kind !== 'constant'
}

/** Copies a constant string to shared memory. */
export function constantBytes(text: string, { memory, allocate }: ColumnContext): { address: number; bytes: number } {
  const bytes = Buffer.from(text)
  const address = allocate(bytes.length + 8)
  memory.u8.set(bytes, address)
  return { address, bytes: bytes.length }
}
