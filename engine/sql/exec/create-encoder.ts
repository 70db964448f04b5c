// Result rows as their reader wants them: JSON or CSV bytes by the kernel, values, or nothing but the count.

import type { Value } from '../../types/value.js'
import type { PlanColumn } from '../plan/plan.js'
import { arrowEncoder } from './encode-arrow.js'
import { packedEncoder } from './encode-packed.js'
import { parquetEncoder } from './encode-parquet.js'
import { pgEncoder } from './encode-pg.js'
import { pgCopyEncoder } from './encode-pg-copy.js'
import { sharedRows } from './encode-rows-shared.js'
import { type TextForm, TextRows, textFormOf } from './encode-text.js'
import { sharedText } from './encode-text-shared.js'
import type { Encoder, EncoderOptions } from './encoder.js'
import type { Encoding } from './messages.js'
import type { TextBlock } from './text-chunks.js'
import { valueReader } from './values.js'

export function createEncoder(encoding: Encoding, options: EncoderOptions): Encoder {
  const { columns } = options
  switch (encoding.kind) {
    case 'json':
    case 'ndjson':
      return textEncoder(options, textFormOf(encoding), '')
    case 'csv':
      return textEncoder(options, textFormOf(encoding), encoding.header ? csvHeader(columns, encoding.delimiter) : '')
    case 'parquet':
      return parquetEncoder(encoding, options)
    case 'arrow':
      return arrowEncoder(options)
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

function textEncoder(options: EncoderOptions, form: TextForm, header: string): Encoder {
  const { writer, context } = options
  const text = new TextRows(options, form)
  /** Made by chunks of the table, in their order; they are there until they are written. */
  const waiting: TextBlock[] = []
  let whole = false
  return {
    begin: () => {
      writer.text(header)
      // Nothing but damage can come between now and the first row: the reader need not wait for the pages to be decoded.
      if (whole) writer.flush()
    },
    rows: (batch, from, to) => {
      if (batch.vectors.length > 0) text.rows(batch, from, to)
    },
    end: () => writer.flush(),
    operator: (plan, window) => {
      const shared = { rows: text, form, give: (block: TextBlock) => void waiting.push(block) }
      const operator = sharedText(options, plan, shared, window)
      whole = operator !== undefined
      return operator ?? sharedRows(options, plan, shared, window)
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

function csvHeader(columns: readonly PlanColumn[], delimiter: number): string {
  const names = columns.map(({ name }) => `"${name.replaceAll('"', '""')}"`)
  return `${names.join(String.fromCharCode(delimiter))}\r\n`
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
