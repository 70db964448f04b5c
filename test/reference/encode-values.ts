// Formats single values as text in plain TypeScript, for the reference implementations of the WebAssembly kernels that
// encode rows and numbers.

import { type EncodeKind, encodeKinds } from '../../engine/kernels/encode.js'
import { dictionaryEntry } from '../../engine/memory/column-layout.js'
import type { SharedMemory } from '../../engine/memory/shared-memory.js'
import { formatInterval } from '../../engine/types/interval.js'
import { formatDecimal, formatDouble, formatFloat } from '../../engine/types/number.js'
import { formatArray, formatGeohash, formatIpv4, formatLong256, formatUuid } from '../../engine/types/text.js'
import { formatDate, formatTimestamp } from '../../engine/types/timestamp.js'

const longMin = -0x8000_0000_0000_0000n
export interface Form {
  readonly json: boolean
  readonly quoteLong: boolean
  readonly delimiter: string
}

/** How a value is written: bare, in quotes, or as text that needs escaping. */
export interface Rendered {
  readonly text: string
  readonly style: 'bare' | 'quoted' | 'text'
}

/** The value of 64-bit words from p, least significant first; signed by the last one when wanted. */
function wide(memory: SharedMemory, p: number, words: number, signed: boolean): bigint {
  let value = 0n
  for (let i = words - 1; i >= 0; i--) {
    value = (value << 64n) | memory.u64[(p >>> 3) + i]!
  }
  return signed ? BigInt.asIntN(words * 64, value) : value
}

function allMinimum(memory: SharedMemory, p: number, words: number): boolean {
  for (let i = 0; i < words; i++) if (memory.i64[(p >>> 3) + i] !== longMin) return false
  return true
}

/** The bare text of a value of fixed width, null for NULL: what the number kernel uses of this file. */
export function renderFixed(
  memory: SharedMemory,
  kind: EncodeKind,
  values: number,
  row: number,
  parameter: number,
): string | null {
  const form: Form = { json: false, quoteLong: false, delimiter: ',' }
  return render(memory, kind, values, row, 0, parameter, form)?.text ?? null
}

const bare = (text: string): Rendered => ({ text, style: 'bare' })
const quoted = (text: string): Rendered => ({ text, style: 'quoted' })

export function render(
  memory: SharedMemory,
  kind: EncodeKind,
  values: number,
  row: number,
  dictionary: number,
  parameter: number,
  form: Form,
): Rendered | null {
  const long = () => memory.i64[(values >>> 3) + row]!
  const idStyle = form.json ? quoted : bare
  switch (kind) {
    case encodeKinds.boolean:
      return bare(memory.u8[values + row] === 0 ? 'false' : 'true')
    case encodeKinds.i8:
      return bare(String(memory.i8[values + row]))
    case encodeKinds.i16:
      return bare(String(memory.i16[(values >>> 1) + row]))
    case encodeKinds.char:
      return charText(memory.u16[(values >>> 1) + row]!)
    case encodeKinds.i32: {
      const value = memory.i32[(values >>> 2) + row]!
      return value === -0x8000_0000 ? null : bare(String(value))
    }
    case encodeKinds.i64:
      if (long() === longMin) return null
      return form.json && form.quoteLong ? quoted(String(long())) : bare(String(long()))
    case encodeKinds.millis:
      return long() === longMin ? null : quoted(formatDate(long()))
    case encodeKinds.micros:
      return long() === longMin ? null : quoted(formatTimestamp(long(), 'TIMESTAMP'))
    case encodeKinds.nanos:
      return long() === longMin ? null : quoted(formatTimestamp(long(), 'TIMESTAMP_NS'))
    case encodeKinds.f32: {
      const value = memory.f32[(values >>> 2) + row]!
      return Number.isFinite(value) ? bare(formatFloat(value)) : null
    }
    case encodeKinds.f64: {
      const value = memory.f64[(values >>> 3) + row]!
      return Number.isFinite(value) ? bare(formatDouble(value)) : null
    }
    case encodeKinds.ipv4: {
      const value = memory.u32[(values >>> 2) + row]!
      return value === 0 ? null : idStyle(formatIpv4(value))
    }
    case encodeKinds.uuid:
      return allMinimum(memory, values + row * 16, 2)
        ? null
        : idStyle(formatUuid(wide(memory, values + row * 16, 2, false)))
    case encodeKinds.long256:
      return allMinimum(memory, values + row * 32, 4)
        ? null
        : idStyle(formatLong256(wide(memory, values + row * 32, 4, false)))
    default:
      return (
        renderParameterized(memory, kind, values, row, parameter) ??
        renderVariable(memory, kind, values, row, dictionary, form)
      )
  }
}

/** GEOHASH, DECIMAL and INTERVAL; null for NULL and for the other kinds. */
function renderParameterized(
  memory: SharedMemory,
  kind: EncodeKind,
  values: number,
  row: number,
  parameter: number,
): Rendered | null {
  switch (kind) {
    case encodeKinds.geohash8:
      return geohash(BigInt(memory.i8[values + row]!), parameter)
    case encodeKinds.geohash16:
      return geohash(BigInt(memory.i16[(values >>> 1) + row]!), parameter)
    case encodeKinds.geohash32:
      return geohash(BigInt(memory.i32[(values >>> 2) + row]!), parameter)
    case encodeKinds.geohash64:
      return geohash(memory.i64[(values >>> 3) + row]!, parameter)
    case encodeKinds.decimal8:
      return decimal(wide(memory, values + row * 8, 1, true), 1, parameter)
    case encodeKinds.decimal16:
      return decimal(wide(memory, values + row * 16, 2, true), 2, parameter)
    case encodeKinds.decimal32:
      return decimal(wide(memory, values + row * 32, 4, true), 4, parameter)
    case encodeKinds.interval: {
      const at = values + row * 16
      if (allMinimum(memory, at, 2)) return null
      return quoted(formatInterval({ lo: memory.i64[at >>> 3]!, hi: memory.i64[(at >>> 3) + 1]! }))
    }
    default:
      return null
  }
}

function charText(unit: number): Rendered {
  const lone = unit >= 0xd800 && unit < 0xe000
  return { text: unit === 0 ? '' : lone ? '?' : String.fromCharCode(unit), style: 'text' }
}

function geohash(value: bigint, bits: number): Rendered | null {
  return value === -1n ? null : quoted(formatGeohash(value, bits))
}

function decimal(value: bigint, words: number, scale: number): Rendered | null {
  return value === -(1n << BigInt(words * 64 - 1)) ? null : quoted(formatDecimal(value, scale))
}

function renderVariable(
  memory: SharedMemory,
  kind: EncodeKind,
  values: number,
  row: number,
  dictionary: number,
  form: Form,
): Rendered | null {
  if (kind !== encodeKinds.symbol && kind !== encodeKinds.text && kind !== encodeKinds.array) return null
  const id = memory.i32[(values >>> 2) + row]!
  if (kind === encodeKinds.symbol && id < 0) return null
  const entry = kind === encodeKinds.symbol ? dictionaryEntry(memory, dictionary, id) : values + row * 8
  const address = memory.u32[entry >>> 2]!
  const bytes = memory.i32[(entry >>> 2) + 1]!
  if (bytes < 0) return null
  if (kind === encodeKinds.array) {
    const text = arrayText(memory, address)
    return form.json ? bare(text) : quoted(text)
  }
  return { text: Buffer.from(memory.u8.slice(address, address + bytes)).toString('utf8'), style: 'text' }
}

function arrayText(memory: SharedMemory, address: number): string {
  const dimensions = memory.u32[address >>> 2]!
  const shape = Array.from(memory.u32.slice((address >>> 2) + 1, (address >>> 2) + 1 + dimensions))
  const first = (address + ((4 + dimensions * 4 + 7) & ~7)) >>> 3
  const cells = shape.reduce((product, length) => product * length, 1)
  return formatArray({ shape, data: memory.f64.slice(first, first + cells) })
}
