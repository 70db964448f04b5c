// Decodes the blocks of a CSV file into batches of rows in columnar form: a scanner splits the bytes into fields, a
// WebAssembly kernel parses whole columns of fields, and engine/types parses the fields that the kernel does not
// handle. Runs on a query thread, with one decoder for each file, which gets its blocks in order.
//
// A batch owns its bytes: it does not refer to the decoder's memory.

import { assert, nonNull } from '../base/assert.js'
import { RowError } from '../base/errors.js'
import { csvScanBytes } from '../kernels/csv.js'
import { budgets } from '../memory/budgets.js'
import type { SharedMemory } from '../memory/shared-memory.js'
import type { PackedColumn } from '../storage/jobs/messages.js'
import { Scratch } from '../storage/part/part-scratch.js'
import { widthOf } from '../types/column-types.js'
import { CsvFields, type CsvTools, distinctSymbols, isText, keepRows } from './fields.js'
import { scanRecords } from './scan.js'
import { type CsvScan, scanOptions, scanStart } from './scan-state.js'
import type { CsvBatch, CsvReject, CsvShape } from './shape.js'
import { Utf8Check } from './utf8.js'

const batchRowsMax = 16_384
const entriesBytesMax = 4 * 1024 * 1024
/** A longer record means an unclosed quote. */
const recordBytesMax = 16 * 1024 * 1024
const paddingBytes = 128

export class CsvDecoder {
  private readonly tools: CsvTools
  private readonly shape: CsvShape
  private readonly scratch: Scratch
  private readonly scan: CsvScan
  private readonly fields: CsvFields
  /** Bytes of an incomplete record at the start of the input. */
  private tail = 0
  private headerSkipped: boolean
  private readonly utf8 = new Utf8Check()

  constructor(tools: CsvTools, shape: CsvShape) {
    this.tools = tools
    this.shape = shape
    this.headerSkipped = !shape.header
    this.scratch = new Scratch(tools.memory, tools.allocator, budgets.queries)
    const columns = shape.columns.length
    const rowsMax = Math.max(64, Math.min(batchRowsMax, Math.floor(entriesBytesMax / (columns * 8)))) & ~7
    const entries = this.scratch.room('entries', columns * rowsMax * 8)
    const lines = this.scratch.room('lines', rowsMax * 4)
    const state = this.scratch.room('scan', csvScanBytes)
    const { memory, kernels } = tools
    const where = { memory, kernel: kernels.csv, state, entries, lines }
    this.scan = { ...where, ...scanOptions(shape), columns, rowsMax, ...scanStart() }
    const room = (index: number, bytes: number): number => this.scratch.room(`values${index}`, bytes)
    this.fields = new CsvFields({ tools, shape, scratch: this.scratch, scan: this.scan, room })
  }

  /** Decodes the next block; `last` also ends a line without a newline. */
  decode(block: Uint8Array, last: boolean): CsvBatch[] {
    const { scan, scratch } = this
    const { u8 } = scratch.memory
    const bytes = this.tail + block.length
    const input = scratch.room('input', bytes + paddingBytes, this.tail)
    scratch.memory.put(block, input + this.tail)
    scan.at = input
    this.utf8.add(block, last)
    if (scan.line === 1 && this.tail === 0 && u8[input] === 0xef && u8[input + 1] === 0xbb) scan.at += 3
    const batches: CsvBatch[] = []
    for (;;) {
      const before = scan.at
      const rejects: CsvReject[] = []
      const rows = scanRecords(scan, input + bytes, last, rejects)
      if (rows === 0 && rejects.length === 0 && scan.at === before) break
      const from = this.skipHeader(rows, rejects)
      if (rows > from || rejects.length > 0) batches.push(this.batch(from, rows, rejects))
      if (rows < scan.rowsMax && rejects.length === 0) break
    }
    assert(scan.at <= input + bytes, 'P1: a scan ends within its block')
    this.tail = input + bytes - scan.at
    if (this.tail > recordBytesMax)
      throw new RowError('a quote is not closed, or the row is longer than 16 MiB', scan.line)
    u8.copyWithin(input, scan.at, input + bytes)
    return batches
  }

  close(): void {
    this.scratch.release()
  }

  /** The sample determined the names. A first line with another number of fields counts as header, too. */
  private skipHeader(rows: number, rejects: CsvReject[]): number {
    if (this.headerSkipped || (rows === 0 && rejects.length === 0)) return 0
    this.headerSkipped = true
    const firstRow = rows > 0 ? this.fields.lineOf(0) : Number.POSITIVE_INFINITY
    if (rejects[0] !== undefined && rejects[0].line < firstRow) {
      rejects.shift()
      return 0
    }
    return 1
  }

  private batch(from: number, to: number, rejects: CsvReject[]): CsvBatch {
    const rows = to - from
    const bad = new Map<number, CsvReject>()
    const parsed = this.fields.columns(from, rows, bad, this.utf8.valid)
    const columns = parsed.map((values, index) => this.pack(index, values, from, rows, bad))
    const all = [...rejects, ...bad.values(), ...this.fields.retained].sort((x, y) => x.line - y.line)
    return { rows: rows - bad.size, columns, rejects: all }
  }

  private pack(
    index: number,
    values: number,
    from: number,
    rows: number,
    bad: ReadonlyMap<number, CsvReject>,
  ): PackedColumn {
    assert(bad.size <= rows, 'R4: only rows of the batch are refused')
    const { type } = nonNull(this.shape.columns[index])
    const { memory } = this.scratch
    const text = isText(type)
    const width = text ? 8 : widthOf(type)
    const source = text ? this.fields.entriesOf(index, from) : values
    let packed = source
    let count = rows
    if (bad.size > 0) {
      packed = this.scratch.room('kept', rows * width)
      count = keepRows(memory.u8, source, rows, width, bad, packed)
      assert(count === rows - bad.size, 'R1: refused rows are left out of every column')
    }
    if (!text && type.name !== 'ARRAY' && type.name !== 'BINARY') {
      return { kind: 'fixed', bytes: memory.u8.slice(packed, packed + count * width) }
    }
    return type.name === 'SYMBOL'
      ? { kind: 'symbols', ...distinctSymbols(this.tools, this.scratch, packed, count) }
      : packStrings(memory, packed, count)
  }
}

function packStrings({ u8, u32, i32 }: SharedMemory, entries: number, count: number): PackedColumn {
  const lengths = new Int32Array(count)
  const word = entries >>> 2
  let all = 0
  for (let row = 0; row < count; row++) {
    const bytes = i32[word + row * 2 + 1]!
    lengths[row] = bytes
    if (bytes > 0) all += bytes
  }
  const bytes = new Uint8Array(all)
  let at = 0
  for (let row = 0; row < count; row++) {
    const length = lengths[row]!
    const start = u32[word + row * 2]!
    if (length > 32) bytes.set(u8.subarray(start, start + length), at)
    else for (let byte = 0; byte < length; byte++) bytes[at + byte] = u8[start + byte]!
    if (length > 0) at += length
  }
  assert(at === all, 'R3: lengths of strings add up to their bytes')
  return { kind: 'strings', lengths, bytes }
}
