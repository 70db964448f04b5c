// Produces the text of EXPLAIN: the plan with estimated rows, the partitions that each scan reads, and how each node is
// executed (for example by WebAssembly code generated for the query); with ANALYZE also the actual rows and the time,
// which includes that of the node's inputs.

import type { StopSignal } from '../api/statements.js'
import type { NodeProfile, ProfileMode } from '../exec/run/profile.js'
import type { TableStatistics } from '../sql/catalog.js'
import { Estimates } from '../sql/plan/estimate.js'
import type { Plan, Query } from '../sql/plan/plan.js'
import { printQuery } from '../sql/plan/print-plan.js'
import { plansOf } from '../sql/plan/walk-plan.js'
import type { Explained, PlannedStatement } from '../sql/statements/planned.js'
import type { RunningQuery } from '../threads/query-pool.js'
import { cancelAtAbort } from './plan-helpers.js'

export interface ExplainSources {
  readonly statistics: (tableId: number) => TableStatistics
  /** Starts the query without sending rows. */
  readonly run: (query: Query, profile: ProfileMode) => RunningQuery
  readonly signal: StopSignal | null
}

/** For requests that ask for the plan of a query without the keyword EXPLAIN. */
export function explainedOf({ query, acts, tableNames }: Extract<PlannedStatement, { kind: 'query' }>): Explained {
  return { query: acts?.query ?? query, tableNames, analyze: false, asJson: false, heading: [] }
}

export async function explainLines(explained: Explained, sources: ExplainSources): Promise<string[]> {
  const { query, heading, asJson } = explained
  const lines = query === null ? [...heading] : await queryLines(explained, query, sources)
  return asJson ? [JSON.stringify([{ Plan: lines }])] : lines
}

async function queryLines(
  { tableNames, analyze, heading }: Explained,
  query: Query,
  { statistics, run, signal }: ExplainSources,
): Promise<string[]> {
  const running = run(query, analyze ? 'run' : 'built')
  cancelAtAbort(signal, running)
  for await (const _ of running.blocks);
  const { profile = [], executeMs } = await running.summary
  const numbers = new Map(plansOf(query).map((plan, index) => [plan, index]))
  const profiles = new Map(profile.map((node) => [node.node, node]))
  const estimates = new Estimates((table) => statistics(query.tables[table] ?? -1))
  const details = (plan: Plan): string => nodeDetails(plan, estimates, profiles.get(numbers.get(plan) ?? -1), analyze)
  const words = printQuery(query, (table) => tableNames[table] ?? '', details)
  // Columns of the server's own begin with a character that users cannot write.
  const shown = words.map((line) => line.replaceAll('\0', ''))
  const lines = [...heading, ...shown.map((line) => (heading.length > 0 ? `    ${line}` : line))]
  if (analyze) lines.push(`Execution time: ${executeMs.toFixed(3)} ms`)
  return lines
}

function nodeDetails(plan: Plan, estimates: Estimates, profile: NodeProfile | undefined, analyze: boolean): string {
  const parts = [`rows: ~${estimates.rows(plan)}`]
  if (plan.kind === 'scan') {
    const { partitions, partitionsInAll } = estimates.scan(plan)
    parts.push(`partitions: ${partitions} of ${partitionsInAll}`)
  }
  if (profile !== undefined && profile.kernel !== '') parts.push(`kernel: ${profile.kernel}`)
  if (analyze && profile !== undefined) parts.push(`actual rows: ${profile.rows} time: ${profile.ms.toFixed(3)} ms`)
  if (analyze && profile === undefined) parts.push('executed by the node above')
  return ` (${parts.join(', ')})`
}
