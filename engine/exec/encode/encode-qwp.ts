// Encodes result rows as batches of QWP, a columnar protocol over WebSocket. Each batch begins with 32 bytes in which
// the gateway later writes the header of the message (gateways/http/qwp-read-frames.ts); until then they tell the
// gateway what it needs for that:
//
//   batch     32 bytes: bytes of the body u32 | symbols of the result so far u32 | compressed u8 |
//             unused | body, which may be compressed by zstd
//   body      first symbol varint | symbols varint | (bytes varint | UTF-8) * symbols
//             | name bytes varint (0) | rows varint | [columns varint | definition * columns, in the first batch]
//             | values * columns
//
// A batch is never split between blocks of memory. Symbols are numbered in the order of their first use in the result,
// so only results without symbols can be encoded by several threads.

import { ResourceError } from '../../base/errors.js'
import { zstd } from '../../base/zstd.js'
import { varint } from '../../qwp/message.js'
import type { PlanColumn } from '../../sql/plan/plan.js'
import type { Batch } from '../batch/vector.js'
import type { BatchEncoder, BatchOptions } from './encoder.js'
import { type ColumnPart, columnDefinitions, emptyColumn, QwpColumns } from './qwp-columns.js'
import { ResultSymbols } from './qwp-symbols.js'

export interface QwpEncoding {
  readonly kind: 'qwp'
  /** Rows of a batch. */
  readonly rowsMax: number
  /** 0: batches are not compressed. */
  readonly zstdLevel: number
}

export const batchRoomBytes = 32

/** Larger batches are divided. */
const batchBytesTarget = 4 * 1024 * 1024
/** Clients accept no larger message. */
const batchBytesMax = 16 * 1024 * 1024 - 64
/** Smaller batches are not compressed. */
const compressedBytesMin = 2048
/** A compressed batch is sent if it is smaller than this part of the batch. */
const compressedPart = 0.9
/** Batches that are sent as they are after one that did not get smaller. */
const skippedAfterMiss = 8

export function hasSymbols(columns: readonly PlanColumn[]): boolean {
  return columns.some(({ type }) => type.name === 'SYMBOL')
}

export class QwpRows implements BatchEncoder {
  bytes = 0
  readonly #options: BatchOptions
  readonly #encoding: QwpEncoding
  readonly #symbols: ResultSymbols
  readonly #columns: QwpColumns
  #isFirst: boolean
  #skipped = 0

  /** `any`: whether rows precede. */
  constructor(options: BatchOptions, encoding: QwpEncoding, any: boolean) {
    const { context, columns } = options
    this.#options = options
    this.#encoding = encoding
    this.#isFirst = !any
    this.#symbols = new ResultSymbols(context.memory)
    this.#columns = new QwpColumns(context, columns, this.#symbols)
  }

  rows(batch: Batch, from: number, to: number): void {
    const { rowsMax } = this.#encoding
    for (let first = from; first < to; first += rowsMax) this.#some(batch, first, Math.min(to, first + rowsMax))
  }

  /** Writes a batch without rows, if there were none, since it defines the columns. */
  end(): void {
    if (this.#isFirst) this.#writeEmpty()
  }

  #writeEmpty(): void {
    const { memory } = this.#options.context
    const empty = Buffer.concat(this.#options.columns.map(({ type }) => emptyColumn(type)))
    this.#write(0, [{ bytes: empty.length, put: (target) => memory.put(empty, target) }])
  }

  #some(batch: Batch, from: number, to: number): void {
    const rows = to - from
    const pieces = batch.vectors.flatMap((vector, index) => this.#columns.take(index, vector, from, rows))
    const bytes = pieces.reduce((sum, piece) => sum + piece.bytes, 0)
    if (bytes <= batchBytesTarget || rows === 1) {
      while (this.#symbols.unsentBytes > batchBytesTarget) this.#writeEmpty()
      this.#write(rows, pieces)
      return
    }
    const middle = from + Math.floor(rows / 2)
    this.#some(batch, from, middle)
    this.#some(batch, middle, to)
  }

  #write(rows: number, pieces: readonly ColumnPart[]): void {
    const { writer, context } = this.#options
    const head = this.#head(rows)
    const bytes = head.length + pieces.reduce((sum, piece) => sum + piece.bytes, 0)
    if (bytes > batchBytesMax) {
      throw new ResourceError(`a row is too long for a message of QWP [bytes=${bytes}, limit=${batchBytesMax}]`)
    }
    writer.reserve(batchRoomBytes + bytes)
    const room = writer.at
    const body = room + batchRoomBytes
    context.memory.put(head, body)
    let at = body + head.length
    for (const piece of pieces) {
      piece.put(at)
      at += piece.bytes
    }
    const compressed = this.#compress(body, bytes)
    if (compressed !== null) context.memory.put(compressed, body)
    const sent = compressed?.length ?? bytes
    const header = Buffer.alloc(batchRoomBytes)
    header.writeUInt32LE(sent, 0)
    header.writeUInt32LE(this.#symbols.count, 4)
    header.writeUInt8(compressed === null ? 0 : 1, 8)
    context.memory.put(header, room)
    this.#isFirst = false
    this.bytes += batchRoomBytes + sent
    writer.advance(body + sent, rows)
  }

  #head(rows: number): Buffer {
    const { first, texts } = this.#symbols.take(batchBytesTarget)
    return Buffer.concat([
      ...[varint(first), varint(texts.length)],
      ...texts.flatMap((text) => [varint(text.length), text]),
      ...[varint(0), varint(rows)],
      ...(this.#isFirst ? [columnDefinitions(this.#options.columns)] : []),
    ])
  }

  /** Null: it does not pay. */
  #compress(address: number, bytes: number): Uint8Array | null {
    const { zstdLevel } = this.#encoding
    if (zstdLevel === 0 || bytes < compressedBytesMin) return null
    if (this.#skipped > 0) {
      this.#skipped--
      return null
    }
    const { u8 } = this.#options.context.memory
    const compressed = zstd().compress(u8.slice(address, address + bytes), zstdLevel)
    if (compressed.length <= bytes * compressedPart) return compressed
    this.#skipped = skippedAfterMiss
    return null
  }
}
