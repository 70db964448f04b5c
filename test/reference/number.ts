// Reference implementation, in plain TypeScript, of the WebAssembly kernel that formats and parses numbers, timestamps
// and the like; property tests compare the two. The contract is in engine/kernels/number.ts.

import { type EncodeKind, encodeKinds } from '../../engine/kernels/encode.js'
import type { NumberKernel } from '../../engine/kernels/number.js'
import type { SharedMemory } from '../../engine/memory/shared-memory.js'
import { parseIpv4, parseUuid } from '../../engine/types/text.js'
import { daysFromCivil, daysInMonth } from '../../engine/types/timestamp-calendar.js'
import { renderFixed } from './encode-values.js'

const longMin = -0x8000_0000_0000_0000n
const longMax = 0x7fff_ffff_ffff_ffffn

export function numberReference(memory: SharedMemory): NumberKernel {
  return {
    formatColumn: (kind, values, parameter, rows, entries, out, outEnd, _scratch) => {
      let at = out
      for (let r = 0; r < rows; r++) {
        const text = renderFixed(memory, kind as EncodeKind, values, r, parameter)
        const entry = (entries >>> 2) + r * 2
        memory.u32[entry] = text === null ? 0 : at
        memory.i32[entry + 1] = text === null ? -1 : text.length
        if (text === null) continue
        if (at + text.length > outEnd) return r
        memory.u8.set(Buffer.from(text), at)
        at += text.length
      }
      return rows
    },
    parseColumn: (scaledKind, entries, rows, out, status, _scratch) => {
      const kind = scaledKind & 255
      const scale = scaledKind >> 8
      let open = 0
      for (let r = 0; r < rows; r++) {
        const address = memory.u32[(entries >>> 2) + r * 2]!
        const bytes = memory.i32[(entries >>> 2) + r * 2 + 1]!
        const text = bytes < 0 ? null : Buffer.from(memory.u8.buffer, address, bytes).toString('latin1')
        const value = text === null || bytes > 48 ? null : parse(kind as EncodeKind, text, scale)
        put(memory, kind as EncodeKind, out, r, value)
        memory.u8[status + r] = text !== null && value === null ? 1 : 0
        if (text !== null && value === null) open++
      }
      return open
    },
  }
}

function parse(kind: EncodeKind, text: string, scale: number): number | bigint | null {
  switch (kind) {
    case encodeKinds.boolean:
      return /^(?:true|1)$/i.test(text) ? 1 : /^(?:false|0)$/i.test(text) ? 0 : null
    case encodeKinds.f64:
      return parseFloating(text, Number)
    case encodeKinds.f32:
      return parseFloating(text, (digits) => Math.fround(Number(digits)))
    case encodeKinds.i8:
      return parseInteger(text, -128n, 127n)
    case encodeKinds.i16:
      return parseInteger(text, -32768n, 32767n)
    case encodeKinds.i32:
      return parseInteger(text, -0x7fff_ffffn, 0x7fff_ffffn)
    case encodeKinds.i64:
      return parseInteger(text, -longMax, longMax)
    case encodeKinds.millis:
      return parseTime(text, 3, scale)
    case encodeKinds.micros:
      return parseTime(text, 6, scale)
    case encodeKinds.nanos:
      return parseTime(text, 9, scale)
    case encodeKinds.uuid: {
      // Both words the minimum would read as NULL.
      const value = parseUuid(text)
      return value === 0x8000_0000_0000_0000_8000_0000_0000_0000n ? null : value
    }
    case encodeKinds.ipv4: {
      const value = parseIpv4(text)
      return value === 0 ? null : value
    }
    default:
      return null
  }
}

function parseFloating(text: string, held: (digits: string) => number): number | null {
  if (!/^-?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?$/.test(text)) return null
  const digits = text.replace(/[eE].*/, '').replace(/[-.]/g, '')
  if (digits.length > 19 && digits.replace(/^0+/, '').length > 19) return null
  const value = held(text)
  return !Number.isFinite(value) || (value === 0 && /[1-9]/.test(digits)) ? null : value
}

function parseInteger(text: string, low: bigint, high: bigint): bigint | null {
  if (!/^-?\d{1,19}$/.test(text)) return null
  const value = BigInt(text)
  return value < low || value > high ? null : value
}

function parseTime(text: string, decimals: number, scale: number): bigint | null {
  if (text.length < 10 || text[4] !== '-') return parseEpoch(text, decimals, scale)
  const match =
    /^(\d{4})-(\d\d)-(\d\d)(?:[T ](\d\d):(\d\d):(\d\d)(?:\.(\d{1,9}))?(?:Z|([+-])(\d\d)(?::?(\d\d))?)?)?$/.exec(text)
  if (match === null) return null
  const [year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0] = match
    .slice(1, 7)
    .map((part) => Number(part ?? 0))
  const fraction = match[7] ?? ''
  if (year < 1970 || year > 2261 || month < 1 || month > 12 || day < 1 || day > daysInMonth(year, month)) return null
  if (hour > 23 || minute > 59 || second > 59 || fraction.length > decimals) return null
  const [offsetHours, offsetMinutes] = [Number(match[9] ?? 0), Number(match[10] ?? 0)]
  if (offsetHours > 23 || offsetMinutes > 59) return null
  const offset = (match[8] === '-' ? -1 : 1) * (offsetHours * 3600 + offsetMinutes * 60)
  const seconds = daysFromCivil(year, month, day) * 86_400 + hour * 3600 + minute * 60 + second - offset
  return BigInt(seconds) * 10n ** BigInt(decimals) + BigInt(fraction.padEnd(decimals, '0'))
}

function parseEpoch(text: string, decimals: number, scale: number): bigint | null {
  const value = parseInteger(text, 0n, longMax)
  if (value === null || text.startsWith('-')) return null
  if (scale === 0 && (value < 100_000_000n || text.length === 8)) return null
  const assumed = value < 10n ** 11n ? 1 : value < 10n ** 14n ? 2 : value < 10n ** 17n ? 3 : 4
  const places = decimals - ((scale || assumed) - 1) * 3
  const ticks = places >= 0 ? value * 10n ** BigInt(places) : value / 10n ** BigInt(-places)
  const isExact = places >= 0 || value % 10n ** BigInt(-places) === 0n
  return isExact && ticks <= longMax ? ticks : null
}

function put(memory: SharedMemory, kind: EncodeKind, out: number, row: number, value: number | bigint | null): void {
  switch (kind) {
    case encodeKinds.f64:
      memory.f64[(out >>> 3) + row] = value === null ? Number.NaN : Number(value)
      return
    case encodeKinds.f32:
      memory.f32[(out >>> 2) + row] = value === null ? Number.NaN : Number(value)
      return
    case encodeKinds.boolean:
    case encodeKinds.i8:
      memory.i8[out + row] = Number(value ?? 0)
      return
    case encodeKinds.i16:
      memory.i16[(out >>> 1) + row] = Number(value ?? 0)
      return
    case encodeKinds.i32:
      memory.i32[(out >>> 2) + row] = Number(value ?? -0x8000_0000)
      return
    case encodeKinds.ipv4:
      memory.u32[(out >>> 2) + row] = Number(value ?? 0)
      return
    case encodeKinds.uuid: {
      const words = value === null ? [longMin, longMin] : [BigInt(value), BigInt(value) >> 64n]
      memory.i64.set(
        words.map((word) => BigInt.asIntN(64, word)),
        (out >>> 3) + row * 2,
      )
      return
    }
    default:
      memory.i64[(out >>> 3) + row] = value === null ? longMin : BigInt(value)
  }
}
