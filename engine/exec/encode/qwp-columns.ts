// Encodes columns of a result for clients of QWP (columnar protocol over WebSocket). engine/qwp/message.ts describes
// the layouts; in messages to clients, DATE has an encoding byte like other timestamps, timestamps are never
// compressed, and NULLs are always marked in the bitmap.
//
// Encoding a batch has two steps. take() finds the NULLs and returns, for each column, its size in the message and a
// function put(), so that the output block can be allocated; put() then writes the column there. Columns without NULLs
// are copied once, others are compacted by a WebAssembly kernel. Types that QWP lacks are sent as text.

import { nonNull } from '../../base/assert.js'
import { nullKinds } from '../../kernels/parquet.js'
import { budgets } from '../../memory/budgets.js'
import type { SharedMemory } from '../../memory/shared-memory.js'
import { varint, type WireType, wireTypes } from '../../qwp/message.js'
import type { PlanColumn } from '../../sql/plan/plan.js'
import { Scratch } from '../../storage/part/part-scratch.js'
import { type ColumnType, type DataType, widthOf } from '../../types/column-types.js'
import { arenaAllocator } from '../batch/arena-allocator.js'
import type { ExecContext } from '../batch/context.js'
import type { Vector } from '../batch/vector.js'
import { displayedStrings } from './displayed-strings.js'
import type { ResultSymbols } from './qwp-symbols.js'

/** A run of bytes of a column. */
export interface ColumnPart {
  readonly bytes: number
  /** Writes the bytes; up to 64 bytes after them may be overwritten. */
  readonly put: (target: number) => void
}

const wireOf: Partial<Record<ColumnType, WireType>> = {
  ...{ BOOLEAN: 'BOOLEAN', BYTE: 'BYTE', SHORT: 'SHORT', CHAR: 'CHAR', INT: 'INT', LONG: 'LONG', FLOAT: 'FLOAT' },
  ...{ DOUBLE: 'DOUBLE', SYMBOL: 'SYMBOL', TIMESTAMP: 'TIMESTAMP', TIMESTAMP_NS: 'TIMESTAMP_NANOS', DATE: 'DATE' },
  ...{ UUID: 'UUID', LONG256: 'LONG256', GEOHASH: 'GEOHASH', VARCHAR: 'VARCHAR', STRING: 'VARCHAR' },
  ...{ BINARY: 'BINARY', IPv4: 'IPv4', ARRAY: 'DOUBLE_ARRAY' },
}

/** How types whose values are sent as they are in memory represent NULL. */
const fixedNulls: Partial<Record<ColumnType, number>> = {
  ...{ BYTE: nullKinds.none, SHORT: nullKinds.none, CHAR: nullKinds.none },
  ...{ INT: nullKinds.i32Minimum, IPv4: nullKinds.i32Zero, FLOAT: nullKinds.f32, DOUBLE: nullKinds.f64 },
  ...{ LONG: nullKinds.i64Minimum, DATE: nullKinds.i64Minimum },
  ...{ TIMESTAMP: nullKinds.i64Minimum, TIMESTAMP_NS: nullKinds.i64Minimum },
  ...{ UUID: nullKinds.words16, LONG256: nullKinds.words32 },
}

const noNulls = Buffer.of(0)
const nothing = Buffer.alloc(0)

function wireTypeOf({ name, a }: DataType): WireType {
  if (name === 'DECIMAL') return a <= 18 ? 'DECIMAL64' : a <= 38 ? 'DECIMAL128' : 'DECIMAL256'
  return wireOf[name] ?? 'VARCHAR'
}

/** The definitions of the columns, which the first batch of a result has. */
export function columnDefinitions(columns: readonly PlanColumn[]): Buffer {
  const definitions = columns.flatMap(({ name, type }) => {
    const text = Buffer.from(name)
    return [varint(text.length), text, Buffer.of(wireTypes[wireTypeOf(type)])]
  })
  return Buffer.concat([varint(columns.length), ...definitions])
}

/** What precedes the values of a column: the encoding byte of timestamps, bits of a GEOHASH, scale of a DECIMAL. */
function prefixOf({ name, a, b }: DataType): Buffer {
  if (name === 'DATE' || name === 'TIMESTAMP' || name === 'TIMESTAMP_NS') return Buffer.of(0)
  if (name === 'GEOHASH') return varint(a)
  return name === 'DECIMAL' ? Buffer.of(b) : nothing
}

/** A column without rows. */
export function emptyColumn(type: DataType): Buffer {
  const wire = wireTypeOf(type)
  const offsets = Buffer.alloc(wire === 'VARCHAR' || wire === 'BINARY' ? 4 : 0)
  return Buffer.concat([noNulls, prefixOf(type), offsets])
}

/** Non-NULL values, and the flag and bitmap before them. */
interface Present {
  readonly head: ColumnPart
  /** Address of the bitmap with 1 for values; 0: no value is NULL. */
  readonly bits: number
  readonly count: number
}

export class QwpColumns {
  readonly #context: ExecContext
  readonly #symbols: ResultSymbols
  /** One for each column. */
  readonly #scratch: readonly Scratch[]

  constructor(context: ExecContext, columns: readonly PlanColumn[], symbols: ResultSymbols) {
    const { memory, arena } = context
    this.#context = context
    this.#symbols = symbols
    this.#scratch = columns.map(() => new Scratch(memory, arenaAllocator(arena), budgets.queries))
  }

  /** Prepares the rows [from, from + rows) of a column; valid until the next call for it. */
  take(index: number, vector: Vector, from: number, rows: number): ColumnPart[] {
    const scratch = nonNull(this.#scratch[index])
    const { type } = vector
    const values = vector.address + from * widthOf(type)
    switch (type.name) {
      case 'BOOLEAN': {
        const put = (target: number): void => this.#context.kernels.parquet.packBooleans(values, rows, target)
        return [this.#buffer(noNulls), { bytes: (rows + 7) >>> 3, put }]
      }
      case 'SYMBOL':
        return this.#symbolIds(scratch, vector, values, rows)
      case 'VARCHAR':
      case 'STRING':
      case 'BINARY':
        return this.#strings(scratch, values, rows)
      case 'ARRAY':
        return this.#arrays(scratch, values, rows)
      case 'GEOHASH':
        return this.#geohashes(scratch, type, values, rows)
      case 'DECIMAL':
        return this.#fixed(scratch, values, rows, type, decimalNulls(type))
      default: {
        const kind = fixedNulls[type.name]
        if (kind !== undefined) return this.#fixed(scratch, values, rows, type, kind)
        return this.#strings(scratch, displayedStrings(this.#context, scratch, vector, from, rows), rows)
      }
    }
  }

  #buffer(bytes: Uint8Array): ColumnPart {
    const { memory } = this.#context
    return { bytes: bytes.length, put: (target) => memory.put(bytes, target) }
  }

  #present(scratch: Scratch, values: number, rows: number, kind: number): Present {
    if (kind === nullKinds.none) return { head: this.#buffer(noNulls), bits: 0, count: rows }
    const bits = scratch.room('bits', (rows >>> 3) + 64)
    const count = this.#context.kernels.parquet.presence(values, rows, kind, bits)
    if (count === rows) return { head: this.#buffer(noNulls), bits: 0, count }
    return { head: nullBitmap(scratch.memory, bits, rows), bits, count }
  }

  #fixed(scratch: Scratch, values: number, rows: number, type: DataType, kind: number): ColumnPart[] {
    const { memory } = scratch
    const width = widthOf(type)
    const { head, bits, count } = this.#present(scratch, values, rows, kind)
    const put = (target: number): void => {
      if (bits === 0) memory.copy(target, values, values + count * width)
      else this.#context.kernels.parquet.compact(values, rows, width, bits, target)
    }
    return [head, this.#buffer(prefixOf(type)), { bytes: count * width, put }]
  }

  /** `entries`: address and length of each string; length -1 is NULL. */
  #strings(scratch: Scratch, entries: number, rows: number): ColumnPart[] {
    const { memory } = scratch
    const { head, packed, count } = this.#entries(scratch, entries, rows)
    const offsets = scratch.room('offsets', (count + 1) * 4)
    const bytes = addLengths(memory.i32, (packed >>> 2) + 1, count, offsets >>> 2)
    const put = (target: number): void => this.#context.kernels.parquet.textBytes(packed, count, target)
    return [head, copied(memory, offsets, (count + 1) * 4), { bytes, put }]
  }

  /** Entries of variable size without the NULLs. */
  #entries(scratch: Scratch, entries: number, rows: number): { head: ColumnPart; packed: number; count: number } {
    const { head, bits, count } = this.#present(scratch, entries, rows, nullKinds.entry)
    if (bits === 0) return { head, packed: entries, count }
    const packed = scratch.room('packed', rows * 8)
    this.#context.kernels.parquet.compact(entries, rows, 8, bits, packed)
    return { head, packed, count }
  }

  #symbolIds(scratch: Scratch, { dictionary }: Vector, values: number, rows: number): ColumnPart[] {
    const { memory } = scratch
    const { i32 } = memory
    const bits = scratch.room('bits', (rows >>> 3) + 64)
    const count = this.#context.kernels.parquet.presence(values, rows, nullKinds.i32, bits)
    const ids = scratch.room('ids', rows * 5)
    const u8 = bytesAt(memory, ids, rows * 5)
    const numbers = this.#symbols.of(dictionary)
    let at = 0
    for (let word = values >>> 2, end = word + rows; word < end; word++) {
      const symbol = i32[word]!
      if (symbol < 0) continue
      let id = numbers.ids[symbol] ?? -1
      if (id < 0) id = this.#symbols.add(numbers, symbol)
      for (; id >= 0x80; id >>>= 7) u8[at++] = (id & 0x7f) | 0x80
      u8[at++] = id
    }
    const head = count === rows ? this.#buffer(noNulls) : nullBitmap(memory, bits, rows)
    return [head, copied(memory, ids, at)]
  }

  #geohashes(scratch: Scratch, type: DataType, values: number, rows: number): ColumnPart[] {
    const { memory } = scratch
    const width = widthOf(type)
    const { head, bits, count } = this.#present(scratch, values, rows, geohashNulls[width] ?? nullKinds.i64)
    let packed = values
    if (bits !== 0) {
      packed = scratch.room('packed', (rows + 1) * width)
      this.#context.kernels.parquet.compact(values, rows, width, bits, packed)
    }
    const bytes = Math.ceil(type.a / 8)
    const put = (target: number): void => {
      const [from, out] = [bytesAt(memory, packed, count * width), bytesAt(memory, target, count * bytes)]
      let to = 0
      for (let row = 0; row < count; row++) {
        for (let byte = 0; byte < bytes; byte++) out[to++] = from[row * width + byte]!
      }
    }
    return [head, this.#buffer(prefixOf(type)), { bytes: count * bytes, put }]
  }

  /** Arrays of parts are read in place from their page, at any alignment. */
  #arrays(scratch: Scratch, entries: number, rows: number): ColumnPart[] {
    const { memory } = scratch
    const { head, packed, count } = this.#entries(scratch, entries, rows)
    const { u8, u32, i32 } = memory
    const first = packed >>> 2
    let bytes = 0
    for (let row = 0; row < count; row++) {
      const dimensions = u8[u32[first + row * 2]!]!
      bytes += 1 + dimensions * 4 + i32[first + row * 2 + 1]! - dataOffset(dimensions)
    }
    const put = (target: number): void => {
      let to = target
      for (let row = 0; row < count; row++) {
        const start = u32[first + row * 2]!
        const end = start + i32[first + row * 2 + 1]!
        const dimensions = u8[start]!
        u8[to] = dimensions
        u8.copyWithin(to + 1, start + 4, start + 4 + dimensions * 4)
        to += 1 + dimensions * 4
        const data = start + dataOffset(dimensions)
        memory.copy(to, data, end)
        to += end - data
      }
    }
    return [head, { bytes, put }]
  }
}

function decimalNulls(type: DataType): number {
  const width = widthOf(type)
  if (width === 8) return nullKinds.i64Minimum
  return width === 16 ? nullKinds.decimal16 : nullKinds.decimal32
}

const geohashNulls: Readonly<Record<number, number>> = { 1: nullKinds.i8, 2: nullKinds.i16, 4: nullKinds.i32 }

/** Where the elements of an array begin, in memory. */
function dataOffset(dimensions: number): number {
  return (4 + dimensions * 4 + 7) & ~7
}

/** The flag and the bitmap of NULLs: the complement of `bits`, with zeros after the last row. */
function nullBitmap(memory: SharedMemory, bits: number, rows: number): ColumnPart {
  const bytes = (rows + 7) >>> 3
  const put = (target: number): void => {
    const [from, out] = [bytesAt(memory, bits, bytes), bytesAt(memory, target, 1 + bytes)]
    out[0] = 1
    for (let byte = 0; byte < bytes; byte++) out[1 + byte] = ~from[byte]!
    if (rows % 8 !== 0) out[bytes] = out[bytes]! & ((1 << (rows % 8)) - 1)
  }
  return { bytes: 1 + bytes, put }
}

/** A view for loops: V8 reads and writes typed arrays slowly at positions from 2^31 on. */
function bytesAt({ u8 }: SharedMemory, address: number, bytes: number): Uint8Array {
  return u8.subarray(address, address + bytes)
}

function copied(memory: SharedMemory, from: number, bytes: number): ColumnPart {
  return { bytes, put: (target) => memory.copy(target, from, from + bytes) }
}

/** Writes the end of each string, from 0 on, and returns the last one. */
function addLengths(i32: Int32Array, lengths: number, count: number, target: number): number {
  let end = 0
  i32[target] = 0
  for (let row = 0; row < count; row++) {
    end += i32[lengths + row * 2]!
    i32[target + 1 + row] = end
  }
  return end
}
