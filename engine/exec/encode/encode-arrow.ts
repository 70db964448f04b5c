// Encodes result rows as an Arrow IPC stream: schema, record batches, end of stream.
//
//   message   0xFFFFFFFF | metadata bytes i32 | metadata (FlatBuffers, padded to 8) | body (buffers, each padded to 64)
//
// Each call of rows() writes a record batch, whose buffers (arrow-columns.ts) are written directly to the output block.

import type { PlanColumn } from '../../sql/plan/plan.js'
import type { Batch } from '../batch/vector.js'
import { ArrowColumns, type ArrowPart, type ArrowType, arrowType, arrowKinds as kinds } from './arrow-columns.js'
import { FlatWriter } from './arrow-flat.js'
import type { BatchEncoder, BatchOptions } from './encoder.js'

const version5 = 4
const headers = { schema: 1, recordBatch: 3 } as const
const bufferAlign = 64

/** The schema message, before all rows. */
export function arrowSchema(columns: readonly PlanColumn[]): Buffer {
  return message(headers.schema, (flat) => schemaOf(flat, columns), 0)
}

/** The end-of-stream marker. */
export const arrowEnd = Buffer.from([0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0])

export class ArrowRows implements BatchEncoder {
  bytes = 0
  readonly #options: BatchOptions
  readonly #columns: ArrowColumns

  constructor(options: BatchOptions) {
    this.#options = options
    this.#columns = new ArrowColumns(options.context, options.columns)
  }

  rows({ vectors }: Batch, from: number, to: number): void {
    const { writer, context } = this.#options
    const { u8 } = context.memory
    const parts = vectors.map((vector, index) => this.#columns.take(index, vector, from, to - from))
    const buffers = parts.flatMap((part) => part.buffers)
    const bodyBytes = buffers.reduce((sum, { bytes }) => sum + padded(bytes), 0)
    const head = message(headers.recordBatch, (flat) => batchOf(flat, to - from, parts), bodyBytes)
    const all = head.length + bodyBytes
    writer.reserve(all)
    context.memory.put(head, writer.at)
    let at = writer.at + head.length
    for (const { bytes, put } of buffers) {
      const end = at + padded(bytes)
      put(at)
      u8.fill(0, at + bytes, end)
      at = end
    }
    this.bytes += all
    writer.advance(at, to - from)
  }
}

/** A message without its body. */
function message(kind: number, header: (flat: FlatWriter) => number, bodyBytes: number): Buffer {
  const flat = new FlatWriter()
  const target = header(flat)
  flat.beginTable(5)
  flat.int64(3, bodyBytes)
  flat.reference(2, target)
  flat.int16(0, version5)
  flat.int8(1, kind)
  const metadata = flat.finish(flat.endTable())
  const metadataBytes = (metadata.length + 7) & ~7
  const bytes = Buffer.alloc(8 + metadataBytes)
  bytes.writeUInt32LE(0xffff_ffff, 0)
  bytes.writeInt32LE(metadataBytes, 4)
  metadata.copy(bytes, 8)
  return bytes
}

function padded(bytes: number): number {
  return (bytes + bufferAlign - 1) & ~(bufferAlign - 1)
}

function schemaOf(flat: FlatWriter, columns: readonly PlanColumn[]): number {
  const fields = columns.map((column) => fieldOf(flat, column))
  const vector = flat.references(fields)
  flat.beginTable(4)
  flat.reference(1, vector)
  return flat.endTable()
}

function fieldOf(flat: FlatWriter, { name, type: own }: PlanColumn): number {
  const type = arrowType(own)
  const label = flat.text(name)
  const detail = typeOf(flat, type)
  const children = flat.references([])
  flat.beginTable(7)
  flat.reference(0, label)
  flat.reference(3, detail)
  flat.reference(5, children)
  flat.int8(1, ['BOOLEAN', 'BYTE', 'SHORT'].includes(own.name) ? 0 : 1)
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

function batchOf(flat: FlatWriter, rows: number, parts: readonly ArrowPart[]): number {
  let at = 0
  const places = parts
    .flatMap(({ buffers }) => buffers)
    .map(({ bytes }) => {
      const place = [at, bytes] as const
      at += padded(bytes)
      return place
    })
  const bufferVector = flat.pairs(places)
  const nodeVector = flat.pairs(parts.map(({ nulls }) => [rows, nulls] as const))
  flat.beginTable(4)
  flat.int64(0, rows)
  flat.reference(1, nodeVector)
  flat.reference(2, bufferVector)
  return flat.endTable()
}
