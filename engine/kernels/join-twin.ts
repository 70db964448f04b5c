// The join kernel in plain TypeScript: oracle of the property tests and fallback. See join.ts for the contract.

import type { SharedMemory } from '../memory/shared-memory.js'
import { expandModes, type JoinKernel, noRow } from './join.js'

const noTime = -(2n ** 63n)

export function joinTwin(memory: SharedMemory): JoinKernel {
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
    get: (base, index) => u32[(base >>> 2) + index] as number,
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
  let kept = 0
  for (let index = 0; index < count; index++) {
    const a = get(left, index)
    const b = get(right, index)
    const stays = b === noRow ? get(state, 0) !== a + 1 : u8[mask + index] !== 0
    if (!stays) continue
    if (b !== noRow) put(state, 0, a + 1)
    put(left, kept, a)
    put(right, kept++, b)
  }
  return kept
}

function asof({ i64 }: SharedMemory, { get, put }: Words, state: number): number {
  const [leftTs, leftCodes, leftRows] = [get(state, 0), get(state, 1), get(state, 2)]
  const [rightTs, rightCodes, rightRows] = [get(state, 4), get(state, 5), get(state, 6)]
  const [last, first, strict, complete] = [get(state, 8), get(state, 9), get(state, 10) !== 0, get(state, 11) !== 0]
  const tolerance = i64[(state >>> 3) + 6] as bigint
  const out = get(state, 14)
  const leftAt = (row: number): bigint => i64[(leftTs >>> 3) + row] as bigint
  const rightAt = (row: number): bigint => i64[(rightTs >>> 3) + row] as bigint
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
  const timeAt = (base: number, row: number): bigint => i64[(base >>> 3) + row] as bigint
  let [left, right, leftEnd, rightEnd] = [get(state, 3), get(state, 7), get(state, 10), get(state, 11)]
  let count = 0
  const emit = (a: number, b: number): void => {
    put(outLeft, count, a)
    put(outRight, count++, b)
  }
  while (count < limit) {
    if (left < leftEnd) emit(left, get(lastRight, get(leftCodes, left++)))
    else if (right < rightEnd) emit(get(lastLeft, get(rightCodes, right)), right++)
    else if (left === leftRows && right === rightRows) break
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
