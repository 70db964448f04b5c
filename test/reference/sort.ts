// Reference implementation, in plain TypeScript, of the WebAssembly kernel that sorts, merges and gathers rows;
// property tests compare the two. The contract is in engine/kernels/sort.ts.

import { type SortKernel, sortScratchBytes } from '../../engine/kernels/sort.js'
import type { SharedMemory } from '../../engine/memory/shared-memory.js'

export function sortReference(memory: SharedMemory): SortKernel {
  return {
    sortPermutation: (ts, rows, _scratch, scratchBytes, out) => sortPermutation(memory, ts, rows, scratchBytes, out),
    lowerBound: (ts, from, to, value) => bound(memory, ts, from, to, (x) => x >= value),
    upperBound: (ts, from, to, value) => bound(memory, ts, from, to, (x) => x > value),
    mergeRuns: (runs, count, limit, outRun, outRow) => mergeRuns(memory, runs, count, limit, outRun, outRow),
    gather: (width, source, index, rows, out) => {
      for (let i = 0; i < rows; i++) copy(memory, width, source, memory.u32[(index >>> 2) + i]!, out, i)
    },
    gatherOr: (width, source, index, rows, nothing, out) => {
      for (let i = 0; i < rows; i++) {
        const row = memory.u32[(index >>> 2) + i]!
        if (row === 0xffff_ffff) copy(memory, width, nothing, 0, out, i)
        else copy(memory, width, source, row, out, i)
      }
    },
    gatherRuns: (width, sources, run, row, rows, out) => {
      for (let i = 0; i < rows; i++) {
        const source = memory.u32[(sources >>> 2) + memory.u8[run + i]!]!
        copy(memory, width, source, memory.u32[(row >>> 2) + i]!, out, i)
      }
    },
    orderWords: (kind, values, rows, missing, nullWord, turn, out) => {
      for (let i = 0; i < rows; i++) {
        memory.i64[(out >>> 3) + i] = orderWord(memory, kind, values, i, missing, nullWord) ^ turn
      }
    },
    rowsWithin: (kind, values, rows, missing, nullWord, turn, bound, out) => {
      let count = 0
      for (let i = 0; i < rows; i++) {
        const word = orderWord(memory, kind, values, i, missing, nullWord) ^ turn
        if (word <= bound) memory.u32[(out >>> 2) + count++] = i
      }
      return count
    },
    groupRows: (numbers, rows, low, span, starts, out) => groupRows(memory, numbers, rows, low, span, starts, out),
    identity: (rows, out) => {
      for (let i = 0; i < rows; i++) memory.u32[(out >>> 2) + i] = i
    },
  }
}

function copy(memory: SharedMemory, width: number, source: number, from: number, out: number, to: number): void {
  memory.u8.copyWithin(out + to * width, source + from * width, source + (from + 1) * width)
}

function at(memory: SharedMemory, ts: number, row: number): bigint {
  return memory.i64[(ts >>> 3) + row]!
}

function groupRows(
  { i32, u16, u32 }: SharedMemory,
  numbers: number,
  rows: number,
  low: number,
  span: number,
  starts: number,
  out: number,
): number {
  const groups = Array.from({ length: span }, (): number[] => [])
  for (let row = 0; row < rows; row++) {
    const group = groups[i32[(numbers >>> 2) + row]! - low]
    if (group === undefined) return 0
    group.push(row)
  }
  let start = 0
  groups.forEach((group, index) => {
    u32[(starts >>> 2) + index] = start
    u16.set(group, (out >>> 1) + start)
    start += group.length
  })
  u32.fill(start, (starts >>> 2) + span, (starts >>> 2) + span + 2)
  return 1
}

const longMask = 0x7fff_ffff_ffff_ffffn
const bits = new DataView(new ArrayBuffer(8))

function orderWord(
  memory: SharedMemory,
  kind: number,
  values: number,
  row: number,
  missing: bigint,
  nullWord: bigint,
): bigint {
  if (kind >= 2) {
    const value = kind === 2 ? at(memory, values, row) : BigInt(memory.i32[(values >>> 2) + row]!)
    return value === missing ? nullWord : BigInt.asIntN(64, nullWord === longMask ? value - 1n : value)
  }
  const number = (kind === 0 ? memory.f64[(values >>> 3) + row] : memory.f32[(values >>> 2) + row]) as number
  if (Number.isNaN(number)) return nullWord
  bits.setFloat64(0, number === 0 ? 0 : number)
  const word = bits.getBigInt64(0)
  return word < 0n ? word ^ longMask : word
}

function sortPermutation(memory: SharedMemory, ts: number, rows: number, scratchBytes: number, out: number): number {
  if (scratchBytes < sortScratchBytes(rows)) return -1
  const index = Array.from({ length: rows }, (_, i) => i)
  const sorted = index.every((i) => i === 0 || at(memory, ts, i - 1) <= at(memory, ts, i))
  if (!sorted) {
    index.sort((a, b) => {
      const x = at(memory, ts, a)
      const y = at(memory, ts, b)
      return x < y ? -1 : x > y ? 1 : a - b
    })
  }
  memory.u32.set(index, out >>> 2)
  return sorted ? 1 : 0
}

function bound(memory: SharedMemory, ts: number, from: number, to: number, above: (x: bigint) => boolean): number {
  let row = from
  while (row < to && !above(at(memory, ts, row))) row++
  return row
}

function mergeRuns(
  memory: SharedMemory,
  runs: number,
  count: number,
  limit: number,
  outRun: number,
  outRow: number,
): number {
  for (let done = 0; done < limit; done++) {
    let best = -1
    let bestTs = 0n
    for (let run = 0; run < count; run++) {
      const word = (runs >>> 2) + run * 4
      const cursor = memory.u32[word + 2]!
      if (cursor >= memory.u32[word + 1]!) continue
      const v = at(memory, memory.u32[word]!, cursor)
      if (best === -1 || v < bestTs) {
        best = run
        bestTs = v
      }
    }
    if (best === -1) return done
    const cursorWord = (runs >>> 2) + best * 4 + 2
    memory.u8[outRun + done] = best
    memory.u32[(outRow >>> 2) + done] = memory.u32[cursorWord]!
    memory.u32[cursorWord] = memory.u32[cursorWord]! + 1
  }
  return limit
}
