// Result rows as an Arrow IPC stream: a schema, record batches, an end.
//
//   message   0xFFFFFFFF | metadata bytes i32 | metadata (FlatBuffers, padded to 8) | body (buffers, each padded to 64)
//
//   BOOLEAN Bool | BYTE SHORT INT LONG Int | FLOAT DOUBLE FloatingPoint | BINARY Binary
//   DATE TIMESTAMP TIMESTAMP_NS Timestamp in ms, us, ns of UTC
//   CHAR STRING VARCHAR SYMBOL Utf8; the other types as Utf8 of their texts

import type { Value } from '../../types/value.js'
import { displayText } from '../functions/convert.js'
import type { PlanColumn } from '../plan/plan.js'
import { FlatWriter } from './arrow-flat.js'
import type { Encoder, EncoderOptions } from './encoder.js'
import { valueReader } from './values.js'
import type { Batch, Vector } from './vector.js'

const version5 = 4
const headers = { schema: 1, recordBatch: 3 } as const
const kinds = { int: 2, floatingPoint: 3, binary: 4, utf8: 5, bool: 6, timestamp: 10 } as const
const bufferAlign = 64

interface ArrowType {
  readonly kind: number
  /** Bits of an Int, precision of a FloatingPoint, unit of a Timestamp. */
  readonly detail: number
  /** Bytes of a value; 0: texts, 1/8: bits. */
  readonly width: number
}

const texts: ArrowType = { kind: kinds.utf8, detail: 0, width: 0 }

function arrowType({ type }: PlanColumn): ArrowType {
  switch (type.name) {
    case 'BOOLEAN':
      return { kind: kinds.bool, detail: 0, width: 1 / 8 }
    case 'BYTE':
      return { kind: kinds.int, detail: 8, width: 1 }
    case 'SHORT':
      return { kind: kinds.int, detail: 16, width: 2 }
    case 'INT':
      return { kind: kinds.int, detail: 32, width: 4 }
    case 'LONG':
      return { kind: kinds.int, detail: 64, width: 8 }
    case 'FLOAT':
      return { kind: kinds.floatingPoint, detail: 1, width: 4 }
    case 'DOUBLE':
      return { kind: kinds.floatingPoint, detail: 2, width: 8 }
    case 'DATE':
      return { kind: kinds.timestamp, detail: 1, width: 8 }
    case 'TIMESTAMP':
      return { kind: kinds.timestamp, detail: 2, width: 8 }
    case 'TIMESTAMP_NS':
      return { kind: kinds.timestamp, detail: 3, width: 8 }
    case 'BINARY':
      return { ...texts, kind: kinds.binary }
    default:
      return texts
  }
}

export function arrowEncoder({ context, writer, columns }: EncoderOptions): Encoder {
  const types = columns.map(arrowType)
  const { memory } = context
  return {
    begin: () => {
      writer.bytes(message(headers.schema, (flat) => schemaOf(flat, columns, types), []))
      writer.flush()
    },
    rows: ({ vectors }: Batch, from, to) => {
      const parts = vectors.map((vector, index) => {
        const type = types[index] as ArrowType
        const own = { vector, from, rows: to - from }
        if (type.kind === kinds.bool) return bits(memory.u8, own)
        if (type.width > 0) return fixed(memory, own, type)
        return variable(valueReader(memory, context.texts, vector), own)
      })
      const buffers = parts.flatMap((part) => part.buffers)
      const nodes = parts.map(({ nulls }) => [to - from, nulls] as const)
      writer.bytes(message(headers.recordBatch, (flat) => batchOf(flat, to - from, nodes, buffers), buffers))
    },
    end: () => {
      writer.bytes(Buffer.from([0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0]))
      writer.flush()
    },
  }
}

// Metadata ----------------------------------------------------------------------------------------------------------

function message(kind: number, header: (flat: FlatWriter) => number, buffers: readonly Uint8Array[]): Buffer {
  const flat = new FlatWriter()
  const target = header(flat)
  const bodyBytes = buffers.reduce((sum, { length }) => sum + padded(length), 0)
  flat.beginTable(5)
  flat.int64(3, bodyBytes)
  flat.reference(2, target)
  flat.int16(0, version5)
  flat.int8(1, kind)
  const metadata = flat.finish(flat.endTable())
  const metadataBytes = (metadata.length + 7) & ~7
  const bytes = Buffer.alloc(8 + metadataBytes + bodyBytes)
  bytes.writeUInt32LE(0xffff_ffff, 0)
  bytes.writeInt32LE(metadataBytes, 4)
  metadata.copy(bytes, 8)
  let at = 8 + metadataBytes
  for (const buffer of buffers) {
    bytes.set(buffer, at)
    at += padded(buffer.length)
  }
  return bytes
}

function padded(bytes: number): number {
  return (bytes + bufferAlign - 1) & ~(bufferAlign - 1)
}

function schemaOf(flat: FlatWriter, columns: readonly PlanColumn[], types: readonly ArrowType[]): number {
  const fields = columns.map((column, index) => fieldOf(flat, column, types[index] as ArrowType))
  const vector = flat.references(fields)
  flat.beginTable(4)
  flat.reference(1, vector)
  return flat.endTable()
}

function fieldOf(flat: FlatWriter, { name, type: { name: typeName } }: PlanColumn, type: ArrowType): number {
  const label = flat.text(name)
  const detail = typeOf(flat, type)
  const children = flat.references([])
  flat.beginTable(7)
  flat.reference(0, label)
  flat.reference(3, detail)
  flat.reference(5, children)
  flat.int8(1, ['BOOLEAN', 'BYTE', 'SHORT'].includes(typeName) ? 0 : 1)
  flat.int8(2, type.kind)
  return flat.endTable()
}

function typeOf(flat: FlatWriter, { kind, detail }: ArrowType): number {
  const zone = kind === kinds.timestamp ? flat.text('UTC') : 0
  flat.beginTable(2)
  if (kind === kinds.int) {
    flat.int32(0, detail)
    flat.int8(1, 1)
  } else if (kind === kinds.floatingPoint) flat.int16(0, detail)
  else if (kind === kinds.timestamp) {
    flat.reference(1, zone)
    flat.int16(0, detail)
  }
  return flat.endTable()
}

function batchOf(
  flat: FlatWriter,
  rows: number,
  nodes: readonly (readonly [number, number])[],
  buffers: readonly Uint8Array[],
): number {
  let at = 0
  const places = buffers.map(({ length }) => {
    const place = [at, length] as const
    at += padded(length)
    return place
  })
  const bufferVector = flat.pairs(places)
  const nodeVector = flat.pairs(nodes)
  flat.beginTable(4)
  flat.int64(0, rows)
  flat.reference(1, nodeVector)
  flat.reference(2, bufferVector)
  return flat.endTable()
}

// Columns -----------------------------------------------------------------------------------------------------------

interface Rows {
  readonly vector: Vector
  readonly from: number
  readonly rows: number
}

interface ArrowColumn {
  readonly nulls: number
  readonly buffers: readonly Uint8Array[]
}

const nothing = new Uint8Array(0)

function bits(u8: Uint8Array, { vector, from, rows }: Rows): ArrowColumn {
  const values = new Uint8Array((rows + 7) >>> 3)
  const first = vector.address + from
  for (let row = 0; row < rows; row++) {
    if (u8[first + row] !== 0) values[row >>> 3] = (values[row >>> 3] as number) | (1 << (row & 7))
  }
  return { nulls: 0, buffers: [nothing, values] }
}

type Memory = EncoderOptions['context']['memory']

function fixed(memory: Memory, { vector, from, rows }: Rows, { kind, width }: ArrowType): ArrowColumn {
  const start = vector.address + from * width
  const values = memory.u8.slice(start, start + rows * width)
  if (width < 4) return { nulls: 0, buffers: [nothing, values] }
  const { buffer } = values
  if (kind === kinds.floatingPoint) {
    const numbers = width === 4 ? new Float32Array(buffer) : new Float64Array(buffer)
    return present(rows, values, (row) => !Number.isFinite(numbers[row] as number))
  }
  const words = new Int32Array(buffer)
  if (width === 4) return present(rows, values, (row) => words[row] === -(2 ** 31))
  return present(rows, values, (row) => words[row * 2 + 1] === -(2 ** 31) && words[row * 2] === 0)
}

function present(rows: number, values: Uint8Array, isNull: (row: number) => boolean): ArrowColumn {
  const valid = new Uint8Array((rows + 7) >>> 3).fill(0xff)
  let nulls = 0
  for (let row = 0; row < rows; row++) {
    if (!isNull(row)) continue
    nulls++
    valid[row >>> 3] = (valid[row >>> 3] as number) & ~(1 << (row & 7))
  }
  return { nulls, buffers: [nulls === 0 ? nothing : valid, values] }
}

function variable(read: (row: number) => Value, { vector, from, rows }: Rows): ArrowColumn {
  const offsets = new Int32Array(rows + 1)
  const pieces: Uint8Array[] = []
  const missing: boolean[] = []
  let at = 0
  for (let row = 0; row < rows; row++) {
    const value = read(from + row)
    missing.push(value === null)
    if (value !== null) {
      const piece = value instanceof Uint8Array ? value : Buffer.from(displayText(value, vector.type), 'utf8')
      pieces.push(piece)
      at += piece.length
    }
    offsets[row + 1] = at
  }
  const { nulls, buffers } = present(rows, new Uint8Array(offsets.buffer), (row) => missing[row] as boolean)
  return { nulls, buffers: [...buffers, Buffer.concat(pieces, at)] }
}
