// Creates the encoder for each result encoding (JSON, CSV, Arrow, Parquet, PostgreSQL messages, ..), and lists the
// formats that several threads can encode in parallel.

import type { PlanColumn } from '../../sql/plan/plan.js'
import type { Value } from '../../types/value.js'
import type { ExecContext } from '../batch/context.js'
import { valueReader } from '../batch/values.js'
import type { Encoding } from '../run/messages.js'
import { arrowEnd, arrowSchema } from './encode-arrow.js'
import { packedEncoder } from './encode-packed.js'
import { ParquetFile } from './encode-parquet.js'
import { parquetFormat } from './encode-parquet-group.js'
import { pgEncoder } from './encode-pg.js'
import { pgCopyEncoder } from './encode-pg-copy.js'
import { hasSymbols, type QwpEncoding, QwpRows } from './encode-qwp.js'
import { textFormOf } from './encode-text.js'
import type { BatchEncoder, Encoder, EncoderOptions } from './encoder.js'
import type { MorselFormat } from './morsel-format.js'
import { parallelEncode } from './parallel-encode.js'
import { batchEncoder, type RowForm, RowMorsel, rowFormat, rowFormOf } from './row-format.js'

export function createEncoder(encoding: Encoding, options: EncoderOptions): Encoder {
  const { columns } = options
  switch (encoding.kind) {
    case 'json':
    case 'ndjson':
      return rowEncoder(options, textFormOf(encoding))
    case 'csv':
      return rowEncoder(
        options,
        textFormOf(encoding),
        encoding.header ? csvHeader(columns, encoding.delimiter) : nothing,
      )
    case 'parquet':
      return new ParquetFile(encoding, options)
    case 'arrow':
      return rowEncoder(options, 'arrow', arrowSchema(columns), arrowEnd)
    case 'qwp':
      return qwpEncoder(options, encoding)
    case 'pg':
      return pgEncoder(encoding, options)
    case 'pgCopy':
      return pgCopyEncoder(encoding, options)
    case 'packed':
      return packedEncoder(encoding, options)
    case 'count':
      return { begin: () => {}, rows: () => {}, end: () => {} }
    case 'values':
      return valuesEncoder(options)
  }
}

/** undefined when a single thread encodes all rows. */
export function morselFormatOf(
  encoding: Encoding,
  context: ExecContext,
  columns: readonly PlanColumn[],
): MorselFormat | undefined {
  if (encoding.kind === 'parquet') return parquetFormat(encoding, context, columns)
  if (encoding.kind === 'qwp' && hasSymbols(columns)) return undefined
  const form = rowFormOf(encoding)
  return form === undefined ? undefined : rowFormat(form, columns.length, context.arena.limit)
}

const nothing: Uint8Array = new Uint8Array(0)

/** An encoder for formats that are a sequence of encoded batches. `head` precedes all rows, `tail` follows them. */
function rowEncoder(
  options: EncoderOptions,
  form: RowForm,
  head: Uint8Array = nothing,
  tail: Uint8Array = nothing,
  encoded: BatchEncoder = batchEncoder(options, form),
): Encoder {
  const { writer, context, columns } = options
  let headed = false
  const writeHead = (): void => {
    if (!headed) writer.bytes(head)
    headed = true
  }
  return {
    begin: writeHead,
    rows: (batch, from, to) => {
      if (batch.vectors.length > 0) encoded.rows(batch, from, to)
    },
    end: () => {
      writer.bytes(tail)
      writer.flush()
    },
    operator: (plan, window) => {
      if (context.parallelism?.workers === 0) return undefined
      return parallelEncode(options, plan, window, rowFormat(form, columns.length, context.arena.limit), {
        direct: (skippedRows) => new RowMorsel(encoded, skippedRows),
        bytes: () => encoded.bytes,
        // The client need not wait until parts are opened and pages are decoded.
        certain: () => {
          writeHead()
          writer.flush()
        },
        note: () => {},
        block: ({ address, bytes, rows }) => {
          writer.flush()
          writer.renew(bytes)
          context.memory.copy(writer.at, address, address + bytes)
          writer.advance(writer.at + bytes, rows)
        },
      })
    },
  }
}

/** Symbols are numbered in the order of the batches, so several threads encode only results without symbols. */
function qwpEncoder(options: EncoderOptions, encoding: QwpEncoding): Encoder {
  const encoded = new QwpRows(options, encoding, false)
  const encoder = rowEncoder(options, encoding, nothing, nothing, encoded)
  const { begin, rows } = encoder
  const end = (): void => {
    encoded.end()
    encoder.end()
  }
  return hasSymbols(options.columns) ? { begin, rows, end } : { ...encoder, end }
}

function csvHeader(columns: readonly PlanColumn[], delimiter: number): Uint8Array {
  const names = columns.map(({ name }) => `"${name.replaceAll('"', '""')}"`)
  return Buffer.from(`${names.join(String.fromCharCode(delimiter))}\r\n`, 'utf8')
}

function valuesEncoder({ context, postRows }: EncoderOptions): Encoder {
  return {
    begin: () => {},
    rows: (batch, from, to) => {
      const readers = batch.vectors.map((vector) => valueReader(context.memory, context.strings, vector))
      const rows: Value[][] = []
      for (let index = from; index < to; index++) rows.push(readers.map((read) => read(index)))
      postRows(rows)
    },
    end: () => {},
  }
}
