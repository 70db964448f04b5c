// Converts a column of ORDER BY to sort keys: 64-bit words whose order as signed integers is the requested order, for
// the radix sort kernel (WebAssembly). A value of a wide type becomes several words, the most significant first. For
// descending order all bits are inverted.

import { aggregateKinds } from '../../kernels/aggregate.js'
import type { SortKey } from '../../sql/plan/plan.js'
import { type DataType, type StorageKind, storageOf } from '../../types/column-types.js'
import { compareText } from '../../types/compare.js'
import type { ExecContext } from './context.js'
import { textAt } from './text-at.js'
import type { Vector } from './vector.js'

/** Writes one word for each row to `out` (i64). */
export type WordWriter = (out: number) => void

/** The writers for the words of a key over all rows of a column, the most significant word first. */
export function sortWords(context: ExecContext, vector: Vector, rows: number, key: SortKey): WordWriter[] {
  const storage = storageOf(vector.type)
  if (storage === 'f64' || storage === 'f32' || storage === 'i64' || (storage === 'i32' && isPlainInt(vector.type))) {
    return [kernelWords(context, vector, rows, numberKey(storage, vector.type, key))]
  }
  const writers = ascendingWords(context, vector, storage, rows, key.nullsFirst !== key.descending)
  if (!key.descending) return writers
  return writers.map((write) => (out) => {
    write(out)
    const { i32 } = context.memory
    for (let word = out >>> 2; word < (out >>> 2) + rows * 2; word++) i32[word] = ~i32[word]!
  })
}

const longMin = -(2n ** 63n)
const longMax = 2n ** 63n - 1n

export interface KernelKey {
  readonly kind: number
  readonly missing: bigint
  readonly nullWord: bigint
  readonly turn: bigint
}

/** Parameters by which a kernel converts numbers of four or eight bytes; undefined for other types. */
export function kernelKey(type: DataType, key: SortKey): KernelKey | undefined {
  const storage = storageOf(type)
  if (storage === 'i32' && !isPlainInt(type)) return undefined
  return isKernelStorage(storage) ? numberKey(storage, type, key) : undefined
}

type KernelStorage = 'f64' | 'f32' | 'i64' | 'i32'

function isKernelStorage(storage: StorageKind): storage is KernelStorage {
  return storage === 'f64' || storage === 'f32' || storage === 'i64' || storage === 'i32'
}

/** Not for symbols, which are ordered by their strings, nor for IPv4, which is unsigned. */
function isPlainInt({ name }: DataType): boolean {
  return name !== 'SYMBOL' && name !== 'IPv4'
}

function numberKey(storage: KernelStorage, type: DataType, { descending, nullsFirst }: SortKey): KernelKey {
  return {
    kind: aggregateKinds[storage],
    missing: type.name === 'GEOHASH' ? -1n : storage === 'i32' ? -0x8000_0000n : longMin,
    nullWord: nullsFirst !== descending ? longMin : longMax,
    turn: descending ? -1n : 0n,
  }
}

function kernelWords({ kernels }: ExecContext, vector: Vector, rows: number, key: KernelKey): WordWriter {
  const { kind, missing, nullWord, turn } = key
  return (out) => kernels.sort.orderWords(kind, vector.address, rows, missing, nullWord, turn, out)
}

/** Words in ascending order. `nullsLow`: NULL precedes all values, before an inversion. */
function ascendingWords(
  context: ExecContext,
  vector: Vector,
  storage: Exclude<StorageKind, 'f64' | 'f32' | 'i64'>,
  rows: number,
  nullsLow: boolean,
): WordWriter[] {
  const { memory } = context
  const { address, type } = vector
  switch (storage) {
    case 'i8':
      return [smallWords(context, rows, (row) => memory.i8[address + row]!, nullOf(type), nullsLow)]
    case 'i16':
      return [smallWords(context, rows, (row) => memory.i16[(address >>> 1) + row]!, nullOf(type), nullsLow)]
    case 'u16':
      // CHAR, whose NULL is 0.
      return [smallWords(context, rows, (row) => memory.u16[(address >>> 1) + row]!, 0, nullsLow)]
    case 'i32':
      return [intWords(context, vector, rows, nullsLow)]
    case 'entry':
      return textWords(context, vector, rows, nullsLow)
    case 'b16':
      return wideWords(context, vector, rows, 2, nullsLow)
    case 'b32':
      return wideWords(context, vector, rows, 4, nullsLow)
  }
}

function nullOf(type: DataType): number | null {
  return type.name === 'GEOHASH' ? -1 : null
}

const nullLow = -0x4000_0000_0000
const nullHigh = 0x4000_0000_0000

/** For values whose magnitude is below 2^46. */
function smallWords(
  { memory }: ExecContext,
  rows: number,
  read: (row: number) => number,
  missing: number | null,
  nullsLow: boolean,
): WordWriter {
  return (out) => {
    for (let row = 0; row < rows; row++) {
      const value = read(row)
      putWord(memory.i32, (out >>> 2) + row * 2, value === missing ? (nullsLow ? nullLow : nullHigh) : value)
    }
  }
}

function putWord(i32: Int32Array, word: number, value: number): void {
  i32[word] = value | 0
  i32[word + 1] = Math.floor(value / 0x1_0000_0000)
}

function intWords(context: ExecContext, vector: Vector, rows: number, nullsLow: boolean): WordWriter {
  const { memory, strings } = context
  const { address, type } = vector
  const first = address >>> 2
  if (type.name === 'IPv4') return smallWords(context, rows, (row) => memory.u32[first + row]!, 0, nullsLow)
  return (out) => {
    let highest = -1
    for (let row = 0; row < rows; row++) highest = Math.max(highest, memory.i32[first + row]!)
    const seen = new Uint8Array(highest + 2)
    for (let row = 0; row < rows; row++) seen[memory.i32[first + row]! + 1] = 1
    const textOf = strings.of(vector.dictionary)
    const present = Array.from(seen.keys()).filter((at) => at > 0 && seen[at] === 1)
    present.sort((a, b) => compareText(textOf(a - 1), textOf(b - 1)))
    // Indexed by id + 1, since the id of NULL is -1.
    const ranks = new Float64Array(highest + 2)
    ranks[0] = nullsLow ? nullLow : nullHigh
    present.forEach((at, rank) => {
      ranks[at] = rank
    })
    for (let row = 0; row < rows; row++) {
      putWord(memory.i32, (out >>> 2) + row * 2, ranks[memory.i32[first + row]! + 1]!)
    }
  }
}

/** UUID and LONG256 are unsigned; a DECIMAL is signed in its highest word. */
function wideWords(
  { memory }: ExecContext,
  { address, type }: Vector,
  rows: number,
  words: number,
  nullsLow: boolean,
): WordWriter[] {
  const { i32 } = memory
  const decimal = type.name === 'DECIMAL'
  const isNull = (row: number): boolean => {
    const first = (address >>> 2) + row * words * 2
    for (let word = 0; word < words; word++) {
      const top = !decimal || word === words - 1 ? -0x8000_0000 : 0
      if (i32[first + word * 2] !== 0 || i32[first + word * 2 + 1] !== top) return false
    }
    return true
  }
  const writeWord =
    (index: number, turn: number): WordWriter =>
    (out) => {
      for (let row = 0; row < rows; row++) {
        const source = (address >>> 2) + (row * words + index) * 2
        i32[(out >>> 2) + row * 2] = i32[source]!
        i32[(out >>> 2) + row * 2 + 1] = i32[source + 1]! ^ turn
      }
    }
  const flags: WordWriter = (out) => {
    for (let row = 0; row < rows; row++) putWord(i32, (out >>> 2) + row * 2, isNull(row) ? (nullsLow ? -1 : 1) : 0)
  }
  const writers: WordWriter[] = [flags]
  for (let index = words - 1; index >= 0; index--) {
    writers.push(writeWord(index, decimal && index === words - 1 ? 0 : -0x8000_0000))
  }
  return writers
}

/** Cancellation is checked each time this many strings (plus one) have been read or compared. */
const asksMask = 0xffff

/** Longer strings are sorted by rank instead, because each word costs a pass over all rows. */
const wordTextBytesMax = 64

/**
 * Words of eight bytes of the string, since the byte order of UTF-8 is that of code points. Then the length, to order
 * strings that differ in trailing zero bytes.
 */
function textWords(context: ExecContext, vector: Vector, rows: number, nullsLow: boolean): WordWriter[] {
  const { memory, kernels, alive } = context
  const bytesMax = longestText(context, vector, rows)
  if (bytesMax > wordTextBytesMax) return [rankWords(context, vector, rows, nullsLow)]
  const { address } = vector
  const { i32 } = memory
  const missing = nullsLow ? longMin : longMax
  const bytesFrom =
    (from: number): WordWriter =>
    (out) => {
      alive()
      kernels.text.textWords(address, rows, from, missing, out)
    }
  const length: WordWriter = (out) => {
    for (let row = 0; row < rows; row++) {
      const bytes = i32[(address >>> 2) + row * 2 + 1]!
      putWord(i32, (out >>> 2) + row * 2, bytes < 0 ? (nullsLow ? nullLow : nullHigh) : bytes)
    }
  }
  return [...Array.from({ length: Math.ceil(bytesMax / 8) }, (_, index) => bytesFrom(index * 8)), length]
}

function longestText({ memory }: ExecContext, { address }: Vector, rows: number): number {
  const { i32 } = memory
  let longest = 0
  for (let word = (address >>> 2) + 1, end = word + rows * 2; word < end; word += 2) {
    if (i32[word]! > longest) longest = i32[word]!
  }
  return longest
}

/** Words that are ranks among the distinct strings of the column. */
function rankWords({ memory, alive }: ExecContext, { address }: Vector, rows: number, nullsLow: boolean): WordWriter {
  return (out) => {
    const first = address >>> 2
    const strings: (string | null)[] = []
    for (let row = 0; row < rows; row++) {
      if ((row & asksMask) === 0) alive()
      const bytes = memory.i32[first + row * 2 + 1]!
      strings.push(bytes < 0 ? null : textAt(memory, memory.u32[first + row * 2]!, bytes))
    }
    const present = new Set<string>()
    for (const [row, text] of strings.entries()) {
      if ((row & asksMask) === 0) alive()
      if (text !== null) present.add(text)
    }
    const distinct = [...present]
    alive()
    let compared = 0
    distinct.sort((left, right) => {
      if ((++compared & asksMask) === 0) alive()
      return compareText(left, right)
    })
    const ranks = new Map<string, number>()
    for (const [rank, text] of distinct.entries()) {
      if ((rank & asksMask) === 0) alive()
      ranks.set(text, rank)
    }
    strings.forEach((text, row) => {
      if ((row & asksMask) === 0) alive()
      const rank = text === null ? (nullsLow ? nullLow : nullHigh) : (ranks.get(text) as number)
      putWord(memory.i32, (out >>> 2) + row * 2, rank)
    })
  }
}
