// Adds one statement to the counters behind the metrics: statements by kind, rows written, hits and misses of the query
// cache. All protocols that run SQL use it.

import type { StatementResult } from '../../engine/engine.js'
import type { GatewayCounters } from './metric.js'

export function countStatement(counters: GatewayCounters, result: StatementResult): void {
  if (result.kind === 'rows' && result.inserted !== undefined) {
    counters.queries.insert++
    counters.rowsWritten += result.inserted
  } else if (result.kind === 'rows' && result.changed !== undefined) countChange(counters, result.changed)
  else if (result.kind === 'rows') {
    counters.queries.select++
    if (result.cached) counters.queryCacheHits++
    else counters.queryCacheMisses++
  } else if (result.kind === 'done' && result.tag === 'INSERT') {
    counters.queries.insert++
    counters.rowsWritten += result.rows
  } else countChange(counters, result.kind === 'done' ? result.tag : '')
}

function countChange(counters: GatewayCounters, tag: string): void {
  if (tag === 'UPDATE') counters.queries.update++
  else counters.queries.other++
}
