// Reference implementation, in plain TypeScript, of the WebAssembly kernel that encodes rows as DataRow messages of the
// PostgreSQL protocol. engine/kernels/encode.ts specifies what the kernel does.

import { type EncodeKind, encodeColumnBytes, encodeKinds, pgFormats } from '../../engine/kernels/encode.js'
import { dictionaryEntry } from '../../engine/memory/column-layout.js'
import type { SharedMemory } from '../../engine/memory/shared-memory.js'
import { renderFixed } from './encode-values.js'

const epochMicros = 946_684_800_000_000n
const longMin = -0x8000_0000_0000_0000n
const headerBytes = 7

export function pgRow(memory: SharedMemory, columns: number, count: number, row: number, type: number): Buffer {
  const values = Array.from({ length: count }, (_, index) =>
    columnValue(memory, columns + index * encodeColumnBytes, row),
  )
  const bytes = values.reduce((sum, value) => sum + 4 + (value?.length ?? 0), headerBytes)
  const message = Buffer.alloc(bytes)
  message[0] = type
  message.writeInt32BE(bytes - 1, 1)
  message.writeInt16BE(count, 5)
  let at = headerBytes
  for (const value of values) {
    at = message.writeInt32BE(value?.length ?? -1, at)
    if (value !== null) at += value.copy(message, at)
  }
  return message
}

function columnValue(memory: SharedMemory, column: number, row: number): Buffer | null {
  const word = column >>> 2
  const kind = memory.u32[word] as EncodeKind
  const values = memory.u32[word + 1]!
  const format = memory.u32[word + 4]!
  const binary = format === pgFormats.binary
  if (values === 0) return missing(kind, binary)
  const variable = ([encodeKinds.text, encodeKinds.symbol, encodeKinds.binary] as number[]).includes(kind)
  if (variable) return bytesAt(memory, kind, values, row, memory.u32[word + 2]!, binary)
  const made = binary ? binaryOf(memory, kind, values, row) : undefined
  if (made !== undefined) return made
  const text = textOf(memory, kind, values, row, memory.u32[word + 3]!)
  return text !== null && format === pgFormats.zoned ? Buffer.concat([text, Buffer.from('+00')]) : text
}

function missing(kind: EncodeKind, binary: boolean): Buffer | null {
  if (kind > encodeKinds.i16) return null
  if (binary) return Buffer.alloc(kind === encodeKinds.boolean ? 1 : 2)
  return Buffer.from(kind === encodeKinds.boolean ? 'f' : '0')
}

function bytesAt(
  memory: SharedMemory,
  kind: EncodeKind,
  values: number,
  row: number,
  dictionary: number,
  binary: boolean,
): Buffer | null {
  const id = memory.i32[(values >>> 2) + row]!
  if (kind === encodeKinds.symbol && id < 0) return null
  const entry = (kind === encodeKinds.symbol ? dictionaryEntry(memory, dictionary, id) : values + row * 8) >>> 2
  const bytes = memory.i32[entry + 1]!
  if (bytes < 0) return null
  const start = memory.u32[entry]!
  const value = Buffer.from(memory.u8.slice(start, start + bytes))
  return kind === encodeKinds.binary && !binary ? Buffer.from(`\\x${value.toString('hex')}`) : value
}

/** Undefined: the binary form is the text. */
function binaryOf(memory: SharedMemory, kind: EncodeKind, values: number, row: number): Buffer | null | undefined {
  const long = (): bigint => memory.i64[(values >>> 3) + row]!
  const micros = (value: (long: bigint) => bigint): Buffer | null =>
    long() === longMin ? null : long64(BigInt.asIntN(64, value(long()) - epochMicros))
  switch (kind) {
    case encodeKinds.boolean:
      return Buffer.from([memory.u8[values + row] === 0 ? 0 : 1])
    case encodeKinds.i8:
      return made(2, (bytes) => bytes.writeInt16BE(memory.i8[values + row]!))
    case encodeKinds.i16:
      return made(2, (bytes) => bytes.writeInt16BE(memory.i16[(values >>> 1) + row]!))
    case encodeKinds.i32: {
      const value = memory.i32[(values >>> 2) + row]!
      return value === -(2 ** 31) ? null : made(4, (bytes) => bytes.writeInt32BE(value))
    }
    case encodeKinds.i64:
      return long() === longMin ? null : long64(long())
    case encodeKinds.millis:
      return micros((value) => value * 1000n)
    case encodeKinds.micros:
      return micros((value) => value)
    case encodeKinds.nanos:
      return micros((value) => (value - (((value % 1000n) + 1000n) % 1000n)) / 1000n)
    case encodeKinds.f32: {
      const value = memory.f32[(values >>> 2) + row]!
      return Number.isFinite(value) ? made(4, (bytes) => bytes.writeFloatBE(value)) : null
    }
    case encodeKinds.f64: {
      const value = memory.f64[(values >>> 3) + row]!
      return Number.isFinite(value) ? made(8, (bytes) => bytes.writeDoubleBE(value)) : null
    }
    case encodeKinds.uuid: {
      const bytes = Buffer.from(memory.u8.slice(values + row * 16, values + row * 16 + 16)).reverse()
      return bytes.toString('hex') === '80000000000000008000000000000000' ? null : bytes
    }
    default:
      return undefined
  }
}

function long64(value: bigint): Buffer {
  return made(8, (bytes) => bytes.writeBigInt64BE(value))
}

function made(length: number, write: (bytes: Buffer) => void): Buffer {
  const bytes = Buffer.alloc(length)
  write(bytes)
  return bytes
}

function textOf(memory: SharedMemory, kind: EncodeKind, values: number, row: number, parameter: number): Buffer | null {
  const text = renderFixed(memory, kind, values, row, parameter)
  if (text === null) return null
  switch (kind) {
    case encodeKinds.boolean:
      return Buffer.from(text === 'true' ? 't' : 'f')
    case encodeKinds.char:
      return text === '' ? null : Buffer.from(text)
    case encodeKinds.millis:
    case encodeKinds.micros:
    case encodeKinds.nanos: {
      const plain = text.replace('T', ' ').slice(0, -1)
      return Buffer.from(kind === encodeKinds.nanos ? plain.slice(0, -3) : plain)
    }
    default:
      return Buffer.from(text)
  }
}
