// TextRows: encodes result rows as CSV, JSON, NDJSON or messages of the PostgreSQL wire protocol (encode-pg.ts) with a
// WebAssembly kernel, which writes directly to the output blocks.

import {
  encodeColumnBytes,
  encodeFlags,
  encodeStateBytes,
  readEncodeState,
  writeEncodeColumn,
  writeEncodeLabel,
  writeEncodeState,
} from '../../kernels/encode.js'
import type { Batch, Vector } from '../batch/vector.js'
import type { Encoding } from '../run/messages.js'
import type { BatchEncoder, BatchOptions } from './encoder.js'

/** Room to request when a row does not fit and the kernel does not know its size. */
const rowBytesMin = 4096

/** Flags of the kernel, and the field delimiter of CSV. */
export interface TextForm {
  readonly flags: number
  readonly delimiter: number
}

export type TextEncoding = Extract<Encoding, { kind: 'csv' | 'json' | 'ndjson' }>

export function isTextEncoding(encoding: Encoding): encoding is TextEncoding {
  return encoding.kind === 'csv' || encoding.kind === 'json' || encoding.kind === 'ndjson'
}

export function textFormOf(encoding: TextEncoding): TextForm {
  if (encoding.kind === 'csv') return { flags: 0, delimiter: encoding.delimiter }
  if (encoding.kind === 'ndjson') return { flags: encodeFlags.json | encodeFlags.lines, delimiter: 0 }
  return { flags: encodeFlags.json | (encoding.quoteLargeNumbers ? encodeFlags.quoteLargeNumbers : 0), delimiter: 0 }
}

export class TextRows implements BatchEncoder {
  readonly #options: BatchOptions
  readonly #flags: number
  readonly #delimiter: number
  readonly #state: number
  /** Address of the kernel's COLUMN structures. */
  readonly columns: number
  #any: boolean
  /** Bytes of all rows so far. */
  bytes = 0

  /** `any`: whether rows precede, so that a separator is needed. */
  constructor(options: BatchOptions, { flags, delimiter }: TextForm, any = false) {
    const { arena } = options.context
    this.#options = options
    this.#flags = flags
    this.#delimiter = delimiter
    this.#any = any
    this.#state = arena.keep(encodeStateBytes)
    this.columns = arena.keep(Math.max(1, options.columns.length) * encodeColumnBytes)
    if ((flags & encodeFlags.lines) !== 0) this.#label()
  }

  /** NDJSON: the names precede the values in each line. */
  #label(): void {
    const { context, columns } = this.#options
    const { memory, arena } = context
    for (const [index, { name }] of columns.entries()) {
      const label = Buffer.from(`${index === 0 ? '{' : ','}${JSON.stringify(name)}:`, 'utf8')
      const address = arena.keep(label.length)
      memory.put(label, address)
      writeEncodeLabel(memory, this.columns + index * encodeColumnBytes, address, label.length)
    }
  }

  rows({ vectors }: Batch, from: number, to: number): void {
    const { context, writer } = this.#options
    const { memory, kernels } = context
    vectors.forEach((vector, index) => this.#describe(vector, index))
    for (let row = from; row < to; ) {
      this.#enter(row, to, vectors.length)
      const done = kernels.encode.encode(this.#state)
      const { out, needed } = readEncodeState(memory, this.#state)
      this.bytes += out - writer.at
      writer.advance(out, done)
      row += done
      if (done > 0) this.#any = true
      if (row < to) writer.renew(Math.max(rowBytesMin, needed))
    }
  }

  #describe({ type, address, dictionary }: Vector, index: number): void {
    writeEncodeColumn(this.#options.context.memory, this.columns + index * encodeColumnBytes, type, address, dictionary)
  }

  #enter(row: number, rowEnd: number, count: number): void {
    const { context, writer } = this.#options
    writer.reserve(rowBytesMin)
    writeEncodeState(context.memory, this.#state, {
      columns: this.columns,
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
