// Result rows as their reader wants them: JSON or CSV bytes by the kernel, values, or nothing but the count.

import {
  encodeColumnBytes,
  encodeFlags,
  encodeStateBytes,
  writeEncodeColumn,
  writeEncodeState,
} from '../../kernels/encode.js'
import type { Value } from '../../types/value.js'
import type { PlanColumn } from '../plan/plan.js'
import type { ByteWriter } from './byte-writer.js'
import type { ExecContext } from './context.js'
import type { Encoding } from './messages.js'
import { valueReader } from './values.js'
import type { Batch, Vector } from './vector.js'

export interface Encoder {
  /** Before the first row, also when there is none. */
  begin(): void
  /** Rows [from, to) of a batch. */
  rows(batch: Batch, from: number, to: number): void
  /** Behind the last row. */
  end(): void
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

/** Room that is asked for when a row did not fit and the kernel does not say how much it needs. */
const rowBytesMin = 4096

class TextRows {
  readonly #options: EncoderOptions
  readonly #flags: number
  readonly #delimiter: number
  readonly #state: number
  readonly #columns: number
  #any = false

  constructor(options: EncoderOptions, flags: number, delimiter: number) {
    const { space } = options.context
    this.#options = options
    this.#flags = flags
    this.#delimiter = delimiter
    this.#state = space.keep(encodeStateBytes)
    this.#columns = space.keep(Math.max(1, options.columns.length) * encodeColumnBytes)
  }

  rows({ vectors }: Batch, from: number, to: number): void {
    const { context, writer } = this.#options
    const { memory, kernels } = context
    vectors.forEach((vector, index) => this.#describe(vector, index))
    for (let row = from; row < to; ) {
      this.#enter(row, to, vectors.length)
      const done = kernels.encode.encode(this.#state)
      const word = this.#state >>> 2
      writer.advance(memory.u32[word + 4] as number, done)
      row += done
      if (done > 0) this.#any = true
      if (row < to) writer.renew(Math.max(rowBytesMin, memory.u32[word + 8] as number))
    }
  }

  #describe({ type, address, dictionary }: Vector, index: number): void {
    writeEncodeColumn(
      this.#options.context.memory,
      this.#columns + index * encodeColumnBytes,
      type,
      address,
      dictionary,
    )
  }

  #enter(row: number, rowEnd: number, count: number): void {
    const { context, writer } = this.#options
    writer.reserve(rowBytesMin)
    writeEncodeState(context.memory, this.#state, {
      columns: this.#columns,
      count,
      row,
      rowEnd,
      out: writer.at,
      outEnd: writer.end,
      flags: this.#flags,
      delimiter: this.#delimiter,
      written: this.#any,
      index: 0,
    })
  }
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
