// Recognises calls that round the designated timestamp down to the start of a time bucket: `timestamp_floor('1h', ts)`,
// `date_trunc('day', ts, 'Europe/Berlin')`, `time_bucket('15 minutes', ts)`, `date_bin(..)`. Translates such a call to
// the SAMPLE BY with the same buckets, if there is one. So materialized and live views support GROUP BY such a call.

import { parseSampleInterval, truncInterval } from '../../types/timestamp-floor.js'
import { parseOffset, timeZone } from '../../types/timestamp-zone.js'
import type { Value } from '../../types/value.js'
import type { Expression, ViewBuckets } from './plan.js'

type Call = Extract<Expression, { kind: 'call' }>

export const bucketNames: ReadonlySet<string> = new Set(['timestamp_floor', 'date_trunc', 'time_bucket', 'date_bin'])

/** Whether the expression is a call of such a function with this input column. */
export function isBucketCall(expression: Expression, timestampIndex: number): expression is Call {
  if (expression.kind !== 'call' || !bucketNames.has(expression.name)) return false
  const time = expression.args[1]
  return time?.kind === 'column' && time.index === timestampIndex
}

/** The buckets of SAMPLE BY that the call computes, or why there are none. */
export function bucketsOfCall({ name, args }: Call): ViewBuckets | string {
  const constants = args.map((argument, index) => (index === 1 ? null : constantOf(argument)))
  if (constants.includes(undefined)) return `the arguments of ${name}() must be constants`
  const [first = null, , ...rest] = constants
  if (name === 'date_trunc') return truncated(String(first), rest[0] ?? null)
  if (name === 'timestamp_floor') return floored(String(first), rest)
  if (typeof first !== 'bigint' || typeof rest[0] !== 'bigint') return `${name}() needs a width of fixed length`
  return stepped(name, first, rest[0], args[2]?.type.name === 'TIMESTAMP_NS' ? 1000n : 1n)
}

/** The same for a key whose buckets may be named by their local time. */
export function bucketsOfKey(call: Call): ViewBuckets | string {
  const [, time, ...rest] = call.args
  const zone = call.name === 'timestamp_floor' ? rest[2] : undefined
  const name = zone === undefined ? null : constantOf(zone)
  if (typeof name !== 'string' || name === 'UTC') return bucketsOfCall(call)
  if (timeZone(name) === null) return `invalid timezone: ${name}`
  const found = bucketsOfCall({ ...call, args: [call.args[0], time, ...rest.slice(0, 2)].filter(isPresent) })
  return typeof found === 'string' ? found : { ...found, zone: name }
}

function isPresent<Item>(item: Item | undefined): item is Item {
  return item !== undefined
}

/** Undefined for an expression that is not constant. */
function constantOf(argument: Expression): Value | undefined {
  return argument.kind === 'constant' && argument.deferred === undefined ? argument.value : undefined
}

const plain = { zone: null, offsetMicros: 0n } as const

function truncated(text: string, zone: Value): ViewBuckets | string {
  const interval = truncInterval(text)
  if (interval === null || 'nUT'.includes(interval.unit)) return `date_trunc('${text}', ..) has no buckets of SAMPLE BY`
  if (zone !== null && timeZone(String(zone)) === null) return `invalid timezone: ${String(zone)}`
  return { interval, zone: zone === null ? null : String(zone), offsetMicros: 0n }
}

function floored(text: string, [origin = null, offset = null, zone = null]: readonly (Value | undefined)[]) {
  const interval = parseSampleInterval(text)
  if (interval === null) return `invalid unit '${text}'`
  if (origin !== null) return 'timestamp_floor() with an origin has one bucket for all earlier timestamps'
  if (zone !== null && zone !== 'UTC') return 'timestamp_floor() with a time zone returns local time'
  const offsetMicros = offset === null ? 0n : parseOffset(String(offset))
  return offsetMicros === null ? `invalid offset: ${String(offset)}` : { interval, zone: null, offsetMicros }
}

const microsPerUnit = [
  ['w', 604_800_000_000n],
  ['d', 86_400_000_000n],
  ['h', 3_600_000_000n],
  ['m', 60_000_000n],
  ['s', 1_000_000n],
  ['T', 1000n],
  ['U', 1n],
] as const

/** Monday, 1969-12-29: weeks are counted from it, shorter units from 1970. */
const firstMonday = -3n * 86_400_000_000n
const dayMicros = 86_400_000_000n

/** Buckets of fixed length that are counted from an origin. */
function stepped(name: string, width: bigint, originTicks: bigint, scale: bigint): ViewBuckets | string {
  if (width <= 0n || originTicks % scale !== 0n) return `${name}() has no buckets of SAMPLE BY`
  const origin = originTicks / scale
  for (const [unit, micros] of microsPerUnit) {
    if (width % micros !== 0n || width / micros > 2_147_483_647n) continue
    const interval = { count: Number(width / micros), unit }
    const shift = (origin - (unit === 'w' ? firstMonday : 0n)) % width
    const offsetMicros = shift < 0n ? shift + width : shift
    if (offsetMicros === 0n) return { interval, ...plain }
    if (offsetMicros < dayMicros && offsetMicros % 1_000_000n === 0n) return { interval, zone: null, offsetMicros }
  }
  return `${name}() counts its buckets from another time than SAMPLE BY does`
}

/** `1h ALIGN TO CALENDAR TIME ZONE 'Europe/Berlin' WITH OFFSET '00:15'`: what follows SAMPLE BY. */
export function bucketsText({ interval, zone, offsetMicros }: ViewBuckets): string {
  const aligned = zone !== null || offsetMicros !== 0n ? ' ALIGN TO CALENDAR' : ''
  const inZone = zone === null ? '' : ` TIME ZONE '${zone.replaceAll("'", "''")}'`
  const shifted = offsetMicros === 0n ? '' : ` WITH OFFSET '${offsetText(offsetMicros)}'`
  return `${interval.count}${interval.unit}${aligned}${inZone}${shifted}`
}

function offsetText(micros: bigint): string {
  const seconds = Number((micros < 0n ? -micros : micros) / 1_000_000n)
  const two = (value: number): string => String(value).padStart(2, '0')
  const [hours, minutes, rest] = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60, seconds % 60]
  return `${micros < 0n ? '-' : ''}${two(hours)}:${two(minutes)}${rest === 0 ? '' : `:${two(rest)}`}`
}
