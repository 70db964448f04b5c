// Vectorised IN with a list of constants or the result of a sub-query; also equality of UUIDs and of LONG256s. Integers
// are looked up in a set (whole-numbers.ts), or in a bit map if their range is small. Up to 16 UUIDs or LONG256s are
// compared one by one. Other values are looked up in a hash table, with the hash functions of grouping and joins.

import { hashKinds } from '../../../kernels/aggregate.js'
import type { SharedMemory } from '../../../memory/shared-memory.js'
import { type ColumnType, type DataType, storageOf, widthOf } from '../../../types/column-types.js'
import type { Value } from '../../../types/value.js'
import type { Expression } from '../../plan/plan.js'
import { type Call, type ColumnContext, type ColumnFunction, type ColumnPlan, isText } from './column-function.js'
import { textMembers } from './text-tests.js'
import { hasNumber, isNullOf, type NumberBits, noNumbers, type WholeNumbers, withColumn } from './whole-numbers.js'

/** Types stored as integers of 4 or 8 bytes whose NULL is the smallest integer. */
export const wholeTypes: ReadonlySet<ColumnType> = new Set<ColumnType>([
  'INT',
  'LONG',
  'DATE',
  'TIMESTAMP',
  'TIMESTAMP_NS',
])

/** `value in (constants)` */
export const inColumn: ColumnFunction = (call, context) => {
  const [subject, ...members] = call.args
  if (subject === undefined) return undefined
  return textMembers(call, context) ?? compareWide(call, context) ?? amongConstants(subject, members, context)
}

/** in_list(value, list): a long list of constants, or a sub-query. */
export const inListColumn: ColumnFunction = ({ args: [subject, list] }, context) => {
  if (subject === undefined) return undefined
  if (list?.kind === 'constants') return amongValues(subject, list.values, context)
  if (list?.kind !== 'subquery' || !wholeTypes.has(subject.type.name) || !wholeTypes.has(list.type.name))
    return undefined
  const wide = widthOf(subject.type) === 8
  return {
    args: [subject],
    run: (rows, [values = 0], out) => {
      markNumbers({ values, rows, wide }, context.listOf(list.index), out, context)
      return 0
    },
  }
}

function amongConstants(
  subject: Expression,
  members: readonly Expression[],
  context: ColumnContext,
): ColumnPlan | undefined {
  const { type } = subject
  const fits = ({ type: other }: Expression): boolean =>
    other.name === type.name || (isText(type) && (isText(other) || other.name === 'SYMBOL' || other.name === 'CHAR'))
  const values = members.flatMap((member) =>
    member.kind === 'constant' && (member.value === null || fits(member)) ? [member.value] : [],
  )
  return values.length === members.length ? amongValues(subject, values, context) : undefined
}

/** undefined if values of the type are not hashed. */
function amongValues(subject: Expression, values: readonly Value[], context: ColumnContext): ColumnPlan | undefined {
  const { type } = subject
  const storage = storageOf(type)
  if (!isHashed(storage) || unlisted.has(type.name)) return undefined
  const list = { type, address: context.vector(type, values), count: values.length }
  const mark = wholeTypes.has(type.name) ? marksNumbers(list, context) : marksHashed(list, storage, context)
  return {
    args: [subject],
    run: (rows, [column = 0], out) => {
      mark(column, rows, out)
      return 0
    },
  }
}

/** Types without lists of constants. Symbols are compared by dictionary entry. */
const unlisted: ReadonlySet<ColumnType> = new Set<ColumnType>(['SYMBOL', 'BINARY', 'ARRAY', 'INTERVAL', 'DECIMAL'])

const hashedStorages = ['i32', 'i64', 'f64', 'entry', 'b16', 'b32'] as const
type HashedStorage = (typeof hashedStorages)[number]

function isHashed(storage: string): storage is HashedStorage {
  return hashedStorages.some((hashed) => hashed === storage)
}

// Integers ----------------------------------------------------------------------------------------------------------

/** A list of constants as a vector. */
interface Listed {
  readonly type: DataType
  readonly address: number
  readonly count: number
}

/** Writes for each row whether the list contains its value. */
type Mark = (values: number, rows: number, out: number) => void

function marksNumbers({ type, address, count }: Listed, context: ColumnContext): Mark {
  const wide = widthOf(type) === 8
  const first = address >>> 2
  const words = context.memory.i32.subarray(first, first + (wide ? count * 2 : count))
  const numbers = withColumn(noNumbers(), words, wide)
  return (values, rows, out) => markNumbers({ values, rows, wide }, numbers, out, context)
}

interface WholeColumn {
  readonly values: number
  readonly rows: number
  /** Whether values have 8 bytes; otherwise 4. */
  readonly wide: boolean
}

function markNumbers(
  { values, rows, wide }: WholeColumn,
  numbers: WholeNumbers,
  out: number,
  { memory, bitsOf }: ColumnContext,
): void {
  const bits = bitsOf(numbers)
  if (bits !== undefined && wide) markWideBits(memory, values, rows, bits, numbers.hasNull, out)
  else if (bits !== undefined) markNarrowBits(memory, values, rows, bits, numbers.hasNull, out)
  else if (wide) markWide(memory, values, rows, numbers, out)
  else markNarrow(memory, values, rows, numbers, out)
}

function markWideBits(
  { i32, u8 }: SharedMemory,
  values: number,
  rows: number,
  { min, last, words }: NumberBits,
  hasNull: boolean,
  out: number,
): void {
  const first = values >>> 2
  const nullMark = hasNull ? 1 : 0
  for (let row = 0; row < rows; row++) {
    const low = i32[first + row * 2]!
    const high = i32[first + row * 2 + 1]!
    const bit = low - min
    if (high !== low >> 31 || bit < 0 || bit > last) u8[out + row] = isNullOf(low, high, true) ? nullMark : 0
    else u8[out + row] = (words[bit >>> 5]! >>> (bit & 31)) & 1
  }
}

function markNarrowBits(
  { i32, u8 }: SharedMemory,
  values: number,
  rows: number,
  { min, last, words }: NumberBits,
  hasNull: boolean,
  out: number,
): void {
  const first = values >>> 2
  const nullMark = hasNull ? 1 : 0
  for (let row = 0; row < rows; row++) {
    const low = i32[first + row]!
    const bit = low - min
    if (isNullOf(low, 0, false)) u8[out + row] = nullMark
    else if (bit < 0 || bit > last) u8[out + row] = 0
    else u8[out + row] = (words[bit >>> 5]! >>> (bit & 31)) & 1
  }
}

function markWide({ i32, u8 }: SharedMemory, values: number, rows: number, set: WholeNumbers, out: number): void {
  const first = values >>> 2
  for (let row = 0; row < rows; row++) {
    const low = i32[first + row * 2]!
    const high = i32[first + row * 2 + 1]!
    u8[out + row] = (isNullOf(low, high, true) ? set.hasNull : hasNumber(set, low, high)) ? 1 : 0
  }
}

function markNarrow({ i32, u8 }: SharedMemory, values: number, rows: number, set: WholeNumbers, out: number): void {
  const first = values >>> 2
  for (let row = 0; row < rows; row++) {
    const low = i32[first + row]!
    u8[out + row] = (isNullOf(low, 0, false) ? set.hasNull : hasNumber(set, low, low >> 31)) ? 1 : 0
  }
}

// Hashes ------------------------------------------------------------------------------------------------------------

function marksHashed({ type, address, count }: Listed, storage: HashedStorage, context: ColumnContext): Mark {
  const { memory, kernels, rowsMax } = context
  const kind = hashKinds[storage]
  const hashes = context.allocate(rowsMax * 4)
  const hashesOf = (values: number, rows: number): Int32Array => {
    memory.u32.fill(0, hashes >>> 2, (hashes >>> 2) + rows)
    kernels.aggregate.hashKeys(kind, values, rows, hashes)
    return memory.i32.subarray(hashes >>> 2, (hashes >>> 2) + rows)
  }
  const isSame = sameValues(memory, storage)
  const known = new Int32Array(count)
  for (let from = 0; from < count; from += rowsMax) {
    const rows = Math.min(rowsMax, count - from)
    known.set(hashesOf(address + from * widthOf(type), rows), from)
  }
  const places = placesOf(known)
  const mask = places.length - 1
  const { u8 } = memory
  /** Probes from the slot of the hash for a member that equals the row's value. */
  const isAmong = (slot: number, hash: number, values: number, row: number): number => {
    for (let at = slot; places[at] !== 0; at = (at + 1) & mask) {
      const member = places[at]! - 1
      if (known[member] === hash && isSame(values, row, address, member)) return 1
    }
    return 0
  }
  return (values, rows, out) => {
    const found = hashesOf(values, rows)
    for (let row = 0; row < rows; row++) {
      const hash = found[row]!
      const slot = hash & mask
      u8[out + row] = places[slot] === 0 ? 0 : isAmong(slot, hash, values, row)
    }
  }
}

/** Open-addressing table over the low bits of the hashes. A slot holds member index + 1; 0 is empty. */
function placesOf(hashes: Int32Array): Int32Array {
  const places = new Int32Array(2 ** Math.ceil(Math.log2(Math.max(1, hashes.length) * 4)))
  const mask = places.length - 1
  for (let member = 0; member < hashes.length; member++) {
    let slot = hashes[member]! & mask
    while (places[slot] !== 0) slot = (slot + 1) & mask
    places[slot] = member + 1
  }
  return places
}

type Same = (left: number, row: number, right: number, other: number) => boolean

/** Equality of stored values. NULL equals NULL, as in all lists. */
function sameValues({ u8, i32, u32, f64 }: SharedMemory, storage: HashedStorage): Same {
  switch (storage) {
    case 'f64':
      return (left, row, right, other) => {
        const [a, b] = [f64[(left >>> 3) + row]!, f64[(right >>> 3) + other]!]
        return a === b || (Number.isNaN(a) && Number.isNaN(b))
      }
    case 'entry':
      return (left, row, right, other) => {
        const [at, to] = [(left >>> 2) + row * 2, (right >>> 2) + other * 2]
        const bytes = i32[at + 1]!
        if (bytes !== i32[to + 1]) return false
        const [from, wanted] = [u32[at]!, u32[to]!]
        let byte = 0
        while (byte < bytes && u8[from + byte] === u8[wanted + byte]) byte++
        return byte >= bytes
      }
    default: {
      const words = { i32: 1, i64: 2, b16: 4, b32: 8 }[storage]
      return (left, row, right, other) => {
        const [at, to] = [(left >>> 2) + row * words, (right >>> 2) + other * words]
        let word = 0
        while (word < words && i32[at + word] === i32[to + word]) word++
        return word === words
      }
    }
  }
}

// Words -------------------------------------------------------------------------------------------------------------

/** Up to this number, members are compared one by one. */
const wideMembersMax = 16

/** `=`, `<>` and `in` of a UUID or LONG256 with constants; undefined for other types or too many members. */
export function compareWide({ name, args }: Call, context: ColumnContext): ColumnPlan | undefined {
  const isTurned = args[0]?.kind === 'constant' && args.length === 2 && name !== 'in'
  const [value, ...members] = isTurned ? [...args].reverse() : args
  if (value === undefined || (value.type.name !== 'UUID' && value.type.name !== 'LONG256')) return undefined
  if (members.length > wideMembersMax) return undefined
  const wanted = wordsOf(members, value.type, context)
  if (wanted === undefined) return undefined
  const { memory } = context
  const words = widthOf(value.type) / 4
  const otherwise = name === '<>' ? 1 : 0
  return {
    args: [value],
    run: (rows, [values = 0], out) => {
      memory.u8.fill(otherwise, out, out + rows)
      for (let at = 0; at < wanted.length; at += words)
        markEqual(memory, values >>> 2, rows, wanted.subarray(at, at + words), 1 - otherwise, out)
      return 0
    },
  }
}

/** The constants in vector format; undefined unless all are constants of the type. */
function wordsOf(members: readonly Expression[], type: DataType, context: ColumnContext): Int32Array | undefined {
  const values: Value[] = []
  for (const member of members) {
    if (member.kind !== 'constant' || member.type.name !== type.name) return undefined
    values.push(member.value)
  }
  const first = context.vector(type, values) >>> 2
  return context.memory.i32.slice(first, first + (members.length * widthOf(type)) / 4)
}

function markEqual(
  { i32, u8 }: SharedMemory,
  from: number,
  rows: number,
  words: Int32Array,
  mark: number,
  out: number,
) {
  const width = words.length
  const first = words[0]!
  for (let row = 0; row < rows; row++) {
    const at = from + row * width
    if (i32[at] !== first) continue
    let word = 1
    while (word < width && i32[at + word] === words[word]) word++
    if (word === width) u8[out + row] = mark
  }
}
