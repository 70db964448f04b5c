// Reads single values from vectors and writes them, converting between the bytes in shared memory and JavaScript values
// (types/value.ts). For the expression interpreter, constants and results that are returned as JavaScript values; hot
// loops access the memory directly.

import { assert } from '../../base/assert.js'
import { arrayDimensionsMax } from '../../base/limits.js'
import type { SharedMemory } from '../../memory/shared-memory.js'
import { fillNull } from '../../storage/memtable/memtable-values.js'
import { type ColumnType, type DataType, storageOf } from '../../types/column-types.js'
import { intMin, longMin } from '../../types/number.js'
import type { ArrayValue, IntervalValue, Value } from '../../types/value.js'
import type { StringHeap } from './string-heap.js'
import type { SymbolStrings, Symbols } from './symbols.js'
import { textAt } from './text-at.js'
import type { Vector } from './vector.js'

export type ValueReader = (row: number) => Value

/** A function that reads the vector's value of a row. Strings of symbols come from the cache `strings`. */
export function valueReader(memory: SharedMemory, strings: SymbolStrings, vector: Vector): ValueReader {
  return readers[vector.type.name](memory, vector, strings)
}

type ReaderOf = (memory: SharedMemory, vector: Vector, strings: SymbolStrings) => ValueReader

const longReader: ReaderOf = ({ i64 }, { address }) => {
  const first = address >>> 3
  return (row) => {
    const value = i64[first + row]!
    return value === longMin ? null : value
  }
}

const textReader: ReaderOf = (memory, { address }) => {
  const first = address >>> 2
  return (row) => {
    const bytes = memory.i32[first + row * 2 + 1]!
    return bytes < 0 ? null : textAt(memory, memory.u32[first + row * 2]!, bytes)
  }
}

const readers: Record<ColumnType, ReaderOf> = {
  BOOLEAN:
    ({ i8 }, { address }) =>
    (row) =>
      i8[address + row] !== 0,
  BYTE:
    ({ i8 }, { address }) =>
    (row) =>
      i8[address + row]!,
  SHORT:
    ({ i16 }, { address }) =>
    (row) =>
      i16[(address >>> 1) + row]!,
  CHAR:
    ({ u16 }, { address }) =>
    (row) => {
      const unit = u16[(address >>> 1) + row]!
      return unit === 0 ? '' : String.fromCharCode(unit)
    },
  INT:
    ({ i32 }, { address }) =>
    (row) => {
      const value = i32[(address >>> 2) + row]!
      return value === intMin ? null : value
    },
  IPv4:
    ({ u32 }, { address }) =>
    (row) =>
      u32[(address >>> 2) + row]! || null,
  LONG: longReader,
  DATE: longReader,
  TIMESTAMP: longReader,
  TIMESTAMP_NS: longReader,
  FLOAT:
    ({ f32 }, { address }) =>
    (row) =>
      nanAsNull(f32[(address >>> 2) + row]!),
  DOUBLE:
    ({ f64 }, { address }) =>
    (row) =>
      nanAsNull(f64[(address >>> 3) + row]!),
  STRING: textReader,
  VARCHAR: textReader,
  SYMBOL: ({ i32 }, { address, dictionary }, strings) => {
    const textOf = strings.of(dictionary)
    return (row) => {
      const id = i32[(address >>> 2) + row]!
      return id < 0 ? null : textOf(id)
    }
  },
  UUID:
    ({ u64 }, { address }) =>
    (row) =>
      wideAt(u64, (address >>> 3) + row * 2, 2),
  LONG256:
    ({ u64 }, { address }) =>
    (row) =>
      wideAt(u64, (address >>> 3) + row * 4, 4),
  GEOHASH: geohashReader,
  BINARY:
    ({ u8, u32, i32 }, { address }) =>
    (row) => {
      const entry = (address >>> 2) + row * 2
      const bytes = i32[entry + 1]!
      const start = u32[entry]!
      return bytes < 0 ? null : u8.slice(start, start + bytes)
    },
  ARRAY:
    (memory, { address }) =>
    (row) => {
      const entry = (address >>> 2) + row * 2
      return memory.i32[entry + 1]! < 0 ? null : arrayAt(memory, memory.u32[entry]!)
    },
  DECIMAL: decimalReader,
  INTERVAL:
    ({ i64 }, { address }) =>
    (row) => {
      const lo = i64[(address >>> 3) + row * 2]!
      return lo === longMin ? null : { lo, hi: i64[(address >>> 3) + row * 2 + 1]! }
    },
}

function nanAsNull(value: number): number | null {
  return Number.isNaN(value) ? null : value
}

const wideNull = 1n << 63n

/** UUID and LONG256 are NULL when each of their words is the smallest integer. */
function wideAt(u64: BigUint64Array, word: number, words: number): bigint | null {
  let value = 0n
  let isNull = true
  for (let index = words - 1; index >= 0; index--) {
    const part = u64[word + index]!
    if (part !== wideNull) isNull = false
    value = (value << 64n) | part
  }
  return isNull ? null : value
}

function geohashReader(memory: SharedMemory, { address, type }: Vector): ValueReader {
  const at = integerReader(memory, address, type)
  return (row) => {
    const value = at(row)
    return value === -1n ? null : value
  }
}

/** Reads any integer storage as bigint, NULL sentinels included. */
function integerReader({ i8, i16, i32, i64 }: SharedMemory, address: number, type: DataType): (row: number) => bigint {
  switch (storageOf(type)) {
    case 'i8':
      return (row) => BigInt(i8[address + row]!)
    case 'i16':
      return (row) => BigInt(i16[(address >>> 1) + row]!)
    case 'i32':
      return (row) => BigInt(i32[(address >>> 2) + row]!)
    default:
      return (row) => i64[(address >>> 3) + row]!
  }
}

function decimalReader({ u64, i64 }: SharedMemory, { address, type }: Vector): ValueReader {
  const words = { i64: 1, b16: 2, b32: 4 }[storageOf(type) as 'i64' | 'b16' | 'b32']
  const smallest = -(1n << BigInt(words * 64 - 1))
  return (row) => {
    const first = (address >>> 3) + row * words
    let value = i64[first + words - 1]!
    for (let index = words - 2; index >= 0; index--) value = (value << 64n) | u64[first + index]!
    return value === smallest ? null : value
  }
}

/** Arrays of parts are read in place from their page, at any alignment. */
function arrayAt(memory: SharedMemory, address: number): ArrayValue {
  if ((address & 7) !== 0) return unalignedArrayAt(memory, address)
  const word = address >>> 2
  const dimensions = memory.u32[word]!
  const shape = Array.from(memory.u32.subarray(word + 1, word + 1 + dimensions))
  const data = (address + ((4 + dimensions * 4 + 7) & ~7)) >>> 3
  const count = shape.reduce((product, length) => product * length, 1)
  return { shape, data: memory.f64.slice(data, data + count) }
}

function unalignedArrayAt({ u8 }: SharedMemory, address: number): ArrayValue {
  const header = u8.slice(address, address + 4 + arrayDimensionsMax * 4)
  const [dimensions = 0, ...lengths] = new Uint32Array(header.buffer)
  const shape = lengths.slice(0, dimensions)
  const data = address + ((4 + dimensions * 4 + 7) & ~7)
  const count = shape.reduce((product, length) => product * length, 1)
  return { shape, data: new Float64Array(u8.slice(data, data + count * 8).buffer) }
}

/** Where a written value of variable size goes. */
export interface WriteTarget {
  readonly memory: SharedMemory
  readonly heap: StringHeap
  /** Adds the strings of SYMBOL vectors. */
  readonly symbols: Symbols
}

/** Writes one value, possibly NULL, to a row of the column at the address. */
export function writeValue(target: WriteTarget, type: DataType, address: number, row: number, value: Value): void {
  if (value === null) fillNull(target.memory, type, address, row, row + 1)
  else writers[type.name](target, type, address, row, value)
}

type WriterOf = (target: WriteTarget, type: DataType, address: number, row: number, value: Exclude<Value, null>) => void

const writeText: WriterOf = (target, _type, address, row, value) => {
  writeBytes(target, address, row, Buffer.from(String(value), 'utf8'))
}

const writeLong: WriterOf = ({ memory }, _type, address, row, value) => {
  memory.i64[(address >>> 3) + row] = BigInt(value as bigint | number)
}

/** Turns an infinite value to NaN, which is NULL. */
export function finite(value: number): number {
  return value - (value - value)
}

const writers: Record<ColumnType, WriterOf> = {
  BOOLEAN: ({ memory }, _type, address, row, value) => {
    memory.i8[address + row] = value === true ? 1 : 0
  },
  BYTE: ({ memory }, _type, address, row, value) => {
    memory.i8[address + row] = Number(value)
  },
  SHORT: ({ memory }, _type, address, row, value) => {
    memory.i16[(address >>> 1) + row] = Number(value)
  },
  CHAR: ({ memory }, _type, address, row, value) => {
    memory.u16[(address >>> 1) + row] = value === '' ? 0 : String(value).charCodeAt(0)
  },
  INT: ({ memory }, _type, address, row, value) => {
    memory.i32[(address >>> 2) + row] = Number(value)
  },
  IPv4: ({ memory }, _type, address, row, value) => {
    memory.u32[(address >>> 2) + row] = Number(value)
  },
  LONG: writeLong,
  DATE: writeLong,
  TIMESTAMP: writeLong,
  TIMESTAMP_NS: writeLong,
  FLOAT: ({ memory }, _type, address, row, value) => {
    memory.f32[(address >>> 2) + row] = finite(Math.fround(Number(value)))
  },
  DOUBLE: ({ memory }, _type, address, row, value) => {
    memory.f64[(address >>> 3) + row] = finite(Number(value))
  },
  STRING: writeText,
  VARCHAR: writeText,
  SYMBOL: ({ memory, symbols }, _type, address, row, value) => {
    memory.i32[(address >>> 2) + row] = symbols.intern(String(value))
  },
  UUID: ({ memory }, _type, address, row, value) => writeWide(memory, (address >>> 3) + row * 2, 2, value as bigint),
  LONG256: ({ memory }, _type, address, row, value) => writeWide(memory, (address >>> 3) + row * 4, 4, value as bigint),
  GEOHASH: ({ memory }, type, address, row, value) => writeInteger(memory, type, address, row, value as bigint),
  BINARY: (target, _type, address, row, value) => writeBytes(target, address, row, value as Uint8Array),
  ARRAY: (target, _type, address, row, value) => writeArray(target, address, row, value as ArrayValue),
  DECIMAL: ({ memory }, type, address, row, value) => {
    const words = { i64: 1, b16: 2, b32: 4 }[storageOf(type) as 'i64' | 'b16' | 'b32']
    writeWide(memory, (address >>> 3) + row * words, words, value as bigint)
  },
  INTERVAL: ({ memory }, _type, address, row, value) => {
    const { lo, hi } = value as IntervalValue
    memory.i64[(address >>> 3) + row * 2] = lo
    memory.i64[(address >>> 3) + row * 2 + 1] = hi
  },
}

function writeWide({ i64 }: SharedMemory, word: number, words: number, value: bigint): void {
  for (let index = 0; index < words; index++) i64[word + index] = BigInt.asIntN(64, value >> BigInt(index * 64))
}

function writeInteger(memory: SharedMemory, type: DataType, address: number, row: number, value: bigint): void {
  const kind = storageOf(type)
  if (kind === 'i8') memory.i8[address + row] = Number(value)
  else if (kind === 'i16') memory.i16[(address >>> 1) + row] = Number(value)
  else if (kind === 'i32') memory.i32[(address >>> 2) + row] = Number(value)
  else memory.i64[(address >>> 3) + row] = value
}

function writeBytes({ memory, heap }: WriteTarget, address: number, row: number, bytes: Uint8Array): void {
  const entry = (address >>> 2) + row * 2
  memory.u32[entry] = heap.put(bytes)
  memory.i32[entry + 1] = bytes.length
}

function writeArray({ memory, heap }: WriteTarget, address: number, row: number, { shape, data }: ArrayValue): void {
  assert(shape.length > 0, 'R3: an array has dimensions')
  const header = (4 + shape.length * 4 + 7) & ~7
  const start = heap.reserve(header + data.length * 8)
  memory.u8.fill(0, start, start + header)
  memory.u32[start >>> 2] = shape.length
  memory.u32.set(shape, (start >>> 2) + 1)
  memory.f64.set(data, (start + header) >>> 3)
  const entry = (address >>> 2) + row * 2
  memory.u32[entry] = start
  memory.i32[entry + 1] = header + data.length * 8
}
