// Encodes result rows as packed column arrays. The main thread passes them to the writer thread, which stores them (for
// INSERT .. SELECT, CREATE TABLE AS, upserts and refreshes of views), or to a caller that has requested columns.
//
// A transaction has `batchRows` rows, and a batch ends where a transaction ends, so that the receiver never has to
// split a batch.

import { SqlError } from '../../base/errors.js'
import { dictionaryEntry } from '../../memory/column-layout.js'
import type { SharedMemory } from '../../memory/shared-memory.js'
import type { PackedColumn } from '../../storage/jobs/messages.js'
import { SymbolBuilder, TextBuilder } from '../../storage/memtable/text-builder.js'
import { isVariable, widthOf } from '../../types/column-types.js'
import type { Vector } from '../batch/vector.js'
import type { PackedEncoding } from '../run/messages.js'
import type { Encoder, EncoderOptions } from './encoder.js'

const batchRowsMax = 16_384
const batchBytesMax = 1024 * 1024

/** A column of the batch in progress. */
interface ColumnBuilder {
  readonly bytes: number
  append(vector: Vector, from: number, to: number): void
  packed(): PackedColumn
  reset(): void
}

export function packedEncoder(encoding: PackedEncoding, { context, postPacked }: EncoderOptions): Encoder {
  const { memory } = context
  const builders = encoding.columns.map(({ columnId, type }) => {
    const times = columnId === encoding.timestampId
    if (type.name === 'SYMBOL') return symbolColumn(memory)
    return isVariable(type) ? textColumn(memory) : fixedColumn(memory, widthOf(type), times)
  })
  let rows = 0
  /** Rows that still fit the current transaction. */
  let room = encoding.batchRows
  const post = (): void => {
    if (rows === 0) return
    const bytes = builders.reduce((sum, builder) => sum + builder.bytes, 0)
    const columns = encoding.columns.map((column, index) => ({
      ...column,
      values: (builders[index] as ColumnBuilder).packed(),
    }))
    for (const builder of builders) builder.reset()
    postPacked({ rows, columns }, bytes)
    rows = 0
  }
  return {
    begin: () => {},
    rows: ({ vectors }, from, to) => {
      for (let next = from; next < to; ) {
        const count = Math.min(to - next, room, batchRowsMax - rows)
        for (const [index, builder] of builders.entries()) builder.append(vectors[index] as Vector, next, next + count)
        next += count
        rows += count
        room -= count
        const isFull = rows === batchRowsMax || builders.reduce((sum, { bytes }) => sum + bytes, 0) >= batchBytesMax
        if (room === 0 || isFull) post()
        if (room === 0) room = encoding.batchRows
      }
    },
    end: post,
  }
}

/** `times`: a designated timestamp, whose values are checked. */
function fixedColumn(memory: SharedMemory, width: number, times: boolean): ColumnBuilder {
  const values = new Uint8Array(batchRowsMax * width)
  let length = 0
  return {
    get bytes() {
      return length
    },
    append: ({ address }, from, to) => {
      if (times) checkTimes(memory, address, from, to)
      values.set(memory.u8.subarray(address + from * width, address + to * width), length)
      length += (to - from) * width
    },
    packed: () => ({ kind: 'fixed', bytes: values.slice(0, length) }),
    reset: () => {
      length = 0
    },
  }
}

function textColumn({ u8, u32, i32 }: SharedMemory): ColumnBuilder {
  const strings = new TextBuilder()
  return {
    get bytes() {
      return strings.bytes
    },
    append: ({ address }, from, to) => {
      for (let word = (address >>> 2) + from * 2, end = (address >>> 2) + to * 2; word < end; word += 2) {
        const start = u32[word]!
        const length = i32[word + 1]!
        if (length < 0) strings.appendNull()
        else strings.append(u8, start, start + length)
      }
    },
    packed: () => strings.packed(),
    reset: () => strings.reset(),
  }
}

function symbolColumn(memory: SharedMemory): ColumnBuilder {
  const { u8, u32, i32 } = memory
  const symbols = new SymbolBuilder()
  return {
    get bytes() {
      return symbols.bytes
    },
    append: ({ address, dictionary }, from, to) => {
      for (let word = (address >>> 2) + from, end = (address >>> 2) + to; word < end; word++) {
        const id = i32[word]!
        if (id < 0) {
          symbols.appendNull()
          continue
        }
        const entry = dictionaryEntry(memory, dictionary, id) >>> 2
        const start = u32[entry]!
        symbols.append(u8, start, start + u32[entry + 1]!)
      }
    },
    packed: () => symbols.packed(),
    reset: () => symbols.reset(),
  }
}

/** Rejects what the writer would reject, early enough to fail the statement. */
function checkTimes({ i32 }: SharedMemory, address: number, from: number, to: number): void {
  const low = address >>> 2
  for (let row = from; row < to; row++) {
    const high = i32[low + row * 2 + 1]!
    if (high >= 0) continue
    const isNull = high === -(2 ** 31) && i32[low + row * 2] === 0
    if (isNull) throw new SqlError('designated timestamp column cannot be NULL', 0)
    throw new SqlError('designated timestamp before 1970-01-01 is not allowed', 0)
  }
}
