// The bound plan of a query: plain data, made on the main thread, run by the query threads (structured clone carries it).
// Names are resolved, types are decided, parameters are constants (until it runs late ones where the plan is to be kept).
// Rules rewrite plans into plans; exec runs what is left.
//
// Every node lists its output columns; expressions address their input's columns by index.

import type { ForeignSource } from '../../parquet/foreign-file.js'
import type { DataType } from '../../types/column-types.js'
import type { Value } from '../../types/value.js'

export type Expression =
  | { readonly kind: 'column'; readonly index: number; readonly type: DataType; readonly position: number }
  | {
      readonly kind: 'constant'
      readonly value: Value
      readonly type: DataType
      readonly position: number
      /** Of a parameter that is described only: learns the type that is wanted of it. */
      readonly parameter?: ParameterSlot
      /** While a plan is made: `value` is not NULL, or is computed, and is known before it runs (sql/typing/late-values.ts). */
      readonly late?: 'given' | 'computed'
      /** While a plan is made: a NULL that was cast to a text, where the literal has no type. */
      readonly isText?: true
      /** Made of the time of the statement: the difference to it is a number, as to a time that is no constant. */
      readonly ofStatement?: true
    }
  /**
   * `name` is a function or operator of sql/functions: `+`, `=`, `and`, `case`, `cast` (to `type`), `in`, `like`, `abs`...
   * Arguments already have the types that the overload takes: the binder inserts casts.
   */
  | {
      readonly kind: 'call'
      readonly name: string
      readonly args: readonly Expression[]
      readonly type: DataType
      readonly position: number
    }
  /** Value of an uncorrelated sub-query, run once before the query (index into Query.subqueries). */
  | { readonly kind: 'subquery'; readonly index: number; readonly type: DataType; readonly position: number }
  /**
   * Members of a long list, all of the type, for `in_list`: as one piece, since a plan of hundreds of thousands of
   * expressions takes a second to make and to send.
   */
  | {
      readonly kind: 'constants'
      readonly values: readonly Value[]
      readonly type: DataType
      readonly position: number
    }

/** A bind parameter whose type nobody has said. */
export interface ParameterSlot {
  type: DataType | null
  /** A list of such values is wanted: the text of one, `{1,2}`. */
  isList?: boolean
  /** PostgreSQL's type where ours is that of several: the one that the client has said, or the one that is written. */
  oid?: number
}

export interface PlanColumn {
  readonly name: string
  readonly type: DataType
}

export interface AggregateCall {
  /** `sum`, `avg`, `count`, `first`, `ksum`, `count_distinct`, ... as sql/functions names it. */
  readonly name: string
  readonly args: readonly Expression[]
  readonly type: DataType
  readonly position: number
  /** While a query is bound: the order in which the rows must come. The plan's input has it. */
  readonly orderBy?: readonly AggregateOrder[]
}

export interface AggregateOrder {
  readonly expression: Expression
  /** Its index has no meaning yet. */
  readonly key: SortKey
}

/** Inclusive bounds on a designated timestamp, in the table's unit. */
export interface TimeRange {
  readonly lo: bigint
  readonly hi: bigint
}

/** Conditions on nothing but the timestamp, which was the column of that index when they were found. */
export interface LateRanges {
  readonly index: number
  readonly conditions: readonly Expression[]
}

export interface SortKey {
  readonly index: number
  readonly descending: boolean
  readonly nullsFirst: boolean
}

export type Fill =
  | { readonly kind: 'none' }
  | { readonly kind: 'null' }
  | { readonly kind: 'prev' }
  | { readonly kind: 'linear' }
  | { readonly kind: 'constant'; readonly value: Value }

/** Units of SAMPLE BY: n U T s m h d w M y (nanoseconds to years). */
export interface SampleInterval {
  readonly count: number
  readonly unit: 'n' | 'U' | 'T' | 's' | 'm' | 'h' | 'd' | 'w' | 'M' | 'y'
}

export type Plan =
  /** Rows of a table. `ranges` (sorted, disjoint) restrict the designated timestamp exactly; null = all of time. */
  | {
      readonly kind: 'scan'
      readonly columns: readonly PlanColumn[]
      /** Index into Query.tables. */
      readonly table: number
      /** Table column id of each output column. */
      readonly columnIds: readonly number[]
      readonly ranges: readonly TimeRange[] | null
      readonly filter: Expression | null
      /** Of a plan that is kept: conditions whose late values restrict `ranges` further. */
      readonly lateRanges?: LateRanges
      /** 'any': no operator above cares. Else timestamp order, ties in commit order ('descending' reverses both). */
      readonly order: 'any' | 'ascending' | 'descending'
    }
  /** Rows of Parquet files that other programs wrote, one file after the other. */
  | {
      readonly kind: 'foreign'
      readonly columns: readonly PlanColumn[]
      readonly files: readonly ForeignSource[]
      /** The column of the files that each output column is, as it was when the plan was made. */
      readonly wanted: readonly { readonly index: number; readonly name: string; readonly type: DataType }[]
      /** As the footers say. */
      readonly rows: number
    }
  | { readonly kind: 'values'; readonly columns: readonly PlanColumn[]; readonly rows: readonly (readonly Value[])[] }
  /** Numbers from 1 to count. */
  | {
      readonly kind: 'sequence'
      readonly columns: readonly PlanColumn[]
      readonly count: bigint
      readonly seed: readonly [bigint, bigint] | null
    }
  | {
      readonly kind: 'filter'
      readonly columns: readonly PlanColumn[]
      readonly input: Plan
      readonly predicate: Expression
    }
  | {
      readonly kind: 'project'
      readonly columns: readonly PlanColumn[]
      readonly input: Plan
      readonly expressions: readonly Expression[]
    }
  /** Output: the keys, then the aggregates. Without keys exactly one row. Groups come in order of first appearance. */
  | {
      readonly kind: 'aggregate'
      readonly columns: readonly PlanColumn[]
      readonly input: Plan
      readonly keys: readonly Expression[]
      readonly aggregates: readonly AggregateCall[]
      /** The groups must come in the order of their first rows' time. */
      readonly ordered?: true
    }
  /** Output: the bucket's timestamp, the keys, then the aggregates; buckets ascending. The input comes ascending. */
  | {
      readonly kind: 'sample'
      readonly columns: readonly PlanColumn[]
      readonly input: Plan
      /** Column of the input that holds the timestamp. */
      readonly timestampIndex: number
      readonly interval: SampleInterval
      /** Calendar alignment in a zone (IANA name or offset; null = UTC) shifted by an offset, or from the first row. */
      readonly align:
        | { readonly kind: 'calendar'; readonly zone: string | null; readonly offsetMicros: bigint }
        | { readonly kind: 'first' }
      readonly from: bigint | null
      readonly to: bigint | null
      readonly keys: readonly Expression[]
      readonly aggregates: readonly AggregateCall[]
      /** One per aggregate. */
      readonly fills: readonly Fill[]
    }
  /** The newest row per key; rows come in timestamp order. */
  | {
      readonly kind: 'latest'
      readonly columns: readonly PlanColumn[]
      readonly input: Plan
      readonly timestampIndex: number
      readonly keys: readonly number[]
    }
  /**
   * Stable. `limit`: only that many first rows are wanted (a top-N). `implied`: nobody has asked for it, it is how rows
   * of a table come.
   */
  | {
      readonly kind: 'sort'
      readonly columns: readonly PlanColumn[]
      readonly input: Plan
      readonly keys: readonly SortKey[]
      readonly limit: number | null
      readonly implied?: true
    }
  /** Rows lo (inclusive) to hi (exclusive); negative numbers count from the end; hi null = to the end. */
  | {
      readonly kind: 'limit'
      readonly columns: readonly PlanColumn[]
      readonly input: Plan
      readonly lo: number
      readonly hi: number | null
    }
  /** Each row `count` (an INT) times. Output: the input's columns, then the number of the copy, from 1 on. */
  | {
      readonly kind: 'expand'
      readonly columns: readonly PlanColumn[]
      readonly input: Plan
      readonly count: Expression
    }
  | { readonly kind: 'distinct'; readonly columns: readonly PlanColumn[]; readonly input: Plan }
  | {
      readonly kind: 'set'
      readonly columns: readonly PlanColumn[]
      readonly operation: 'union' | 'except' | 'intersect'
      readonly all: boolean
      readonly left: Plan
      readonly right: Plan
    }
  /**
   * WITH RECURSIVE: the rows of `left`, then those of `right` over the rows that the round before has given, until a round
   * gives none. Without `all` rows that were there before do not count.
   */
  | {
      readonly kind: 'recursive'
      readonly columns: readonly PlanColumn[]
      /** What leaves of the right side name; one number for each use of a name in the statement. */
      readonly id: number
      readonly all: boolean
      readonly left: Plan
      readonly right: Plan
      /** Of the name, for errors. */
      readonly position: number
    }
  /** Rows of the round before. */
  | { readonly kind: 'working'; readonly columns: readonly PlanColumn[]; readonly id: number }
  /** Output: the left's columns, then the right's. Keys are pairs of input column indexes compared for equality. */
  | {
      readonly kind: 'join'
      readonly columns: readonly PlanColumn[]
      readonly join: 'inner' | 'left' | 'right' | 'full' | 'cross' | 'asof' | 'lt' | 'splice'
      readonly left: Plan
      readonly right: Plan
      readonly leftKeys: readonly number[]
      readonly rightKeys: readonly number[]
      /** Over the joined columns; null = none. */
      readonly residual: Expression | null
      /** ASOF, LT, SPLICE: the timestamp columns, and the largest distance (null = any). */
      readonly leftTimestamp: number
      readonly rightTimestamp: number
      readonly tolerance: bigint | null
    }
  /** Output: the input's columns, then one per call. */
  | {
      readonly kind: 'window'
      readonly columns: readonly PlanColumn[]
      readonly input: Plan
      readonly calls: readonly WindowCall[]
    }

interface WindowOrderItem {
  readonly expression: Expression
  readonly descending: boolean
  readonly nullsFirst: boolean
}

export interface WindowCall {
  readonly name: string
  readonly args: readonly Expression[]
  readonly type: DataType
  readonly partitionBy: readonly Expression[]
  readonly orderBy: readonly WindowOrderItem[]
  readonly frame: WindowFrame
  readonly ignoreNulls: boolean
  readonly position: number
}

/** Bounds are offsets: negative = preceding, 0 = current row, null = unbounded on that side. */
export interface WindowFrame {
  readonly unit: 'rows' | 'range' | 'groups'
  readonly lo: bigint | null
  readonly hi: bigint | null
  readonly exclude: 'none' | 'current' | 'group' | 'ties'
}

/** A query within an expression: its value, all its values, or whether it has rows. */
export interface Subquery {
  readonly plan: Plan
  readonly mode: 'scalar' | 'list' | 'exists'
  readonly position: number
}

/** A whole query, ready to run. */
export interface Query {
  readonly plan: Plan
  /** Table ids whose snapshots the query needs, in the order that scans name them. */
  readonly tables: readonly number[]
  readonly subqueries: readonly Subquery[]
  /** Index of the result's designated timestamp column, -1 without one. */
  readonly timestampIndex: number
}
