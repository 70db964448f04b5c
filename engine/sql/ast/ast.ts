// The syntax tree, which the parser returns and binding consumes: plain data, discriminated by `kind`. This file has
// names and queries, ast-expressions.ts has expressions, and the other files have statements. Import all of them from
// here.
//
// Invariants:
//   1. `position` is the offset in UTF-16 units of the node's main token in the parsed text: the operator of a binary
//      node, the name of a call, the first character of everything else.
//   2. Names keep their case and compare without it. Quotes are removed; `quoted` records them.
//   3. Operators, keywords and units have one spelling (`!=` and `<>` are both '<>', `like` is 'like').

import type {
  Call,
  Expression,
  FrameBound,
  Interval,
  OrderItem,
  TimeUnit,
  WindowSpecification,
} from './ast-expressions.js'
import type { Show } from './ast-maintenance.js'
import type { Statement } from './ast-statements.js'

export type * from './ast-constraints.js'
export type * from './ast-enumeration.js'
export type * from './ast-expressions.js'
export type * from './ast-insert.js'
export type * from './ast-live-view.js'
export type * from './ast-maintenance.js'
export type * from './ast-mat-view.js'
export type * from './ast-policy.js'
export type * from './ast-sequence.js'
export type * from './ast-statements.js'
export type * from './ast-users.js'

/** A name with its position: a column, an alias, an option. */
export interface Name {
  readonly position: number
  readonly name: string
  readonly quoted: boolean
}

/**
 * A table name. `schema` is a system schema or null. `public` (and a database before it) is dropped; any other schema
 * is part of `name`, and `own` is then the name without it, which qualifies columns.
 */
export interface TableName {
  readonly position: number
  readonly schema: string | null
  readonly name: string
  readonly own?: string
  readonly quoted: boolean
}

/** A type as it is written: `double`, `geohash` [8], `double precision` is `double`. */
export interface TypeName {
  readonly position: number
  /** In lower case; several words are joined (`timestamp with time zone` is `timestamptz`). */
  readonly name: string
  /** The name as written, for names of result columns. */
  readonly text: string
  /** `decimal(18,3)` has [18, 3]. */
  readonly parameters: readonly number[]
  /** Unit of a geohash's size, as in `geohash(4b)`: characters or bits. Null for other types. */
  readonly unit: 'c' | 'b' | null
  /** Number of `[]` after the name. */
  readonly dimensions: number
}

// Queries -----------------------------------------------------------------------------------------------------------

/**
 * `declare .. with .. body order by .. limit ..`. `position` is the start of its first token, `end` the end of its
 * last.
 */
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
  /** Position of `:=`. */
  readonly assignment: number
  /** `overridable @x := 5` in a view: queries of the view may declare another value. */
  readonly overridable: boolean
}

export interface CommonTable {
  readonly position: number
  readonly name: string
  /** The name in lower case. */
  readonly key: string
  readonly columns: readonly Name[]
  readonly query: Query
  /** `with recursive`: the query may refer to itself after UNION. */
  readonly recursive: boolean
}

export interface SetOperation {
  readonly kind: 'set operation'
  readonly position: number
  readonly operation: 'union' | 'except' | 'intersect'
  readonly all: boolean
  readonly left: QueryBody
  readonly right: QueryBody
}

/** A branch of a set operation that is in parentheses or has its own ORDER BY or LIMIT. */
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

/**
 * Also represents the short forms `trades limit 2` and `from trades`: their only item is `*`, and `implicit` is set.
 */
export interface Select {
  readonly kind: 'select'
  readonly position: number
  readonly implicit: boolean
  readonly distinct: boolean
  /** `distinct on (a, b)`. */
  readonly distinctOn: readonly Expression[]
  readonly items: readonly SelectItem[]
  /** null without FROM. */
  readonly from: TableSource | null
  readonly joins: readonly Join[]
  readonly where: Expression | null
  readonly latestOn: LatestOn | null
  readonly sampleBy: SampleBy | null
  readonly groupBy: readonly Expression[]
  /** Set for ROLLUP, CUBE and GROUPING SETS: each set lists indexes into groupBy. */
  readonly groupingSets?: readonly (readonly number[])[]
  /** GROUP BY ALL: by every item without an aggregate. */
  readonly groupAll?: boolean
  readonly having: Expression | null
  /** A condition on window functions. */
  readonly qualify?: Expression
  readonly windows: readonly { readonly name: Name; readonly window: WindowSpecification }[]
  readonly pivot: Pivot | null
  /** The hint view_stored or view_fresh: how materialized views are read. */
  readonly viewRead?: { readonly position: number; readonly read: 'stored' | 'fresh' }
}

export interface SelectItem {
  readonly position: number
  readonly expression: Expression
  readonly alias: Name | null
}

export type TableSource = NamedTable | TableFunction | QuerySource | VariableSource

interface SourceCommon {
  readonly position: number
  readonly alias: Name | null
  readonly columnAliases: readonly Name[]
  /** `t timestamp(ts)`: overrides the designated timestamp. */
  readonly timestamp: Name | null
}

interface NamedTable extends SourceCommon {
  readonly kind: 'table'
  readonly table: TableName
}

/** `long_sequence(10)`, `information_schema.tables()`. */
export interface TableFunction extends SourceCommon {
  readonly kind: 'table function'
  readonly schema: string | null
  readonly call: Call
  /** WITH ORDINALITY: adds a column with the row number. */
  readonly ordinality: boolean
}

export interface QuerySource extends SourceCommon {
  readonly kind: 'query source'
  readonly query: Query
  readonly lateral: boolean
}

/** `from @x`: a DECLARE variable that names a table or holds a sub-query. */
export interface VariableSource extends SourceCommon {
  readonly kind: 'variable source'
  readonly name: string
}

export type JoinKind = 'inner' | 'left' | 'right' | 'full' | 'cross' | 'asof' | 'lt' | 'splice' | 'window' | 'horizon'

/** Where ASOF and LT JOIN look for a row: in the past (backward), in the future, or in both. */
export type Direction = 'backward' | 'forward' | 'nearest'

/** Joins are left-associative, in the order of the text. A comma is a cross join. */
export interface Join {
  readonly position: number
  readonly kind: JoinKind
  readonly natural: boolean
  readonly source: TableSource
  readonly on: Expression | null
  /** `on (a, b)` and `using (a, b)`: columns of both sides with the same name. */
  readonly using: readonly Name[]
  /** USING and NATURAL merge such columns into one; ON keeps both. */
  readonly merges: boolean
  /** ASOF and LT: `tolerance 10s`. */
  readonly tolerance: Interval | null
  /** ASOF and LT: `direction nearest`. */
  readonly direction?: { readonly position: number; readonly towards: Direction }
  /** WINDOW JOIN: `range between 1 minute preceding and 1 minute following exclude prevailing`. */
  readonly window: WindowJoinRange | null
  readonly horizon: Horizon | null
}

/** HORIZON JOIN: `range from -1h to 1h step 30m as h`, or `list (0, 1m, 5m) as h`. */
export interface Horizon {
  readonly range: { readonly from: HorizonOffset; readonly to: HorizonOffset; readonly step: HorizonOffset } | null
  /** Empty with a range. */
  readonly list: readonly HorizonOffset[]
  readonly alias: Name
}

/** A zero offset has no unit. */
export interface HorizonOffset {
  readonly position: number
  readonly count: number
  readonly unit: TimeUnit | null
}

export interface WindowJoinRange {
  readonly position: number
  readonly start: FrameBound
  readonly end: FrameBound
  readonly prevailing: boolean
  /** Aggregates over the rows of a window, with their column names. The binder moves them here. */
  readonly aggregates: readonly { readonly name: string; readonly call: Call }[]
}

/** `latest on ts partition by a, b`. The old form `latest by a, b` has no timestamp. */
export interface LatestOn {
  readonly position: number
  readonly timestamp: Expression | null
  readonly partitionBy: readonly Expression[]
}

export interface SampleBy {
  readonly position: number
  readonly interval: Interval
  readonly from: Expression | null
  readonly to: Expression | null
  readonly fill: readonly FillItem[]
  readonly align: SampleAlign | null
  /** The column as which the statement names the designated timestamp: any other is an error. */
  readonly time?: Expression
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
  | { readonly kind: 'none' | 'null' | 'linear'; readonly position: number }
  /** `prev`, or `prev(column)`: the previous value of another column. */
  | { readonly kind: 'prev'; readonly position: number; readonly column: Name | null }
  | { readonly kind: 'value'; readonly position: number; readonly value: Expression }

/** `limit n`, `limit lo, hi`, `limit n offset m`, `offset m`. Negative numbers count from the end. */
export interface Limit {
  readonly position: number
  /** The only number, or the first of `lo, hi`; null if there is only OFFSET. */
  readonly low: Expression | null
  /** The second number of `lo, hi`. */
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
  readonly values: readonly SelectItem[] | Query | AnyValue
}

/** `in (any order by x)`: all values of the expression in the pivoted rows. */
export interface AnyValue {
  readonly kind: 'any value'
  readonly position: number
  readonly orderBy: readonly OrderItem[]
}

/** A statement of a script, with the bounds of its text (without the `;`). */
export interface ScriptStatement {
  readonly start: number
  readonly end: number
  readonly statement: Statement
}
