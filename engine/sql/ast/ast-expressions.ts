// Syntax tree of expressions: operands, operators, calls, windows. Import these types from ast.ts, which states the
// invariants.

import type { Name, Query, TypeName } from './ast.js'

export type UnaryOperator = '-' | '+' | '~' | 'not'
export type ComparisonOperator = '=' | '<>' | '<' | '<=' | '>' | '>='
export type BinaryOperator =
  | ComparisonOperator
  | '+'
  | '-'
  | '*'
  | '/'
  | '%'
  | '||'
  | '&'
  | '|'
  | '^'
  | '<<'
  | '>>'
  | '<<='
  | '>>='
  | '~'
  | '!~'
  | 'like'
  | 'ilike'
  | 'not like'
  | 'not ilike'
  | 'within'
  | 'not within'
  | 'and'
  | 'or'

export type Expression =
  | ColumnName
  | Star
  | Literal
  | Parameter
  | Variable
  | UnaryExpression
  | BinaryExpression
  | InExpression
  | BetweenExpression
  | IsNullExpression
  | QuantifiedExpression
  | CaseExpression
  | CastExpression
  | Call
  | ArrayLiteral
  | Subscript
  | FieldAccess
  | ExpressionList
  | SubQuery
  | Exists

/** `price`, `t.price`, `public.t.price`: the last element of `path` is the column. */
export interface ColumnName {
  readonly kind: 'column'
  readonly position: number
  readonly path: readonly string[]
  /** Part of the name was quoted, so it is no keyword-like constant such as `now` or a date unit. */
  readonly quoted: boolean
}

/** `*` or `t.*`; only as a select item and in `count(*)`. */
export interface Star {
  readonly kind: 'star'
  readonly position: number
  readonly table: string | null
  /** `* exclude (a, b)`. */
  readonly exclude: readonly Name[]
}

/**
 * `text` is the spelling in the statement (`1_000L`), for words only if it has capitals. `digits` has no underscores,
 * suffix, sign or `0x`, and any length.
 */
export type Literal =
  /** `byDefault`: written as DEFAULT in a row of INSERT. */
  | { readonly kind: 'null'; readonly position: number; readonly text?: string; readonly byDefault?: true }
  | { readonly kind: 'boolean'; readonly position: number; readonly value: boolean; readonly text?: string }
  /** `long`: written with the suffix L. */
  | IntegerLiteral
  /** `value` is the nearest double, or NaN. `single`: the suffix f makes it a FLOAT. */
  | {
      readonly kind: 'float'
      readonly position: number
      readonly text: string
      readonly digits: string
      readonly value: number
      readonly single: boolean
    }
  /** `1.50m`: an exact DECIMAL. */
  | { readonly kind: 'decimal'; readonly position: number; readonly text: string; readonly digits: string }
  /** `0x1f`: a LONG256. */
  | { readonly kind: 'hex'; readonly position: number; readonly text: string; readonly digits: string }
  /** `1h`: only in variables for SAMPLE BY and TOLERANCE. (`1d` and `1m` are numbers, see intervalOfText.) */
  | { readonly kind: 'interval'; readonly position: number; readonly text: string }
  /** `word`: written without quotes, such as the field of EXTRACT. */
  | { readonly kind: 'string'; readonly position: number; readonly value: string; readonly word?: true }
  /** `#u33d8` (characters) or `##0101` (bits). `bits` is the precision: all of them, or 12 for `#u33d/12`. */
  | {
      readonly kind: 'geohash'
      readonly position: number
      /** As written. */
      readonly text: string
      /** Without `#` and `/12`. */
      readonly digits: string
      readonly binary: boolean
      readonly bits: number
    }

export interface IntegerLiteral {
  readonly kind: 'integer'
  readonly position: number
  readonly text: string
  readonly digits: string
  readonly long: boolean
}

/** `$1` has index 1; `?` are numbered from 1; `:name` has index 0 and a name. */
export interface Parameter {
  readonly kind: 'parameter'
  readonly position: number
  readonly index: number
  readonly name: string | null
}

/** `@x`, declared by DECLARE. The name excludes the `@`. */
interface Variable {
  readonly kind: 'variable'
  readonly position: number
  readonly name: string
}

export interface UnaryExpression {
  readonly kind: 'unary'
  readonly position: number
  readonly operator: UnaryOperator
  readonly operand: Expression
}

export interface BinaryExpression {
  readonly kind: 'binary'
  readonly position: number
  readonly operator: BinaryOperator
  readonly left: Expression
  readonly right: Expression
}

/** `a in (1, 2)`, `a in (select ..)`, or `ts in '2024-01;1d'` (one expression, and `bare` is set). */
export interface InExpression {
  readonly kind: 'in'
  readonly position: number
  readonly negated: boolean
  readonly operand: Expression
  readonly set: readonly Expression[] | Query
  /** Without parentheses: the set is one string, interval or variable. */
  readonly bare: boolean
}

export interface BetweenExpression {
  readonly kind: 'between'
  readonly position: number
  readonly negated: boolean
  readonly symmetric: boolean
  readonly operand: Expression
  readonly low: Expression
  readonly high: Expression
}

export interface IsNullExpression {
  readonly kind: 'is null'
  readonly position: number
  readonly negated: boolean
  readonly operand: Expression
}

/** `a = any(array)`, `a <> all(select ..)`. */
export interface QuantifiedExpression {
  readonly kind: 'quantified'
  readonly position: number
  readonly operator: BinaryOperator
  readonly quantifier: 'any' | 'all'
  readonly left: Expression
  readonly right: Expression
}

export interface CaseExpression {
  readonly kind: 'case'
  readonly position: number
  /** The `x` of `case x when 1 ..`; null for `case when x = 1 ..`. */
  readonly operand: Expression | null
  readonly branches: readonly { readonly when: Expression; readonly result: Expression }[]
  readonly otherwise: Expression | null
}

/** `a::int` and `cast(a as int)`. The position is that of `::` or `cast`. */
export interface CastExpression {
  readonly kind: 'cast'
  readonly position: number
  readonly operand: Expression
  readonly type: TypeName
}

/**
 * `sum(distinct a) ignore nulls over (..)`. The name keeps its case. `extract(hour from ts)` has a string as its first
 * argument.
 */
export interface Call {
  readonly kind: 'call'
  readonly position: number
  /** `pg_catalog.version()`: affects only the name of the result column. */
  readonly schema: string | null
  readonly name: string
  readonly args: readonly Expression[]
  /** `count(distinct a)`. */
  readonly distinct: boolean
  /** `string_agg(a, ',' order by b)`. */
  readonly orderBy: readonly OrderItem[]
  readonly filter: Expression | null
  readonly ignoreNulls: boolean
  readonly over: WindowSpecification | null
  /** `unnest(json columns (a int, b text))`: the members of the elements that become columns. */
  readonly jsonColumns?: readonly JsonColumn[]
  /** An aggregate of SAMPLE BY: what it is in a bucket without rows, whatever FILL says. */
  readonly fill?: 'prev' | 'linear'
}

export interface JsonColumn {
  readonly name: Name
  readonly type: TypeName
}

export interface ArrayLiteral {
  readonly kind: 'array'
  readonly position: number
  readonly elements: readonly Expression[]
}

/** `a[1]`, `a[1, 2:3]`, `a[2:]`: one index or slice for each dimension. */
export interface Subscript {
  readonly kind: 'subscript'
  readonly position: number
  readonly operand: Expression
  readonly indexes: readonly (Expression | Slice)[]
}

export interface Slice {
  readonly kind: 'slice'
  readonly position: number
  readonly low: Expression | null
  readonly high: Expression | null
}

/** `(f(x)).n`: a field of a composite value. The name is `*` for all fields. */
export interface FieldAccess {
  readonly kind: 'field'
  readonly position: number
  readonly operand: Expression
  readonly name: string
}

/** `(a, b)`: a row value. One element in parentheses is that element itself. */
interface ExpressionList {
  readonly kind: 'list'
  readonly position: number
  readonly elements: readonly Expression[]
}

/** A query used as a value. */
export interface SubQuery {
  readonly kind: 'subquery'
  readonly position: number
  readonly query: Query
}

export interface Exists {
  readonly kind: 'exists'
  readonly position: number
  readonly query: Query
}

export interface OrderItem {
  readonly position: number
  readonly expression: Expression
  readonly descending: boolean
  /** null: the default. */
  readonly nulls: 'first' | 'last' | null
}

// Window functions --------------------------------------------------------------------------------------------------

export interface WindowSpecification {
  readonly position: number
  /** Name of a WINDOW clause that this specification refers to (`over w`) or extends. */
  readonly base: Name | null
  readonly partitionBy: readonly Expression[]
  readonly orderBy: readonly OrderItem[]
  readonly frame: WindowFrame | null
  /** ANCHOR of a named window: its functions begin again where the value changes, as if it were a further key. */
  readonly anchor?: WindowAnchor
}

export interface WindowAnchor {
  readonly position: number
  /** For `anchor daily`, the start of the day as a call of timestamp_floor(). */
  readonly expression: Expression
}

export interface WindowFrame {
  readonly position: number
  readonly mode: 'rows' | 'range' | 'groups' | 'cumulative'
  readonly start: FrameBound
  readonly end: FrameBound
  readonly exclude: 'no others' | 'current row' | 'group' | 'ties' | null
}

/** For `10 minutes preceding`, `unit` is the unit of time; null for rows and plain numbers. */
export interface FrameBound {
  readonly kind: 'unbounded preceding' | 'preceding' | 'current row' | 'following' | 'unbounded following'
  readonly position: number
  readonly value: Expression | null
  readonly unit: TimeUnit | null
}

export type TimeUnit = 'n' | 'U' | 'T' | 's' | 'm' | 'h' | 'd' | 'w' | 'M' | 'y'

/**
 * `5m` (the count is an integer literal), `:n m` or `(expression) m`. Without a unit, the count is a DECLARE variable
 * that holds both.
 */
export interface Interval {
  readonly position: number
  readonly count: Expression
  readonly unit: TimeUnit | null
}
