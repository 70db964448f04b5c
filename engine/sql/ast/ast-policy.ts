// Syntax tree of the clauses TTL and STORAGE POLICY, which determine how long and in which form rows are kept, and of
// LAKE, which keeps a table as an Iceberg table, too. Import these types from ast.ts.

export interface TimeToLive {
  readonly position: number
  /** 0 = rows are kept for ever. */
  readonly count: number
  readonly unit: 'hour' | 'day' | 'week' | 'month' | 'year'
}

/** `TO REMOTE 7d`: what happens to a partition when it is so old. */
export interface PolicyStage {
  readonly position: number
  readonly kind: 'to parquet' | 'to remote' | 'drop local' | 'drop remote'
  readonly age: TimeToLive
}

export interface StoragePolicyClause {
  readonly position: number
  readonly stages: readonly PolicyStage[]
}

export interface LakeClause {
  readonly position: number
  readonly on: boolean
  /** FORMAT VERSION; null: it is not written. */
  readonly formatVersion: { readonly position: number; readonly number: 2 | 3 } | null
}

export type RetentionAction =
  | { readonly kind: 'set ttl'; readonly position: number; readonly ttl: TimeToLive }
  | { readonly kind: 'set policy'; readonly position: number; readonly policy: StoragePolicyClause }
  | { readonly kind: 'change policy'; readonly position: number; readonly change: 'enable' | 'disable' | 'drop' }
  | { readonly kind: 'set lake'; readonly position: number; readonly lake: LakeClause }
