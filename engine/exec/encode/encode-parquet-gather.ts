// Copies the values of a column from result batches to a buffer until they fill a page of an exported Parquet file.
// There are five ways, by column type:
//
//   fixed    values of fixed width are copied
//   days     DATE values are converted to a number of days
//   symbol   symbol ids are converted to indexes of the row group's list of strings
//   text     NULL flags, lengths and bytes of strings are copied, because the batch is valid only until the next one
//   made     like text, but the bytes are computed for each value: INTERVAL, DECIMAL, raw arrays

import { nullKinds } from '../../kernels/parquet.js'
import { dictionaryEntry } from '../../memory/column-layout.js'
import type { SharedMemory } from '../../memory/shared-memory.js'
import type { ColumnMapping } from '../../storage/part/parquet-types.js'
import { type PageTools, type PreparedPage, preparePage } from '../../storage/part/part-page.js'
import type { Scratch } from '../../storage/part/part-scratch.js'
import type { DataType } from '../../types/column-types.js'
import { formatInterval } from '../../types/interval.js'
import { intMin, longMin } from '../../types/number.js'
import type { ArrayValue, IntervalValue, Value } from '../../types/value.js'
import type { ExecContext } from '../batch/context.js'
import { valueReader } from '../batch/values.js'
import type { Vector } from '../batch/vector.js'
import type { ExportTools } from './encode-parquet-page.js'
import { decimalBytes, type GatherForm } from './encode-parquet-types.js'

export interface GatheredSymbols {
  readonly strings: readonly Uint8Array[]
  readonly count: number
}

export interface Gather {
  /** Whether prepare() returns string entries. */
  readonly holdsStrings: boolean
  /** Rows collected since the last reset. */
  readonly rows: number
  readonly full: boolean
  readonly textBytes: number
  /** The row group's list of strings; null for other columns. */
  readonly symbols: GatheredSymbols | null
  /** Takes rows from `from` on, up to `to`; returns how many, at least one. */
  take(vector: Vector, from: number, to: number): number
  prepare(page: PageTools): PreparedPage
  reset(): void
  groupEnded(): void
  /** For symbol columns: maps ids of a dictionary to indexes of the group's strings (i32). */
  mapSymbols(ids: Pick<Vector, 'address' | 'dictionary'>, count: number, target: number): void
}

export interface GatherOptions {
  readonly tools: ExportTools
  readonly context: ExecContext
  /** Memory of the column that holds the collected values. */
  readonly own: Scratch
  readonly mapping: ColumnMapping
}

const pageRowsMax = 131_072
const textRoomMin = 2048
/**
 * Capacities are a power of two minus this many rows, so that an allocation with its overhead fits a size class of the
 * allocator.
 */
const spareRows = 32
/** Initial capacity: small, since there may be thousands of columns with few rows. */
const roomRowsMin = 256 - spareRows

/** The capacity to allocate for this many rows. */
function roomRows(rows: number, rowsMax: number): number {
  return Math.min(rowsMax, Math.max(roomRowsMin, 2 ** Math.ceil(Math.log2(rows + spareRows)) - spareRows))
}

/** Strings are processed in slices, so that a page exceeds its size by at most the bytes of a slice. */
const sliceRows = 256

export function createGather(form: GatherForm, options: GatherOptions): Gather {
  return form === 'text' || form === 'made' ? new TextGather(form, options) : new FixedGather(form, options)
}

class FixedGather implements Gather {
  readonly holdsStrings = false
  private readonly form: GatherForm
  readonly textBytes = 0
  rows = 0
  private readonly options: GatherOptions
  private readonly rowsMax: number
  private buffer = 0
  private readonly width: number
  private strings: Uint8Array[] = []
  /** By address of a dictionary: index of each id, -1 = not used yet. */
  private readonly known = new Map<number, Int32Array>()

  constructor(form: GatherForm, options: GatherOptions) {
    const { tools, own, mapping } = options
    this.form = form
    this.options = options
    this.width = mapping.memoryBytes
    const wanted = Math.floor(tools.encoding.pageBytes / Math.max(1, mapping.diskBytes))
    this.rowsMax = Math.max(1, Math.min(pageRowsMax, wanted))
    this.reserve(own, 1)
  }

  private reserve(own: Scratch, rows: number): void {
    this.buffer = own.room('gathered', roomRows(rows, this.rowsMax) * this.width, this.rows * this.width)
  }

  get full(): boolean {
    return this.rows >= this.rowsMax
  }

  get symbols(): GatheredSymbols | null {
    return this.form === 'symbol' ? { strings: this.strings, count: this.strings.length } : null
  }

  take(vector: Vector, from: number, to: number): number {
    const count = Math.min(to - from, this.rowsMax - this.rows)
    const { memory } = this.options.own
    this.reserve(this.options.own, this.rows + count)
    const target = this.buffer + this.rows * this.width
    if (this.form === 'days') takeDays(memory, vector.address, from, count, target)
    else if (this.form === 'symbol') this.takeSymbols(vector, from, count, target)
    else {
      const source = vector.address + from * this.width
      memory.u8.copyWithin(target, source, source + count * this.width)
    }
    this.rows += count
    return count
  }

  prepare(page: PageTools): PreparedPage {
    const bits = page.scratch.room('bits', (this.rows >>> 3) + 64)
    return preparePage(page, this.buffer, this.rows, bits)
  }

  reset(): void {
    this.rows = 0
  }

  groupEnded(): void {
    this.strings = []
    this.known.clear()
  }

  mapSymbols(ids: Pick<Vector, 'address' | 'dictionary'>, count: number, target: number): void {
    this.takeSymbols(ids, 0, count, target)
  }

  private takeSymbols(
    { address, dictionary }: Pick<Vector, 'address' | 'dictionary'>,
    from: number,
    count: number,
    target: number,
  ): void {
    const { i32 } = this.options.own.memory
    let map = this.known.get(dictionary) ?? new Int32Array(0)
    const source = (address >>> 2) + from
    for (let index = 0; index < count; index++) {
      const id = i32[source + index]!
      let own = id < 0 ? -1 : id < map.length ? map[id]! : -2
      if (id >= 0 && own < 0) {
        if (id >= map.length) map = this.larger(dictionary, map, id)
        own = this.addText(dictionary, id)
        map[id] = own
      }
      i32[(target >>> 2) + index] = own
    }
  }

  private larger(dictionary: number, map: Int32Array, id: number): Int32Array {
    const grown = new Int32Array(Math.max(256, map.length * 2, id + 1)).fill(-1)
    grown.set(map)
    this.known.set(dictionary, grown)
    return grown
  }

  private addText(dictionary: number, id: number): number {
    const { memory } = this.options.own
    const entry = dictionaryEntry(memory, dictionary, id) >>> 2
    const start = memory.u32[entry]!
    this.strings.push(memory.u8.slice(start, start + memory.u32[entry + 1]!))
    return this.strings.length - 1
  }
}

const millisPerDay = 86_400_000

function takeDays({ i64, i32 }: SharedMemory, address: number, from: number, count: number, target: number): void {
  const source = (address >>> 3) + from
  for (let index = 0; index < count; index++) {
    const millis = i64[source + index]!
    i32[(target >>> 2) + index] = millis === longMin ? intMin : Math.floor(Number(millis) / millisPerDay)
  }
}

class TextGather implements Gather {
  readonly holdsStrings: boolean
  private readonly form: GatherForm
  readonly symbols = null
  rows = 0
  textBytes = 0
  private present = 0
  private readonly options: GatherOptions
  private flags = 0
  private lengths = 0

  constructor(form: GatherForm, options: GatherOptions) {
    this.form = form
    this.holdsStrings = options.mapping.physical !== 'FIXED'
    this.options = options
    this.reserve(options.own, 1)
  }

  private reserve(own: Scratch, rows: number): void {
    const room = roomRows(rows, pageRowsMax)
    this.flags = own.room('flags', room, this.rows)
    this.lengths = own.room('lengths', room * 4, this.present * 4)
  }

  get full(): boolean {
    return this.rows >= pageRowsMax || this.textBytes >= this.options.tools.encoding.pageBytes
  }

  take(vector: Vector, from: number, to: number): number {
    const count = Math.min(to - from, sliceRows, pageRowsMax - this.rows)
    this.reserve(this.options.own, this.rows + count)
    if (this.form === 'made') this.takeMade(vector, from, count)
    else this.takeStrings(vector.address + from * 8, count)
    return count
  }

  private takeStrings(values: number, count: number): void {
    const { tools, own } = this.options
    const { kernel, scratch } = tools
    const bits = scratch.room('bits', (count >>> 3) + 64)
    const present = kernel.presence(values, count, nullKinds.entry, bits)
    kernel.unpackBooleans(bits, count, this.flags + this.rows)
    let packed = values
    if (present < count) {
      packed = scratch.room('packed', count * 8)
      kernel.compact(values, count, 8, bits, packed)
    }
    const bytes = kernel.textLengths(packed, present, this.lengths + this.present * 4)
    kernel.textBytes(packed, present, this.roomForStrings(own, bytes))
    this.added(count, present, bytes)
  }

  private takeMade(vector: Vector, from: number, count: number): void {
    const { context, own } = this.options
    const read = valueReader(context.memory, context.strings, vector)
    for (let index = 0; index < count; index++) {
      const value = read(from + index)
      own.memory.u8[this.flags + this.rows] = value === null ? 0 : 1
      if (value === null) {
        this.added(1, 0, 0)
        continue
      }
      const bytes = madeBytes(vector.type, value)
      own.memory.u8.set(bytes, this.roomForStrings(own, bytes.length))
      own.memory.i32[(this.lengths >>> 2) + this.present] = bytes.length
      this.added(1, 1, bytes.length)
    }
  }

  private added(rows: number, present: number, bytes: number): void {
    this.rows += rows
    this.present += present
    this.textBytes += bytes
  }

  private roomForStrings(own: Scratch, bytes: number): number {
    const { textBytes } = this
    const size = 2 ** Math.ceil(Math.log2(Math.max(textRoomMin, textBytes + bytes)))
    return own.room('strings', size, textBytes) + textBytes
  }

  prepare({ kernel, scratch, mapping }: PageTools): PreparedPage {
    const { rows, present, textBytes, options } = this
    const bits = scratch.room('bits', (rows >>> 3) + 64)
    kernel.packBooleans(this.flags, rows, bits)
    const strings = options.own.room('strings', textBytes, textBytes)
    if (mapping.physical === 'FIXED') return { rows, present, values: strings, bits }
    const values = scratch.room('packed', present * 8 + 64)
    kernel.textEntries(this.lengths, present, strings, textBytes, values)
    return { rows, present, values, bits }
  }

  reset(): void {
    this.rows = 0
    this.present = 0
    this.textBytes = 0
  }

  groupEnded(): void {}

  mapSymbols(): void {}
}

function madeBytes(type: DataType, value: Exclude<Value, null>): Uint8Array {
  if (type.name === 'DECIMAL') return bigEndian(value as bigint, decimalBytes(type.a))
  if (type.name === 'ARRAY') return rawArray(value as ArrayValue)
  return Buffer.from(formatInterval(value as IntervalValue), 'utf8')
}

function bigEndian(value: bigint, bytes: number): Uint8Array {
  const target = new Uint8Array(bytes)
  let rest = value
  for (let at = bytes - 1; at >= 0; at--) {
    target[at] = Number(BigInt.asUintN(8, rest))
    rest >>= 8n
  }
  return target
}

function rawArray({ shape, data }: ArrayValue): Uint8Array {
  const head = (shape.length * 4 + 7) & ~7
  const target = new Uint8Array(head + data.byteLength)
  target.set(new Uint8Array(Uint32Array.from(shape).buffer))
  target.set(new Uint8Array(data.buffer, data.byteOffset, data.byteLength), head)
  return target
}
