// Maps a designated timestamp (value of the table's time column) to its partition, which is a time span in UTC, and
// gives a partition its name:
//
//   HOUR 2024-03-14T05   DAY 2024-03-14   WEEK 2024-W11 (ISO 8601, from Monday)   MONTH 2024-03   YEAR 2024
//   NONE, or no designated timestamp: default

import { assert } from '../../base/assert.js'
import { int64Max, int64Min } from '../../base/int64.js'
import type { PartitionUnit, TableSchema } from './schema.js'

export const partitionDefault = 'default'

export interface Partition {
  readonly name: string
  /** First timestamp of the partition, and the first one after it, in the table's unit, clipped to 64 bits. */
  readonly from: bigint
  readonly to: bigint
}

const everything: Partition = { name: partitionDefault, from: int64Min, to: int64Max }

/** Units of the designated timestamp per second: 10^6, or 10^9 for TIMESTAMP_NS. */
export function timestampsPerSecond(schema: TableSchema): bigint {
  const column = schema.columns[schema.timestampId]
  return column?.type.name === 'TIMESTAMP_NS' ? 1_000_000_000n : 1_000_000n
}

/** Returns the partition of a timestamp. Caches the last one, so ascending timestamps are cheap. */
export function partitionFinder(schema: TableSchema): (ts: bigint) => Partition {
  if (schema.partitionBy === 'NONE' || schema.timestampId < 0) return () => everything
  const perHour = timestampsPerSecond(schema) * 3600n
  const unit = schema.partitionBy
  let last = partitionOf(unit, 0n, perHour)
  return (ts) => {
    if (ts < last.from || ts >= last.to) last = partitionOf(unit, ts, perHour)
    return last
  }
}

export function partitionNamer(schema: TableSchema): (ts: bigint) => string {
  const find = partitionFinder(schema)
  return (ts) => find(ts).name
}

function partitionOf(unit: PartitionUnit, ts: bigint, perHour: bigint): Partition {
  const hour = Number(floorDivide(ts, perHour))
  const day = Math.floor(hour / 24)
  const span = (name: string, fromHour: number, toHour: number): Partition => ({
    name,
    from: clip(BigInt(fromHour) * perHour),
    to: clip(BigInt(toHour) * perHour),
  })
  const days = (name: string, fromDay: number, toDay: number) => span(name, fromDay * 24, toDay * 24)
  const find = spans[unit]
  return find === undefined ? everything : find({ ...civilOf(day), day, hour, span, days })
}

interface Timestamp {
  readonly year: number
  readonly month: number
  readonly date: number
  readonly day: number
  readonly hour: number
  readonly span: (name: string, fromHour: number, toHour: number) => Partition
  readonly days: (name: string, fromDay: number, toDay: number) => Partition
}

/**
 * By unit; none for NONE. It is a table because a `switch` over strings from another thread was once miscompiled by V8:
 * it found no case for 'HOUR'.
 */
const spans: Readonly<Record<PartitionUnit, ((timestamp: Timestamp) => Partition) | undefined>> = {
  NONE: undefined,
  HOUR: ({ year, month, date, day, hour, span }) =>
    span(`${dateText(year, month, date)}T${two(hour - day * 24)}`, hour, hour + 1),
  DAY: ({ year, month, date, day, days }) => days(dateText(year, month, date), day, day + 1),
  WEEK: ({ day, days }) => {
    const monday = day - weekday(day)
    return days(weekText(monday), monday, monday + 7)
  },
  MONTH: ({ year, month, days }) => {
    const next = month === 12 ? dayOf(year + 1, 1) : dayOf(year, month + 1)
    return days(`${yearText(year)}-${two(month)}`, dayOf(year, month), next)
  },
  YEAR: ({ year, days }) => days(yearText(year), dayOf(year, 1), dayOf(year + 1, 1)),
}

function floorDivide(value: bigint, divisor: bigint): bigint {
  const quotient = value / divisor
  return value < 0n && quotient * divisor !== value ? quotient - 1n : quotient
}

function clip(value: bigint): bigint {
  if (value < int64Min) return int64Min
  return value > int64Max ? int64Max : value
}

/** Day of the week, 0 is Monday. Day 0, 1970-01-01, was a Thursday. */
function weekday(day: number): number {
  return (((day + 3) % 7) + 7) % 7
}

/** ISO 8601: the week belongs to the year of its Thursday. */
function weekText(monday: number): string {
  const { year } = civilOf(monday + 3)
  const week = Math.floor((monday + 3 - dayOf(year, 1)) / 7) + 1
  return `${yearText(year)}-W${two(week)}`
}

function dateText(year: number, month: number, date: number): string {
  return `${yearText(year)}-${two(month)}-${two(date)}`
}

function yearText(year: number): string {
  return year < 0 ? `-${String(-year).padStart(4, '0')}` : String(year).padStart(4, '0')
}

function two(value: number): string {
  return String(value).padStart(2, '0')
}

const daysPerEra = 146_097

/** Gregorian date of a day since 1970-01-01. Calculates in eras of 400 years, in which years begin in March. */
function civilOf(day: number): { readonly year: number; readonly month: number; readonly date: number } {
  const shifted = day + 719_468
  const era = Math.floor(shifted / daysPerEra)
  const dayOfEra = shifted - era * daysPerEra
  const yearOfEra = Math.floor(
    (dayOfEra - Math.floor(dayOfEra / 1460) + Math.floor(dayOfEra / 36_524) - Math.floor(dayOfEra / (daysPerEra - 1))) /
      365,
  )
  const dayOfYear = dayOfEra - (365 * yearOfEra + Math.floor(yearOfEra / 4) - Math.floor(yearOfEra / 100))
  const fromMarch = Math.floor((5 * dayOfYear + 2) / 153)
  const month = fromMarch < 10 ? fromMarch + 3 : fromMarch - 9
  const date = dayOfYear - Math.floor((153 * fromMarch + 2) / 5) + 1
  return { year: yearOfEra + era * 400 + (month <= 2 ? 1 : 0), month, date }
}

/** Number of the first day of a month, since 1970-01-01. */
function dayOf(year: number, month: number): number {
  assert(month >= 1 && month <= 12, 'T1: months count from 1')
  const shifted = month <= 2 ? year - 1 : year
  const era = Math.floor(shifted / 400)
  const yearOfEra = shifted - era * 400
  const dayOfYear = Math.floor((153 * (month > 2 ? month - 3 : month + 9) + 2) / 5)
  const dayOfEra = yearOfEra * 365 + Math.floor(yearOfEra / 4) - Math.floor(yearOfEra / 100) + dayOfYear
  return era * daysPerEra + dayOfEra - 719_468
}
