// Converts between timestamps and dates of the proleptic Gregorian calendar. A timestamp is split into a day number
// and the rest of the day, which both fit into a double exactly, so only the split itself needs bigint.

export type TimestampUnit = 'TIMESTAMP' | 'TIMESTAMP_NS'

const microsPerSecond = 1_000_000
const microsPerMinute = 60 * microsPerSecond
const microsPerHour = 60 * microsPerMinute
export const microsPerDay = 24 * microsPerHour

/** Ticks of a day: microseconds or nanoseconds. */
export function ticksPerDay(unit: TimestampUnit): bigint {
  return unit === 'TIMESTAMP' ? 86_400_000_000n : 86_400_000_000_000n
}

export function ticksPerMicro(unit: TimestampUnit): bigint {
  return unit === 'TIMESTAMP' ? 1n : 1000n
}

export interface CivilDate {
  readonly year: number
  /** 1 to 12. */
  readonly month: number
  /** 1 to 31. */
  readonly day: number
}

export function floorDivide(value: bigint, divisor: bigint): bigint {
  const quotient = value / divisor
  return value % divisor < 0n !== divisor < 0n && value % divisor !== 0n ? quotient - 1n : quotient
}

export function floorModulo(value: bigint, divisor: bigint): bigint {
  const rest = value % divisor
  return rest !== 0n && rest < 0n !== divisor < 0n ? rest + divisor : rest
}

/** Days since 1970-01-01 (algorithm of Howard Hinnant: eras of 400 years that start in March). */
export function daysFromCivil(year: number, month: number, day: number): number {
  const shifted = month <= 2 ? year - 1 : year
  const era = Math.floor(shifted / 400)
  const yearOfEra = shifted - era * 400
  const dayOfYear = Math.floor((153 * (month + (month > 2 ? -3 : 9)) + 2) / 5) + day - 1
  const dayOfEra = yearOfEra * 365 + Math.floor(yearOfEra / 4) - Math.floor(yearOfEra / 100) + dayOfYear
  return era * 146_097 + dayOfEra - 719_468
}

export function civilFromDays(days: number): CivilDate {
  const shifted = days + 719_468
  const era = Math.floor(shifted / 146_097)
  const dayOfEra = shifted - era * 146_097
  const yearOfEra = Math.floor(
    (dayOfEra - Math.floor(dayOfEra / 1460) + Math.floor(dayOfEra / 36_524) - Math.floor(dayOfEra / 146_096)) / 365,
  )
  const dayOfYear = dayOfEra - (365 * yearOfEra + Math.floor(yearOfEra / 4) - Math.floor(yearOfEra / 100))
  const monthIndex = Math.floor((5 * dayOfYear + 2) / 153)
  const day = dayOfYear - Math.floor((153 * monthIndex + 2) / 5) + 1
  const month = monthIndex < 10 ? monthIndex + 3 : monthIndex - 9
  return { year: yearOfEra + era * 400 + (month <= 2 ? 1 : 0), month, day }
}

export function isLeapYear(year: number): boolean {
  return year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0)
}

export function daysInMonth(year: number, month: number): number {
  if (month === 2) return isLeapYear(year) ? 29 : 28
  return month === 4 || month === 6 || month === 9 || month === 11 ? 30 : 31
}

/** 1 = Monday to 7 = Sunday. */
export function isoDayOfWeek(days: number): number {
  return ((((days + 3) % 7) + 7) % 7) + 1
}

/** Day number of the Monday of week 1 of an ISO year: the week that contains January 4th. */
export function isoYearStart(year: number): number {
  const fourth = daysFromCivil(year, 1, 4)
  return fourth - isoDayOfWeek(fourth) + 1
}

/** ISO week-numbering year and week of a day. */
export function isoWeek(days: number): { readonly year: number; readonly week: number } {
  const thursday = days - isoDayOfWeek(days) + 4
  const { year } = civilFromDays(thursday)
  return { year, week: Math.floor((thursday - daysFromCivil(year, 1, 1)) / 7) + 1 }
}

export interface TimestampParts extends CivilDate {
  /** Days since the epoch. */
  readonly days: number
  readonly hour: number
  readonly minute: number
  readonly second: number
  /** Nanoseconds of the second. */
  readonly nanos: number
}

export function partsOf(ticks: bigint, unit: TimestampUnit): TimestampParts {
  const perDay = ticksPerDay(unit)
  const days = Number(floorDivide(ticks, perDay))
  const rest = Number(floorModulo(ticks, perDay))
  const perSecond = unit === 'TIMESTAMP' ? 1e6 : 1e9
  const seconds = Math.floor(rest / perSecond)
  return {
    ...civilFromDays(days),
    days,
    hour: Math.floor(seconds / 3600),
    minute: Math.floor(seconds / 60) % 60,
    second: seconds % 60,
    nanos: (rest % perSecond) * (unit === 'TIMESTAMP' ? 1000 : 1),
  }
}

export function ticksOfDays(days: number, unit: TimestampUnit): bigint {
  return BigInt(days) * ticksPerDay(unit)
}

export interface TimeOfDay {
  readonly hour: number
  readonly minute: number
  readonly second: number
  readonly nanos: number
}

/** TIMESTAMP truncates to microseconds. */
export function ticksFrom(days: number, time: TimeOfDay, unit: TimestampUnit): bigint {
  const seconds = (time.hour * 60 + time.minute) * 60 + time.second
  const ticks =
    unit === 'TIMESTAMP' ? BigInt(seconds * 1e6 + Math.floor(time.nanos / 1000)) : BigInt(seconds * 1e9 + time.nanos)
  return ticksOfDays(days, unit) + ticks
}

const millisPerDay = 86_400_000n

/** Midnight of a DATE. */
export function midnightOf(millis: bigint): bigint {
  return floorDivide(millis, millisPerDay) * millisPerDay
}

/** Adds months to a date; clamps the day to the length of the new month. */
function addMonthsToDays(days: number, months: number): number {
  const { year, month, day } = civilFromDays(days)
  const index = year * 12 + (month - 1) + months
  const newYear = Math.floor(index / 12)
  const newMonth = index - newYear * 12 + 1
  return daysFromCivil(newYear, newMonth, Math.min(day, daysInMonth(newYear, newMonth)))
}

export function addMonths(ticks: bigint, months: number, unit: TimestampUnit): bigint {
  const perDay = ticksPerDay(unit)
  const days = Number(floorDivide(ticks, perDay))
  return BigInt(addMonthsToDays(days, months)) * perDay + floorModulo(ticks, perDay)
}
