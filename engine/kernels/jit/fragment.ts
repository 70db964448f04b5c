// The type of the code generator's input, a query fragment: filter, GROUP BY keys, aggregates and projections over the
// columns of one input, as expressions with resolved columns and types.
//
// Expressions address `columns` by index. They differ from those of the plan in two ways: a constant of type SYMBOL is
// a dictionary id (-1 = NULL), because kernels see only ids; and a `lookup` replaces a condition on one symbol column.
// The caller has evaluated this condition for every dictionary entry, and stored the result (0 or 1) in the byte at
// index id + 1.

import type { DataType } from '../../types/column-types.js'
import type { Value } from '../../types/value.js'

export type FragmentExpression =
  | { readonly kind: 'column'; readonly index: number; readonly type: DataType }
  | { readonly kind: 'constant'; readonly value: Value; readonly type: DataType }
  | {
      readonly kind: 'call'
      readonly name: string
      readonly args: readonly FragmentExpression[]
      readonly type: DataType
    }
  | { readonly kind: 'subquery'; readonly index: number; readonly type: DataType }
  /** `table` is the caller's number of the predicate lookup table; see Block.setLookup. */
  | { readonly kind: 'lookup'; readonly column: number; readonly table: number; readonly type: DataType }

/**
 * count (arg null: of rows), sum, avg, min, max; first, last (arg null), first_not_null and last_not_null return row
 * numbers. NULLs are treated as in sql/functions/aggregates/aggregates.ts.
 */
export interface FragmentAggregate {
  readonly name: string
  readonly arg: FragmentExpression | null
}

/**
 * One part of a group number, which is part0 + count0 * (part1 + count1 * ...). The counts are given for every run. A
 * row with a part outside of its count is skipped.
 *
 *   integer   of SYMBOL, INT, SHORT, BYTE: 0 for NULL, else value - origin + 1 (SYMBOL: id + 1); BOOLEAN: 0 or 1
 *   bucket    of timestamps: floor((value - origin) / step); NULL belongs to none
 */
export type GroupKey =
  | { readonly kind: 'integer'; readonly expression: FragmentExpression; readonly origin: number }
  | { readonly kind: 'bucket'; readonly expression: FragmentExpression; readonly origin: bigint; readonly step: bigint }

export interface AggregateShape {
  readonly columns: readonly DataType[]
  /** A BOOLEAN expression; null = every row. */
  readonly predicate: FragmentExpression | null
  readonly aggregates: readonly FragmentAggregate[]
  /** Empty: one group. */
  readonly keys: readonly GroupKey[]
}

/** Selects rows for which a condition holds. */
export interface SelectShape {
  readonly columns: readonly DataType[]
  readonly predicate: FragmentExpression
  /** `rows`: ascending row numbers, u32. `mask`: one byte a row, 0 or 255. */
  readonly output: 'rows' | 'mask'
}

/** Computes result columns, in memory layout. */
export interface ProjectShape {
  readonly columns: readonly DataType[]
  readonly expressions: readonly FragmentExpression[]
}

/**
 * Thrown while a fragment is lowered. jit.ts catches it and returns null, and the caller uses another implementation.
 */
export class Unsupported extends Error {}

export function unsupported(what: string): never {
  throw new Unsupported(what)
}
