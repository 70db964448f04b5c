// Reference implementation of the aggregation kernel (WebAssembly) in plain TypeScript, with which property tests
// compare the kernel. The contract is in engine/kernels/aggregate.ts. Sums of doubles may differ in the last digits,
// since the kernel adds in SIMD lanes.

import { type AggregateKernel, aggregateKinds, tableFullId } from '../../engine/kernels/aggregate.js'
import type { SharedMemory } from '../../engine/memory/shared-memory.js'
import { spreadReference } from './aggregate-spread.js'
import { tableTwin } from './aggregate-tables.js'

const longMin = -0x8000_0000_0000_0000n

export function aggregateReference(memory: SharedMemory): AggregateKernel {
  return {
    ...tableTwin(memory),
    ...spreadReference(memory),
    stats: (kind, values, mask, rows, out) => addStats(memory, kind, values, mask, rows, out, true),
    sum: (kind, values, mask, rows, out) => addStats(memory, kind, values, mask, rows, out, false),
    groupSums: (kind, values, ids, mask, rows, groups, sums) =>
      eachGrouped(memory, kind, values, ids, mask, rows, groups, (value, id) => {
        const isLong = kind === aggregateKinds.i64
        const cell = (sums >>> 3) + id * (isLong ? 3 : 2)
        add(memory, isFloating(kind), cell, value)
        add(memory, isFloating(kind), cell + 1, isFloating(kind) ? 1 : 1n)
        if (isLong) add(memory, false, cell + 2, BigInt(value) >> 32n)
      }),
    groupExtremes: (kind, values, ids, mask, rows, groups, extremes) =>
      eachGrouped(memory, kind, values, ids, mask, rows, groups, (value, id) => {
        widen(memory, isFloating(kind), (extremes >>> 3) + id * 2, value)
      }),
    groupCounts: (ids, mask, rows, groups, counts) =>
      eachGroup(memory, ids, mask, rows, groups, (_r, id) => add(memory, false, (counts >>> 3) + id, 1n)),
    groupRows: (ids, mask, rows, groups, firstRow, cells) =>
      eachGroup(memory, ids, mask, rows, groups, (r, id) => {
        const cell = (cells >>> 2) + id * 2
        if (memory.u32[cell] === tableFullId) memory.u32[cell] = firstRow + r
        memory.u32[cell + 1] = firstRow + r
      }),
  }
}

function isFloating(kind: number): boolean {
  return kind === aggregateKinds.f64 || kind === aggregateKinds.f32
}

function taken(memory: SharedMemory, mask: number, row: number): boolean {
  return mask === 0 || memory.u8[mask + row] !== 0
}

/** A floating value as number, an integer as bigint, NULL as null. */
function valueAt(memory: SharedMemory, kind: number, values: number, row: number): number | bigint | null {
  if (isFloating(kind)) {
    const x = (
      kind === aggregateKinds.f64 ? memory.f64[(values >>> 3) + row] : memory.f32[(values >>> 2) + row]
    ) as number
    return Number.isNaN(x) ? null : x
  }
  if (kind === aggregateKinds.i64) {
    const x = memory.i64[(values >>> 3) + row]!
    return x === longMin ? null : x
  }
  if (kind === aggregateKinds.i16) return BigInt(memory.i16[(values >>> 1) + row]!)
  if (kind === aggregateKinds.i8) return BigInt(memory.i8[values + row]!)
  const x = memory.i32[(values >>> 2) + row]!
  return x === -0x8000_0000 ? null : BigInt(x)
}

function add(memory: SharedMemory, floating: boolean, word: number, value: number | bigint): void {
  if (floating) memory.f64[word] = memory.f64[word]! + Number(value)
  else memory.i64[word] = memory.i64[word]! + BigInt(value)
}

/** {min, max} at the 8-byte word take the value in. */
function widen(memory: SharedMemory, floating: boolean, word: number, value: number | bigint): void {
  const cells = floating ? memory.f64 : memory.i64
  if (value < (cells[word] as number | bigint)) cells[word] = value
  if (value > (cells[word + 1] as number | bigint)) cells[word + 1] = value
}

function addStats(
  memory: SharedMemory,
  kind: number,
  values: number,
  mask: number,
  rows: number,
  out: number,
  extremes: boolean,
): void {
  for (let r = 0; r < rows; r++) {
    const value = taken(memory, mask, r) ? valueAt(memory, kind, values, r) : null
    if (value === null) continue
    add(memory, isFloating(kind), out >>> 3, value)
    add(memory, false, (out >>> 3) + 1, 1n)
    if (kind === aggregateKinds.i64) add(memory, false, (out >>> 3) + 4, BigInt(value) >> 32n)
    if (extremes) widen(memory, isFloating(kind), (out >>> 3) + 2, value)
  }
}

function eachGroup(
  memory: SharedMemory,
  ids: number,
  mask: number,
  rows: number,
  groups: number,
  visit: (row: number, id: number) => void,
): void {
  for (let r = 0; r < rows; r++) {
    const id = memory.u32[(ids >>> 2) + r]!
    if (id < groups && taken(memory, mask, r)) visit(r, id)
  }
}

function eachGrouped(
  memory: SharedMemory,
  kind: number,
  values: number,
  ids: number,
  mask: number,
  rows: number,
  groups: number,
  visit: (value: number | bigint, id: number) => void,
): void {
  eachGroup(memory, ids, mask, rows, groups, (r, id) => {
    const value = valueAt(memory, kind, values, r)
    if (value !== null) visit(value, id)
  })
}
