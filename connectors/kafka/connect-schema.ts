// Parses the schema in a Kafka Connect envelope `{"schema": .., "payload": ..}`, which Kafka Connect's converter and
// Debezium write. Returns the types that JSON itself cannot express: which numbers and strings of the payload are
// timestamps, decimals, doubles or bytes. Also passes values of such types to the row mapper.

import { BadRecordError } from './bad-record.js'
import type { RowMapper } from './row-mapper.js'
import { timestampOfText } from './timestamps.js'

export type ConnectType =
  /** A number of units of `nanos` nanoseconds since 1970. */
  | { readonly kind: 'instant'; readonly nanos: bigint }
  | { readonly kind: 'zoned' }
  | { readonly kind: 'decimal'; readonly scale: number }
  | { readonly kind: 'double' }
  | { readonly kind: 'integer' }
  | { readonly kind: 'bytes' }

/** Types by path, as the payload's reader names values. */
export interface ConnectTypes {
  get(path: string): ConnectType | undefined
}

const depthMax = 64
const nanosOfDay = 86_400_000_000_000n
const instants: ReadonlyMap<unknown, bigint> = new Map([
  ['org.apache.kafka.connect.data.Timestamp', 1_000_000n],
  ['org.apache.kafka.connect.data.Date', nanosOfDay],
  ['io.debezium.time.Timestamp', 1_000_000n],
  ['io.debezium.time.MicroTimestamp', 1000n],
  ['io.debezium.time.NanoTimestamp', 1n],
  ['io.debezium.time.Date', nanosOfDay],
])

interface ConnectSchema {
  readonly type?: unknown
  readonly name?: unknown
  readonly parameters?: { readonly scale?: unknown }
  readonly fields?: unknown
  readonly field?: unknown
}

/** `prefix` and `fallback` as in JsonReader.read. Throws BadRecordError. */
export function connectTypes(text: string, prefix: string, fallback: string): ConnectTypes {
  const types = new Map<string, ConnectType>()
  const schema = parsed(text)
  if (schema === null) return types
  if (schema.type === 'struct') addFields(types, schema, prefix, 0)
  else addValue(types, schema, prefix === '' ? fallback : prefix, 0)
  return types
}

function parsed(text: string): ConnectSchema | null {
  try {
    const schema: unknown = JSON.parse(text)
    if (schema === null || (typeof schema === 'object' && !Array.isArray(schema))) return schema
  } catch {
    // Reported below.
  }
  throw new BadRecordError('the schema of the envelope cannot be read')
}

function addFields(types: Map<string, ConnectType>, { fields }: ConnectSchema, prefix: string, depth: number): void {
  if (depth > depthMax) throw new BadRecordError('the schema of the envelope is nested too deeply')
  if (!Array.isArray(fields)) return
  for (const field of fields as readonly (ConnectSchema | null)[]) {
    if (typeof field?.field !== 'string') continue
    addValue(types, field, prefix === '' ? field.field : `${prefix}_${field.field}`, depth + 1)
  }
}

function addValue(types: Map<string, ConnectType>, schema: ConnectSchema, path: string, depth: number): void {
  const { type, name, parameters } = schema
  if (type === 'struct') addFields(types, schema, path, depth)
  else {
    const known = namedType(name, parameters)
    if (known !== undefined) types.set(path, known)
    else if (type === 'bytes') types.set(path, { kind: 'bytes' })
    else if (type === 'double' || type === 'float') types.set(path, { kind: 'double' })
  }
}

/** The type that a name of Kafka Connect or Debezium stands for. */
export function namedType(name: unknown, parameters: ConnectSchema['parameters']): ConnectType | undefined {
  const nanos = instants.get(name)
  if (nanos !== undefined) return { kind: 'instant', nanos }
  if (name === 'io.debezium.time.ZonedTimestamp') return { kind: 'zoned' }
  return name === 'org.apache.kafka.connect.data.Decimal' ? { kind: 'decimal', scale: scaleOf(parameters) } : undefined
}

function scaleOf(parameters: ConnectSchema['parameters']): number {
  const scale = Number(parameters?.scale ?? 0)
  return Number.isInteger(scale) && Math.abs(scale) <= 1000 ? scale : 0
}

/** `text`: the number's decimal digits. */
export function numberOfType(mapper: RowMapper, type: ConnectType, path: string, text: string): void {
  if (type.kind === 'instant' && /^-?[0-9]+$/.test(text)) mapper.instant(path, microsOf(BigInt(text) * type.nanos))
  else if (type.kind === 'double' || type.kind === 'decimal') mapper.double(path, Number(text))
  else if (type.kind === 'integer' && hasEmptyFraction(text)) mapper.number(path, String(BigInt(Number(text))))
  else mapper.number(path, text)
}

/** Whether a whole number has a fraction or an exponent, such as 5.0. */
function hasEmptyFraction(text: string): boolean {
  return /[.eE]/.test(text) && Number.isInteger(Number(text))
}

export function textOfType(mapper: RowMapper, type: ConnectType, path: string, text: string): void {
  if (type.kind === 'zoned') mapper.instant(path, timestampOfText(text, ''))
  else if (type.kind === 'decimal') mapper.double(path, decimalOf(text, type.scale))
  else if (type.kind === 'bytes') mapper.unsupported(path, 'bytes')
  else mapper.text(path, text)
}

/** Rounds down to a microsecond, also before 1970. */
function microsOf(nanos: bigint): bigint {
  const micros = nanos / 1000n
  return nanos < 0n && micros * 1000n !== nanos ? micros - 1n : micros
}

/**
 * Base64 of the unscaled value (two's complement, big-endian), or the number itself, depending on the converter's
 * settings.
 */
function decimalOf(text: string, scale: number): number {
  const bytes = Buffer.from(text, 'base64')
  const isBase64 = text.length % 4 === 0 && bytes.toString('base64') === text
  if (!isBase64) {
    if (/^-?[0-9]+(\.[0-9]+)?$/.test(text)) return Number(text)
    throw new BadRecordError(`not a decimal: '${text.slice(0, 40)}'`)
  }
  const hex = bytes.toString('hex')
  const unscaled = hex === '' ? 0n : BigInt.asIntN(bytes.length * 8, BigInt(`0x${hex}`))
  return Number(`${unscaled}e${-scale}`)
}
