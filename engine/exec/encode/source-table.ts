// One way to divide a query result among threads (see morsel-source.ts): all rows of a table, or of one time interval,
// in the order in which they are stored. Each unit of parallel work (morsel) is a range of row numbers. For all formats
// but Parquet, the ranges end at page boundaries where possible, so that only one thread decodes a page.

import { pageRowsMax } from '../../base/limits.js'
import type { TableSnapshot } from '../../storage/schema/schema.js'
import type { ExecContext } from '../batch/context.js'
import { batchRowsMax, type Operator, type Pull, type Vector } from '../batch/vector.js'
import type { TableCut } from '../parallel/coordinator.js'
import { fullScanOf, NumberedRows, type NumberedScan, numberedScan } from '../scan/full-scan.js'
import { cutRows, listMorsels } from '../scan/morsel-list.js'
import type { ScanMorsel } from '../scan/morsels.js'
import type { DivisibleRows, MorselCut, MorselSource, SourceShape, StoredRows } from './morsel-source.js'

/** Rows that the coordinator encodes before it divides the others. */
const headRows = 2048
const textStepRowsMax = batchRowsMax / 2
/** Smaller pages are not copied, because the output would then consist of small pages. */
const storedRowsMin = 16_384

export const tableShape: SourceShape = {
  open: ({ context, plan, window, certain, smallRows }, divide) => {
    const scan = numberedScan(context, plan, (known) => {
      if (Math.min(known - window.skip, window.rowsMax) > headRows + smallRows) certain()
    })
    if (scan === undefined) return undefined
    const first = Math.min(scan.window.end, scan.window.first + window.skip)
    const end = Math.min(scan.window.end, first + window.rowsMax)
    const rows = new TableRows(context, scan, { first, end })
    const divided = divide(rows)
    if (divided === undefined) return undefined
    context.onEnd(() => rows.release())
    const counted = withSkippedRows(divided, first - scan.window.first, scan.window.end - end)
    const goIdle = (): void => {
      divided.goIdle?.()
      rows.goIdle()
    }
    return { pull: counted, goIdle }
  },
  attach: (context, plan, { table, morsels }) => {
    if (table === undefined) return undefined
    const { cuts } = table
    const scan = fullScanOf(context, plan, morsels, { first: cuts[0]!, end: cuts[cuts.length - 1]! })
    return scan === undefined ? undefined : new TableMorsels(readerOf(context, scan, table), scan, table)
  },
}

/** Reports the skipped rows, before and after the requested ones, as batches without vectors. */
function withSkippedRows(inner: Operator, rowsBefore: number, rowsAfter: number): () => Pull {
  let [before, after] = [rowsBefore, rowsAfter]
  return () => {
    if (before > 0) {
      const rows = before
      before = 0
      return { rows, vectors: [] }
    }
    const pulled = inner.pull()
    if (pulled !== null || after === 0) return pulled
    const rows = after
    after = 0
    return { rows, vectors: [] }
  }
}

class TableRows implements DivisibleRows {
  readonly rows: number
  readonly scanned: TableSnapshot
  readonly hasStoredPages: boolean
  readonly morselsWanted = 1
  readonly computed = null
  readonly headRows = headRows
  readonly #context: ExecContext
  readonly #scan: NumberedScan
  readonly #end: number
  #next: number
  /** Reads the head, and also the coordinator's morsels if these read pages in the same way. */
  #reader: NumberedRows | null = null

  constructor(context: ExecContext, scan: NumberedScan, { first, end }: NumberedScan['window']) {
    this.#context = context
    this.#scan = scan
    this.#next = first
    this.#end = end
    this.rows = end - first
    this.scanned = scan.shape.snapshot
    this.hasStoredPages = scan.morsels.some(isWorthCopying)
  }

  head(): Operator {
    const reader = new NumberedRows(this.#context, this.#scan, 'once')
    this.#reader = reader
    reader.seek(this.#next)
    const end = this.#next + headRows
    const pull = (): Pull => {
      if (this.#next >= end) return null
      if (!reader.ready()) return 'waiting'
      const batch = reader.take(end - this.#next)
      this.#next = reader.row
      return batch
    }
    return { pull }
  }

  divide(morselRows: number, how: 'evenly' | 'at pages'): MorselCut {
    this.#reader?.release()
    const range = { first: this.#next, end: this.#end }
    const table = how === 'evenly' ? evenCut(range, morselRows) : cutAtPages(this.#scan.morsels, range, morselRows)
    const read = table.wholePages ? this.#reader : null
    const rows = read ?? readerOf(this.#context, this.#scan, table)
    return {
      source: new TableMorsels(rows, this.#scan, table),
      details: () => ({ morsels: listMorsels(this.#scan.morsels), chunkMorsels: 1, counts: null, table }),
    }
  }

  release(): void {
    this.#reader?.release()
  }

  goIdle(): void {
    this.#reader?.goIdle()
  }
}

function evenCut({ first, end }: NumberedScan['window'], rows: number): TableCut {
  const cuts: number[] = []
  for (let at = first; at < end; at += rows) cuts.push(at)
  return { cuts: Float64Array.from([...cuts, end]), wholePages: false, stepRows: batchRowsMax }
}

function cutAtPages(morsels: readonly ScanMorsel[], range: NumberedScan['window'], rows: number): TableCut {
  const stepRows = Math.max(1, Math.min(textStepRowsMax, rows >>> 3))
  return { cuts: Float64Array.from(cutRows(morsels, range, rows)), wholePages: rows >= pageRowsMax, stepRows }
}

function readerOf(context: ExecContext, scan: NumberedScan, { wholePages }: TableCut): NumberedRows {
  return new NumberedRows(context, scan, wholePages ? 'once' : 'cached')
}

function isWorthCopying({ source, rows }: ScanMorsel): boolean {
  return source >= 0 && rows >= storedRowsMin
}

class TableMorsels implements MorselSource {
  readonly morsels: number
  readonly stepRows: number
  readonly #rows: NumberedRows
  readonly #scan: NumberedScan
  readonly #cuts: Float64Array
  #rowEnd = 0

  constructor(rows: NumberedRows, scan: NumberedScan, { cuts, stepRows }: TableCut) {
    this.#rows = rows
    this.#scan = scan
    this.#cuts = cuts
    this.stepRows = stepRows
    this.morsels = cuts.length - 1
  }

  seek(morsel: number): void {
    this.#rowEnd = this.#cuts[morsel + 1]!
    this.#rows.seek(this.#cuts[morsel]!)
  }

  take(): Pull {
    const rows = Math.min(this.stepRows, this.#rowEnd - this.#rows.row)
    if (rows === 0) return null
    return this.#rows.ready() ? this.#rows.take(rows) : 'waiting'
  }

  stored(rowsMax: number): StoredRows | null {
    const here = this.#rows.row < this.#rowEnd ? this.#rows.next() : undefined
    if (here === undefined || here.from > 0) return null
    const { morsel } = here
    const whole = morsel.rows <= Math.min(rowsMax, this.#rowEnd - this.#rows.row)
    // While it is fetched, take() waits.
    if (!whole || !isWorthCopying(morsel) || !this.#rows.ready()) return null
    const { reader } = this.#rows
    const { columnIds } = this.#scan.shape
    return {
      rows: morsel.rows,
      column: (index) => ({
        page: morsel.stored(columnIds[index] as number),
        dictionary: reader.dictionaryOf(index),
        vector: () => reader.vectors(morsel, 0, [index], true)[index] as Vector,
      }),
      passed: () => this.#rows.skip(morsel.rows),
    }
  }

  release(): void {
    this.#rows.release()
  }

  goIdle(): void {
    this.#rows.goIdle()
  }
}
