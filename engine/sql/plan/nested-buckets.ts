// Decides whether each coarse time bucket consists of whole finer buckets, as a day consists of hours. If so, results
// by day can be computed from results by hour. In doubtful cases, such as some changes of the UTC offset, the answer is
// no.

import { intervalTicks, type SampleInterval } from '../../types/timestamp-floor.js'
import { timeZone } from '../../types/timestamp-zone.js'
import type { ViewBuckets } from './plan.js'

const hourMicros = 3_600_000_000n
const dayMicros = 24n * hourMicros
/** Monday, 1969-12-29: weeks are counted from it, other units from 1970. */
const firstMonday = -3n * dayMicros

/** Whether every boundary of the coarse buckets is one of the fine buckets, in their time zone. */
export function isNested(coarse: ViewBuckets, fine: ViewBuckets): boolean {
  const [outer, inner] = [zoneOf(coarse), zoneOf(fine)]
  if (outer !== inner) return false
  const isSame =
    coarse.interval.count === fine.interval.count &&
    coarse.interval.unit === fine.interval.unit &&
    coarse.offsetMicros === fine.offsetMicros
  if (isSame) return true
  // A bucket of a few hours may be cut or prolonged where the UTC offset changes.
  if (outer !== null && !isOfDays(coarse.interval)) return false
  if (outer !== null && !isOfDays(fine.interval) && !dividesHour(fine.interval)) return false
  return isNestedLocally(coarse, fine)
}

/** The same for fine buckets in UTC below coarse ones of a zone whose UTC offsets are multiples of the fine ones. */
export function isNestedInZone(coarse: ViewBuckets, fine: ViewBuckets): boolean {
  const size = intervalTicks(fine.interval, 'TIMESTAMP')
  const zone = zoneOf(coarse)
  if (zone === null || zoneOf(fine) !== null || size === null || !isOfDays(coarse.interval)) return false
  return dividesHour(fine.interval) && offsetsOf(zone) % size === 0n && isNestedLocally(coarse, fine)
}

function zoneOf({ zone }: ViewBuckets): string | null {
  return zone === null || zone.toUpperCase() === 'UTC' ? null : zone
}

function isOfDays({ unit }: SampleInterval): boolean {
  return unit === 'd' || unit === 'w' || unit === 'M' || unit === 'y'
}

function dividesHour(interval: SampleInterval): boolean {
  const size = intervalTicks(interval, 'TIMESTAMP')
  return size !== null && interval.unit !== 'n' && hourMicros % size === 0n
}

function isNestedLocally(coarse: ViewBuckets, fine: ViewBuckets): boolean {
  if (coarse.interval.unit === 'n' || fine.interval.unit === 'n') return false
  const [outer, inner] = [intervalTicks(coarse.interval, 'TIMESTAMP'), intervalTicks(fine.interval, 'TIMESTAMP')]
  const shift = coarse.offsetMicros - fine.offsetMicros
  // Months are counted from January, 1970.
  if (inner === null) return outer === null && shift === 0n && monthsOf(coarse.interval) % monthsOf(fine.interval) === 0
  if (outer === null) return dayMicros % inner === 0n && shift % inner === 0n
  return outer % inner === 0n && (originOf(coarse.interval) - originOf(fine.interval) + shift) % inner === 0n
}

function monthsOf({ count, unit }: SampleInterval): number {
  return unit === 'y' ? count * 12 : count
}

function originOf({ unit }: SampleInterval): bigint {
  return unit === 'w' ? firstMonday : 0n
}

const known = new Map<string, bigint>()
const fortnights = 70 * 26

/** The largest length of which all UTC offsets of the zone since 1970 are multiples. */
function offsetsOf(name: string): bigint {
  const before = known.get(name)
  if (before !== undefined) return before
  const zone = timeZone(name)
  let common = zone === null ? 1n : dayMicros
  for (let index = 0; zone !== null && index < fortnights; index++)
    common = divisor(common, zone.offsetAt(BigInt(index) * 14n * dayMicros))
  known.set(name, common)
  return common
}

function divisor(left: bigint, right: bigint): bigint {
  let [a, b] = [left, right < 0n ? -right : right]
  while (b !== 0n) [a, b] = [b, a % b]
  return a
}
