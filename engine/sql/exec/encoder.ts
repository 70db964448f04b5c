// Result rows as their reader wants them: JSON or CSV bytes, values, or nothing but the count.

import type { SharedMemory } from '../../memory/shared-memory.js'
import type { Value } from '../../types/value.js'
import type { PlanColumn } from '../plan/plan.js'
import type { ByteWriter } from './byte-writer.js'
import { type CellContext, type CellWriter, cellWriter, putUtf8 } from './encode-cells.js'
import type { Encoding } from './messages.js'
import type { SymbolTexts } from './symbols.js'
import { valueReader } from './values.js'
import type { Batch } from './vector.js'

export interface Encoder {
  /** Before the first row, also when there is none. */
  begin(): void
  /** Rows [from, to) of a batch. */
  rows(batch: Batch, from: number, to: number): void
  /** Behind the last row. */
  end(): void
}

export interface EncoderOptions {
  readonly memory: SharedMemory
  readonly texts: SymbolTexts
  readonly writer: ByteWriter
  readonly columns: readonly PlanColumn[]
  readonly postRows: (rows: readonly (readonly Value[])[]) => void
}

export function createEncoder(encoding: Encoding, options: EncoderOptions): Encoder {
  switch (encoding.kind) {
    case 'json':
      return jsonEncoder(options, encoding.quoteLargeNumbers)
    case 'csv':
      return csvEncoder(options, encoding.delimiter, encoding.header)
    case 'count':
      return { begin: () => {}, rows: () => {}, end: () => {} }
    case 'values':
      return valuesEncoder(options)
  }
}

const comma = 44
const bracketOpen = 91
const bracketClose = 93

function jsonEncoder({ memory, texts, writer }: EncoderOptions, quoteLongs: boolean): Encoder {
  const context: CellContext = { memory, texts, writer, form: { kind: 'json', quoteLongs, delimiter: comma } }
  const { u8 } = writer
  let any = false
  const row = (cells: readonly CellWriter[], index: number): void => {
    writer.reserve(2)
    if (any) u8[writer.at++] = comma
    any = true
    u8[writer.at++] = bracketOpen
    for (let cell = 0; cell < cells.length; cell++) {
      if (cell > 0) {
        writer.reserve(1)
        u8[writer.at++] = comma
      }
      ;(cells[cell] as CellWriter)(index)
    }
    writer.reserve(1)
    u8[writer.at++] = bracketClose
    writer.rowEnded()
  }
  return {
    begin: () => {},
    rows: (batch, from, to) => {
      const cells = batch.vectors.map((vector) => cellWriter(context, vector))
      for (let index = from; index < to; index++) row(cells, index)
    },
    end: () => writer.flush(),
  }
}

function csvEncoder({ memory, texts, writer, columns }: EncoderOptions, delimiter: number, header: boolean): Encoder {
  const context: CellContext = { memory, texts, writer, form: { kind: 'csv', quoteLongs: false, delimiter } }
  const { u8 } = writer
  const lineEnd = (): void => {
    writer.reserve(2)
    u8[writer.at++] = 13
    u8[writer.at++] = 10
  }
  return {
    begin: () => {
      if (!header) return
      const names = columns.map(({ name }) => `"${name.replaceAll('"', '""')}"`)
      putUtf8(writer, names.join(String.fromCharCode(delimiter)))
      lineEnd()
    },
    rows: (batch, from, to) => {
      const cells = batch.vectors.map((vector) => cellWriter(context, vector))
      for (let index = from; index < to; index++) {
        for (let cell = 0; cell < cells.length; cell++) {
          if (cell > 0) {
            writer.reserve(1)
            u8[writer.at++] = delimiter
          }
          ;(cells[cell] as CellWriter)(index)
        }
        lineEnd()
        writer.rowEnded()
      }
    },
    end: () => writer.flush(),
  }
}

function valuesEncoder({ memory, texts, postRows }: EncoderOptions): Encoder {
  return {
    begin: () => {},
    rows: (batch, from, to) => {
      const readers = batch.vectors.map((vector) => valueReader(memory, texts, vector))
      const rows: Value[][] = []
      for (let index = from; index < to; index++) rows.push(readers.map((read) => read(index)))
      postRows(rows)
    },
    end: () => {},
  }
}
