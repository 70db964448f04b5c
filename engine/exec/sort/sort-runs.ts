// External merge sort, for ORDER BY over more rows than memory holds: sorted runs are written to temporary files and
// then merged window by window.
//
// A window holds the next rows of every run, and is sorted in memory like any other rows. Not all sorted rows are
// final, since rows of a run that are not loaded yet may precede some of them. But they do not precede the last loaded
// row of their run. So the rows up to the first of these last rows are returned, and the rest stays for the next
// window. This reuses the sort in memory for all types. The sort is stable, because a window contains the runs in input
// order.
//
// A window needs a block of each run. If there are so many runs, or blocks of so wide rows, that these do not fit, some
// runs are merged into one first. They are neighbours, so the order of the runs is still that of the input.

import { assert } from '../../base/assert.js'
import type { SortKey } from '../../sql/plan/plan.js'
import type { DataType } from '../../types/column-types.js'
import type { ExecContext } from '../batch/context.js'
import { RowBuffer } from '../batch/row-buffer.js'
import { type LoadedBlock, RunFile, runBlockRows } from '../batch/run-file.js'
import { GatheredBatch } from '../batch/selection.js'
import { rowsFor } from '../batch/small-batches.js'
import { type SortShape, sortBytesOf, sortedOrder } from '../batch/sort-order.js'
import type { Batch, Pull } from '../batch/vector.js'
import { sliceBatch } from '../batch/vector.js'

/** Fraction of the free memory of queries that a window may take, measured when the merge begins. */
const windowShare = 0.25
/** The same where a window holds no more than two blocks of each run. */
const leastShare = 0.5
/** Memory of a window in copies of its rows: blocks, row buffer, and twice the buffer while it grows. */
const windowCopies = 3
/** Maximal rows of one run in a window, so that the sort works in the processor's cache. */
const runRowsMax = 16 * runBlockRows
/** Memory of a sorted row beside the row. */
const sortRowBytes = sortBytesOf(1) - sortBytesOf(0)

/** Runs that are merged into one before the last merge. */
interface Pass {
  /** The place of the first run. */
  readonly first: number
  readonly count: number
  readonly merge: Merge
  readonly merged: RunFile
}

export class SortRuns {
  merging = false
  readonly #context: ExecContext
  readonly #types: readonly DataType[]
  readonly #keys: readonly SortKey[]
  readonly #wanted: number
  readonly #gathered: GatheredBatch
  /** In the order of the input. */
  readonly #files: RunFile[] = []
  #pass: Pass | null = null
  #last: Merge | null = null

  constructor(context: ExecContext, { columns, keys, limit }: SortShape) {
    this.#context = context
    this.#keys = keys
    this.#types = columns.map(({ type }) => type)
    this.#gathered = new GatheredBatch(context, this.#types)
    this.#wanted = limit ?? Number.POSITIVE_INFINITY
    context.onEnd(() => {
      for (const file of this.#files) file.close()
      this.#pass?.merged.close()
    })
  }

  /** Writes the next run; `batchAt` returns its rows in order. */
  write(rows: number, batchAt: (from: number, rows: number) => Batch): void {
    const { alive, profile } = this.#context
    const file = this.begin()
    const step = rowsFor(this.#types.length)
    for (let from = 0; from < rows; from += step) {
      alive()
      file.append(batchAt(from, Math.min(step, rows - from)))
    }
    profile?.note(`${this.#files.length} runs on disk`)
  }

  /** Begins the next run; the caller appends its rows in order. */
  begin(): RunFile {
    const file = this.#newFile()
    this.#files.push(file)
    return file
  }

  #newFile(): RunFile {
    const { temporary } = this.#context
    assert(temporary !== undefined, 'Q1: a query that sorts on disk has temporary files')
    return new RunFile(this.#context, temporary.create(), this.#types)
  }

  get isEmpty(): boolean {
    return this.#files.length === 0
  }

  /** Bytes of all runs. */
  get bytes(): number {
    return bytesOf(this.#files)
  }

  /** Starts the merge; no run may be written afterwards. */
  merge(): void {
    this.merging = true
  }

  next(): Pull {
    if (this.#last !== null) return this.#last.next()
    if (this.#pass !== null) return this.#advance(this.#pass)
    const count = this.#surplus()
    if (count === 0) this.#last = this.#mergeOf(this.#files)
    else this.#beginPass(count)
    return 'working'
  }

  #mergeOf(files: readonly RunFile[]): Merge {
    return new Merge(this.#context, this.#gathered, this.#types, this.#keys, { files, wanted: this.#wanted })
  }

  /** How many runs must be merged into one before windows of all runs fit in memory; 0 if they do. */
  #surplus(): number {
    const { length } = this.#files
    const left = this.#context.arena.left * leastShare
    const needed = leastBytesOf(this.#files)
    if (length <= 2 || needed <= left) return 0
    const most = Math.max(2, Math.floor((left / needed) * length))
    return Math.max(2, Math.min(most, length - most + 1))
  }

  /** Begins to merge as many neighbours, those with the fewest bytes. */
  #beginPass(count: number): void {
    let first = 0
    for (let place = 1; place + count <= this.#files.length; place++) {
      const [bytes, least] = [place, first].map((from) => bytesOf(this.#files.slice(from, from + count)))
      if ((bytes ?? 0) < (least ?? 0)) first = place
    }
    const merge = this.#mergeOf(this.#files.slice(first, first + count))
    this.#pass = { first, count, merge, merged: this.#newFile() }
    this.#context.profile?.note('runs merged in several passes')
  }

  #advance({ first, count, merge, merged }: Pass): 'working' {
    const batch = merge.next()
    if (batch !== null) {
      if (batch !== 'working') merged.append(batch)
      return 'working'
    }
    merge.end()
    this.#files.splice(first, count, merged)
    this.#pass = null
    return 'working'
  }
}

/** Merges some runs. */
class Merge {
  readonly #context: ExecContext
  readonly #types: readonly DataType[]
  readonly #keys: readonly SortKey[]
  readonly #window: RowBuffer
  readonly #gathered: GatheredBatch
  #sources: Source[]
  #wanted: number
  #order = 0
  /** Number of rows of the window that are final, and how many of these were returned. */
  #ready = 0
  #given = 0

  constructor(
    context: ExecContext,
    gathered: GatheredBatch,
    types: readonly DataType[],
    keys: readonly SortKey[],
    { files, wanted }: { readonly files: readonly RunFile[]; readonly wanted: number },
  ) {
    this.#context = context
    this.#types = types
    this.#keys = keys
    this.#window = new RowBuffer(context, types)
    this.#gathered = gathered
    this.#wanted = wanted
    const rowBytes = bytesOf(files) / sum(files, ({ rows }) => rows)
    const windowRows = (context.arena.left * windowShare) / (rowBytes * windowCopies + sortRowBytes)
    const runRows = Math.min(runRowsMax, windowRows / files.length)
    // At least a block; blocks of many columns have few rows.
    this.#sources = files.map((file) => new Source(file, Math.max(file.blockRows, runRows)))
  }

  next(): Batch | 'working' | null {
    if (this.#wanted === 0) return null
    if (this.#given === this.#ready) return this.#advance() ? 'working' : null
    const rows = Math.min(rowsFor(this.#types.length), this.#ready - this.#given, this.#wanted)
    const batch = this.#gathered.gather(this.#window.columns(), this.#order + this.#given * 4, rows)
    this.#given += rows
    this.#wanted -= rows
    return batch
  }

  /** Frees the memory, and deletes the runs. */
  end(): void {
    if (this.#order !== 0) this.#context.arena.give(this.#order)
    this.#order = 0
    this.#window.free()
    for (const source of this.#sources) source.end()
  }

  /** Fills and sorts the next window; false when all rows were returned. */
  #advance(): boolean {
    const { arena } = this.#context
    if (this.#order !== 0) arena.give(this.#order)
    this.#order = 0
    this.#window.free()
    this.#sources = this.#sources.filter((source) => source.fill())
    for (const source of this.#sources) source.appendTo(this.#window)
    if (this.#window.rows === 0) return false
    this.#order = sortedOrder(this.#context, this.#window, this.#keys)
    this.#ready = this.#take()
    this.#given = 0
    return true
  }

  /** Takes the rows that are final from the runs; returns their number. */
  #take(): number {
    const { u32 } = this.#context.memory
    const first = this.#order >>> 2
    const rows = this.#window.rows
    const sourceOf = new Uint32Array(rows)
    let row = 0
    for (const [index, source] of this.#sources.entries()) {
      sourceOf.fill(index, row, row + source.rows)
      row += source.rows
    }
    const left = Uint32Array.from(this.#sources, (source) => source.rows)
    const open = Uint8Array.from(this.#sources, (source) => (source.exhausted ? 0 : 1))
    let ready = 0
    while (ready < rows) {
      const source = sourceOf[u32[first + ready]!]!
      ready++
      left[source] = left[source]! - 1
      if (left[source] === 0 && open[source] === 1) break
    }
    for (const [index, source] of this.#sources.entries()) source.keepLast(left[index]!)
    return ready
  }
}

/** The rows of a run that are in memory. */
class Source {
  rows = 0
  readonly #file: RunFile
  readonly #rowsMax: number
  #blocks: LoadedBlock[] = []
  /** Index of the next block. */
  #next = 0
  /** Rows of the first block that were taken. */
  #taken = 0

  constructor(file: RunFile, rowsMax: number) {
    this.#file = file
    this.#rowsMax = rowsMax
  }

  /** Whether all rows of the file have been loaded. */
  get exhausted(): boolean {
    return this.#next === this.#file.blocks
  }

  /** Loads blocks when at most half of the rows are left; false at the end of the run. */
  fill(): boolean {
    if (this.rows <= this.#rowsMax / 2) {
      while (!this.exhausted && this.rows < this.#rowsMax) {
        const block = this.#file.load(this.#next++)
        this.#blocks.push(block)
        this.rows += block.batch.rows
      }
    }
    if (this.rows === 0) this.#file.close()
    return this.rows > 0
  }

  appendTo(store: RowBuffer): void {
    let from = this.#taken
    for (const { batch } of this.#blocks) {
      store.append(sliceBatch(batch, from, batch.rows))
      from = 0
    }
  }

  end(): void {
    for (const block of this.#blocks.splice(0)) block.free()
    this.#file.close()
  }

  /** Drops all rows but the last `rows`. */
  keepLast(rows: number): void {
    this.#taken += this.rows - rows
    this.rows = rows
    while (this.#blocks.length > 0 && this.#taken >= (this.#blocks[0] as LoadedBlock).batch.rows) {
      const block = this.#blocks.shift() as LoadedBlock
      this.#taken -= block.batch.rows
      block.free()
    }
  }
}

function sum<Item>(items: readonly Item[], of: (item: Item) => number): number {
  return items.reduce((total, item) => total + of(item), 0)
}

function bytesOf(files: readonly RunFile[]): number {
  return sum(files, ({ bytes }) => bytes)
}

/** About how much memory a window needs at least: two blocks of each run. */
function leastBytesOf(files: readonly RunFile[]): number {
  const shareOf = ({ rows, blockRows }: RunFile): number => Math.min(1, (2 * blockRows) / rows)
  const rows = sum(files, (file) => file.rows * shareOf(file))
  return sum(files, (file) => file.bytes * shareOf(file)) * windowCopies + sortBytesOf(rows)
}
