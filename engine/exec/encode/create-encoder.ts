// Result rows as their reader wants them: JSON or CSV bytes by the kernel, values, or nothing but the count.

import type { PlanColumn } from '../../sql/plan/plan.js'
import type { Value } from '../../types/value.js'
import { valueReader } from '../batch/values.js'
import type { Encoding } from '../run/messages.js'
import { arrowEnd, arrowSchema } from './encode-arrow.js'
import { packedEncoder } from './encode-packed.js'
import { parquetEncoder } from './encode-parquet.js'
import { pgEncoder } from './encode-pg.js'
import { pgCopyEncoder } from './encode-pg-copy.js'
import { sharedRows } from './encode-rows-shared.js'
import { sharedSorted } from './encode-sorted-shared.js'
import { sharedTable } from './encode-table-shared.js'
import { textFormOf } from './encode-text.js'
import type { RowBlock } from './encoded-chunks.js'
import type { Encoder, EncoderOptions } from './encoder.js'
import { encodedRows, type RowForm } from './row-forms.js'

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
      return parquetEncoder(encoding, options)
    case 'arrow':
      return rowEncoder(options, 'arrow', arrowSchema(columns), arrowEnd)
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

const nothing: Uint8Array = new Uint8Array(0)

/** `head` precedes all rows, `tail` follows them. */
function rowEncoder(
  options: EncoderOptions,
  form: RowForm,
  head: Uint8Array = nothing,
  tail: Uint8Array = nothing,
): Encoder {
  const { writer, context } = options
  const encoded = encodedRows(options, form)
  /** Made by chunks of the table, in their order; they are there until they are written. */
  const waiting: RowBlock[] = []
  let headed = false
  const writeHead = (): void => {
    if (!headed) writer.bytes(head)
    headed = true
  }
  /** The reader need not wait for parts to be opened, nor for their pages to be decoded. */
  const surely = (): void => {
    writeHead()
    writer.flush()
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
      const shared = { rows: encoded, form, give: (block: RowBlock) => void waiting.push(block), surely }
      return (
        sharedTable(options, plan, shared, window) ??
        sharedRows(options, plan, shared, window) ??
        sharedSorted(options, plan, shared, window)
      )
    },
    drain: () => {
      const block = waiting.shift()
      if (block === undefined) return false
      const { address, bytes, rows } = block
      writer.flush()
      writer.renew(bytes)
      context.memory.copy(writer.at, address, address + bytes)
      writer.advance(writer.at + bytes, rows)
      return true
    },
  }
}

function csvHeader(columns: readonly PlanColumn[], delimiter: number): Uint8Array {
  const names = columns.map(({ name }) => `"${name.replaceAll('"', '""')}"`)
  return Buffer.from(`${names.join(String.fromCharCode(delimiter))}\r\n`, 'utf8')
}

function valuesEncoder({ context, postRows }: EncoderOptions): Encoder {
  return {
    begin: () => {},
    rows: (batch, from, to) => {
      const readers = batch.vectors.map((vector) => valueReader(context.memory, context.texts, vector))
      const rows: Value[][] = []
      for (let index = from; index < to; index++) rows.push(readers.map((read) => read(index)))
      postRows(rows)
    },
    end: () => {},
  }
}
