// Syntax tree of CREATE, ALTER and REFRESH MATERIALIZED VIEW. Import these types from ast.ts.

import type { Name, Query, TableName } from './ast.js'
import type { TimeToLive } from './ast-policy.js'
import type { AlterTable, CreateTable } from './ast-statements.js'

export type MaterializedStatement = CreateMaterialized | AlterMaterialized | RefreshMaterialized

export interface CreateMaterialized {
  readonly kind: 'create materialized view'
  readonly position: number
  readonly ifNotExists: boolean
  readonly view: TableName
  /** WITH BASE. */
  readonly base: TableName | null
  readonly refresh: RefreshClause
  readonly query: Query
  readonly queryText: string
  readonly timestamp: Name | null
  readonly partitionBy: CreateTable['partitionBy']
  readonly ttl: TimeToLive | null
}

/** `10m`: a length of time. */
export interface TimeLength {
  readonly position: number
  readonly count: number
  readonly unit: 's' | 'm' | 'h' | 'd' | 'w' | 'M' | 'y'
}

interface Text {
  readonly position: number
  readonly name: string
}

/** REFRESH IMMEDIATE, MANUAL or EVERY: when the view stores what has changed. */
export interface RefreshClause {
  readonly position: number
  readonly kind: 'immediate' | 'manual' | 'timer'
  readonly deferred: boolean
  /** Of EVERY. */
  readonly every: TimeLength | null
  readonly start: Text | null
  readonly timeZone: Text | null
  readonly period: PeriodClause | null
}

/** `length: null` for PERIOD (SAMPLE BY INTERVAL). */
export interface PeriodClause {
  readonly position: number
  readonly length: TimeLength | null
  readonly timeZone: Text | null
  readonly delay: TimeLength | null
}

export interface AlterMaterialized {
  readonly kind: 'alter materialized view'
  readonly position: number
  /** ALTER LIVE VIEW. */
  readonly live?: boolean
  readonly view: TableName
  readonly action:
    | { readonly kind: 'set refresh'; readonly refresh: RefreshClause }
    /** A count of 0 removes the limit. */
    | { readonly kind: 'set refresh limit'; readonly limit: TimeToLive }
    | { readonly kind: 'table action'; readonly action: AlterTable['actions'][number] }
}

export interface RefreshMaterialized {
  readonly kind: 'refresh materialized view'
  readonly position: number
  /** REFRESH LIVE VIEW. */
  readonly live?: boolean
  readonly view: TableName
  readonly mode: 'full' | 'incremental' | 'range'
  /** Of RANGE FROM .. TO. */
  readonly range: { readonly from: Text; readonly to: Text } | null
}
