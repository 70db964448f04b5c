// Parses and formats times of day, for PostgreSQL's type time. They are stored as strings in one canonical form
// (`10:00:00.5`), so that equal times are equal strings.

const microsPerSecond = 1_000_000n
const microsPerDay = 86_400n * microsPerSecond

/** A date before it and a zone after it are ignored. */
const form =
  /^\s*(?:\d{4}-\d\d-\d\d[ T])?(\d\d?):(\d\d?)(?::(\d\d?)(?:\.(\d*))?)?\s*([ap]m)?\s*(?:z|[+-]\d\d(?::?\d\d)?)?\s*$/i

/** `030405`, `0304`, but no year */
const together = /^\s*(?!\d+-\d\d-)(\d\d)(\d\d)(?:(\d\d)(?=[.\s+z-]|$)|(?=[\s+z-]|$))/i

/** Microseconds since midnight; null for an invalid string. */
export function microsOfTimeOfDay(written: string): bigint | null {
  const text = written.replace(together, (_, hours, minutes, seconds = '00') => `${hours}:${minutes}:${seconds}`)
  const [, hours, minutes, seconds = '0', fraction = '', half] = form.exec(text) ?? []
  if (hours === undefined || Number(minutes) > 59 || Number(seconds) > 60) return null
  if (half !== undefined && (Number(hours) > 12 || Number(hours) === 0)) return null
  const hour = half === undefined ? Number(hours) : (Number(hours) % 12) + (half.toLowerCase() === 'pm' ? 12 : 0)
  const whole = BigInt((hour * 60 + Number(minutes)) * 60 + Number(seconds))
  const micros = whole * microsPerSecond + BigInt(Math.round(Number(`0.${fraction || '0'}`) * 1e6))
  return micros <= microsPerDay ? micros : null
}

export function timeOfDayText(micros: bigint): string {
  const second = Number(micros / microsPerSecond)
  const two = (value: number): string => String(Math.floor(value)).padStart(2, '0')
  return `${two(second / 3600)}:${two((second / 60) % 60)}:${two(second % 60)}${secondFraction(micros)}`
}

/** The fraction of a second without trailing zeros, `.5`; empty for none. Not for negative values. */
export function secondFraction(micros: bigint): string {
  const rest = micros % microsPerSecond
  return rest === 0n ? '' : `.${String(rest).padStart(6, '0')}`.replace(/0+$/, '')
}

/** Returns the canonical form; null when the string is not a time of day. */
export function writtenTimeOfDay(text: string): string | null {
  const micros = microsOfTimeOfDay(text)
  return micros === null ? null : timeOfDayText(micros)
}

export function timeOfDayProblem(text: string): string {
  return `invalid input syntax for type time: "${text.slice(0, 100)}"`
}
