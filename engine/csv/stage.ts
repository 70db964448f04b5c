// Decodes a CSV file for a bulk import, which writes Parquet files without the log. Takes blocks of the file that the
// main thread has put into shared memory, or rows that are decoded already (takePacked()). Returns the rows as
// memtables (memory/column-layout.ts), which flush jobs then write. These memtables belong to the import, and no query
// reads them. Runs on a query thread; blocks arrive in order.
//
//   INPUT BLOCK   headroom for the start of a record | the bytes of the file | padding
//
// Strings stay in the input, so a memtable owns the blocks that contain them. Symbols (dictionary-encoded strings) get
// codes local to the file; the table's codes replace them when the memtable is flushed (storage/jobs/stage.ts).

import { assert, nonNull } from '../base/assert.js'
import { ResourceError, RowError } from '../base/errors.js'
import { csvScanBytes } from '../kernels/csv.js'
import { budgets } from '../memory/budgets.js'
import { blockHeaderBytes, memtableHeaderBytes } from '../memory/column-layout.js'
import type { PackedColumn, PackedRows } from '../storage/jobs/messages.js'
import { fillNull } from '../storage/memtable/memtable-values.js'
import { Scratch } from '../storage/part/part-scratch.js'
import { type DataType, widthOf } from '../types/column-types.js'
import { CsvFields, type CsvTools, distinctSymbols, isText, keepRows } from './fields.js'
import { scanRecords } from './scan.js'
import { type CsvScan, scanOptions, scanStart } from './scan-state.js'
import type { CsvReject, CsvShape, StagedMemtable } from './shape.js'

/** Space before the bytes of an input block, for the start of a record from the previous block. */
export const stageHeadroomBytes = 64 * 1024

const paddingBytes = 192
const batchRowsMax = 16_384
/** A longer record means an unclosed quote. */
const recordBytesMax = 16 * 1024 * 1024
const stagedRowsMax = 1 << 21
const stagedBytesMax = 96 * 1024 * 1024
/** Limit of one memtable, as a fraction of the memtables' memory. */
const stagedShare = 1 / 8
/** Above this memory usage a memtable is closed early. */
const memoryMark = 0.8
/** Limit of memtables waiting to be flushed, and of blocks waiting to be filled. */
const waitingMax = 2
const borrowedBlocksMax = 3

export interface StageEvents {
  /** Hands out an input block to be filled. */
  readonly borrowedBlocks: (address: number) => void
  readonly taken: (rows: number, rejects: readonly CsvReject[]) => void
  readonly closed: (memtable: StagedMemtable) => void
}

interface SymbolColumn {
  readonly known: Map<string, number>
  fresh: string[]
}

export class CsvStager {
  readonly #tools: CsvTools
  readonly #shape: CsvShape
  readonly #columnIds: readonly number[]
  readonly #blockBytes: number
  readonly #events: StageEvents
  readonly #scratch: Scratch
  readonly #scan: CsvScan
  readonly #fields: CsvFields
  readonly #symbols = new Map<number, SymbolColumn>()
  readonly #keepsInput: boolean
  readonly #stagedBytesMax: number
  /** Allocations of the current memtable. */
  #allocations: number[] = []
  #blocks: number[] = []
  #rows = 0
  #bytes = 0
  /** Addresses of the columns of the current batch. */
  #places: number[] = []
  #tail = 0
  #headerSkipped: boolean
  readonly #borrowedBlocks = new Set<number>()
  #waiting = 0
  /** The input has ended. */
  #over = false
  #failed = false

  constructor(
    tools: CsvTools,
    shape: CsvShape,
    stage: { readonly columnIds: readonly number[]; readonly blockBytes: number },
    events: StageEvents,
  ) {
    this.#tools = tools
    this.#shape = shape
    this.#columnIds = stage.columnIds
    this.#blockBytes = stage.blockBytes
    this.#events = events
    this.#headerSkipped = !shape.header
    this.#scratch = new Scratch(tools.memory, tools.allocator, budgets.queries)
    this.#keepsInput = shape.columns.some(({ type }) => isText(type) && type.name !== 'SYMBOL')
    const share = tools.allocator.limit(budgets.memtables) * stagedShare
    this.#stagedBytesMax = Math.min(stagedBytesMax, share)
    const columns = shape.columns.length
    const rowsMax = Math.max(64, Math.min(batchRowsMax, Math.floor((4 * 1024 * 1024) / (columns * 8)))) & ~7
    const { memory, kernels } = tools
    const scratch = this.#scratch
    const entries = scratch.room('entries', columns * rowsMax * 8)
    const lines = scratch.room('lines', rowsMax * 4)
    const state = scratch.room('scan', csvScanBytes)
    const where = { memory, kernel: kernels.csv, state, entries, lines }
    this.#scan = { ...where, ...scanOptions(shape), columns, rowsMax, ...scanStart() }
    const room = (index: number): number => this.#places[index] as number
    this.#fields = new CsvFields({ tools, shape, scratch, scan: this.#scan, room })
    for (const [index, { type }] of shape.columns.entries()) {
      if (type.name === 'SYMBOL') this.#symbols.set(index, { known: new Map(), fresh: [] })
    }
  }

  /** Hands out the first blocks. */
  begin(): void {
    this.#handOut()
  }

  /** Decodes the filled block at `address`; `last`: nothing follows. */
  take(address: number, bytes: number, utf8: boolean, last: boolean): void {
    assert(this.#borrowedBlocks.has(address), 'A2: a block of input is borrowed before it is taken')
    assert(bytes <= this.#blockBytes, 'A1: a block holds the bytes that were written to it')
    this.#borrowedBlocks.delete(address)
    const { memory, allocator } = this.#tools
    if (this.#failed) {
      allocator.free(address)
      return
    }
    let data = address + stageHeadroomBytes
    let owner = address
    if (this.#tail > stageHeadroomBytes) {
      owner = allocator.allocateOrThrow(this.#tail + bytes + paddingBytes, budgets.memtables)
      memory.copy(owner + this.#tail, data, data + bytes)
      data = owner + this.#tail
      allocator.free(address)
    }
    const start = data - this.#tail
    const saved = this.#tail === 0 ? 0 : this.#scratch.room('tail', this.#tail, this.#tail)
    memory.copy(start, saved, saved + this.#tail)
    const before = this.#rows
    try {
      this.#decode(start, data + bytes, utf8, last)
    } finally {
      if (this.#keepsInput && this.#rows > before) this.#own(owner, this.#blockBytes)
      else allocator.free(owner)
    }
    this.#over = last
    if (last || this.#isFull()) this.#closeMemtable(last)
    if (!last) this.#handOut()
  }

  /** Takes decoded rows instead of the bytes of the borrowed block. */
  takePacked(address: number, { rows, columns }: PackedRows): void {
    assert(this.#borrowedBlocks.has(address), 'A2: a block of input is borrowed before it is taken')
    this.#borrowedBlocks.delete(address)
    const { memory, allocator } = this.#tools
    allocator.free(address)
    if (this.#failed) return
    const block = this.#openBlock(rows)
    const values = new Map(columns.map((column) => [column.columnId, column.values]))
    for (const [index, { type }] of this.#shape.columns.entries()) {
      const place = this.#places[index] as number
      const packed = values.get(nonNull(this.#columnIds[index]))
      if (packed === undefined) fillNull(memory, type, place, 0, rows)
      else this.#place(index, place, packed)
    }
    memory.u32[(block + 8) >>> 2] = rows
    this.#addBlock(block, rows)
    if (this.#isFull()) this.#closeMemtable(false)
    this.#handOut()
  }

  #place(index: number, place: number, packed: PackedColumn): void {
    const { memory, allocator } = this.#tools
    const { u8, u32, i32 } = memory
    if (packed.kind === 'fixed') u8.set(packed.bytes, place)
    else if (packed.kind === 'symbols') {
      this.#storeNumbers(place, packed.ids, packed.ids.length, this.#numbersOf(index, packed.strings, packed.count))
    } else {
      let at = allocator.allocateOrThrow(packed.bytes.length + paddingBytes, budgets.memtables)
      this.#own(at, packed.bytes.length)
      u8.set(packed.bytes, at)
      for (let row = 0, word = place >>> 2; row < packed.lengths.length; row++, word += 2) {
        const length = packed.lengths[row]!
        u32[word] = at
        i32[word + 1] = length
        if (length > 0) at += length
      }
    }
  }

  /** A memtable was flushed and released. */
  flushed(): void {
    assert(this.#waiting > 0, 'A2: a memtable is flushed once')
    this.#waiting--
    if (!this.#failed && !this.#over) this.#handOut()
  }

  /** Stops decoding; borrowed blocks may still be written to. */
  fail(): void {
    this.#failed = true
    for (const address of this.#allocations) this.#tools.allocator.free(address)
    this.#allocations = []
    this.#scratch.release()
  }

  close(): void {
    this.fail()
    for (const address of this.#borrowedBlocks) this.#tools.allocator.free(address)
    this.#borrowedBlocks.clear()
  }

  #own(address: number, bytes: number): void {
    this.#allocations.push(address)
    this.#bytes += bytes
  }

  #isFull(): boolean {
    const { allocator } = this.#tools
    const short = allocator.used(budgets.memtables) > memoryMark * allocator.limit(budgets.memtables)
    return this.#rows >= stagedRowsMax || this.#bytes >= this.#stagedBytesMax || (short && this.#rows > 0)
  }

  /** Hands out blocks to fill, unless flushes must catch up first. */
  #handOut(): void {
    const { allocator } = this.#tools
    while (this.#borrowedBlocks.size < borrowedBlocksMax && this.#waiting < waitingMax) {
      const bytes = stageHeadroomBytes + this.#blockBytes + paddingBytes
      const address = allocator.allocate(bytes, budgets.memtables)
      if (address === 0) {
        if (this.#borrowedBlocks.size > 0 || this.#waiting > 0) return
        if (this.#rows === 0) throw new ResourceError('out of memory for an import')
        this.#closeMemtable(false)
        return
      }
      this.#borrowedBlocks.add(address)
      this.#events.borrowedBlocks(address)
    }
  }

  #decode(start: number, end: number, utf8: boolean, last: boolean): void {
    const scan = this.#scan
    const { u8 } = this.#tools.memory
    scan.at = start
    if (scan.line === 1 && this.#tail === 0 && u8[start] === 0xef && u8[start + 1] === 0xbb) scan.at += 3
    const all: CsvReject[] = []
    const before = this.#rows
    for (;;) {
      const at = scan.at
      const rejects: CsvReject[] = []
      const rows = scanRecords(scan, end, last, rejects)
      if (rows === 0 && rejects.length === 0 && scan.at === at) break
      const from = this.#skipHeader(rows, rejects)
      if (rows > from) this.#batch(from, rows - from, utf8, rejects)
      all.push(...rejects)
      if (rows < scan.rowsMax && rejects.length === 0) break
    }
    assert(scan.at <= end, 'P1: a scan ends within its block')
    this.#tail = end - scan.at
    if (this.#tail > recordBytesMax)
      throw new RowError('a quote is not closed, or the row is longer than 16 MiB', scan.line)
    const saved = this.#scratch.room('tail', this.#tail + 1)
    this.#tools.memory.copy(saved, scan.at, end)
    this.#events.taken(this.#rows - before, all)
  }

  #skipHeader(rows: number, rejects: CsvReject[]): number {
    if (this.#headerSkipped || (rows === 0 && rejects.length === 0)) return 0
    this.#headerSkipped = true
    const firstRow = rows > 0 ? this.#fields.lineOf(0) : Number.POSITIVE_INFINITY
    if (rejects[0] === undefined || rejects[0].line > firstRow) return 1
    rejects.shift()
    return 0
  }

  /** Appends scanned rows to the memtable as one block. */
  #batch(from: number, rows: number, utf8: boolean, rejects: CsvReject[]): void {
    const { memory } = this.#tools
    const block = this.#openBlock(rows)
    const bad = new Map<number, CsvReject>()
    this.#fields.columns(from, rows, bad, utf8)
    rejects.push(...bad.values(), ...this.#fields.retained)
    rejects.sort((x, y) => x.line - y.line)
    const retained = rows - bad.size
    for (const [index, { type }] of this.#shape.columns.entries()) {
      const place = this.#places[index] as number
      if (!isText(type)) {
        if (bad.size > 0) keepRows(memory.u8, place, rows, widthOf(type), bad, place)
        continue
      }
      const entries = this.#fields.entriesOf(index, from)
      const target = type.name === 'SYMBOL' ? this.#scratch.room('kept', rows * 8) : place
      if (bad.size > 0) keepRows(memory.u8, entries, rows, 8, bad, target)
      else memory.copy(target, entries, entries + rows * 8)
      if (type.name === 'SYMBOL') this.#numberSymbols(index, target, retained, place)
    }
    if (retained === 0) return
    memory.u32[(block + 8) >>> 2] = retained
    this.#addBlock(block, retained)
  }

  #addBlock(block: number, rows: number): void {
    this.#tools.memory.u32[block >>> 2] = this.#rows
    this.#blocks.push(block)
    this.#rows += rows
  }

  /** Allocates the block and the memory of its columns at once. */
  #openBlock(rows: number): number {
    const { memory, allocator } = this.#tools
    const columnCount = Math.max(...this.#columnIds) + 1
    const headerBytes = aligned(blockHeaderBytes + columnCount * 4)
    const sizes = this.#shape.columns.map(({ type }) => aligned(rows * memoryWidth(type)) + 64)
    const bytes = headerBytes + sizes.reduce((sum, size) => sum + size, 0)
    const block = allocator.allocateOrThrow(bytes + 64, budgets.memtables)
    this.#own(block, bytes)
    memory.u8.fill(0, block, block + headerBytes)
    memory.u32[(block + 4) >>> 2] = rows
    memory.u32[(block + 12) >>> 2] = columnCount
    let at = block + headerBytes
    this.#places = sizes.map((size, index) => {
      const place = at
      memory.u32[((block + blockHeaderBytes) >>> 2) + nonNull(this.#columnIds[index])] = place
      at += size
      return place
    })
    assert(at <= block + bytes, 'A1: the columns of a block lie within it')
    return block
  }

  #numberSymbols(index: number, entries: number, count: number, place: number): void {
    const { ids, strings, count: distinct } = distinctSymbols(this.#tools, this.#scratch, entries, count)
    this.#storeNumbers(place, ids, count, this.#numbersOf(index, strings, distinct))
  }

  /** Maps distinct strings, each stored after its length, to the file's codes. */
  #numbersOf(index: number, strings: Uint8Array, distinct: number): Int32Array {
    const column = nonNull(this.#symbols.get(index))
    const numbers = new Int32Array(distinct)
    const bytes = Buffer.from(strings.buffer, strings.byteOffset, strings.length)
    for (let each = 0, at = 0; each < distinct; each++) {
      const length = bytes.readUInt32LE(at)
      const text = bytes.toString('utf8', at + 4, at + 4 + length)
      at += 4 + length
      let number = column.known.get(text)
      if (number === undefined) {
        number = column.known.size
        column.known.set(text, number)
        column.fresh.push(text)
      }
      numbers[each] = number
    }
    return numbers
  }

  #storeNumbers(place: number, ids: Int32Array, count: number, numbers: Int32Array): void {
    const { memory } = this.#tools
    const word = place >>> 2
    for (let row = 0; row < count; row++) {
      const id = ids[row]!
      memory.i32[word + row] = id < 0 ? -1 : numbers[id]!
    }
  }

  #closeMemtable(last: boolean): void {
    const { memory, allocator } = this.#tools
    const { u32 } = memory
    let address = 0
    if (this.#rows > 0) {
      address = allocator.allocateOrThrow(memtableHeaderBytes + this.#blocks.length * 4, budgets.memtables)
      this.#own(address, 0)
      u32.fill(0, address >>> 2, (address + memtableHeaderBytes) >>> 2)
      const words = [this.#rows, this.#blocks.length, address + memtableHeaderBytes, this.#blocks.length, this.#rows]
      for (const [word, value] of words.entries()) u32[(address >>> 2) + word] = value
      u32.set(this.#blocks, (address + memtableHeaderBytes) >>> 2)
      this.#waiting++
    }
    const symbols = [...this.#symbols].map(([index, column]) => {
      const { fresh } = column
      column.fresh = []
      return [nonNull(this.#columnIds[index]), fresh] as const
    })
    this.#events.closed({ address, rows: this.#rows, allocations: this.#allocations, symbols, last })
    this.#allocations = []
    this.#blocks = []
    this.#rows = 0
    this.#bytes = 0
  }
}

function aligned(bytes: number): number {
  return (bytes + 63) & ~63
}

/** Width of a value in a memtable. */
function memoryWidth(type: DataType): number {
  if (type.name === 'SYMBOL') return 4
  return isText(type) ? 8 : widthOf(type)
}
