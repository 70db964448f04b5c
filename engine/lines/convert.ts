// Converts a value of line protocol to the type of its column, and determines the types of new columns. There is one
// function for each type of the protocol. It reports an error if it cannot convert to the column's type, if the value
// is out of range, or if a string is not valid UTF-8.

import { assert, nonNull } from '../base/assert.js'
import { int64Max, int64Min } from '../base/int64.js'
import { setArray, setBytes, setInteger, setNull, setNumber, type ValueSlot } from '../storage/writer/writer-values.js'
import { type DataType, dataType, typeText } from '../types/column-types.js'
import { type LineEntity, type ProtocolKind, protocolTypes } from './line.js'
import { isUtf8, utf8Text } from './text.js'

const decoder = new TextDecoder('latin1')

/** No error. */
const fine = ''
const castError = 'cast'
const boundsError = 'bounds'
const encodingError = 'encoding'
type Outcome = typeof fine | typeof castError | typeof boundsError | typeof encodingError

/** Type of the column that a value creates; undefined when it creates none. */
export function newColumnType(entity: LineEntity): DataType | undefined {
  switch (entity.kind) {
    case 'tag':
      return dataType('SYMBOL')
    case 'string':
      return dataType('VARCHAR')
    case 'integer':
      return dataType('LONG')
    case 'float':
      return dataType('DOUBLE')
    case 'boolean':
      return dataType('BOOLEAN')
    case 'micros':
      return dataType('TIMESTAMP')
    case 'nanos':
      return dataType('TIMESTAMP_NS')
    case 'long256':
      return dataType('LONG256')
    case 'array':
      return dataType('ARRAY', entity.shape.length)
    default:
      return undefined
  }
}

type Convert = (entity: LineEntity, type: DataType, slot: ValueSlot) => Outcome

const converters: Record<ProtocolKind, Convert> = {
  tag: fromTag,
  string: fromString,
  integer: fromInteger,
  float: fromFloat,
  boolean: fromBoolean,
  micros: (entity, type, slot) => fromTime(entity, type, slot, 'micros'),
  nanos: (entity, type, slot) => fromTime(entity, type, slot, 'nanos'),
  long256: (entity, type, slot) => (type.name === 'LONG256' ? fromText(entity, type, slot) : castError),
  decimal: (entity, type, slot) => (type.name === 'DECIMAL' ? fromText(entity, type, slot) : castError),
  array: fromArray,
  empty: (_entity, _type, slot) => {
    setNull(slot)
    return fine
  },
}

/** Fills the slot with the value for the column; returns an error message, or an empty string. */
export function convertValue(entity: LineEntity, type: DataType, table: string, slot: ValueSlot): string {
  const outcome = converters[entity.kind](entity, type, slot)
  if (outcome === fine) return ''
  const place = `table: ${table}, column: ${entity.name}`
  if (outcome === boundsError) {
    return `${place}; line protocol value: ${decoder.decode(entity.text)} is out bounds of column type: ${typeText(type)}`
  }
  if (outcome === encodingError) return `${place}; the value is not valid UTF-8`
  const from = entity.kind === 'array' ? `DOUBLE${'[]'.repeat(entity.shape.length)}` : protocolTypes[entity.kind]
  return `${place}; cast error from protocol type: ${from} to column type: ${typeText(type)}`
}

/** The cast error of a rejected line, as convertValue writes it; undefined: it was rejected for another reason. */
export function refusedCast({
  message,
  table,
}: {
  readonly message: string
  readonly table: string
}): { readonly column: string; readonly from: string; readonly to: string } | undefined {
  const place = `table: ${table}, column: `
  if (!message.startsWith(place)) return undefined
  const match = /^(.*); cast error from protocol type: (\S+) to column type: (\S+)$/s.exec(message.slice(place.length))
  if (match === null) return undefined
  const [, column = '', from = '', to = ''] = match
  return { column, from, to }
}

function fromTag(entity: LineEntity, type: DataType, slot: ValueSlot): Outcome {
  if (type.name !== 'SYMBOL' && type.name !== 'VARCHAR' && type.name !== 'STRING') return castError
  return putText(entity, slot)
}

function putText(entity: LineEntity, slot: ValueSlot): Outcome {
  if (!isUtf8(entity.text)) return encodingError
  setBytes(slot, entity.text)
  return fine
}

function fromString(entity: LineEntity, type: DataType, slot: ValueSlot): Outcome {
  if (type.name === 'VARCHAR' || type.name === 'STRING' || type.name === 'SYMBOL') return putText(entity, slot)
  return fromText(entity, type, slot)
}

/** A string whose content is a value of the column's type. */
function fromText(entity: LineEntity, type: DataType, slot: ValueSlot): Outcome {
  const text = utf8Text(entity.text)
  if (text === undefined) return encodingError
  if (text === '' && (type.name === 'IPv4' || type.name === 'GEOHASH')) {
    setNull(slot)
    return fine
  }
  switch (type.name) {
    case 'CHAR':
      return orCast(parseChar(text), slot)
    case 'IPv4':
      return orCast(parseIpv4(text), slot)
    case 'UUID':
      return orCast(parseUuid(text), slot)
    case 'LONG256':
      return orCast(parseLong256(text), slot)
    case 'GEOHASH':
      return orCast(parseGeohash(text, type.a), slot)
    case 'DECIMAL':
      return fromDecimalText(text, type, slot)
    default:
      return castError
  }
}

function orCast(value: number | bigint | undefined, slot: ValueSlot): Outcome {
  if (value === undefined) return castError
  if (typeof value === 'number') setNumber(slot, value)
  else setInteger(slot, value)
  return fine
}

function fromDecimalText(text: string, type: DataType, slot: ValueSlot): Outcome {
  const value = parseDecimal(text, type.a, type.b)
  if (value === undefined) return parseDecimal(text, 1000, 200) === undefined ? castError : boundsError
  setInteger(slot, value)
  return fine
}

const integerBounds: Partial<Record<DataType['name'], readonly [bigint, bigint]>> = {
  BYTE: [-128n, 127n],
  SHORT: [-32768n, 32767n],
  INT: [-2147483648n, 2147483647n],
}

function fromInteger(entity: LineEntity, type: DataType, slot: ValueSlot): Outcome {
  const value = entity.integer
  switch (type.name) {
    case 'LONG':
    case 'TIMESTAMP':
    case 'TIMESTAMP_NS':
    case 'DATE':
      setInteger(slot, value)
      return fine
    case 'BYTE':
    case 'SHORT':
    case 'INT':
      return fromBounded(value, type, slot)
    case 'DOUBLE':
    case 'FLOAT':
      setNumber(slot, value === int64Min ? Number.NaN : Number(value))
      return fine
    case 'SYMBOL':
      setBytes(slot, entity.text)
      return fine
    case 'DECIMAL':
      return fromDecimalText(String(value), type, slot)
    default:
      return castError
  }
}

/** Maps the 64-bit NULL to the NULL of the narrower type, or to 0 where it has none. */
function fromBounded(value: bigint, type: DataType, slot: ValueSlot): Outcome {
  const [low, high] = nonNull(integerBounds[type.name])
  if (value === int64Min) {
    setNull(slot)
    return fine
  }
  if (value < low || value > high) return boundsError
  setNumber(slot, Number(value))
  return fine
}

function fromFloat(entity: LineEntity, type: DataType, slot: ValueSlot): Outcome {
  switch (type.name) {
    case 'DOUBLE':
      setNumber(slot, entity.number)
      return fine
    case 'FLOAT':
      if (Number.isFinite(entity.number) && !Number.isFinite(Math.fround(entity.number))) return boundsError
      setNumber(slot, entity.number)
      return fine
    case 'SYMBOL':
      setBytes(slot, entity.text)
      return fine
    case 'DECIMAL':
      if (Number.isFinite(entity.number)) return fromDecimalText(decoder.decode(entity.text), type, slot)
      setNull(slot)
      return fine
    default:
      return castError
  }
}

function fromBoolean(entity: LineEntity, type: DataType, slot: ValueSlot): Outcome {
  switch (type.name) {
    case 'BOOLEAN':
    case 'BYTE':
    case 'SHORT':
    case 'INT':
    case 'FLOAT':
    case 'DOUBLE':
      setNumber(slot, entity.number)
      return fine
    case 'LONG':
      setInteger(slot, BigInt(entity.number))
      return fine
    case 'SYMBOL':
      setBytes(slot, entity.text)
      return fine
    default:
      return castError
  }
}

function fromTime(entity: LineEntity, type: DataType, slot: ValueSlot, unit: 'micros' | 'nanos'): Outcome {
  if (type.name === 'SYMBOL') {
    setBytes(slot, entity.text)
    return fine
  }
  if (type.name !== 'TIMESTAMP' && type.name !== 'TIMESTAMP_NS' && type.name !== 'DATE') return castError
  const value = convertTime(entity.integer, unit, type)
  if (value > int64Max || value < int64Min) return boundsError
  setInteger(slot, value)
  return fine
}

/** NULL stays NULL; rounds towards the past. */
export function convertTime(value: bigint, unit: 'micros' | 'nanos', type: DataType): bigint {
  if (value === int64Min) return value
  if (type.name === 'DATE') return floorQuotient(value, unit === 'micros' ? 1000n : 1_000_000n)
  if (type.name === 'TIMESTAMP') return unit === 'micros' ? value : floorQuotient(value, 1000n)
  return unit === 'nanos' ? value : value * 1000n
}

function floorQuotient(value: bigint, divisor: bigint): bigint {
  const quotient = value / divisor
  return value < 0n && quotient * divisor !== value ? quotient - 1n : quotient
}

function fromArray(entity: LineEntity, type: DataType, slot: ValueSlot): Outcome {
  if (type.name !== 'ARRAY' || type.a !== entity.shape.length) return castError
  assert(
    entity.text.length === 8 * entity.shape.reduce((product, length) => product * length, 1),
    'R3: an array has the values of its shape',
  )
  setArray(slot, [...entity.shape], entity.text.slice())
  return fine
}

// Strings as values of other types: UUID, IPv4, GEOHASH, LONG256, DECIMAL, CHAR. Each function returns undefined for
// an invalid string.

const uuidText = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i
const long256Text = /^0x[0-9a-f]{1,64}$/i
const numberText = /^([+-]?)([0-9]*)(?:\.([0-9]*))?(?:e([+-]?[0-9]{1,4}))?$/i
const geohashDigits = '0123456789bcdefghjkmnpqrstuvwxyz'

function parseUuid(text: string): bigint | undefined {
  return uuidText.test(text) ? BigInt(`0x${text.replaceAll('-', '')}`) : undefined
}

function parseLong256(text: string): bigint | undefined {
  return long256Text.test(text) ? BigInt(text) : undefined
}

function parseIpv4(text: string): number | undefined {
  const parts = text.split('.')
  if (parts.length !== 4 || !parts.every((part) => /^[0-9]{1,3}$/.test(part) && Number(part) < 256)) return undefined
  return parts.reduce((address, part) => ((address << 8) | Number(part)) >>> 0, 0)
}

/** The first `bits` bits of the geohash; undefined when it has fewer. */
function parseGeohash(text: string, bits: number): bigint | undefined {
  if (text.length * 5 < bits) return undefined
  const characters = Math.ceil(bits / 5)
  let value = 0n
  for (const character of text.slice(0, characters).toLowerCase()) {
    const digit = geohashDigits.indexOf(character)
    if (digit < 0) return undefined
    value = (value << 5n) | BigInt(digit)
  }
  return value >> BigInt(characters * 5 - bits)
}

/**
 * The number as an integer scaled by 10^scale; undefined when it has more digits than DECIMAL(precision, scale).
 */
function parseDecimal(text: string, precision: number, scale: number): bigint | undefined {
  const match = numberText.exec(text)
  if (match === null) return undefined
  const [, sign = '', whole = '', fraction = '', exponent = '0'] = match
  if (whole === '' && fraction === '') return undefined
  const shift = scale - fraction.length + Number(exponent)
  if (shift > 200) return BigInt(whole + fraction) === 0n ? 0n : undefined
  const digits = BigInt(whole + fraction)
  const scaled = shift >= 0 ? digits * 10n ** BigInt(shift) : exactQuotient(digits, 10n ** BigInt(-shift))
  if (scaled === undefined || scaled >= 10n ** BigInt(precision)) return undefined
  return sign === '-' ? -scaled : scaled
}

function exactQuotient(value: bigint, divisor: bigint): bigint | undefined {
  return value % divisor === 0n ? value / divisor : undefined
}

/** The UTF-16 unit of a single-character string. */
function parseChar(text: string): number | undefined {
  return text.length === 1 ? text.charCodeAt(0) : undefined
}
