// What /metrics shows: each source is a name, a type, a sentence and a function that reads plain numbers. Hot paths only
// ever add to numbers; nothing is collected until somebody asks.

export interface Metric {
  readonly name: string
  readonly type: 'counter' | 'gauge'
  readonly says: string
  readonly read: () => number | readonly LabelledValue[]
}

export interface LabelledValue {
  readonly labels: Readonly<Record<string, string>>
  readonly value: number
}

/** Counters that gateways share. */
export interface GatewayCounters {
  /** Statements by type: select, insert, update, other. */
  readonly queries: Record<'select' | 'insert' | 'update' | 'other', number>
  queryErrors: number
  queryCacheHits: number
  queryCacheMisses: number
  rowsWritten: number
  unhandledErrors: number
}

export function gatewayCounters(): GatewayCounters {
  return {
    queries: { select: 0, insert: 0, update: 0, other: 0 },
    queryErrors: 0,
    queryCacheHits: 0,
    queryCacheMisses: 0,
    rowsWritten: 0,
    unhandledErrors: 0,
  }
}
