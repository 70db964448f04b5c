// Encodes rows as DataRow messages of the PostgreSQL wire protocol, each column in text or binary format. If the types
// of all columns are common, a WebAssembly kernel encodes the rows; otherwise all values are encoded one by one.
//
//   DataRow => 'D' length:int32 count:int16 (bytes:int32 value)*      bytes is -1 for NULL

import { encodeColumnBytes, encodeFlags, pgFormats, writeEncodeLabel } from '../../kernels/encode.js'
import type { SharedMemory } from '../../memory/shared-memory.js'
import {
  type DataType,
  isDay,
  isJsonb,
  isList,
  isListOfValues,
  isSpan,
  isTimeOfDay,
  isVector,
  isZoned,
} from '../../types/column-types.js'
import { wireForm } from '../../types/pg-encode-value.js'
import type { ByteWriter } from '../batch/byte-writer.js'
import { valueReader } from '../batch/values.js'
import type { PgEncoding } from '../run/messages.js'
import { TextRows } from './encode-text.js'
import type { Encoder, EncoderOptions } from './encoder.js'

const headerBytes = 7
const dataRow = 68
export const copyData = 100

export function pgEncoder({ binary, isoSpans = false }: PgEncoding, options: EncoderOptions): Encoder {
  const { context, columns, writer } = options
  const formats = columns.map((_, index) => isBinary(binary, index))
  if (columns.every(({ type }, index) => kernelKnows(type, formats[index] === true))) {
    return kernelEncoder(options, dataRow, formats)
  }
  const forms = columns.map(({ type }, index) => wireForm(type, isBinary(binary, index), isoSpans))
  return {
    begin: () => {},
    rows: ({ vectors }, from, to) => {
      const readers = vectors.map((vector) => valueReader(context.memory, context.strings, vector))
      for (let row = from; row < to; row++) {
        const values = readers.map((read, index) => bytesOf(forms[index]?.(read(row)) ?? null))
        const message = rowMessage(values)
        putMessage(context.memory, writer, message, 1)
      }
    },
    end: () => writer.flush(),
  }
}

/** Rows of binary COPY are DataRow messages with another message type. */
export function binaryCopyRows(options: EncoderOptions): Encoder['rows'] {
  const { context, columns, writer } = options
  if (columns.every(({ type }) => kernelKnows(type, true))) {
    return kernelEncoder(
      options,
      copyData,
      columns.map(() => true),
    ).rows
  }
  const forms = columns.map(({ type }) => wireForm(type, true))
  return ({ vectors }, from, to) => {
    const readers = vectors.map((vector) => valueReader(context.memory, context.strings, vector))
    for (let row = from; row < to; row++) {
      const values = readers.map((read, index) => bytesOf(forms[index]?.(read(row)) ?? null))
      const message = rowMessage(values)
      message[0] = copyData
      putMessage(context.memory, writer, message, 1)
    }
  }
}

export function putMessage(memory: SharedMemory, writer: ByteWriter, message: Uint8Array, rows: number): void {
  writer.reserve(message.length)
  memory.u8.set(message, writer.at)
  writer.advance(writer.at + message.length, rows)
}

/** Whether the kernel supports the type in this format. */
function kernelKnows(type: DataType, binary: boolean): boolean {
  if (type.name === 'ARRAY' || isDay(type) || isSpan(type) || isListOfValues(type)) return false
  return (
    !binary || (type.name !== 'DECIMAL' && !isList(type) && !isVector(type) && !isJsonb(type) && !isTimeOfDay(type))
  )
}

/** `type` of the messages; `formats`: whether each column is binary. */
function kernelEncoder(options: EncoderOptions, type: number, formats: readonly boolean[]): Encoder {
  const { context, writer } = options
  const rows = new TextRows(options, { flags: encodeFlags.pg, delimiter: type })
  for (const [index, binary] of formats.entries()) {
    const type = options.columns[index]?.type
    const text = type !== undefined && isZoned(type) ? pgFormats.zoned : pgFormats.text
    writeEncodeLabel(context.memory, rows.columns + index * encodeColumnBytes, binary ? pgFormats.binary : text, 0)
  }
  return {
    begin: () => {},
    rows: (batch, from, to) => rows.rows(batch, from, to),
    end: () => writer.flush(),
  }
}

/** A single entry applies to all columns; none means text. */
function isBinary(binary: readonly boolean[], index: number): boolean {
  return (binary.length === 1 ? binary[0] : binary[index]) === true
}

function bytesOf(value: Uint8Array | string | null): Uint8Array | null {
  return typeof value === 'string' ? Buffer.from(value, 'utf8') : value
}

function rowMessage(values: readonly (Uint8Array | null)[]): Buffer {
  const bytes = values.reduce((sum, value) => sum + 4 + (value?.length ?? 0), headerBytes)
  const message = Buffer.allocUnsafe(bytes)
  message[0] = dataRow
  message.writeInt32BE(bytes - 1, 1)
  message.writeInt16BE(values.length, 5)
  let at = headerBytes
  for (const value of values) {
    at = message.writeInt32BE(value?.length ?? -1, at)
    if (value === null) continue
    message.set(value, at)
    at += value.length
  }
  return message
}
