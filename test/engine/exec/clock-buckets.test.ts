// Goal: SAMPLE BY in a time zone with intervals shorter than a day gives the buckets of PostgreSQL's date_trunc(unit,
// timestamp, zone), also when the UTC offset changes: every timestamp is in exactly one bucket, an hour that occurs
// twice has two buckets, and the starts of successive buckets ascend. Method: timestamps before and after many changes
// of the offset from 1985 to 2015, in six time zones with unusual rules. The test computes the expected buckets from
// the offsets of JavaScript's Intl.

import { describe, expect, test } from 'vitest'
import { type BucketRange, createBuckets, type SamplePlan } from '../../../engine/exec/aggregate/buckets.js'
import type { SampleInterval } from '../../../engine/types/timestamp-floor.js'
import { timeZone } from '../../../engine/types/timestamp-zone.js'

const second = 1_000_000n
const minute = 60n * second
const hour = 60n * minute
const zones = [
  'Europe/Berlin',
  'America/St_Johns',
  'Asia/Gaza',
  'Australia/Lord_Howe',
  'America/Sao_Paulo',
  'America/Havana',
]

function bucketsOf(zone: string, interval: SampleInterval) {
  const align = { kind: 'calendar', zone, offsetMicros: 0n } as const
  return createBuckets({ align, interval, from: null } as SamplePlan, 'TIMESTAMP')
}

/** By an implementation of its own: the offset in seconds, from the parts of local time. */
function offsetSeconds(zone: string): (ts: bigint) => number {
  const format = new Intl.DateTimeFormat('en-US', {
    ...{ timeZone: zone, hourCycle: 'h23', year: 'numeric', month: '2-digit', day: '2-digit' },
    ...{ hour: '2-digit', minute: '2-digit', second: '2-digit' },
  })
  return (ts) => {
    const millis = Number(ts / 1000n)
    const part = Object.fromEntries(format.formatToParts(millis).map(({ type, value }) => [type, Number(value)]))
    const local = Date.UTC(
      part['year'] ?? 0,
      (part['month'] ?? 1) - 1,
      part['day'],
      part['hour'],
      part['minute'],
      part['second'],
    )
    return local / 1000 - Math.floor(millis / 1000)
  }
}

/** Instants of 1985 to 2015 at which the offset changes; two of five in turn, of either direction. */
function changesOf(offset: (ts: bigint) => number): bigint[] {
  const changes: bigint[] = []
  const end = BigInt(Date.UTC(2015, 0)) * 1000n
  for (let at = BigInt(Date.UTC(1985, 0)) * 1000n; at < end; at += 240n * hour) {
    let [low, high] = [at, at + 240n * hour]
    if (offset(low) === offset(high)) continue
    while (high - low > second) {
      const middle = low + ((high - low) / 2n / second) * second
      if (offset(middle) === offset(low)) low = middle
      else high = middle
    }
    changes.push(high)
  }
  return changes.filter((_change, index) => index % 5 < 2)
}

describe.each(zones)('%s', (zone) => {
  const offset = offsetSeconds(zone)
  const changes = changesOf(offset)

  test('has changes to look at', () => expect(changes.length).toBeGreaterThan(8))

  test.each([
    { count: 1, unit: 'h', ticks: hour },
    { count: 15, unit: 'm', ticks: 15n * minute },
    { count: 1, unit: 'm', ticks: minute },
  ] as const)('$count$unit is what date_trunc gives', ({ count, unit, ticks }) => {
    const buckets = bucketsOf(zone, { count, unit })
    for (const change of changes) {
      for (let ts = change - 2n * hour; ts < change + 2n * hour; ts += 37n * second) {
        const shift = BigInt(offset(ts)) * second
        const local = ts + shift
        expect(buckets.of(ts).start).toBe(local - (local % ticks) - shift)
      }
    }
  })

  test.each([
    [1, 'h'],
    [45, 'm'],
    [2, 'h'],
    [5, 'h'],
    [6, 'h'],
    [12, 'h'],
  ] as const)('buckets of %d%s ascend and leave nothing out', (count, unit) => {
    const buckets = bucketsOf(zone, { count, unit })
    for (const change of changes.slice(0, 8)) {
      let last: BucketRange = buckets.of(change - 24n * hour)
      while (last.end < change + 24n * hour) {
        const next = buckets.next(last)
        expect(next.from).toBe(last.end)
        expect(next.start).toBeGreaterThan(last.start)
        expect(next.start).toBeLessThanOrEqual(next.from)
        expect(buckets.of(next.end - 1n)).toEqual(next)
        last = next
      }
    }
  })
})

test('offsets are exact to the second', () => {
  const zone = timeZone('America/St_Johns')
  const change = BigInt(Date.UTC(2006, 9, 29, 2, 31)) * 1000n
  expect(zone?.offsetAt(change - 1n)).toBe(-9000n * second)
  expect(zone?.offsetAt(change)).toBe(-12_600n * second)
  expect(zone?.offsetAt(change - second)).toBe(-9000n * second)
})
