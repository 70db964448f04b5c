// Reference implementation, in plain TypeScript, of the WebAssembly kernel that finds the row pairs of joins; property
// tests compare the two. The contract is in engine/kernels/join.ts.

import { hashKinds } from '../../engine/kernels/aggregate.js'
import { expandModes, type JoinKernel, noRow } from '../../engine/kernels/join.js'
import type { SharedMemory } from '../../engine/memory/shared-memory.js'

const noTime = -(2n ** 63n)

export function joinReference(memory: SharedMemory): JoinKernel {
  const words = wordsOf(memory)
  const { get, put } = words
  return {
    pairWords: (low, high, rows, out) => {
      for (let row = 0; row < rows; row++) {
        put(out, row * 2, get(low, row))
        put(out, row * 2 + 1, high === 0 ? 0 : get(high, row))
      }
    },
    mapIds: (ids, rows, map, mapRows, out) => mapIds(words, ids, rows, map, mapRows, out),
    countCodes: (codes, rows, counts) => {
      for (let row = 0; row < rows; row++) put(counts, get(codes, row), get(counts, get(codes, row)) + 1)
    },
    startsOf: (counts, count) => {
      let sum = 0
      for (let code = 0; code <= count; code++) {
        const rows = code < count ? get(counts, code) : 0
        put(counts, code, sum)
        sum += rows
      }
    },
    listRows: (codes, order, from, to, cursors, out) => {
      for (let index = from; index < to; index++) {
        const row = order === 0 ? index : get(order, index)
        const place = get(cursors, get(codes, row))
        put(cursors, get(codes, row), place + 1)
        put(out, place, row)
      }
    },
    expand: (state, codes, rows, starts, codeCount, list, mode, outLeft, outRight, limit) => {
      const matchesOf = (row: number): number[] => {
        const code = get(codes, row)
        if (code >= codeCount) return []
        return Array.from({ length: get(starts, code + 1) - get(starts, code) }, (_, at) =>
          get(list, get(starts, code) + at),
        )
      }
      return expand(words, state, rows, matchesOf, mode, outLeft, outRight, limit)
    },
    maskWords: (from, rows, mask, out) => {
      for (let row = 0; row < rows; row++) put(out, row, (get(from, row) & mask) >>> 0)
    },
    matchKeys: (state, table, hashes, keys, rows, mode, outLeft, outRight, limit) =>
      matchKeys(words, state, bucketsOf(words, table), { hashes, keys }, rows, mode, outLeft, outRight, limit),
    fillRange: (range, width, keys, from, to) => {
      const { placeOf, map } = rangeOf(memory, range, width)
      for (let row = from; row < to; row++) {
        const place = placeOf(keys, row)
        if (get(map, place) !== noRow) return 0
        put(map, place, row)
      }
      return 1
    },
    matchRange: (state, range, width, keys, rows, mode, outLeft, outRight, limit) => {
      const { placeOf, map } = rangeOf(memory, range, width)
      const matchesOf = (row: number): number[] => {
        const place = placeOf(keys, row)
        const found = place === noRow ? noRow : get(map, place)
        return found === noRow ? [] : [found]
      }
      return expand(words, state, rows, matchesOf, mode, outLeft, outRight, limit)
    },
    repeatsKeys: (table, from, to) => repeatsKeys(bucketsOf(words, table), from, to),
    keepEqual: (kind, left, right, leftRows, rightRows, count) =>
      keepEqual(memory, words, kind, [left, right], [leftRows, rightRows], count),
    settle: (state, mask, left, right, count) => settle(words, memory.u8, state, mask, left, right, count),
    markRows: (rows, count, marks) => {
      for (let index = 0; index < count; index++)
        if (get(rows, index) !== noRow) memory.u8[marks + get(rows, index)] = 1
    },
    rowsMarked: (marks, wanted, from, to, limit, out) => {
      let count = 0
      for (let row = from; row < to && count < limit; row++)
        if (memory.u8[marks + row] === wanted) put(out, count++, row)
      return count
    },
    renumber: (values, count, map) => {
      for (let index = 0; index < count; index++) {
        if (get(values, index) !== noRow) put(values, index, get(map, get(values, index)))
      }
    },
    asof: (state) => asof(memory, words, state),
    splice: (state, outLeft, outRight, limit) => splice(memory, words, state, outLeft, outRight, limit),
  }
}

interface Words {
  readonly get: (base: number, index: number) => number
  readonly put: (base: number, index: number, value: number) => void
}

function wordsOf({ u32 }: SharedMemory): Words {
  return {
    get: (base, index) => u32[(base >>> 2) + index]!,
    put: (base, index, value) => {
      u32[(base >>> 2) + index] = value
    },
  }
}

function mapIds({ get, put }: Words, ids: number, rows: number, map: number, mapRows: number, out: number): number {
  for (let row = 0; row < rows; row++) {
    const id = get(ids, row)
    if (map !== 0 && id !== noRow && (id >= mapRows || get(map, id) === noRow)) return row
    put(out, row, id === noRow ? 0 : (map === 0 ? id : get(map, id)) + 1)
  }
  return rows
}

interface Buckets {
  readonly mask: number
  /** Places of a bucket: from, to. */
  readonly places: (bucket: number) => readonly [number, number]
  readonly rowAt: (place: number) => number
  /** Words at a place, as text. */
  readonly storedAt: (place: number) => string
  readonly wordOf: (keys: number, row: number) => string
}

function bucketsOf({ get }: Words, table: number): Buckets {
  const [starts, mask, list, stored, width] = [0, 1, 2, 3, 4].map((index) => get(table, index)) as [
    number,
    number,
    number,
    number,
    number,
  ]
  const wordOf = (at: number, row: number): string =>
    width === 8 ? `${get(at, row * 2)} ${get(at, row * 2 + 1)}` : String(get(at, row))
  return {
    mask,
    places: (bucket) => [get(starts, bucket), get(starts, bucket + 1)],
    rowAt: (place) => get(list, place),
    storedAt: (place) => wordOf(stored, place),
    wordOf,
  }
}

function matchKeys(
  { get, put }: Words,
  state: number,
  { mask, places, rowAt, storedAt, wordOf }: Buckets,
  { hashes, keys }: { readonly hashes: number; readonly keys: number },
  rows: number,
  mode: number,
  outLeft: number,
  outRight: number,
  limit: number,
): number {
  let [row, taken, matched] = [get(state, 0), get(state, 1), get(state, 2)]
  let count = 0
  const give = (match: number): void => {
    put(outLeft, count, row)
    put(outRight, count++, match)
  }
  for (; row < rows && count < limit; row++, taken = 0, matched = 0) {
    const [start, end] = places((get(hashes, row) & mask) >>> 0)
    for (; start + taken < end && count < limit; taken++) {
      if (storedAt(start + taken) !== wordOf(keys, row)) continue
      give(rowAt(start + taken))
      matched = 1
    }
    const padded = mode === expandModes.andNone || (mode === expandModes.orNone && matched === 0)
    if (start + taken < end || (padded && count === limit)) break
    if (padded) give(noRow)
  }
  put(state, 0, row)
  put(state, 1, taken)
  put(state, 2, matched)
  return count
}

interface Range {
  readonly placeOf: (keys: number, row: number) => number
  readonly map: number
}

function rangeOf({ i64, i32, u32 }: SharedMemory, range: number, width: 4 | 8): Range {
  const [min, count, map] = [i64[range >>> 3], u32[(range >>> 2) + 2], u32[(range >>> 2) + 3]] as [
    bigint,
    number,
    number,
  ]
  const none = width === 8 ? -(2n ** 63n) : -(2n ** 31n)
  const placeOf = (keys: number, row: number): number => {
    const key = width === 8 ? i64[(keys >>> 3) + row]! : BigInt(i32[(keys >>> 2) + row]!)
    const place = BigInt.asUintN(64, key - min)
    return key === none ? count : place < BigInt(count) ? Number(place) : noRow
  }
  return { placeOf, map }
}

function repeatsKeys({ places, storedAt }: Buckets, from: number, to: number): number {
  for (let bucket = from; bucket < to; bucket++) {
    const [start, end] = places(bucket)
    const words = Array.from({ length: end - start }, (_, index) => storedAt(start + index))
    if (new Set(words).size < words.length) return 1
  }
  return 0
}

function keepEqual(
  memory: SharedMemory,
  { get, put }: Words,
  kind: number,
  [left, right]: readonly [number, number],
  [leftRows, rightRows]: readonly [number, number],
  count: number,
): number {
  const width = kind === hashKinds.i32 ? 4 : kind === hashKinds.b16 ? 16 : kind === hashKinds.b32 ? 32 : 8
  const valueAt = (at: number): string => {
    if (kind === hashKinds.f64) return String(memory.f64[at >>> 3]! + 0)
    const bytes = kind === hashKinds.entry ? memory.i32[(at >>> 2) + 1]! : width
    const from = kind === hashKinds.entry ? memory.u32[at >>> 2]! : at
    return bytes < 0 ? 'null' : Buffer.from(memory.u8.slice(from, from + bytes)).toString('hex')
  }
  let retained = 0
  for (let index = 0; index < count; index++) {
    const [a, b] = [get(leftRows, index), get(rightRows, index)]
    if (b !== noRow && valueAt(left + a * width) !== valueAt(right + b * width)) continue
    put(leftRows, retained, a)
    put(rightRows, retained++, b)
  }
  return retained
}

function expand(
  { get, put }: Words,
  state: number,
  rows: number,
  matchesOf: (row: number) => number[],
  mode: number,
  outLeft: number,
  outRight: number,
  limit: number,
): number {
  let row = get(state, 0)
  let taken = get(state, 1)
  let count = 0
  for (; row < rows; row++, taken = 0) {
    const matches = matchesOf(row)
    const padded = mode === expandModes.andNone || (mode === expandModes.orNone && matches.length === 0)
    const wanted = padded ? [...matches, noRow] : matches
    for (; taken < wanted.length && count < limit; taken++, count++) {
      put(outLeft, count, row)
      put(outRight, count, wanted[taken] as number)
    }
    if (taken < wanted.length || count === limit) break
  }
  // A row that was finished when the limit was reached counts as done, as in the kernel.
  if (row < rows && count === limit && isFinished(row, taken, matchesOf(row), mode)) {
    row++
    taken = 0
  }
  put(state, 0, row)
  put(state, 1, taken)
  return count
}

function isFinished(_row: number, taken: number, matches: readonly number[], mode: number): boolean {
  const padded = mode === expandModes.andNone || (mode === expandModes.orNone && matches.length === 0)
  return taken === matches.length + (padded ? 1 : 0)
}

function settle(
  { get, put }: Words,
  u8: Uint8Array,
  state: number,
  mask: number,
  left: number,
  right: number,
  count: number,
): number {
  let retained = 0
  for (let index = 0; index < count; index++) {
    const a = get(left, index)
    const b = get(right, index)
    const stays = b === noRow ? get(state, 0) !== a + 1 : u8[mask + index] !== 0
    if (!stays) continue
    if (b !== noRow) put(state, 0, a + 1)
    put(left, retained, a)
    put(right, retained++, b)
  }
  return retained
}

function asof({ i64 }: SharedMemory, { get, put }: Words, state: number): number {
  const [leftTs, leftCodes, leftRows] = [get(state, 0), get(state, 1), get(state, 2)]
  const [rightTs, rightCodes, rightRows] = [get(state, 4), get(state, 5), get(state, 6)]
  const [last, first, strict, complete] = [get(state, 8), get(state, 9), get(state, 10) !== 0, get(state, 11) !== 0]
  const tolerance = i64[(state >>> 3) + 6]!
  const out = get(state, 14)
  const leftAt = (row: number): bigint => i64[(leftTs >>> 3) + row]!
  const rightAt = (row: number): bigint => i64[(rightTs >>> 3) + row]!
  let left = get(state, 3)
  let right = get(state, 7)
  for (; left < leftRows; left++) {
    const ts = leftAt(left)
    for (; right < rightRows && (strict ? rightAt(right) < ts : rightAt(right) <= ts); right++) {
      if (rightAt(right) !== noTime) put(last, get(rightCodes, right - first), right)
    }
    if (right === rightRows && !complete) break
    const row = ts === noTime ? noRow : get(last, get(leftCodes, left))
    const far = row !== noRow && tolerance >= 0n && ts - rightAt(row) > tolerance
    put(out, left, far ? noRow : row)
  }
  put(state, 3, left)
  put(state, 7, right)
  return left
}

function splice(
  { i64 }: SharedMemory,
  { get, put }: Words,
  state: number,
  outLeft: number,
  outRight: number,
  limit: number,
): number {
  const [leftCodes, leftRows, rightCodes, rightRows] = [get(state, 1), get(state, 2), get(state, 5), get(state, 6)]
  const [lastLeft, lastRight] = [get(state, 8), get(state, 9)]
  const timeAt = (base: number, row: number): bigint => i64[(base >>> 3) + row]!
  let [left, right, leftEnd, rightEnd] = [get(state, 3), get(state, 7), get(state, 10), get(state, 11)]
  let count = 0
  const emit = (a: number, b: number): void => {
    put(outLeft, count, a)
    put(outRight, count++, b)
  }
  while (count < limit) {
    if (left < leftEnd) emit(left, get(lastRight, get(leftCodes, left++)))
    else if (right < rightEnd) {
      const code = get(rightCodes, right)
      const row = get(lastLeft, code)
      const isShown = row !== noRow && timeAt(get(state, 0), row) === timeAt(get(state, 4), right)
      if (!isShown || get(lastRight, code) !== right) emit(row, right)
      right++
    } else if (left === leftRows && right === rightRows) break
    else {
      const own = left < leftRows ? timeAt(get(state, 0), left) : null
      const other = right < rightRows ? timeAt(get(state, 4), right) : null
      const ts = own === null || (other !== null && other < own) ? other : own
      for (; leftEnd < leftRows && timeAt(get(state, 0), leftEnd) === ts; leftEnd++)
        put(lastLeft, get(leftCodes, leftEnd), leftEnd)
      for (; rightEnd < rightRows && timeAt(get(state, 4), rightEnd) === ts; rightEnd++)
        put(lastRight, get(rightCodes, rightEnd), rightEnd)
    }
  }
  for (const [word, value] of [
    [3, left],
    [7, right],
    [10, leftEnd],
    [11, rightEnd],
  ] as const)
    put(state, word, value)
  return count
}
