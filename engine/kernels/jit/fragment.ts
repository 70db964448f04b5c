// What generated kernels are made from: the shape of a query fragment, in the terms of bound expressions.
//
// Expressions address `columns` by index. Two things differ from the plan's: a constant of type SYMBOL is the number of
// its dictionary entry (-1 = NULL), because kernels see ids only; and a `lookup` stands for a condition on one symbol
// column that the caller has evaluated for every dictionary entry, into bytes 0 or 1 by id + 1.

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
  /** `table` is the caller's own number for the table of answers; see Block.setLookup. */
  | { readonly kind: 'lookup'; readonly column: number; readonly table: number; readonly type: DataType }

/**
 * count (arg null: of rows), sum, avg, min, max; first, last (arg null), first_not_null and last_not_null give row
 * numbers. NULLs count as sql/functions/aggregates/aggregates.ts has it.
 */
export interface FragmentAggregate {
  readonly name: string
  readonly arg: FragmentExpression | null
}

/**
 * One part of a group's number; a group's number is part0 + count0 * (part1 + count1 * ...), with the counts given at
 * every run. A part that is not below its count leaves the row out.
 *
 *   integer   of SYMBOL, INT, SHORT, BYTE: 0 for NULL, else value - origin + 1 (SYMBOL: id + 1); BOOLEAN: 0 or 1
 *   bucket    of times: floor((value - origin) / step), NULL belongs to none
 */
export type GroupKey =
  | { readonly kind: 'integer'; readonly expression: FragmentExpression; readonly origin: number }
  | { readonly kind: 'bucket'; readonly expression: FragmentExpression; readonly origin: bigint; readonly step: bigint }

export interface AggregateShape {
  readonly columns: readonly DataType[]
  /** BOOLEAN; null = every row. */
  readonly predicate: FragmentExpression | null
  readonly aggregates: readonly FragmentAggregate[]
  /** Empty: one group. */
  readonly keys: readonly GroupKey[]
}

/** Rows for which a condition holds. */
export interface SelectShape {
  readonly columns: readonly DataType[]
  readonly predicate: FragmentExpression
  /** `rows`: ascending row numbers, u32. `mask`: a byte a row, 0 or 255. */
  readonly output: 'rows' | 'mask'
}

/** Columns of results, in the layout of their types. */
export interface ProjectShape {
  readonly columns: readonly DataType[]
  readonly expressions: readonly FragmentExpression[]
}

/** Thrown while a fragment is lowered, caught at the door: the caller gets null and goes another way. */
export class Unsupported extends Error {}

export function unsupported(what: string): never {
  throw new Unsupported(what)
}
