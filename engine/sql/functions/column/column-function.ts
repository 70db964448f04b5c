// How a function is vectorised: the `column` of its row in the function tables, beside `eval`.
//
// To add a function:
//   1. Write its row in the table of its family (engine/sql/functions): name, argument types, result type, `eval`.
//   2. `eval` alone is enough: the executor calls it row by row.
//   3. A function of one or two numbers is `...overNumbers(f)`: `eval` and `column` of the same f.
//   4. A function whose result stays the same within an interval of time has `steady`, and needs no `column`.
//   5. Anything else that deserves speed has `column`, in this folder, which plans a loop over vectors for a call.
//
// No other file changes. The executor (engine/exec/expression/expression.ts) does what all functions need: it computes
// calls of constants once, calls of a dictionary-encoded argument once per dictionary entry, evaluates the arguments to
// vectors, decodes symbols, allocates the result, and evaluates the rows that the loop leaves with `eval`.

import type { Kernels } from '../../../kernels/load.js'
import type { SharedMemory } from '../../../memory/shared-memory.js'
import type { DataType } from '../../../types/column-types.js'
import type { Value } from '../../../types/value.js'
import type { Expression } from '../../plan/plan.js'
import type { NumberBits, WholeNumbers } from './whole-numbers.js'

export type Call = Extract<Expression, { kind: 'call' }>

/**
 * Plans a loop for a call; undefined: these arguments are left to `eval`. Scalar sub-queries have run, so they are
 * constants here.
 */
export type ColumnFunction = (call: Call, context: ColumnContext) => ColumnPlan | CodedPlan | undefined

/** What a vectorised call may use. Addresses are valid as long as the query runs. */
export interface ColumnContext {
  readonly memory: SharedMemory
  readonly kernels: Kernels
  /** Rows of a batch at most. */
  readonly rowsMax: number
  allocate(bytes: number): number
  /** The values as a vector of the type. */
  vector(type: DataType, values: readonly Value[]): number
  /** Room for the bytes of strings, valid until the next batch. */
  reserve(bytes: number): number
  /** The rows of a sub-query for a list of whole numbers, once it has run. */
  listOf(subquery: number): WholeNumbers
  /** The numbers as bits, made once in a query; undefined: they are too far apart. */
  bitsOf(numbers: WholeNumbers): NumberBits | undefined
}

export interface ColumnPlan {
  /** Expressions that are evaluated to vectors first: arguments of the call, or what stands for them. */
  readonly args: readonly Expression[]
  /**
   * Writes the results of the first `rows` rows to `out`. Vectors of strings and of symbols are entries
   * {address u32, bytes i32}. Returns how many rows it leaves to `eval`.
   */
  readonly run: (rows: number, vectors: readonly number[], out: number) => number
  /** Tells the rows that `run` left by what it wrote for them; needed where it leaves any. */
  readonly isLeft?: (out: number, row: number) => boolean
}

/** A result that is dictionary-encoded. */
export interface CodedPlan {
  /** An INT: where the row's value is in the dictionary. */
  readonly codes: Expression
  readonly dictionary: readonly Value[]
}

/** Types whose vectors are entries of strings. */
export function isText({ name }: DataType): boolean {
  return name === 'VARCHAR' || name === 'STRING'
}

/** A vector of strings; constants are left to `eval`. */
export function isTextVector(argument: Expression | undefined): argument is Expression {
  return argument !== undefined && isText(argument.type) && argument.kind !== 'constant'
}

/** The bytes of a constant string in shared memory. */
export function constantBytes(text: string, { memory, allocate }: ColumnContext): { address: number; bytes: number } {
  const bytes = Buffer.from(text)
  const address = allocate(bytes.length + 8)
  memory.u8.set(bytes, address)
  return { address, bytes: bytes.length }
}
