// Blocks of a CSV file to columnar batches: fields are found by a byte scanner, columns are parsed by the kernel, what it
// leaves open by engine/types. Runs on a query thread; one decoder for one file, blocks in their order.
//
// A batch owns its bytes: nothing of it points into the decoder's memory.

import { isUtf8 } from 'node:buffer'
import { RowError } from '../base/errors.js'
import { encodeKindOf } from '../kernels/encode.js'
import type { Kernels } from '../kernels/load.js'
import { type Allocator, budgets } from '../memory/budgets.js'
import type { SharedMemory } from '../memory/shared-memory.js'
import { fillNull } from '../storage/memtable-values.js'
import type { PackedColumn } from '../storage/messages.js'
import { ChunkDictionary } from '../storage/part-dictionary.js'
import { Scratch } from '../storage/part-scratch.js'
import { type ColumnType, type DataType, widthOf } from '../types/column-types.js'
import type { ArrayValue, Value } from '../types/value.js'
import { parseField } from './convert.js'
import { type CsvScan, scanRecords } from './scan.js'
import type { CsvBatch, CsvColumn, CsvReject, CsvShape } from './shape.js'
import { storeField } from './store.js'

export interface CsvTools {
  readonly memory: SharedMemory
  readonly allocator: Allocator
  readonly kernels: Kernels
}

const batchRowsMax = 16_384
const entriesBytesMax = 4 * 1024 * 1024
/** A longer record is an unclosed quote. */
const recordBytesMax = 16 * 1024 * 1024
const paddingBytes = 64
const kernelTypes: ReadonlySet<ColumnType> = new Set<ColumnType>([
  ...(['BYTE', 'SHORT', 'INT', 'LONG', 'FLOAT', 'DOUBLE'] as const),
  ...(['DATE', 'TIMESTAMP', 'TIMESTAMP_NS', 'UUID', 'IPv4'] as const),
])

export class CsvDecoder {
  private readonly tools: CsvTools
  private readonly shape: CsvShape
  private readonly scratch: Scratch
  private readonly scan: CsvScan
  /** Bytes of an incomplete record, at the beginning of the input. */
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
    const { memory } = tools
    const lines = new Float64Array(rowsMax)
    this.scan = { memory, delimiter: shape.delimiter, columns, rowsMax, entries, lines, at: 0, line: 1 }
  }

  /** Takes the next block; `last` also ends a line without a newline. */
  decode(block: Uint8Array, last: boolean): CsvBatch[] {
    const { scan, scratch } = this
    const { u8 } = scratch.memory
    const bytes = this.tail + block.length
    const input = scratch.room('input', bytes + paddingBytes, this.tail)
    u8.set(block, input + this.tail)
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
    this.tail = input + bytes - scan.at
    if (this.tail > recordBytesMax) throw new RowError('a quote is not closed', scan.line)
    u8.copyWithin(input, scan.at, input + bytes)
    return batches
  }

  close(): void {
    this.scratch.release()
  }

  /** Names were read from the sample. A first line of another width than the rest counts as header, too. */
  private skipHeader(rows: number, rejects: CsvReject[]): number {
    if (this.headerSkipped || (rows === 0 && rejects.length === 0)) return 0
    this.headerSkipped = true
    const firstRow = rows > 0 ? (this.scan.lines[0] as number) : Number.POSITIVE_INFINITY
    if (rejects[0] !== undefined && rejects[0].line < firstRow) {
      rejects.shift()
      return 0
    }
    return 1
  }

  private batch(from: number, to: number, rejects: CsvReject[]): CsvBatch {
    const rows = to - from
    const bad = new Map<number, CsvReject>()
    const parsed = this.shape.columns.map((column, index) => this.parse(column, index, from, rows, bad))
    this.checkTimestamps(parsed, from, rows, bad)
    if (!this.utf8.valid) for (const index of parsed.keys()) this.checkTexts(index, from, rows, bad)
    const columns = parsed.map((values, index) => this.pack(index, values, from, rows, bad))
    const all = [...rejects, ...bad.values()].sort((x, y) => x.line - y.line)
    return { rows: rows - bad.size, columns, rejects: all }
  }

  private entriesOf(column: number, row: number): number {
    return this.scan.entries + (column * this.scan.rowsMax + row) * 8
  }

  private reject(bad: Map<number, CsvReject>, from: number, row: number, column: number, reason: string): void {
    if (bad.has(row)) return
    bad.set(row, { line: this.scan.lines[from + row] as number, column, reason, extra: false })
  }

  /** Address of values of fixed width; 0 for texts, which stay entries. */
  private parse(column: CsvColumn, index: number, from: number, rows: number, bad: Map<number, CsvReject>): number {
    const { type, pattern } = column
    if (isText(type)) return 0
    const { scratch, tools } = this
    const entries = this.entriesOf(index, from)
    const values = scratch.room(`values${index}`, this.scan.rowsMax * widthOf(type))
    if (type.name === 'ARRAY') {
      this.parseArrays(column, index, from, rows, values, bad)
      return values
    }
    if (type.name === 'BOOLEAN') {
      this.parseBooleans(column, index, from, rows, values, bad)
      return values
    }
    if (!kernelTypes.has(type.name) || (pattern !== null && !isIsoPattern(pattern, type))) {
      fillNull(scratch.memory, type, values, 0, rows)
      for (let row = 0; row < rows; row++) this.parseOne(column, index, from, row, values, bad)
      return values
    }
    const status = scratch.room('status', this.scan.rowsMax)
    const kind = encodeKindOf(type)
    const open = tools.kernels.number.parseColumn(kind, entries, rows, values, status, scratch.room('kernel', 128))
    if (open === 0) return values
    const { u8 } = scratch.memory
    for (let row = 0; row < rows; row++) {
      if (u8[status + row] === 1) this.parseOne(column, index, from, row, values, bad)
    }
    return values
  }

  /** `true` and `false` in any case are read here, the rest one by one. */
  private parseBooleans(
    column: CsvColumn,
    index: number,
    from: number,
    rows: number,
    values: number,
    bad: Map<number, CsvReject>,
  ): void {
    const { u8, u32, i32 } = this.scratch.memory
    const word = this.entriesOf(index, from) >>> 2
    for (let row = 0; row < rows; row++) {
      const bytes = i32[word + row * 2 + 1] as number
      const start = u32[word + row * 2] as number
      u8[values + row] = bytes === 4 && isWord(u8, start, trueBytes) ? 1 : 0
      if (bytes > 0 && u8[values + row] === 0 && !(bytes === 5 && isWord(u8, start, falseBytes))) {
        this.parseOne(column, index, from, row, values, bad)
      }
    }
  }

  private parseOne(
    column: CsvColumn,
    index: number,
    from: number,
    row: number,
    values: number,
    bad: Map<number, CsvReject>,
  ): void {
    const text = this.textAt(index, from + row)
    if (text === null) return
    const value: Value | undefined = text === '' ? null : parseField(text, column.type, column.pattern)
    if (value === undefined) this.reject(bad, from, row, index, reasonOf(column, text))
    else if (value !== null) storeField(this.scratch.memory, column.type, values, row, value)
  }

  private textAt(column: number, row: number): string | null {
    const { memory } = this.scratch
    const word = this.entriesOf(column, row) >>> 2
    const bytes = memory.i32[word + 1] as number
    if (bytes < 0) return null
    const start = memory.u32[word] as number
    return Buffer.from(memory.u8.slice(start, start + bytes)).toString('utf8')
  }

  /** Arrays become entries of their bytes, within scratch memory. */
  private parseArrays(
    column: CsvColumn,
    index: number,
    from: number,
    rows: number,
    values: number,
    bad: Map<number, CsvReject>,
  ): void {
    const { scratch } = this
    const made: (Uint8Array | null)[] = []
    for (let row = 0; row < rows; row++) {
      const text = this.textAt(index, from + row)
      const value = text === null || text === '' ? null : parseField(text, column.type, null)
      if (value === undefined) this.reject(bad, from, row, index, reasonOf(column, text ?? ''))
      made.push(value === null || value === undefined ? null : arrayBytes(value as ArrayValue))
    }
    const all = made.reduce((sum, bytes) => sum + (bytes?.length ?? 0), 0)
    let at = scratch.room(`arrays${index}`, all)
    for (const [row, bytes] of made.entries()) {
      scratch.memory.u32[(values >>> 2) + row * 2] = at
      scratch.memory.i32[(values >>> 2) + row * 2 + 1] = bytes?.length ?? -1
      if (bytes === null) continue
      scratch.memory.u8.set(bytes, at)
      at += bytes.length
    }
  }

  private checkTimestamps(parsed: readonly number[], from: number, rows: number, bad: Map<number, CsvReject>): void {
    const { timestamp } = this.shape
    if (timestamp < 0) return
    const { i32 } = this.scratch.memory
    const word = (parsed[timestamp] as number) >>> 2
    for (let row = 0; row < rows; row++) {
      const high = i32[word + row * 2 + 1] as number
      if (high >= 0) continue
      const missing = high === -(2 ** 31) && i32[word + row * 2] === 0
      const reason = missing
        ? 'the designated timestamp is missing'
        : 'designated timestamp before 1970-01-01 is not allowed'
      this.reject(bad, from, row, timestamp, reason)
    }
  }

  private pack(
    index: number,
    values: number,
    from: number,
    rows: number,
    bad: ReadonlyMap<number, CsvReject>,
  ): PackedColumn {
    const { type } = this.shape.columns[index] as CsvColumn
    const { memory } = this.scratch
    const text = isText(type)
    const width = text ? 8 : widthOf(type)
    const source = text ? this.entriesOf(index, from) : values
    let packed = source
    let count = rows
    if (bad.size > 0) {
      packed = this.scratch.room('kept', rows * width)
      count = keepRows(memory.u8, source, rows, width, bad, packed)
    }
    if (!text && type.name !== 'ARRAY') {
      return { kind: 'fixed', bytes: memory.u8.slice(packed, packed + count * width) }
    }
    return type.name === 'SYMBOL' ? this.packSymbols(packed, count) : packTexts(memory, packed, count)
  }

  /** Rows with texts that are not UTF-8 are bad. */
  private checkTexts(column: number, from: number, rows: number, bad: Map<number, CsvReject>): void {
    if (!isText((this.shape.columns[column] as CsvColumn).type)) return
    const { u8, u32, i32 } = this.scratch.memory
    for (let row = 0; row < rows; row++) {
      const word = (this.entriesOf(column, from) >>> 2) + row * 2
      const bytes = i32[word + 1] as number
      if (bytes <= 0) continue
      const start = u32[word] as number
      if (!isUtf8(u8.slice(start, start + bytes))) this.reject(bad, from, row, column, 'the text is not valid UTF-8')
    }
  }

  private packSymbols(entries: number, count: number): PackedColumn {
    const { scratch, tools } = this
    const { memory } = scratch
    const { parquet } = tools.kernels
    const bits = scratch.room('bits', (count >>> 3) + 64)
    const present = parquet.presence(entries, count, entryNulls, bits)
    const packed = scratch.room('present', count * 8)
    parquet.compact(entries, count, 8, bits, packed)
    const dictionary = new ChunkDictionary(parquet, scratch, 0, { count: 2 ** 31, bytes: 2 ** 31 })
    dictionary.add(packed, present)
    const ids = new Int32Array(count)
    const first = dictionary.indexesFrom(0) >>> 2
    let next = 0
    for (let row = 0; row < count; row++) {
      const bytes = memory.i32[(entries >>> 2) + row * 2 + 1] as number
      ids[row] = bytes < 0 ? -1 : (memory.i32[first + next++] as number)
    }
    const texts = memory.u8.slice(dictionary.values, dictionary.values + dictionary.bytes)
    return { kind: 'symbols', ids, texts, count: dictionary.count }
  }
}

/** Whether a file is UTF-8 as far as it has come; characters may be cut by the ends of blocks. */
class Utf8Check {
  valid = true
  private pending: Uint8Array = new Uint8Array(0)

  add(block: Uint8Array, last: boolean): void {
    if (!this.valid) return
    const bytes = this.pending.length === 0 ? block : Buffer.concat([this.pending, block])
    const whole = last ? bytes.length : wholeCharacters(bytes)
    this.valid = isUtf8(bytes.subarray(0, whole))
    this.pending = bytes.slice(whole)
  }
}

/** Bytes before a character that the end may have cut. */
function wholeCharacters(bytes: Uint8Array): number {
  for (let back = 1; back <= 3 && back <= bytes.length; back++) {
    const byte = bytes[bytes.length - back] as number
    if (byte < 0x80) break
    if (byte >= 0xc0) {
      const needed = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : 2
      return needed > back ? bytes.length - back : bytes.length
    }
  }
  return bytes.length
}

/** nullKinds.entry of the kernel. */
const entryNulls = 14

const trueBytes = Buffer.from('true')
const falseBytes = Buffer.from('false')

/** Letters without case. */
function isWord(u8: Uint8Array, start: number, word: Uint8Array): boolean {
  for (let byte = 0; byte < word.length; byte++) if (((u8[start + byte] as number) | 0x20) !== word[byte]) return false
  return true
}

function isText({ name }: DataType): boolean {
  return name === 'VARCHAR' || name === 'STRING' || name === 'SYMBOL'
}

/** What the kernel reads itself. */
function isIsoPattern(pattern: string, { name }: DataType): boolean {
  if (name === 'TIMESTAMP') return /^yyyy-MM-ddTHH:mm:ss\.(SSSUUU|U\+)(Z|z)$/.test(pattern)
  return name === 'DATE' && /^yyyy-MM-dd(THH:mm:ss\.SSS(Z|z))?$/.test(pattern)
}

function reasonOf({ name, type }: CsvColumn, text: string): string {
  return `not a value of type ${type.name} [column=${name}, value=${text.slice(0, 100)}]`
}

function keepRows(
  u8: Uint8Array,
  source: number,
  rows: number,
  width: number,
  bad: ReadonlyMap<number, CsvReject>,
  target: number,
): number {
  let kept = 0
  for (let row = 0; row < rows; row++) {
    if (bad.has(row)) continue
    u8.copyWithin(target + kept * width, source + row * width, source + (row + 1) * width)
    kept++
  }
  return kept
}

function packTexts({ u8, u32, i32 }: SharedMemory, entries: number, count: number): PackedColumn {
  const lengths = new Int32Array(count)
  const word = entries >>> 2
  let all = 0
  for (let row = 0; row < count; row++) {
    const bytes = i32[word + row * 2 + 1] as number
    lengths[row] = bytes
    if (bytes > 0) all += bytes
  }
  const bytes = new Uint8Array(all)
  let at = 0
  for (let row = 0; row < count; row++) {
    const length = lengths[row] as number
    const start = u32[word + row * 2] as number
    if (length > 32) bytes.set(u8.subarray(start, start + length), at)
    else for (let byte = 0; byte < length; byte++) bytes[at + byte] = u8[start + byte] as number
    if (length > 0) at += length
  }
  return { kind: 'texts', lengths, bytes }
}

/** As types/column-types.ts has it. */
function arrayBytes({ shape, data }: ArrayValue): Uint8Array {
  const header = (4 + shape.length * 4 + 7) & ~7
  const bytes = new Uint8Array(header + data.byteLength)
  bytes.set(new Uint8Array(Uint32Array.from([shape.length, ...shape]).buffer))
  bytes.set(new Uint8Array(data.buffer, data.byteOffset, data.byteLength), header)
  return bytes
}
