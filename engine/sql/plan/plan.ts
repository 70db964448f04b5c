// Data types of the query plan, a tree of operators such as scan, join and sort. Binding makes it from the syntax tree:
// names are resolved, types are known, and parameters have become constants. The planner rules of this folder rewrite
// it; engine/exec runs it. A plan is plain data, because structured clone sends it from the main thread to query
// threads.
//
// Every node lists its output columns. Expressions refer to columns of their input by index.

import type { FindFiles, ForeignSource, TableColumn } from '../../parquet/foreign-file.js'
import type { ColumnCondition } from '../../types/bounds.js'
import type { DataType } from '../../types/column-types.js'
import type { SampleInterval } from '../../types/timestamp-floor.js'
import type { Value } from '../../types/value.js'
import type { RowIndex } from '../relations/row-index.js'

/** Id of the virtual column with which a scan says where its rows are stored: exec/scan/row-ids.ts. */
export const rowIdColumn = -3

export type Expression =
  | { readonly kind: 'column'; readonly index: number; readonly type: DataType; readonly position: number }
  | {
      readonly kind: 'constant'
      readonly value: Value
      readonly type: DataType
      readonly position: number
      /** Set for a parameter of a statement that is only described: binding stores the inferred type here. */
      readonly parameter?: ParameterSlot
      /**
       * Only while planning: a deferred constant. 'given': a parameter value, never NULL; 'computed': derived from such
       * values (sql/typing/deferred-values.ts).
       */
      readonly deferred?: 'given' | 'computed'
      /** Only while planning: the digits of a number literal whose type is DOUBLE, as written. */
      readonly digits?: string
      /** Only while planning: a NULL that was cast to a string type, unlike the untyped literal. */
      readonly isText?: true
      /**
       * Computed from the time of the statement: a difference to it is a number, as for a timestamp that is not
       * constant.
       */
      readonly ofStatement?: true
    }
  /**
   * A call of a function or operator of sql/functions: `+`, `=`, `and`, `case`, `cast` (to `type`), `in`, `like`,
   * `abs`... The binder inserts casts, so arguments have the types of the overload.
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
   * Members of a long list for `in_list`, all of this type. One node instead of one expression each: hundreds of
   * thousands of expressions take a second to bind and send.
   */
  | {
      readonly kind: 'constants'
      readonly values: readonly Value[]
      readonly type: DataType
      readonly position: number
    }

/** A bind parameter without a declared type. */
export interface ParameterSlot {
  type: DataType | null
  /** A list of such values is expected, as a string `{1,2}`. */
  isList?: boolean
  /**
   * PostgreSQL's type, where several of its types share one of ours: the type that the client or the statement
   * declares.
   */
  oid?: number
}

export interface PlanColumn {
  readonly name: string
  readonly type: DataType
}

export interface AggregateCall {
  /** Name of the aggregate in sql/functions: `sum`, `avg`, `count`, `first`, `ksum`, `count_distinct`, ... */
  readonly name: string
  readonly args: readonly Expression[]
  readonly type: DataType
  readonly position: number
  /** Only while binding: the order in which the aggregate needs its rows. The finished plan's input has that order. */
  readonly orderBy?: readonly AggregateOrder[]
  /** Only while binding: its own FILL. */
  readonly fill?: 'prev' | 'linear'
}

export interface AggregateOrder {
  readonly expression: Expression
  /** The index of the key is not set yet. */
  readonly key: SortKey
}

/** Inclusive bounds on a designated timestamp, in the table's unit. */
export interface TimeRange {
  readonly lo: bigint
  readonly hi: bigint
}

/**
 * Conditions on the timestamp alone that contain deferred constants. `index` is the timestamp's column index when they
 * were extracted.
 */
export interface DeferredRanges {
  readonly index: number
  readonly conditions: readonly Expression[]
}

/**
 * A scan that reads one side of a materialized view: 'stored' rows of the view's table, or rows of its base from which
 * the other buckets are 'computed'. Or it reads what is stored 'alone', whatever has changed since. For a live view, the
 * rows of the base are an 'input' of window functions, whose result is restricted to the rows to be 'computed'. 'late' are
 * the rows of the base that sealed buckets lack, and the stored rows of these buckets.
 */
export interface ViewSide {
  readonly side: 'stored' | 'computed' | 'alone' | 'input' | 'late'
  /** Indexes into Query.tables. The base is the table below all views that the view reads. */
  readonly view: number
  readonly base: number
  /** The view's buckets, then those of the view that it reads, and so on. */
  readonly buckets: readonly ViewBuckets[]
  readonly live?: true
  /** Set if late rows are read, too: the index of the base in Query.tables of which only these rows are read. */
  readonly late?: number
  /**
   * Set if both sides together stand for the rows that the base has in these ranges: then sealed buckets, and those that
   * a range cuts, are computed, too.
   */
  readonly rows?: readonly TimeRange[]
  /** Buckets of which the view does not keep states of values (StoredBuckets.unkept) are computed, too. */
  readonly unkept?: true
}

export interface ViewBuckets {
  readonly interval: SampleInterval
  readonly zone: string | null
  readonly offsetMicros: bigint
}

export interface SortKey {
  readonly index: number
  readonly descending: boolean
  readonly nullsFirst: boolean
}

/** Timestamps of the rows of SAMPLE BY. Where local time is turned back, later rows may have earlier buckets. */
export interface SampleSpan {
  /** Of the first row. */
  readonly first: bigint
  /** Of a row in the earliest bucket. */
  readonly earliest: bigint
  /** Of a row in the latest bucket. */
  readonly latest: bigint
}

export type Fill =
  | { readonly kind: 'none' }
  | { readonly kind: 'null' }
  /** The previous value of the aggregate, or of the aggregate with the index `of`. */
  | { readonly kind: 'prev'; readonly of: number | null }
  | { readonly kind: 'linear' }
  | { readonly kind: 'constant'; readonly value: Value }
  /** In every bucket the result of the first bucket in which the group has rows. Not in SQL: for ranks of groups. */
  | { readonly kind: 'first' }

export type Plan =
  /**
   * Rows of a table. `ranges` (sorted, disjoint) restrict the designated timestamp exactly; null for no restriction.
   */
  | {
      readonly kind: 'scan'
      readonly columns: readonly PlanColumn[]
      /** Index into Query.tables. */
      readonly table: number
      /** Table column id of each output column. */
      readonly columnIds: readonly number[]
      readonly ranges: readonly TimeRange[] | null
      readonly filter: Expression | null
      /** In a cached plan: conditions with deferred constants that restrict `ranges` further. */
      readonly deferredRanges?: DeferredRanges
      /** Further restricted when the snapshot of the query is known (engine/views/view-sides.ts). */
      readonly viewSides?: readonly ViewSide[]
      /** 'any': order does not matter above. Else timestamp order, ties in commit order; 'descending' reverses both. */
      readonly order: 'any' | 'ascending' | 'descending'
    }
  /** Rows of external Parquet files, file by file. */
  | {
      readonly kind: 'foreign'
      readonly columns: readonly PlanColumn[]
      readonly files: readonly ForeignSource[]
      /** Finds the files, when the conditions on them are known; null: they are known (foreign-files.ts). */
      readonly find: FindFiles | null
      /** Integers are read as DECIMALs. */
      readonly exact: boolean
      /** The file column of each output column, as it was at planning; `field`: of an Iceberg table. */
      readonly wanted: readonly {
        readonly index: number
        readonly name: string
        readonly type: DataType
        readonly field?: TableColumn
      }[]
      /** Row groups without rows for one of these are skipped. A filter above has them, too. */
      readonly conditions: readonly ColumnCondition[]
      /** Row count according to the file footers. */
      readonly rows: number
    }
  | {
      readonly kind: 'values'
      readonly columns: readonly PlanColumn[]
      readonly rows: readonly (readonly Value[])[]
      /** Where the rows are kept with one. */
      readonly index?: RowIndex | undefined
    }
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
      /**
       * Of a live view: the predicate is an `in_ranges` of the timestamp, whose ranges are those of this side. They are
       * set when the snapshot of the query is known.
       */
      readonly viewSide?: ViewSide
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
      /** Groups must come in the timestamp order of their first rows. */
      readonly ordered?: true
    }
  /**
   * SAMPLE BY. Output: the bucket's timestamp, the keys, then the aggregates, with ascending buckets. The input must be
   * in ascending order.
   */
  | {
      readonly kind: 'sample'
      readonly columns: readonly PlanColumn[]
      readonly input: Plan
      /** Index of the input's timestamp column. */
      readonly timestampIndex: number
      readonly interval: SampleInterval
      /**
       * How buckets are aligned: to the calendar of a zone (IANA name or offset; null for UTC), shifted by an offset;
       * or to the first row.
       */
      readonly align:
        | { readonly kind: 'calendar'; readonly zone: string | null; readonly offsetMicros: bigint }
        | { readonly kind: 'first' }
      readonly from: bigint | null
      readonly to: bigint | null
      readonly keys: readonly Expression[]
      readonly aggregates: readonly AggregateCall[]
      /** One for each aggregate. */
      readonly fills: readonly Fill[]
      /** If the input is a part of the rows: the span of all rows. */
      readonly span?: SampleSpan | undefined
    }
  /** LATEST ON: the newest row of each key, in timestamp order. */
  | {
      readonly kind: 'latest'
      readonly columns: readonly PlanColumn[]
      readonly input: Plan
      readonly timestampIndex: number
      readonly keys: readonly number[]
    }
  /**
   * A stable sort. `limit`: only the first rows are needed (top-N). `implied`: not requested by the query, but the
   * order in which rows of a table are returned.
   */
  | {
      readonly kind: 'sort'
      readonly columns: readonly PlanColumn[]
      readonly input: Plan
      readonly keys: readonly SortKey[]
      readonly limit: number | null
      readonly implied?: true
    }
  /** LIMIT: rows lo (inclusive) to hi (exclusive). Negative numbers count from the end; a null hi means the end. */
  | {
      readonly kind: 'limit'
      readonly columns: readonly PlanColumn[]
      readonly input: Plan
      readonly lo: number
      readonly hi: number | null
    }
  /**
   * Row replication: repeats each row `count` times (an INT). Output: the input's columns, then the number of the copy,
   * from 1.
   */
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
   * WITH RECURSIVE: the rows of `left`, then those of `right` evaluated over the rows of the previous iteration, until
   * an iteration returns none. Unless `all`, rows that were returned before are dropped.
   */
  | {
      readonly kind: 'recursive'
      readonly columns: readonly PlanColumn[]
      /**
       * Identifies the working table that scans within the right side read; unique for each use of a WITH name in the
       * statement.
       */
      readonly id: number
      readonly all: boolean
      readonly left: Plan
      readonly right: Plan
      /** Position of the name, for errors. */
      readonly position: number
    }
  /**
   * Rows that the executor keeps: the working table of a recursive query, which has the rows of the previous iteration,
   * or, with negative ids, rows in a temporary file.
   */
  | { readonly kind: 'working'; readonly columns: readonly PlanColumn[]; readonly id: number }
  /** Output: the left columns, then the right ones. Keys are pairs of column indexes, compared for equality. */
  | {
      readonly kind: 'join'
      readonly columns: readonly PlanColumn[]
      readonly join: 'inner' | 'left' | 'right' | 'full' | 'cross' | 'asof' | 'lt' | 'splice'
      readonly left: Plan
      readonly right: Plan
      readonly leftKeys: readonly number[]
      readonly rightKeys: readonly number[]
      /** Condition over the joined columns; null for none. */
      readonly residual: Expression | null
      /** ASOF, LT, SPLICE: the timestamp columns, and the largest distance (null for any). */
      readonly leftTimestamp: number
      readonly rightTimestamp: number
      readonly tolerance: bigint | null
      /** ASOF, LT: where the right row lies; absent: in the past. */
      readonly direction?: 'forward' | 'nearest'
      /**
       * SPLICE over a part of the rows: columns follow that tell the place of each row in the result. These are the
       * time, the side (0 for the left one), and as many last columns of that side.
       */
      readonly placed?: number
    }
  /** Output: the input's columns, then one column for each call. */
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

/** Window frame. Bounds are offsets: negative for preceding, 0 for the current row, null for unbounded. */
export interface WindowFrame {
  readonly unit: 'rows' | 'range' | 'groups'
  readonly lo: bigint | number | null
  readonly hi: bigint | number | null
  readonly exclude: 'none' | 'current' | 'group' | 'ties'
}

/** A sub-query within an expression: used for its value, for all its values, or for whether it has rows. */
export interface Subquery {
  readonly plan: Plan
  readonly mode: 'scalar' | 'list' | 'exists'
  readonly position: number
}

/** A complete query, ready to execute. */
export interface Query {
  readonly plan: Plan
  /** Table ids whose snapshots the query needs, in the order of the scans' indexes. */
  readonly tables: readonly number[]
  readonly subqueries: readonly Subquery[]
  /** Index of the result's designated timestamp column; -1 without one. */
  readonly timestampIndex: number
}
