// What the parser makes of a statement: plain data, discriminated by `kind`, no classes. Expressions and queries are
// here, the other statements in ast-statements.ts; both are to be imported from here.
//
// Invariants:
//   1. `position` is the offset in characters (UTF-16 units) of the node's main token in the text given to the parser:
//      the operator of a binary node, the name of a call, the first character of everything else.
//   2. Names keep the letters of the text; they compare without case. Quotes are gone, `quoted` remembers them.
//   3. Operators, keywords and units have one spelling (`!=` and `<>` are both '<>', `like` is 'like').

import type { Show, Statement } from './ast-statements.js'

export type * from './ast-statements.js'

/** A word of the text with its place: a column, an alias, an option. */
export interface Name {
  readonly position: number
  readonly name: string
  readonly quoted: boolean
}

/** A table, perhaps with a schema; `public` (and a database before the schema) is dropped: schema is null then. */
export interface TableName {
  readonly position: number
  readonly schema: string | null
  readonly name: string
  readonly quoted: boolean
}

/** A type as it is written: `double`, `geohash` [8], `double precision` is `double`. */
export interface TypeName {
  readonly position: number
  /** Lower case; several words are joined (`timestamp with time zone` is `timestamptz`); `geohash(4b)` has its unit in `unit`. */
  readonly name: string
  /** `decimal(18,3)` gives [18, 3]. */
  readonly parameters: readonly number[]
  /** Of a geohash: c(haracters) or b(its); else null. */
  readonly unit: 'c' | 'b' | null
  /** Number of `[]` behind the name. */
  readonly dimensions: number
}

// Expressions -------------------------------------------------------------------------------------------------------

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

/** `price`, `t.price`, `public.t.price`: the last word of `path` is the column. */
export interface ColumnName {
  readonly kind: 'column'
  readonly position: number
  readonly path: readonly string[]
  /** One of the words was quoted: the name is no constant such as `now` or a date unit. */
  readonly quoted: boolean
}

/** `*` or `t.*` (only as a select item and in `count(*)`). */
export interface Star {
  readonly kind: 'star'
  readonly position: number
  readonly table: string | null
  /** `* exclude (a, b)`. */
  readonly exclude: readonly Name[]
}

/** `text` is as written (`1_000L`); `digits` is without underscores, suffix and `0x`, any length, no sign. */
export type Literal =
  | { readonly kind: 'null'; readonly position: number }
  | { readonly kind: 'boolean'; readonly position: number; readonly value: boolean }
  /** `long`: written with L. */
  | IntegerLiteral
  /** `value` is the nearest double. `single`: suffix f, a FLOAT. Also NaN. */
  | {
      readonly kind: 'float'
      readonly position: number
      readonly text: string
      readonly digits: string
      readonly value: number
      readonly single: boolean
    }
  /** `1.50m`: exact. */
  | { readonly kind: 'decimal'; readonly position: number; readonly text: string; readonly digits: string }
  /** `0x1f`: a LONG256. */
  | { readonly kind: 'hex'; readonly position: number; readonly text: string; readonly digits: string }
  /** `1h`: only where SAMPLE BY or TOLERANCE take a variable. (`1d` and `1m` are numbers: see intervalOfText.) */
  | { readonly kind: 'interval'; readonly position: number; readonly text: string }
  | { readonly kind: 'string'; readonly position: number; readonly value: string }
  /** `#u33d8` (characters) or `##0101` (bits); `#u33d/12` cuts to 12 bits: `bits` is then 12, else the full size. */
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

/** `$1` has index 1, `?` counts from 1; `:name` has index 0 and a name. */
export interface Parameter {
  readonly kind: 'parameter'
  readonly position: number
  readonly index: number
  readonly name: string | null
}

/** `@x` of DECLARE; the name has no `@`. */
export interface Variable {
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

/** `a in (1, 2)`, `a in (select ..)`, `ts in '2024-01;1d'` (then the set is one expression and `bare`). */
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
  /** `case x when 1 ..`; null for `case when x = 1 ..`. */
  readonly operand: Expression | null
  readonly branches: readonly { readonly when: Expression; readonly result: Expression }[]
  readonly otherwise: Expression | null
}

/** `a::int` and `cast(a as int)`; position of `::` or of `cast`. */
export interface CastExpression {
  readonly kind: 'cast'
  readonly position: number
  readonly operand: Expression
  readonly type: TypeName
}

/** `sum(distinct a) ignore nulls over (..)`. The name keeps its letters; `extract(hour from ts)` has a string first. */
export interface Call {
  readonly kind: 'call'
  readonly position: number
  /** Without a schema: `pg_catalog.version()` is `version`. */
  readonly name: string
  readonly args: readonly Expression[]
  /** `count(distinct a)`. */
  readonly distinct: boolean
  /** `string_agg(a, ',' order by b)`. */
  readonly orderBy: readonly OrderItem[]
  readonly filter: Expression | null
  readonly ignoreNulls: boolean
  readonly over: WindowSpecification | null
}

export interface ArrayLiteral {
  readonly kind: 'array'
  readonly position: number
  readonly elements: readonly Expression[]
}

/** `a[1]`, `a[1, 2:3]`, `a[2:]`: one index or slice per dimension. */
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

/** `(f(x)).n`: a field of a composite value; the name is `*` for all. */
export interface FieldAccess {
  readonly kind: 'field'
  readonly position: number
  readonly operand: Expression
  readonly name: string
}

/** `(a, b)`: a row value; one element in parentheses is just the element. */
export interface ExpressionList {
  readonly kind: 'list'
  readonly position: number
  readonly elements: readonly Expression[]
}

/** A query as a value. */
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
  /** null: not said. */
  readonly nulls: 'first' | 'last' | null
}

// Window functions --------------------------------------------------------------------------------------------------

export interface WindowSpecification {
  readonly position: number
  /** Name of a WINDOW clause that this one extends or is (`over w`). */
  readonly base: Name | null
  readonly partitionBy: readonly Expression[]
  readonly orderBy: readonly OrderItem[]
  readonly frame: WindowFrame | null
}

export interface WindowFrame {
  readonly position: number
  readonly mode: 'rows' | 'range' | 'groups' | 'cumulative'
  readonly start: FrameBound
  readonly end: FrameBound
  readonly exclude: 'no others' | 'current row' | 'group' | 'ties' | null
}

/** `10 minutes preceding`: `unit` is the unit of time (null = rows or plain numbers). */
export interface FrameBound {
  readonly kind: 'unbounded preceding' | 'preceding' | 'current row' | 'following' | 'unbounded following'
  readonly position: number
  readonly value: Expression | null
  readonly unit: TimeUnit | null
}

export type TimeUnit = 'n' | 'U' | 'T' | 's' | 'm' | 'h' | 'd' | 'w' | 'M' | 'y'

/** `5m` (count is an integer literal), `:n m` or `(expression) m`. Without a unit the count is a variable of DECLARE that holds both. */
export interface Interval {
  readonly position: number
  readonly count: Expression
  readonly unit: TimeUnit | null
}

// Queries -----------------------------------------------------------------------------------------------------------

/** `declare .. with .. body order by .. limit ..`: position of its first token, end behind its last. */
export interface Query {
  readonly kind: 'query'
  readonly position: number
  readonly end: number
  readonly declarations: readonly Declaration[]
  readonly commonTables: readonly CommonTable[]
  readonly body: QueryBody
  readonly orderBy: readonly OrderItem[]
  readonly limit: Limit | null
}

/** SHOW is a body so that `(show columns from t) where ..` works. */
export type QueryBody = Select | SetOperation | Values | NestedQuery | Show

/** `@x := 5` */
export interface Declaration {
  readonly position: number
  readonly name: string
  readonly value: Expression
  /** `overridable @x := 5` in a view. */
  readonly overridable: boolean
}

export interface CommonTable {
  readonly position: number
  readonly name: string
  readonly columns: readonly Name[]
  readonly query: Query
}

export interface SetOperation {
  readonly kind: 'set operation'
  readonly position: number
  readonly operation: 'union' | 'except' | 'intersect'
  readonly all: boolean
  readonly left: QueryBody
  readonly right: QueryBody
}

/** A query in parentheses, or with its own ORDER BY or LIMIT, as a branch of a set operation. */
export interface NestedQuery {
  readonly kind: 'nested'
  readonly position: number
  readonly query: Query
}

export interface Values {
  readonly kind: 'values'
  readonly position: number
  readonly rows: readonly ValueRow[]
}

export interface ValueRow {
  readonly position: number
  readonly values: readonly Expression[]
}

/** Also the implicit forms: `trades limit 2` and `from trades` select the one item `*`, and `implicit` is set. */
export interface Select {
  readonly kind: 'select'
  readonly position: number
  readonly implicit: boolean
  readonly distinct: boolean
  /** `distinct on (a, b)`. */
  readonly distinctOn: readonly Expression[]
  readonly items: readonly SelectItem[]
  /** null: no FROM. */
  readonly from: TableSource | null
  readonly joins: readonly Join[]
  readonly where: Expression | null
  readonly latestOn: LatestOn | null
  readonly sampleBy: SampleBy | null
  readonly groupBy: readonly Expression[]
  readonly having: Expression | null
  readonly windows: readonly { readonly name: Name; readonly window: WindowSpecification }[]
  readonly pivot: Pivot | null
}

export interface SelectItem {
  readonly position: number
  readonly expression: Expression
  readonly alias: Name | null
}

export type TableSource = NamedTable | TableFunction | QuerySource

interface SourceCommon {
  readonly position: number
  readonly alias: Name | null
  readonly columnAliases: readonly Name[]
  /** `t timestamp(ts)`: another designated timestamp. */
  readonly timestamp: Name | null
}

export interface NamedTable extends SourceCommon {
  readonly kind: 'table'
  readonly table: TableName
}

/** `long_sequence(10)`, `information_schema.tables()`. */
export interface TableFunction extends SourceCommon {
  readonly kind: 'table function'
  readonly schema: string | null
  readonly call: Call
}

export interface QuerySource extends SourceCommon {
  readonly kind: 'query source'
  readonly query: Query
  readonly lateral: boolean
}

export type JoinKind = 'inner' | 'left' | 'right' | 'full' | 'cross' | 'asof' | 'lt' | 'splice' | 'window'

/** Joins bind to the left, in the order of the text. A comma is a cross join. */
export interface Join {
  readonly position: number
  readonly kind: JoinKind
  readonly natural: boolean
  readonly source: TableSource
  readonly on: Expression | null
  /** `on (a, b)` and `using (a, b)`: columns of both sides that have the same name. */
  readonly using: readonly Name[]
  /** ASOF and LT: `tolerance 10s`. */
  readonly tolerance: Interval | null
  /** WINDOW JOIN: `range between 1 minute preceding and 1 minute following exclude prevailing`. */
  readonly window: WindowJoinRange | null
}

export interface WindowJoinRange {
  readonly position: number
  readonly start: FrameBound
  readonly end: FrameBound
  readonly prevailing: boolean
}

/** `latest on ts partition by a, b`; the old `latest by a, b` has no timestamp. */
export interface LatestOn {
  readonly position: number
  readonly timestamp: Expression | null
  readonly partitionBy: readonly Expression[]
  /** The old form before WHERE takes the newest rows first and filters them then. */
  readonly beforeWhere: boolean
}

export interface SampleBy {
  readonly position: number
  readonly interval: Interval
  readonly from: Expression | null
  readonly to: Expression | null
  readonly fill: readonly FillItem[]
  readonly align: SampleAlign | null
}

export type SampleAlign =
  | { readonly kind: 'first observation'; readonly position: number }
  | {
      readonly kind: 'calendar'
      readonly position: number
      readonly timeZone: Expression | null
      readonly offset: Expression | null
    }

export type FillItem =
  | { readonly kind: 'none' | 'null' | 'prev' | 'linear'; readonly position: number }
  | { readonly kind: 'value'; readonly position: number; readonly value: Expression }

/** `limit n`, `limit lo, hi`, `limit n offset m`, `offset m`. A negative count is from the end. */
export interface Limit {
  readonly position: number
  /** The only number, or the first of `lo, hi`. null: only OFFSET was given. */
  readonly low: Expression | null
  /** The second of `lo, hi`. */
  readonly high: Expression | null
  readonly offset: Expression | null
}

/** `t pivot (sum(x) as s for side in ('buy' as b, 'sell') group by symbol)`. */
export interface Pivot {
  readonly position: number
  readonly aggregates: readonly SelectItem[]
  readonly columns: readonly PivotColumn[]
  readonly groupBy: readonly Expression[]
}

export interface PivotColumn {
  readonly position: number
  readonly expression: Expression
  readonly values: readonly SelectItem[] | Query
}

/** One statement of a script with its text's bounds (without the `;`). */
export interface ScriptStatement {
  readonly start: number
  readonly end: number
  readonly statement: Statement
}
