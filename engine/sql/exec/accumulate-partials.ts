// Cells of groups (kernel-states.ts) as states that threads hand to each other: how two cells become one.

import type { SharedMemory } from '../../memory/shared-memory.js'
import type { ExecContext } from './context.js'
import { type PartialStates, partialBytes } from './group-states.js'

/** Growing cells, one per group. */
export interface GroupCells {
  readonly address: number
  grow(groups: number): void
}

/** Cells as partial states: as they are. `combine` takes 8-byte places. */
export function partialCells(
  { memory }: ExecContext,
  cells: GroupCells,
  cellBytes: number,
  combine: (into: number, source: number) => void,
): PartialStates {
  return {
    save: (groups, out) => {
      let at = out
      for (const group of groups) {
        const cell = cells.address + group * cellBytes
        memory.u8.copyWithin(at, cell, cell + cellBytes)
        at += partialBytes
      }
    },
    merge: (from, rows, ids, groups) => {
      cells.grow(groups)
      for (let row = 0; row < rows; row++) {
        const group = memory.u32[(ids >>> 2) + row] as number
        combine((cells.address + group * cellBytes) >>> 3, (from + row * partialBytes) >>> 3)
      }
    },
  }
}

/** 64-bit sums that wrap, by halves: a bigint would be an object each time. */
export function addIntegers({ u32 }: SharedMemory, into: number, source: number, count: number): void {
  for (let word = 0; word < count * 2; word += 2) {
    const at = into * 2 + word
    const low = (u32[at] as number) + (u32[source * 2 + word] as number)
    u32[at] = low
    u32[at + 1] = (u32[at + 1] as number) + (u32[source * 2 + word + 1] as number) + (low > 0xffff_ffff ? 1 : 0)
  }
}

export function addFloats({ f64 }: SharedMemory, into: number, source: number): void {
  f64[into] = (f64[into] as number) + (f64[source] as number)
  f64[into + 1] = (f64[into + 1] as number) + (f64[source + 1] as number)
}

export function widenFloats({ f64 }: SharedMemory, into: number, source: number): void {
  f64[into] = Math.min(f64[into] as number, f64[source] as number)
  f64[into + 1] = Math.max(f64[into + 1] as number, f64[source + 1] as number)
}

export function widenIntegers({ i64 }: SharedMemory, into: number, source: number): void {
  if ((i64[source] as bigint) < (i64[into] as bigint)) i64[into] = i64[source] as bigint
  if ((i64[source + 1] as bigint) > (i64[into + 1] as bigint)) i64[into + 1] = i64[source + 1] as bigint
}
