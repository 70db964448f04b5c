// Decodes the values in pages of Parquet files that other programs wrote, in two steps: from the page's encoding to
// plain values of the file's type, and from these to the column type (columns.ts). WebAssembly kernels check every size
// against the page; this file checks that the page has as many values as it says.

import type { ForeignKernel } from '../kernels/foreign.js'
import type { ParquetKernel } from '../kernels/parquet.js'
import type { SharedMemory } from '../memory/shared-memory.js'
import { fillNull } from '../storage/memtable/memtable-values.js'
import { encodings, mappingOf } from '../storage/part/parquet-types.js'
import type { Scratch } from '../storage/part/part-scratch.js'
import { type ForeignColumn, physical, rawBytes, valueBytes } from './foreign-column.js'
import type { ForeignFile, ForeignPlace } from './foreign-file.js'

export interface ValueTools {
  readonly file: ForeignFile
  readonly parquet: ParquetKernel
  readonly foreign: ForeignKernel
  /** Scratch memory of the column: valid until the next page. */
  readonly scratch: Scratch
  readonly shared: Scratch
}

/** Encoded values, without levels. */
export interface EncodedValues {
  readonly encoding: number
  readonly address: number
  readonly bytes: number
  /** Number of values without NULLs. */
  readonly count: number
  readonly place: ForeignPlace
}

/** The decoded values of a dictionary page. */
export interface ForeignDictionary {
  readonly address: number
  readonly count: number
}

const oldDictionary = 2
const deltaText = 7

/** Address of the decoded values in memory representation. `name`: the buffer that they may use. */
export function decodeValues(
  tools: ValueTools,
  column: ForeignColumn,
  values: EncodedValues,
  dictionary: ForeignDictionary | null,
  name: string,
): number {
  const { encoding, count } = values
  if (encoding === encodings.dictionary || encoding === oldDictionary)
    return decodeIndexes(tools, column, values, dictionary, name)
  if (count === 0) return tools.scratch.room(name, 8)
  return formed(tools, column, decodeRaw(tools, column, values, name), values, name)
}

function decodeIndexes(
  { file, foreign, scratch, shared }: ValueTools,
  column: ForeignColumn,
  { address, bytes, count, place }: EncodedValues,
  dictionary: ForeignDictionary | null,
  name: string,
): number {
  const width = elementBytes(column)
  if (count === 0) return scratch.room(name, 8)
  if (dictionary === null) throw file.error('a page needs a dictionary that is missing', place)
  const bits = bytes < 1 ? -1 : scratch.memory.u8[address]!
  const indexes = shared.room('indexes', count * 4)
  // Zero bits per index: all are 0, and some writers omit the run.
  if (bits === 0) scratch.memory.u32.fill(0, indexes >>> 2, (indexes >>> 2) + count)
  const isFirst = bits === 0 && dictionary.count > 0
  const known = dictionary.count - 1
  const read = isFirst ? 1 : known < 0 ? -1 : foreign.hybrid(address + 1, bytes - 1, count, bits, known, indexes)
  if (read < 0) throw file.error(`a page has invalid indexes into its dictionary of ${dictionary.count} values`, place)
  const target = scratch.room(name, count * width)
  foreign.gather(indexes, count, dictionary.address, width, target)
  return target
}

/** Bytes of a decoded value; the elements of arrays are as wide as in their own type. */
function elementBytes(column: ForeignColumn): number {
  return column.lists.length === 0 ? valueBytes(column) : rawBytes(column)
}

// Encodings ---------------------------------------------------------------------------------------------------------

function decodeRaw(tools: ValueTools, column: ForeignColumn, values: EncodedValues, name: string): number {
  const { file } = tools
  switch (values.encoding) {
    case encodings.plain:
      return decodePlain(tools, column, values, name)
    case encodings.rle:
      if (column.physical === physical.boolean) return decodeRuns(tools, values)
      break
    case encodings.delta:
      if (column.physical === physical.int32 || column.physical === physical.int64)
        return decodeDeltas(tools, column.bytes, values)
      break
    case encodings.deltaLength:
      if (column.physical === physical.bytes) return decodeLengths(tools, values)
      break
    case deltaText:
      if (column.physical === physical.bytes || column.physical === physical.fixed)
        return decodeJoined(tools, column, values)
      break
    case encodings.byteStreamSplit:
      if (column.bytes > 0 && column.physical !== physical.int96) return decodeStreams(tools, column.bytes, values)
      break
    default:
      break
  }
  throw file.error(`encoding ${values.encoding} is not valid for the type of the column`, values.place)
}

function decodePlain(tools: ValueTools, column: ForeignColumn, values: EncodedValues, name: string): number {
  const { parquet, shared, scratch } = tools
  const { address, bytes, count } = values
  if (column.physical === physical.boolean) {
    if (bytes < (count + 7) >>> 3) throw tooShort(tools, values)
    const target = scratch.room(name, count)
    parquet.unpackBooleans(address, count, target)
    return target
  }
  if (column.physical === physical.bytes) {
    if (bytes < count * 4) throw tooShort(tools, values)
    const entries = shared.room('entries', count * 8)
    if (parquet.plainTextEntries(address, bytes, count, entries) !== 0) throw damagedLengths(tools, values)
    return entries
  }
  if (bytes < count * column.bytes) throw tooShort(tools, values)
  if (address % 8 === 0) return address
  const target = shared.room('aligned', count * column.bytes)
  scratch.memory.copy(target, address, address + count * column.bytes)
  return target
}

function decodeRuns(tools: ValueTools, values: EncodedValues): number {
  const { parquet, foreign, shared, scratch } = tools
  const { address, bytes, count } = values
  const length = bytes < 4 ? -1 : wordAt(scratch.memory, address)
  const numbers = shared.room('indexes', count * 4)
  const isRead = length >= 0 && length <= bytes - 4 && foreign.hybrid(address + 4, length, count, 1, 1, numbers) >= 0
  if (!isRead) throw tools.file.error('the runs of a page do not match its number of values', values.place)
  const target = scratch.room('booleans', count)
  parquet.narrow(numbers, count, 1, target)
  return target
}

function decodeDeltas(tools: ValueTools, width: number, values: EncodedValues): number {
  const target = tools.shared.room('raw', values.count * width)
  const read = tools.foreign.deltas(values.address, values.bytes, values.count, width, target)
  if (read < 0) throw tools.file.error('the deltas of a page do not match its number of values', values.place)
  return target
}

function decodeLengths(tools: ValueTools, values: EncodedValues): number {
  const { parquet, foreign, shared } = tools
  const { address, bytes, count } = values
  const lengths = shared.room('lengths', count * 4)
  const head = foreign.deltas(address, bytes, count, 4, lengths)
  const entries = shared.room('entries', count * 8)
  if (head < 0 || parquet.textEntries(lengths, count, address + head, bytes - head, entries) !== 0)
    throw damagedLengths(tools, values)
  return entries
}

function decodeJoined(tools: ValueTools, column: ForeignColumn, values: EncodedValues): number {
  const { foreign, shared, scratch } = tools
  const { address, bytes, count } = values
  const prefixes = shared.room('prefixes', count * 4)
  const suffixes = shared.room('lengths', count * 4)
  const first = foreign.deltas(address, bytes, count, 4, prefixes)
  const second = first < 0 ? -1 : foreign.deltas(address + first, bytes - first, count, 4, suffixes)
  const rest = bytes - first - second
  const total = second < 0 ? -1 : foreign.joinedTextBytes(prefixes, suffixes, count, rest)
  if (total < 0 || total > joinedBytesMax) throw damagedLengths(tools, values)
  const strings = scratch.room('strings', total)
  const entries = shared.room('entries', count * 8)
  foreign.joinStrings(prefixes, suffixes, count, address + first + second, strings, entries)
  if (column.physical === physical.bytes) return entries
  const { i32 } = scratch.memory
  for (let i = 0; i < count; i++)
    if (i32[(entries >>> 2) + i * 2 + 1] !== column.bytes) throw damagedLengths(tools, values)
  return strings
}

/** Limit of decompressed strings: prefixes are stored once, so a page of a mebibyte may expand to terabytes. */
const joinedBytesMax = 1024 * 1024 * 1024

function decodeStreams(tools: ValueTools, width: number, values: EncodedValues): number {
  const { foreign, shared, scratch } = tools
  const { address, bytes, count } = values
  if (bytes < count * width) throw tooShort(tools, values)
  // Strings of fixed length must stay valid as long as their entries.
  const target = (width > 8 ? scratch : shared).room('joined', count * width)
  foreign.joinStreams(address, count, width, target)
  return target
}

function tooShort({ file }: ValueTools, { bytes, count, place }: EncodedValues): Error {
  return file.error(`a page of ${bytes} bytes is too short for ${count} values`, place)
}

function damagedLengths({ file }: ValueTools, { place }: EncodedValues): Error {
  return file.error('the lengths of values exceed their page', place)
}

export function wordAt({ u8 }: SharedMemory, at: number): number {
  const high = u8[at + 3]! * 2 ** 24
  return high + (u8[at + 2]! << 16) + (u8[at + 1]! << 8) + u8[at]!
}

// Forms -------------------------------------------------------------------------------------------------------------

/** Converts raw values to the column's type, in place or in the buffer of that name. */
function formed(tools: ValueTools, column: ForeignColumn, raw: number, values: EncodedValues, name: string): number {
  const { parquet, foreign, scratch } = tools
  const { form } = column
  const { count } = values
  const copied = (width: number): number => {
    // Only memory of the column stays valid until its next page.
    const target = scratch.room(name, count * width)
    if (target !== raw) scratch.memory.copy(target, raw, raw + count * width)
    return target
  }
  if (column.lists.length > 0 || form === 'same' || form === 'boolean') return copied(rawBytes(column))
  const target = scratch.room(name, count * valueBytes(column))
  switch (form) {
    case 'i8':
    case 'i16':
      parquet.narrow(raw, count, form === 'i8' ? 1 : 2, target)
      return target
    case 'unsigned 32':
      foreign.widenUnsigned(raw, count, target)
      return target
    case 'unsigned 64':
      checked(tools, values, foreign.firstNegative(raw, count), 'is out of range for LONG')
      return copied(8)
    case 'days':
      foreign.multiply(raw, count, 4, 86_400_000, target)
      return target
    case 'milliseconds':
      checked(tools, values, foreign.multiply(raw, count, 8, 1000, target), 'is out of range for TIMESTAMP')
      return target
    case 'int96':
      checked(tools, values, foreign.nanosOfInt96(raw, count, target), 'is out of range for TIMESTAMP_NS')
      return target
    case 'half':
      foreign.floatsOfHalves(raw, count, target)
      return target
    case 'uuid':
      parquet.reverseBytes(raw, count, 16, target)
      return target
    case 'decimal':
      return decimals(tools, column, raw, values, target)
    case 'widened':
      if (column.physical === physical.float) widenFloats(scratch.memory, raw, count, target)
      else foreign.widenIntegers(raw, count, column.bytes, valueBytes(column), target)
      return target
    case 'bytes':
      if (column.physical === physical.fixed)
        foreign.fixedEntries(retained(tools, column, raw, count, `${name} fixed`), count, column.bytes, target)
      else scratch.memory.copy(target, raw, raw + count * 8)
      return target
    case 'text':
      checked(tools, values, foreign.firstNoText(raw, count), 'is not valid UTF-8')
      return copied(8)
  }
}

function widenFloats({ f32, f64 }: SharedMemory, raw: number, count: number, target: number): void {
  const [from, to] = [raw >>> 2, target >>> 3]
  for (let i = 0; i < count; i++) f64[to + i] = f32[from + i]!
}

/**
 * Copies values of fixed length to where they stay valid as long as their entries: until the column's next page or
 * dictionary.
 */
function retained({ scratch }: ValueTools, column: ForeignColumn, raw: number, count: number, name: string): number {
  const target = scratch.room(name, count * column.bytes)
  scratch.memory.copy(target, raw, raw + count * column.bytes)
  return target
}

function decimals(
  tools: ValueTools,
  column: ForeignColumn,
  raw: number,
  values: EncodedValues,
  target: number,
): number {
  const { foreign } = tools
  const { count } = values
  const width = valueBytes(column)
  if (column.physical === physical.int32 || column.physical === physical.int64) {
    foreign.widenIntegers(raw, count, column.bytes, width, target)
    return target
  }
  const done =
    column.physical === physical.fixed
      ? foreign.integersOfFixed(raw, count, column.bytes, width, target)
      : foreign.integersOfStrings(raw, count, width, target)
  checked(tools, values, done, `is out of range for DECIMAL(${column.type.a},${column.type.b})`)
  return target
}

function checked({ file }: ValueTools, { count, place }: EncodedValues, good: number, what: string): void {
  if (good < count) throw file.error(`value ${good + 1} of a page ${what}`, place)
}

// NULLs -------------------------------------------------------------------------------------------------------------

/** Address of `rows` values, NULL where the definition level is below that of a value. `levels`: u32 each. */
export function spreadNulls(
  tools: ValueTools,
  column: ForeignColumn,
  levels: number,
  rows: number,
  decode: (present: number) => number,
): number {
  const { foreign, parquet, shared, scratch } = tools
  const bits = shared.room('bits', (rows + 7) >>> 3)
  const present = foreign.levelBits(levels, rows, column.definition, bits)
  if (present === rows) return decode(present)
  const { memoryBytes, nullKind } = mappingOf(column.type)
  const values = decode(present)
  const target = scratch.room('rows', rows * memoryBytes)
  // Types without NULL read as zero.
  if (nullKind === 0) scratch.memory.u8.fill(0, target, target + rows * memoryBytes)
  if (present === 0) fillNull(scratch.memory, column.type, target, 0, rows)
  else parquet.expand(values, present, rows, memoryBytes, bits, nullKind, target)
  return target
}
