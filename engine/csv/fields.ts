// Converts the fields of CSV records, given as {address, length}, to columns of the table's types. A WebAssembly kernel
// parses numbers, timestamps and other common types, engine/types what the kernel does not handle. Strings are not
// copied: they stay {address, length} into the input.

import { isUtf8 } from 'node:buffer'
import { assert, nonNull } from '../base/assert.js'
import { encodeKindOf } from '../kernels/encode.js'
import type { Kernels } from '../kernels/load.js'
import { epochScales } from '../kernels/number.js'
import type { Allocator } from '../memory/budgets.js'
import type { SharedMemory } from '../memory/shared-memory.js'
import { cutToDays, fillNull } from '../storage/memtable/memtable-values.js'
import { ChunkDictionary } from '../storage/part/part-dictionary.js'
import type { Scratch } from '../storage/part/part-scratch.js'
import { newSlot, setInteger, setNumber, storeSlot } from '../storage/writer/writer-values.js'
import { type ColumnType, type DataType, isDay, isSpan, widthOf } from '../types/column-types.js'
import { noLabel } from '../types/convert.js'
import { epochScale, parseFileTime } from '../types/file-time.js'
import { intMin, longMin } from '../types/number.js'
import { booleanOf } from '../types/pg-decode-value.js'
import type { ArrayValue, Value } from '../types/value.js'
import { isNullWord, isNumber, parseField } from './convert.js'
import type { CsvScan } from './scan-state.js'
import type { CsvColumn, CsvReject, CsvShape } from './shape.js'

export interface CsvTools {
  readonly memory: SharedMemory
  readonly allocator: Allocator
  readonly kernels: Kernels
}

const kernelTypes: ReadonlySet<ColumnType> = new Set<ColumnType>([
  ...(['BOOLEAN', 'BYTE', 'SHORT', 'INT', 'LONG', 'FLOAT', 'DOUBLE'] as const),
  ...(['DATE', 'TIMESTAMP', 'TIMESTAMP_NS', 'UUID', 'IPv4'] as const),
])

export interface CsvFieldsOptions {
  readonly tools: CsvTools
  readonly shape: CsvShape
  readonly scratch: Scratch
  readonly scan: CsvScan
  /** Allocates `bytes` for a fixed-width column, of which `rows` values will be filled; returns the address. */
  readonly room: (index: number, bytes: number, rows: number) => number
}

export class CsvFields {
  private readonly tools: CsvTools
  private readonly shape: CsvShape
  private readonly scratch: Scratch
  private readonly scan: CsvScan
  private readonly room: CsvFieldsOptions['room']
  /** From the last columns() call: values that became NULL in rows that are stored. */
  retained: CsvReject[] = []

  constructor({ tools, shape, scratch, scan, room }: CsvFieldsOptions) {
    this.tools = tools
    this.shape = shape
    this.scratch = scratch
    this.scan = scan
    this.room = room
  }

  /**
   * Returns the addresses of the columns' values, 0 for strings; reports unstorable rows in `bad`, others in
   * `retained`.
   */
  columns(from: number, rows: number, bad: Map<number, CsvReject>, utf8: boolean): number[] {
    assert(from + rows <= this.scan.rowsMax, 'K2: scanned rows have entries')
    this.retained = []
    const parsed = this.shape.columns.map((column, index) => this.parse(column, index, from, rows, bad))
    for (const [index, { type }] of this.shape.columns.entries())
      if (isDay(type)) cutToDays(this.scratch.memory, parsed[index] as number, rows)
    this.checkTimestamps(parsed, from, rows, bad)
    for (const [index, column] of this.shape.columns.entries()) this.checkLabels(column, index, from, rows, bad)
    const areStrings = utf8 && (this.shape.copied !== true || this.scannedStrings())
    if (!areStrings) for (const index of parsed.keys()) this.checkStrings(index, from, rows, bad)
    return parsed
  }

  /**
   * Checks unescaped values: COPY escapes can produce any byte, and PostgreSQL strings cannot contain a zero byte.
   */
  private scannedStrings(): boolean {
    const { scan, scratch } = this
    const bytes = Buffer.from(scratch.memory.u8.slice(scan.begun, scan.at).buffer)
    return isUtf8(bytes) && !bytes.includes(0)
  }

  lineOf(row: number): number {
    return this.scratch.memory.u32[(this.scan.lines >>> 2) + row]!
  }

  entriesOf(column: number, row: number): number {
    return this.scan.entries + (column * this.scan.rowsMax + row) * 8
  }

  private reject(bad: Map<number, CsvReject>, from: number, row: number, column: number, reason: string): void {
    if (bad.has(row)) return
    bad.set(row, { line: this.lineOf(from + row), column, reason, extra: false })
  }

  private rejectText(bad: Map<number, CsvReject>, from: number, row: number, index: number, text: string): void {
    if (bad.has(row)) return
    const column = nonNull(this.shape.columns[index])
    const reject = { line: this.lineOf(from + row), column: index, reason: reasonOf(column, text), extra: false }
    if (this.shape.copied !== true && isMinimum(column, text)) {
      this.retained.push({ ...reject, reason: `${reject.reason}: it stands for NULL`, retained: true })
      return
    }
    const cause = causeOf(column, text)
    bad.set(row, cause === undefined ? reject : { ...reject, cause })
  }

  /** Returns the address of fixed-width values; 0 for strings, which stay entries. */
  private parse(column: CsvColumn, index: number, from: number, rows: number, bad: Map<number, CsvReject>): number {
    const { type, pattern } = column
    if (isText(type)) return 0
    const { scratch, tools } = this
    const entries = this.entriesOf(index, from)
    const values = this.room(index, this.scan.rowsMax * widthOf(type), rows)
    if (type.name === 'ARRAY' || type.name === 'BINARY') {
      this.parseArrays(column, index, from, rows, values, bad)
      return values
    }
    const scale = pattern === null ? 'auto' : epochScale(pattern)
    if (!kernelTypes.has(type.name) || isSpan(type) || (scale === null && !isIsoPattern(pattern ?? '', type))) {
      fillNull(scratch.memory, type, values, 0, rows)
      for (let row = 0; row < rows; row++) this.parseOne(column, index, from, row, values, bad)
      return values
    }
    const status = scratch.room('status', this.scan.rowsMax)
    const kind = encodeKindOf(type) + (isTime(type) ? 256 * epochScales[scale ?? 'auto'] : 0)
    const open = tools.kernels.number.parseColumn(kind, entries, rows, values, status, scratch.room('kernel', 128))
    assert(open <= rows, 'K3: a kernel leaves no more values open than there are')
    const { u8 } = scratch.memory
    for (let row = 0; open > 0 && row < rows; row++) {
      if (u8[status + row] === 1) this.parseOne(column, index, from, row, values, bad)
    }
    if (column.guessed === true && type.name === 'DOUBLE') this.checkWholes(index, from, rows, values, bad)
    if (column.guessed === true && isPlainNumber(type)) this.checkLeadingZeros(index, from, rows, bad)
    return values
  }

  /** In a column whose type was detected, digits with leading zeros are codes, which a number would shorten. */
  private checkLeadingZeros(index: number, from: number, rows: number, bad: Map<number, CsvReject>): void {
    const { u8, u32, i32 } = this.scratch.memory
    const first = this.entriesOf(index, from) >>> 2
    for (let row = 0; row < rows; row++) {
      const bytes = i32[first + row * 2 + 1]!
      if (bytes < 2) continue
      const start = u32[first + row * 2]!
      if (u8[start]! > digitZero || !startsWithZeros(u8, start, start + bytes)) continue
      this.rejectText(bad, from, row, index, this.textAt(index, from + row) ?? '')
    }
  }

  /** A column whose type DOUBLE was detected must not round integers. */
  private checkWholes(index: number, from: number, rows: number, values: number, bad: Map<number, CsvReject>): void {
    const { f64 } = this.scratch.memory
    const first = values >>> 3
    for (let row = 0; row < rows; row++) {
      const value = f64[first + row]!
      if (!(value > Number.MAX_SAFE_INTEGER || value < -Number.MAX_SAFE_INTEGER)) continue
      const text = this.textAt(index, from + row) ?? ''
      if (isWhole(text) && wholeOf(text) !== BigInt(value)) this.rejectText(bad, from, row, index, text)
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
    const value: Value | undefined = this.isNull(text) ? null : this.valueOf(text, column)
    if (value === undefined || (column.guessed === true && isCut(column, text)))
      this.rejectText(bad, from, row, index, text)
    else if (value !== null) storeField(this.scratch.memory, column.type, values, row, value)
  }

  /** COPY specifies its NULL string explicitly. */
  private isNull(text: string): boolean {
    return text === '' || (this.shape.copied !== true && isNullWord(text))
  }

  private valueOf(text: string, { type, pattern }: CsvColumn): Value | undefined {
    if (this.shape.copied !== true || type.name === 'CHAR') return parseField(text, type, pattern)
    // PostgreSQL ignores blanks around all values but strings.
    const word = text.trim()
    if (word === '') return undefined
    return type.name === 'BOOLEAN' ? booleanOf(word) : parseField(word, type, pattern)
  }

  private checkLabels(
    { enumeration }: CsvColumn,
    index: number,
    from: number,
    rows: number,
    bad: Map<number, CsvReject>,
  ): void {
    if (enumeration === undefined) return
    const labels: ReadonlySet<string | null> = new Set(enumeration.labels)
    for (let row = 0; row < rows; row++) {
      const text = this.textAt(index, from + row)
      if (text !== null && !labels.has(text)) this.reject(bad, from, row, index, noLabel(text, enumeration.name))
    }
  }

  private textAt(column: number, row: number): string | null {
    const { memory } = this.scratch
    const word = this.entriesOf(column, row) >>> 2
    const bytes = memory.i32[word + 1]!
    if (bytes < 0) return null
    const start = memory.u32[word]!
    return Buffer.from(memory.u8.slice(start, start + bytes)).toString('utf8')
  }

  /** Arrays become entries that refer to scratch memory. */
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
      const value = text === null || this.isNull(text) ? null : parseField(text, column.type, null)
      if (value === undefined) this.rejectText(bad, from, row, index, text ?? '')
      if (value instanceof Uint8Array) made.push(value)
      else made.push(value === null || value === undefined ? null : arrayBytes(value as ArrayValue))
    }
    assert(made.length === rows, 'R1: every row has an array or NULL')
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
      const high = i32[word + row * 2 + 1]!
      if (high >= 0) continue
      const missing = high === -(2 ** 31) && i32[word + row * 2] === 0
      const place = `[column=${this.shape.columns[timestamp]?.name}, value=${this.textAt(timestamp, from + row) ?? ''}]`
      const reason = missing
        ? `the designated timestamp is missing ${place}`
        : `designated timestamp before 1970-01-01 is not allowed ${place}`
      this.reject(bad, from, row, timestamp, reason)
    }
  }

  /** Rejects rows with invalid UTF-8, and for COPY those with a zero byte. */
  private checkStrings(column: number, from: number, rows: number, bad: Map<number, CsvReject>): void {
    const { type } = nonNull(this.shape.columns[column])
    if (!isText(type) && type.name !== 'CHAR') return
    const { u8, u32, i32 } = this.scratch.memory
    for (let row = 0; row < rows; row++) {
      const word = (this.entriesOf(column, from) >>> 2) + row * 2
      const bytes = i32[word + 1]!
      if (bytes <= 0) continue
      const start = u32[word]!
      const text = u8.slice(start, start + bytes)
      if (!isUtf8(text)) this.reject(bad, from, row, column, 'the text is not valid UTF-8')
      else if (this.shape.copied === true && text.includes(0))
        this.reject(bad, from, row, column, 'invalid byte sequence for encoding "UTF8": 0x00')
    }
  }
}

/** Dictionary-encodes symbols: indexes (-1: NULL) into distinct strings, each stored after its length u32. */
export function distinctSymbols(
  { kernels }: CsvTools,
  scratch: Scratch,
  entries: number,
  count: number,
): { readonly ids: Int32Array; readonly strings: Uint8Array; readonly count: number } {
  const { memory } = scratch
  const { parquet } = kernels
  const bits = scratch.room('bits', (count >>> 3) + 64)
  const present = parquet.presence(entries, count, entryNulls, bits)
  assert(present <= count, 'K3: a kernel counts no more values than there are')
  const packed = scratch.room('present', count * 8)
  parquet.compact(entries, count, 8, bits, packed)
  const dictionary = new ChunkDictionary(parquet, scratch, 0, { count: 2 ** 31, bytes: 2 ** 31 })
  dictionary.add(packed, present)
  const ids = new Int32Array(count)
  const first = dictionary.indexesFrom(0) >>> 2
  let next = 0
  for (let row = 0; row < count; row++) {
    const bytes = memory.i32[(entries >>> 2) + row * 2 + 1]!
    ids[row] = bytes < 0 ? -1 : memory.i32[first + next++]!
  }
  assert(next === present, 'R2: every symbol that is present has a code')
  const strings = memory.u8.slice(dictionary.values, dictionary.values + dictionary.bytes)
  return { ids, strings, count: dictionary.count }
}

/** nullKinds.entry of the kernel. */
const entryNulls = 14

export function isText({ name }: DataType): boolean {
  return name === 'VARCHAR' || name === 'STRING' || name === 'SYMBOL'
}

/** Patterns that the kernel parses itself. */
function isIsoPattern(pattern: string, { name }: DataType): boolean {
  if (name === 'TIMESTAMP') return /^yyyy-MM-ddTHH:mm:ss\.(SSSUUU|U\+)(Z|z)$/.test(pattern)
  return name === 'DATE' && /^yyyy-MM-dd(THH:mm:ss\.SSS(Z|z))?$/.test(pattern)
}

function isTime({ name }: DataType): boolean {
  return name === 'DATE' || name === 'TIMESTAMP' || name === 'TIMESTAMP_NS'
}

/** The numeric types that are detected. */
function isPlainNumber({ name }: DataType): boolean {
  return name === 'INT' || name === 'LONG' || name === 'DOUBLE'
}

const digitZero = 0x30

/** Whether a zero before another digit follows the blanks and the sign. */
function startsWithZeros(u8: Uint8Array, start: number, end: number): boolean {
  let at = start
  while (at < end && u8[at]! <= 0x20) at++
  if (u8[at] === 0x2b || u8[at] === 0x2d) at++
  return at + 1 < end && u8[at] === digitZero && u8[at + 1]! >= digitZero && u8[at + 1]! <= 0x39
}

function isWhole(text: string): boolean {
  return /^\s*[+-]?[0-9][0-9_]*\s*$/.test(text)
}

function wholeOf(text: string): bigint {
  return BigInt(text.trim().replace(/^\+|_/g, ''))
}

/** Whether the field is the number that represents NULL. A detected INT is widened to LONG instead. */
function isMinimum({ type, guessed }: CsvColumn, text: string): boolean {
  if (!isWhole(text) || text.length > 64) return false
  if (type.name === 'LONG' && !isSpan(type)) return wholeOf(text) === longMin
  return type.name === 'INT' && guessed !== true && wholeOf(text) === BigInt(intMin)
}

function causeOf(column: CsvColumn, text: string): CsvReject['cause'] {
  if (column.guessed === true && isPlainNumber(column.type) && /^\s*[+-]?0[0-9]/.test(text)) return 'digits'
  switch (column.type.name) {
    case 'LONG':
      return isWhole(text) ? 'large' : undefined
    case 'FLOAT':
    case 'DOUBLE':
      return isWhole(text) ? 'large' : isNumber(text) ? 'beyond' : undefined
    default:
      return isCut(column, text) ? 'cut' : undefined
  }
}

/** Whether a timestamp is more precise than the column. */
function isCut({ type, pattern }: CsvColumn, text: string): boolean {
  if (type.name !== 'TIMESTAMP') return false
  const scale = pattern === null ? 'auto' : epochScale(pattern)
  return scale !== null && parseFileTime(text, 'TIMESTAMP', scale)?.cut === true
}

function reasonOf({ name, type }: CsvColumn, text: string): string {
  return `not a value of type ${isSpan(type) ? 'interval' : type.name} [column=${name}, value=${text.slice(0, 100)}]`
}

/** Compacts the rows that are not bad; returns their number. */
export function keepRows(
  u8: Uint8Array,
  source: number,
  rows: number,
  width: number,
  bad: ReadonlyMap<number, CsvReject>,
  target: number,
): number {
  let retained = 0
  for (let row = 0; row < rows; row++) {
    if (bad.has(row)) continue
    u8.copyWithin(target + retained * width, source + row * width, source + (row + 1) * width)
    retained++
  }
  assert(retained + bad.size === rows, 'R4: every row is kept or refused')
  return retained
}

/** Array layout of types/column-types.ts. */
function arrayBytes({ shape, data }: ArrayValue): Uint8Array {
  assert(
    shape.reduce((product, length) => product * length, 1) === data.length,
    'R3: an array has the values of its shape',
  )
  const header = (4 + shape.length * 4 + 7) & ~7
  const bytes = new Uint8Array(header + data.byteLength)
  bytes.set(new Uint8Array(Uint32Array.from([shape.length, ...shape]).buffer))
  bytes.set(new Uint8Array(data.buffer, data.byteOffset, data.byteLength), header)
  return bytes
}

// Writes one fixed-width value into a column's memory.

const slot = newSlot()
const noHeap = null as never

function storeField(memory: SharedMemory, type: DataType, address: number, row: number, value: Value): void {
  if (typeof value === 'bigint') setInteger(slot, value)
  else if (typeof value === 'string') setNumber(slot, value.charCodeAt(0))
  else setNumber(slot, Number(value))
  storeSlot(memory, noHeap, { id: 0, type, width: 0, address, filled: 0 }, row, slot)
}
