// Result rows as their reader wants them: JSON or CSV bytes by the kernel, values, or nothing but the count.

import { encodeFlags } from '../../kernels/encode.js'
import type { Value } from '../../types/value.js'
import type { Plan, PlanColumn } from '../plan/plan.js'
import type { ByteWriter } from './byte-writer.js'
import type { ExecContext } from './context.js'
import { arrowEncoder } from './encode-arrow.js'
import { ndjsonEncoder } from './encode-ndjson.js'
import { parquetEncoder } from './encode-parquet.js'
import { pgEncoder } from './encode-pg.js'
import { pgCopyEncoder } from './encode-pg-copy.js'
import { TextRows } from './encode-text.js'
import type { Encoding } from './messages.js'
import { valueReader } from './values.js'
import type { Batch, Operator } from './vector.js'

export interface Encoder {
  /** Before the first row, also when there is none. */
  begin(): void
  /** Rows [from, to) of a batch. */
  rows(batch: Batch, from: number, to: number): void
  /** Behind the last row. */
  end(): void
  /** Makes the result of the plan by itself, when all of its rows are wanted: batches without vectors count its rows. */
  operator?(plan: Plan): Operator | undefined
  /** Writes a piece of what is finished, also behind end(); false when nothing waits. */
  drain?(): boolean
}

export interface EncoderOptions {
  readonly context: ExecContext
  readonly writer: ByteWriter
  readonly columns: readonly PlanColumn[]
  readonly postRows: (rows: readonly (readonly Value[])[]) => void
}

export function createEncoder(encoding: Encoding, options: EncoderOptions): Encoder {
  const { writer, columns } = options
  switch (encoding.kind) {
    case 'json': {
      const flags = encodeFlags.json | (encoding.quoteLargeNumbers ? encodeFlags.quoteLargeNumbers : 0)
      const text = new TextRows(options, flags, 0)
      return { begin: () => {}, rows: (batch, from, to) => text.rows(batch, from, to), end: () => writer.flush() }
    }
    case 'csv': {
      const text = new TextRows(options, 0, encoding.delimiter)
      const header = encoding.header ? csvHeader(columns, encoding.delimiter) : ''
      return {
        begin: () => writer.text(header),
        rows: (batch, from, to) => text.rows(batch, from, to),
        end: () => writer.flush(),
      }
    }
    case 'parquet':
      return parquetEncoder(encoding, options)
    case 'arrow':
      return arrowEncoder(options)
    case 'ndjson':
      return ndjsonEncoder(options)
    case 'pg':
      return pgEncoder(encoding, options)
    case 'pgCopy':
      return pgCopyEncoder(encoding, options)
    case 'count':
      return { begin: () => {}, rows: () => {}, end: () => {} }
    case 'values':
      return valuesEncoder(options)
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
