// Cells of groups (kernel-states.ts) as states that threads hand to each other: how two cells become one.

import type { SharedMemory } from '../../memory/shared-memory.js'
import type { Value } from '../../types/value.js'
import type { ExecContext } from '../batch/context.js'
import { writeValue } from '../batch/values.js'
import { type PartialStates, partialBytes } from './group-states.js'

/** Growing cells, one per group. */
export interface GroupCells {
  readonly address: number
  grow(groups: number): void
}

export interface CellRules {
  /** Adds a cell to another one; both are 8-byte places. */
  readonly combine: (into: number, source: number) => void
  readonly valueAt: (place: number) => Value
  /** Which of a cell's doubles is the value, NaN where there is none; missing: valueAt knows. */
  readonly doubleAt?: (place: number) => number
  /** Cells are 64-bit integers, and the first one is the value. */
  readonly firstIsValue?: boolean
}

/** Cells of 8, 16 or more bytes as partial states: as they are. */
export function partialCells(
  { memory }: ExecContext,
  cells: GroupCells,
  cellBytes: number,
  { combine, valueAt, doubleAt, firstIsValue }: CellRules,
): PartialStates {
  const bytes = Math.max(partialBytes, cellBytes)
  return {
    bytes,
    save: (groups, out) => {
      if (typeof groups === 'number') {
        saveAll(memory, cells, cellBytes, groups, out)
        return
      }
      let at = out
      for (const group of groups) {
        const cell = cells.address + group * cellBytes
        memory.u8.copyWithin(at, cell, cell + cellBytes)
        at += bytes
      }
    },
    merge: (from, rows, ids, groups) => {
      cells.grow(groups)
      for (let row = 0; row < rows; row++) {
        const group = memory.u32[(ids >>> 2) + row]!
        combine((cells.address + group * cellBytes) >>> 3, (from + row * bytes) >>> 3)
      }
    },
    restore: (from, rows, first) => {
      cells.grow(first + rows)
      const into = cells.address + first * cellBytes
      if (cellBytes === bytes) {
        memory.u8.copyWithin(into, from, from + rows * cellBytes)
        return
      }
      for (let word = 0; word < rows * 2; word++) {
        memory.u32[(into >>> 2) + word] = memory.u32[(from >>> 2) + (word >>> 1) * 4 + (word & 1)]!
      }
    },
    finish: (from, rows, type, target, out) => {
      const { f64, i64 } = memory
      const first = from >>> 3
      if (doubleAt !== undefined && type.name === 'DOUBLE') {
        for (let row = 0; row < rows; row++) f64[(out >>> 3) + row] = doubleAt(first + row * 2)
      } else if (firstIsValue === true && type.name === 'LONG') {
        for (let row = 0; row < rows; row++) i64[(out >>> 3) + row] = i64[first + row * 2]!
      } else {
        for (let row = 0; row < rows; row++) writeValue(target, type, out, row, valueAt(first + (row * bytes) / 8))
      }
    },
  }
}

function saveAll({ u8, u32 }: SharedMemory, cells: GroupCells, cellBytes: number, count: number, out: number): void {
  if (cellBytes >= partialBytes) {
    u8.copyWithin(out, cells.address, cells.address + count * cellBytes)
    return
  }
  for (let group = 0; group < count; group++) {
    u32[(out >>> 2) + group * 4] = u32[(cells.address >>> 2) + group * 2]!
    u32[(out >>> 2) + group * 4 + 1] = u32[(cells.address >>> 2) + group * 2 + 1]!
  }
}

/** 64-bit sums that wrap, by halves: a bigint would be an object each time. */
export function addIntegers({ u32 }: SharedMemory, into: number, source: number, count: number): void {
  for (let word = 0; word < count * 2; word += 2) {
    const at = into * 2 + word
    const low = u32[at]! + u32[source * 2 + word]!
    u32[at] = low
    u32[at + 1] = u32[at + 1]! + u32[source * 2 + word + 1]! + (low > 0xffff_ffff ? 1 : 0)
  }
}

export function addFloats({ f64 }: SharedMemory, into: number, source: number): void {
  f64[into] = f64[into]! + f64[source]!
  f64[into + 1] = f64[into + 1]! + f64[source + 1]!
}

export function widenFloats({ f64 }: SharedMemory, into: number, source: number): void {
  f64[into] = Math.min(f64[into]!, f64[source]!)
  f64[into + 1] = Math.max(f64[into + 1]!, f64[source + 1]!)
}

export function widenIntegers({ i64 }: SharedMemory, into: number, source: number): void {
  if (i64[source]! < i64[into]!) i64[into] = i64[source]!
  if (i64[source + 1]! > i64[into + 1]!) i64[into + 1] = i64[source + 1]!
}
