// Encodes results on several threads as CSV, JSON, NDJSON, Arrow record batches or batches of QWP (columnar protocol
// over WebSocket): formats in which separately encoded ranges of rows can simply be concatenated. The beginning and end
// of the output, such as the CSV header line, are added by create-encoder.ts.
//
// The thread that runs the query encodes the first rows alone, so that the client receives them without delay. Their
// encoded size determines into how many ranges the other rows are divided.

import { pageRowsMax } from '../../base/limits.js'
import { ByteWriter } from '../batch/byte-writer.js'
import { type Batch, isBatch } from '../batch/vector.js'
import type { Encoding } from '../run/messages.js'
import { ArrowRows } from './encode-arrow.js'
import { type QwpEncoding, QwpRows } from './encode-qwp.js'
import { isTextEncoding, type TextForm, TextRows, textFormOf } from './encode-text.js'
import type { BatchEncoder, BatchOptions } from './encoder.js'
import type { EncodedBlock, EncodedMorsel, MorselEncoder, MorselFormat } from './morsel-format.js'
import type { MorselSource } from './morsel-source.js'

export type RowForm = TextForm | QwpEncoding | 'arrow'

const heldMax = 3
const morselBytes = 8 * 1024 * 1024
/** Morsels are limited to this fraction of the query memory. */
const morselParts = 64
/** Small, for clients that stop reading in the middle of a morsel. */
const blockBytesMax = 128 * 1024
/** Assumed minimal bytes of a value, if no head was encoded. */
const valueBytesMin = 8
/** Approximate speed of encoding rows as text. */
const textBytesPerMs = 1_000_000

export function rowFormOf(encoding: Encoding): RowForm | undefined {
  if (encoding.kind === 'arrow') return 'arrow'
  if (encoding.kind === 'qwp') return encoding
  return isTextEncoding(encoding) ? textFormOf(encoding) : undefined
}

/** `any`: whether rows precede. */
export function batchEncoder(options: BatchOptions, form: RowForm, any = false): BatchEncoder {
  if (form === 'arrow') return new ArrowRows(options)
  return 'kind' in form ? new QwpRows(options, form, any) : new TextRows(options, form, any)
}

/** Whether the first row is encoded differently: separators of JSON precede other rows, QWP defines its columns. */
function hasFirstRow(form: RowForm): boolean {
  return form !== 'arrow' && ('kind' in form || form.flags !== 0)
}

/** `memoryMax`: the limit of the query memory. */
export function rowFormat(form: RowForm, columnCount: number, memoryMax: number): MorselFormat {
  const bytesMax = Math.min(morselBytes, memoryMax / morselParts)
  return {
    heldMax,
    cut: 'at pages',
    measures: 'head',
    resumes: true,
    takesStored: false,
    divides: (rows, { chunkRowsMin }) => rows.rows > rows.headRows + chunkRowsMin / 4,
    morselRows: ({ computed }, { parallelism, headRows, headBytes, headMs }) => {
      // With a single worker, encoding in parallel would compete with this thread and the main thread for processors.
      // It pays off only if rows take longer to produce than to encode.
      if (computed !== null && parallelism.workers === 1 && headMs * textBytesPerMs <= headBytes) return null
      // Morsels are encoded as if rows preceded.
      if (headRows === 0 && hasFirstRow(form)) return null
      const rowBytes = headRows === 0 ? columnCount * valueBytesMin : headBytes / headRows
      return Math.max(1, Math.min(pageRowsMax, parallelism.chunkRowsMin, Math.floor(bytesMax / Math.max(1, rowBytes))))
    },
    open: ({ work, retained }, columns, skippedRows) => {
      const blocks: EncodedBlock[] = []
      const writer = new ByteWriter(work.memory, {
        open: (bytes) => retained.take(bytes),
        close: (address, bytes, rows) => blocks.push({ address, bytes, rows }),
        drop: (address) => retained.give(address),
        blockBytesMax: () => (work.arena.short ? 0 : blockBytesMax),
      })
      const encoded = batchEncoder({ context: work, writer, columns }, form, true)
      return new RowMorsel(encoded, skippedRows, () => {
        writer.flush()
        return blocks
      })
    },
  }
}

/** Encodes a morsel by a BatchEncoder; `blocks` closes the last block and returns all. */
export class RowMorsel implements MorselEncoder {
  rows = 0
  readonly #encoded: BatchEncoder
  readonly #blocks: () => readonly EncodedBlock[]
  #skip: number
  #batch: Batch | null = null
  #row = 0

  constructor(encoded: BatchEncoder, skippedRows: number, blocks: () => readonly EncodedBlock[] = () => []) {
    this.#encoded = encoded
    this.#skip = skippedRows
    this.#blocks = blocks
  }

  get betweenBatches(): boolean {
    return this.#batch === null
  }

  step(source: MorselSource): boolean | 'waiting' {
    if (this.#batch === null) {
      const pulled = source.take()
      if (!isBatch(pulled)) return pulled === 'waiting' ? pulled : pulled !== null
      this.#batch = pulled
      this.#row = 0
    }
    const skipped = Math.min(this.#skip, this.#batch.rows - this.#row)
    this.#skip -= skipped
    const from = this.#row + skipped
    const to = Math.min(this.#batch.rows, from + source.stepRows)
    if (to > from) this.#encoded.rows(this.#batch, from, to)
    this.rows += to - from
    this.#row = to
    if (to === this.#batch.rows) this.#batch = null
    return true
  }

  end(): EncodedMorsel {
    return { blocks: this.#blocks(), note: '' }
  }
}
