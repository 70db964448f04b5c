// The marks of a live view with frames of ROWS (live-grid.ts). A refresh stores its rows in chunks of time, each
// computed from 4 million rows of the base or more. After each chunk it finds the last rows of each PARTITION BY group,
// as many as a frame has: later rows of the view depend on no rows of the base before the oldest of these.

import { internalSession, type Session } from '../api/session.js'
import type { StopSignal } from '../api/statements.js'
import type { TimeRange } from '../sql/plan/plan.js'
import type { LiveSchema } from '../storage/schema/materialized.js'
import type { TableVersion } from '../storage/schema/schema.js'
import { quoteIdent } from '../types/identifier.js'
import { allOfTime, intersect } from '../types/interval.js'
import { formatTimestamp } from '../types/timestamp.js'
import type { Value } from '../types/value.js'
import type { SeenView } from './view-ranges.js'

export interface MarkOperations {
  /** The rows of a query. */
  readonly rows: (sql: string, session: Session, signal: StopSignal | null) => Promise<readonly (readonly Value[])[]>
}

/** Rows of the base in a chunk, at least. */
const chunkRows = 4_000_000

/** The ranges up to the newest row, or to the end of the first chunk. */
export function storable(ranges: readonly TimeRange[], { parts }: TableVersion, isWhole: boolean): TimeRange[] {
  const [first] = ranges
  const sorted = [...parts].sort((x, y) => (x.maxTs < y.maxTs ? -1 : 1))
  let [rows, end] = [0, allOfTime.lo]
  for (const { maxTs, rows: more } of sorted) {
    if (first === undefined || maxTs < first.lo) continue
    if (rows >= chunkRows && !isWhole && maxTs > end) break
    rows += more
    end = maxTs
  }
  return end === allOfTime.lo ? [] : intersect(ranges, [{ lo: allOfTime.lo, hi: end }])
}

/** Marks after each of the ranges, which are stored now. */
export async function newMarks(
  operations: MarkOperations,
  signal: StopSignal | null,
  seen: SeenView,
  ranges: readonly TimeRange[],
  known: readonly { readonly at: bigint }[],
): Promise<{ at: bigint; from: bigint }[]> {
  const { live } = seen.view.version.schema.materialized ?? {}
  const marks: { at: bigint; from: bigint }[] = []
  for (const { lo, hi } of ranges) {
    if (live === undefined || hi >= allOfTime.hi || known.some(({ at }) => at === hi + 1n)) continue
    const from = seen.grid.live?.input({ lo, hi }).lo ?? allOfTime.lo
    const found = await oldestNeeded(operations, signal, seen, live, { lo: from, hi })
    marks.push({ at: hi + 1n, from: found ?? from })
  }
  return marks
}

/** The oldest timestamp among the last rows of each partition in the range; null without rows. */
async function oldestNeeded(
  operations: MarkOperations,
  signal: StopSignal | null,
  seen: SeenView,
  live: LiveSchema,
  range: TimeRange,
): Promise<bigint | null> {
  const bottom = timeOf(seen)
  if (bottom === undefined) return range.lo
  const { name, unit } = bottom
  const ts = quoteIdent(name)
  const text = (value: bigint): string => `'${formatTimestamp(value, unit)}'`
  const lo = live.start !== null && BigInt(live.start) > range.lo ? BigInt(live.start) : range.lo
  const bounds = [
    ...(lo <= allOfTime.lo ? [] : [`${ts} >= ${text(lo)}`]),
    ...(range.hi >= allOfTime.hi ? [] : [`${ts} <= ${text(range.hi)}`]),
  ]
  const where = bounds.length === 0 ? '' : ` where ${bounds.join(' and ')}`
  let oldest: bigint | null = null
  for (const keys of live.frames.keys) {
    const columns = keys.map(quoteIdent).join(', ')
    const selected = [...new Set([ts, ...keys.map(quoteIdent)])].join(', ')
    const numbered = `select ${ts} t, row_number() over (partition by ${columns} order by ${ts} desc) n from (select ${selected} ${live.source})${where}`
    const sql = `select min(t) from (${numbered}) where n <= ${live.frames.rows}`
    const session = { ...internalSession('system'), snapshot: seen.snapshot }
    const [[value] = []] = await operations.rows(sql, session, signal)
    if (typeof value === 'bigint' && (oldest === null || value < oldest)) oldest = value
  }
  return oldest
}

/** The designated timestamp of what the query reads. */
function timeOf({ inputs }: SeenView): { name: string; unit: 'TIMESTAMP' | 'TIMESTAMP_NS' } | undefined {
  const [first] = inputs.between
  const { columns, timestampId } = first ?? inputs.base.schema
  const column = columns.find(({ id }) => id === timestampId)
  if (column === undefined) return undefined
  return { name: column.name, unit: column.type.name === 'TIMESTAMP_NS' ? 'TIMESTAMP_NS' : 'TIMESTAMP' }
}
