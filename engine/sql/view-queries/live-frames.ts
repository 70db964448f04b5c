// Determines how far the window functions of a live view look back. A function is refused if it looks ahead. It is also
// refused if it looks back to the first row of its partition, because then one late row would change all later ones.
// Windows with ANCHOR may do so: they begin again at each boundary of a time bucket, because ANCHOR adds the bucket of
// the designated timestamp to the partition keys.

import { SqlError } from '../../base/errors.js'
import type { LiveFrames } from '../../storage/schema/materialized.js'
import { bucketsOfKey, isBucketCall } from '../plan/bucket-call.js'
import type { Plan, ViewBuckets, WindowCall } from '../plan/plan.js'

type Windows = Extract<Plan, { kind: 'window' }>

/** `time`: the designated timestamp, a column of the input. */
export function framesOf({ calls, input }: Windows, time: number): LiveFrames {
  let [ticks, rows] = [0n, 0]
  const keys = new Map<string, readonly string[]>()
  const anchors = new Map<string, LiveFrames['anchors'][number]>()
  for (const call of calls) {
    checkCall(call, time)
    const anchor = anchorOf(call, time)
    if (anchor !== undefined) {
      const stored = { ...anchor, offsetMicros: `${anchor.offsetMicros}` }
      anchors.set(JSON.stringify(stored), stored)
      continue
    }
    const reach = reachOf(call)
    if (reach.ticks > ticks) ticks = reach.ticks
    if (reach.rows === 0) continue
    rows = Math.max(rows, reach.rows)
    const names = keysOf(call, input)
    keys.set(JSON.stringify(names), names)
  }
  return { ticks: `${ticks}`, rows, keys: [...keys.values()], anchors: [...anchors.values()] }
}

const lookAhead: ReadonlySet<string> = new Set(['lead', 'percent_rank', 'cume_dist', 'ntile'])
const ranks: ReadonlySet<string> = new Set(['row_number', 'rank', 'dense_rank'])
const averages: ReadonlySet<string> = new Set(['moving_avg', 'moving_avg_time'])

function checkCall({ name, partitionBy, orderBy, frame, position }: WindowCall, time: number): void {
  if (lookAhead.has(name))
    throw new SqlError(`${name}() is not supported in live views: it depends on later rows`, position)
  if (partitionBy.length === 0) throw new SqlError('window functions of a live view require PARTITION BY', position)
  const [order, ...more] = orderBy
  const isOfTime = order?.expression.kind === 'column' && order.expression.index === time
  if (!isOfTime || order.descending || more.length > 0)
    throw new SqlError(
      'window functions of a live view require ORDER BY of the designated timestamp, ascending',
      order?.expression.position ?? position,
    )
  if (frame.unit === 'groups') throw new SqlError('frames of GROUPS are not supported in live views', position)
  if (frame.hi === null || frame.hi > 0)
    throw new SqlError('a frame of a live view cannot extend beyond the current row', position)
}

function anchorOf(call: WindowCall, time: number): ViewBuckets | undefined {
  for (const key of call.partitionBy) {
    if (!isBucketCall(key, time)) continue
    const buckets = bucketsOfKey(key)
    if (typeof buckets !== 'string') return buckets
    throw new SqlError(`the anchor must be a bucket of SAMPLE BY: ${buckets}`, key.position)
  }
  return undefined
}

const unanchored = 'live view unbounded window must have an ANCHOR clause'

/** How far a function without an anchor looks back, in time and in rows of its partition. */
function reachOf({ name, args, frame, ignoreNulls, position }: WindowCall): { ticks: bigint; rows: number } {
  if (ranks.has(name)) throw new SqlError(`${name}() of a live view must have an ANCHOR clause`, position)
  if (averages.has(name)) throw new SqlError(unanchored, position)
  if (name === 'lag') return { ticks: 0n, rows: offsetOf(args, ignoreNulls, position) }
  const { lo, hi, unit } = frame
  const hasCurrent = frame.exclude === 'none' || frame.exclude === 'ties'
  if (lo === null && name === 'last_value' && hi === 0n && hasCurrent && !ignoreNulls) return { ticks: 0n, rows: 0 }
  if (lo === null) throw new SqlError(unanchored, position)
  const back = BigInt(Math.max(0, Math.ceil(-Number(lo))))
  return unit === 'rows' ? { ticks: 0n, rows: Number(back) } : { ticks: typeof lo === 'bigint' ? -lo : back, rows: 0 }
}

function offsetOf([, offset]: WindowCall['args'], ignoreNulls: boolean, position: number): number {
  if (ignoreNulls) throw new SqlError('lag() IGNORE NULLS of a live view must have an ANCHOR clause', position)
  if (offset === undefined) return 1
  if (offset.kind === 'constant' && offset.value !== null) return Number(offset.value)
  throw new SqlError('the offset of lag() in a live view must be a constant', offset.position)
}

/** A refresh looks for the last rows of each partition, so the keys must be columns. */
function keysOf({ partitionBy }: WindowCall, { columns }: Plan): readonly string[] {
  return partitionBy.map((key) => {
    if (key.kind === 'column') return columns[key.index]?.name ?? ''
    throw new SqlError('a window of ROWS or lag() in a live view must be partitioned by columns', key.position)
  })
}
