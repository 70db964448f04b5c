// Decodes rows in PostgreSQL's binary format of COPY. The input comes in chunks that may end at any byte, also within a
// value. Its format:
//
//   file   "PGCOPY\n\xff\r\n\0" | flags u32 (one of the upper 16 bits is an error) | extension bytes u32 |
//          extension | row* | -1 i16
//   row    count i16 (bytes i32, -1 NULL | value)*

import { assert, nonNull } from '../base/assert.js'
import { RowError } from '../base/errors.js'
import { type DataType, pgOidOf } from '../types/column-types.js'
import { oids } from '../types/pg-oids.js'
import type { AppenderColumn, ColumnAppender } from './column-appender.js'
import type { RowBatch, RowCollector } from './row-collector.js'

const signature = Buffer.from('PGCOPY\n\xff\r\n\0', 'latin1')
const headerBytes = 19
const rowBytesMax = 64 * 1024 * 1024

/** A column that the rows do not contain. */
export interface DefaultColumn {
  readonly column: AppenderColumn
  readonly append: (appender: ColumnAppender) => void
}

export class BinaryRows {
  readonly #collector: RowCollector
  readonly #tableId: number
  /** Columns of the rows, followed by the others. */
  readonly #columns: readonly AppenderColumn[]
  readonly #defaults: readonly DefaultColumn[]
  readonly #types: readonly { readonly type: DataType; readonly oid: number }[]
  readonly #key: string
  #rest: Buffer = Buffer.alloc(0)
  #state: 'header' | 'rows' | 'ended' = 'header'
  #rows = 0

  constructor(
    collector: RowCollector,
    tableId: number,
    columns: readonly AppenderColumn[],
    defaults: readonly DefaultColumn[],
  ) {
    this.#collector = collector
    this.#tableId = tableId
    this.#columns = [...columns, ...defaults.map(({ column }) => column)]
    this.#defaults = defaults
    this.#types = columns.map(({ type, wanted }) => ({ type, oid: pgOidOf(wanted ?? type) }))
    this.#key = this.#columns.map(({ columnId }) => columnId).join()
  }

  /** Throws RowError, SqlError. */
  push(chunk: Buffer): void {
    let bytes = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk])
    if (this.#state === 'header') {
      const header = this.#header(bytes)
      if (header === 0) {
        this.#rest = bytes
        return
      }
      bytes = bytes.subarray(header)
      this.#state = 'rows'
    }
    let at = 0
    while (this.#state === 'rows') {
      const next = this.#row(bytes, at)
      if (next < 0) break
      at = next
    }
    assert(at <= bytes.length, 'P1: rows are taken from the bytes that are here')
    this.#rest = bytes.subarray(at)
    if (this.#state === 'ended' && this.#rest.length > 0) throw this.#bad('received COPY data after EOF marker')
    if (this.#rest.length > rowBytesMax) throw this.#bad('the row is too long')
  }

  end(): number {
    if (this.#state !== 'ended' && this.#rest.length > 0) throw this.#bad('unexpected EOF in COPY data')
    return this.#rows
  }

  #bad(reason: string): RowError {
    return new RowError(`${reason} [row=${this.#rows + 1}]`, this.#rows + 1)
  }

  /** Size of the header; 0 when it is incomplete. */
  #header(bytes: Buffer): number {
    if (bytes.length < headerBytes) return 0
    if (!bytes.subarray(0, signature.length).equals(signature)) throw this.#bad('COPY file signature not recognized')
    const extension = bytes.readUInt32BE(15)
    if (extension > rowBytesMax) throw this.#bad('invalid COPY file header')
    if (bytes.readUInt16BE(11) !== 0) throw this.#bad('unrecognized critical flags in COPY file header')
    return bytes.length < headerBytes + extension ? 0 : headerBytes + extension
  }

  /** Offset of the next row; -1 when this one is incomplete. */
  #row(bytes: Buffer, start: number): number {
    if (start + 2 > bytes.length) return -1
    const count = bytes.readInt16BE(start)
    if (count === -1) {
      this.#state = 'ended'
      return start + 2
    }
    const expected = this.#types.length
    if (count !== expected) throw this.#bad(`row field count is ${count}, expected ${expected}`)
    const end = this.#endOf(bytes, start + 2, count)
    if (end < 0) return -1
    const batch = this.#collector.batch(this.#tableId, this.#key, this.#columns)
    try {
      this.#append(batch, bytes, start + 2)
    } catch (error) {
      for (const column of batch.columns) column.truncate(batch.rows)
      throw this.#bad(error instanceof Error ? error.message : String(error))
    }
    batch.rows++
    this.#rows++
    return end
  }

  #endOf(bytes: Buffer, start: number, count: number): number {
    let at = start
    for (let field = 0; field < count; field++) {
      if (at + 4 > bytes.length) return -1
      const length = bytes.readInt32BE(at)
      if (length < -1 || length > rowBytesMax) throw this.#bad('invalid field size')
      at += 4 + Math.max(0, length)
    }
    return at > bytes.length ? -1 : at
  }

  #append({ columns }: RowBatch, bytes: Buffer, start: number): void {
    let at = start
    const fields = this.#types.length
    assert(columns.length === fields + this.#defaults.length, 'R1: a batch has a column for each value')
    for (let field = 0; field < fields; field++) {
      const column = nonNull(columns[field])
      const length = bytes.readInt32BE(at)
      at += 4
      if (length < 0) {
        column.missing()
        continue
      }
      const type = nonNull(this.#types[field])
      const oid = widthOid(type.oid, length)
      column.parameter(bytes, at, at + length, true, oid === type.oid ? type : { ...type, oid }, field)
      at += length
    }
    for (const [index, { append }] of this.#defaults.entries()) append(nonNull(columns[fields + index]))
  }
}

/** Accepts numbers of another width than the column's, and dates for timestamps. */
function widthOid(oid: number, length: number): number {
  if (oid === oids.int2 || oid === oids.int4 || oid === oids.int8) {
    return length === 2 ? oids.int2 : length === 4 ? oids.int4 : oids.int8
  }
  if (oid === oids.float4 || oid === oids.float8) return length === 4 ? oids.float4 : oids.float8
  if (oid === oids.timestamp && length === 4) return oids.date
  return oid
}
