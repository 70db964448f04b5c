// Syntax tree of INSERT and MERGE, and of WITH that changes data. Import these types from ast.ts.

import type {
  Assignment,
  CommonTable,
  Declaration,
  Expression,
  Interval,
  Name,
  Query,
  TableName,
  TableSource,
  ValueRow,
} from './ast.js'
import type { Delete, Update } from './ast-statements.js'

export interface Insert {
  readonly kind: 'insert'
  readonly position: number
  readonly declarations: readonly Declaration[]
  readonly commonTables: readonly CommonTable[]
  readonly table: TableName
  readonly alias: Name | null
  /** Empty: all columns in their order. */
  readonly columns: readonly Name[]
  readonly source: InsertRows | Query
  /** `insert batch 1000 o3MaxLag 10s`. */
  readonly batch: Expression | null
  readonly o3MaxLag: Interval | null
  /** `insert atomic into`: the rows of a query form one transaction. */
  readonly atomic: boolean
  /** The ON CONFLICT clause; null without one. */
  readonly conflict: Conflict | null
  /** The RETURNING list as a query of the table; null without one. */
  readonly returning: Query | null
}

export interface InsertRows {
  readonly kind: 'rows'
  readonly position: number
  readonly rows: readonly ValueRow[]
  /** `default values`: no column is named. */
  readonly allDefault?: true
}

/** `on conflict (a, b) do update set c = excluded.c`, `on conflict on constraint t_pkey do nothing`. */
export interface Conflict {
  readonly position: number
  /** Empty if there is no list, or if a constraint is named. */
  readonly columns: readonly Name[]
  readonly constraint: Name | null
  /** Null: DO NOTHING. */
  readonly assignments: readonly Assignment[] | null
  /** The condition of DO UPDATE; null without one. */
  readonly where: Expression | null
}

/**
 * `merge into t using s on t.k = s.k when matched then update set v = s.v when not matched then insert values (..)`.
 */
export interface Merge {
  readonly kind: 'merge'
  readonly position: number
  readonly declarations: readonly Declaration[]
  readonly commonTables: readonly CommonTable[]
  readonly table: TableName
  readonly alias: Name | null
  readonly source: TableSource
  readonly on: Expression
  readonly clauses: readonly MergeClause[]
  /** The RETURNING list, as in INSERT. */
  readonly returning: Query | null
}

export interface MergeClause {
  readonly position: number
  readonly matched: boolean
  /** The condition after AND; null without one. */
  readonly condition: Expression | null
  readonly action: MergeAction
}

export type MergeAction =
  | { readonly kind: 'nothing' }
  | { readonly kind: 'delete' }
  | { readonly kind: 'update'; readonly assignments: readonly Assignment[] }
  /** Without columns: all in their order. `row` null: DEFAULT VALUES. */
  | { readonly kind: 'insert'; readonly columns: readonly Name[]; readonly row: ValueRow | null }

/** `with moved as (delete from a returning *) insert into b select * from moved`. */
export interface ChangesInWith {
  readonly kind: 'with changes'
  readonly position: number
  /** In their order: each can refer to the ones before it. */
  readonly tables: readonly (CommonTable | CommonChange)[]
  /** The statement after WITH. It has the declarations; the names of WITH are not among its own. */
  readonly statement: Query | CommonChange['statement']
}

/** A data change in WITH. Its name stands for the rows of its RETURNING. */
export interface CommonChange {
  readonly position: number
  readonly name: string
  /** The name in lower case. */
  readonly key: string
  readonly columns: readonly Name[]
  readonly statement: Insert | Merge | Update | Delete
}
