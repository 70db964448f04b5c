// The accumulators of generated aggregations: their layout in memory, and the code that initialises, updates and merges
// them.
//
// A RECORD per group, made of CELLS of 16 bytes, 16-byte aligned:
//
//   sums      {sum f64, count f64} of FLOAT and DOUBLE, {sum i64, count i64} of SHORT and INT
//   wide      two cells, of LONG: {sum i64 (wraps around), count i64} {sum of the high words i64, 0}. The high words
//             say how often the sum has wrapped: types/wide-sum.ts
//   extremes  {min, max} of f64 or i64; empty while min > max
//   count     {count i64, 0}
//   rows      {first, last} row number i64, as extremes
//
// Aggregates over the same argument share cells. Four more records follow those of the groups, for rows that belong to
// no group, which avoids branches. If records are few, there are four SETS of them: adjacent rows update different
// sets, so they do not wait for each other if they are in the same group. `fold` adds all sets to the first one.

import type { ColumnType } from '../../types/column-types.js'
import type { FunctionBuilder } from './assembler.js'
import type { Local } from './code-writer.js'
import { type FragmentAggregate, unsupported } from './fragment.js'
import { longMaximum, longMinimum } from './lanes.js'
import { lower, type Node, type Parameters } from './lower.js'

export interface Cell {
  readonly kind: 'sums' | 'wide' | 'extremes' | 'count' | 'rows'
  /** The argument; null: the rows themselves. */
  readonly node: Node | null
  readonly floating: boolean
  /** Offset within the record. */
  readonly offset: number
}

/** How to read an aggregate's result from its cell. */
export interface Output {
  readonly name: string
  readonly cell: Cell
  /** Type of the argument; LONG without one. */
  readonly type: ColumnType
}

export interface RecordLayout {
  readonly cells: readonly Cell[]
  readonly outputs: readonly Output[]
  readonly bytes: number
  readonly text: string
}

export const spareRecords = 4
export const setsMax = 4
/** Sets are only used if they fit a core's first-level cache. */
const setsBytesMax = 32 * 1024

export function setsFor(layout: RecordLayout, groups: number, keyed: boolean): number {
  return keyed && (groups + spareRecords) * layout.bytes * setsMax <= setsBytesMax ? setsMax : 1
}

/** The cells that the aggregates need; throws Unsupported. */
export function recordLayout(aggregates: readonly FragmentAggregate[], parameters: Parameters): RecordLayout {
  const cells: Cell[] = []
  let bytes = 0
  const cellOf = (kind: Cell['kind'], node: Node | null): Cell => {
    const known = cells.find((cell) => cell.kind === kind && cell.node?.text === node?.text)
    if (known !== undefined) return known
    const floating = node?.kind === 'f64' || node?.kind === 'f32'
    const cell: Cell = { kind, node, floating: floating && kind !== 'count' && kind !== 'rows', offset: bytes }
    bytes += kind === 'wide' ? 32 : 16
    cells.push(cell)
    return cell
  }
  const nodes = aggregates.map(({ arg }) => (arg === null ? null : lower(arg, parameters)))
  const outputs: Output[] = []
  // Counts come last, because the cell of a sum of the same argument contains a count.
  for (const counts of [false, true])
    aggregates.forEach(({ name }, index) => {
      if ((name === 'count') !== counts) return
      const node = countedNode(name, nodes[index] ?? null)
      const sums = counts && node !== null ? cells.find((cell) => isSumOf(cell, node)) : undefined
      const type = nodes[index]?.type ?? 'LONG'
      outputs[index] = { name, cell: sums ?? cellOf(cellKind(name, nodes[index] ?? null), node), type }
    })
  const text = outputs.map(({ name, cell }) => `${name}@${cell.offset}:${cell.kind}=${cell.node?.text ?? ''}`).join(';')
  return { cells, outputs, bytes, text }
}

function isSumOf({ kind, node }: Cell, counted: Node): boolean {
  return (kind === 'sums' || kind === 'wide') && node?.text === counted.text
}

/** The argument to count; rows are counted for arguments that cannot be NULL. */
function countedNode(name: string, node: Node | null): Node | null {
  if (node === null || name === 'first' || name === 'last') return null
  return (name === 'count' || name.endsWith('_not_null')) && node.missing === 'never' ? null : node
}

function cellKind(name: string, node: Node | null): Cell['kind'] {
  switch (name) {
    case 'count':
      return 'count'
    case 'first':
    case 'last':
    case 'first_not_null':
    case 'last_not_null':
      return 'rows'
    case 'sum':
    case 'avg':
      if (node === null || !isSummed(node.type)) return unsupported(name)
      return node.type === 'LONG' ? 'wide' : 'sums'
    case 'min':
    case 'max':
      if (node === null || !isOrdered(node.type)) return unsupported(name)
      return 'extremes'
    default:
      return unsupported(name)
  }
}

function isSummed(type: ColumnType): boolean {
  return ['SHORT', 'INT', 'LONG', 'FLOAT', 'DOUBLE'].includes(type)
}

function isOrdered(type: ColumnType): boolean {
  return ['INT', 'LONG', 'DATE', 'TIMESTAMP', 'TIMESTAMP_NS', 'FLOAT', 'DOUBLE'].includes(type)
}

// Code of cells -----------------------------------------------------------------------------------------------------

const lowPair = [0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23]
const highPair = lowPair.map((byte) => byte + 8)
const outerPair = [0, 1, 2, 3, 4, 5, 6, 7, 24, 25, 26, 27, 28, 29, 30, 31]

/** The pairs {left, right} of lane 0 and of lane 1. */
export function pairsOf(f: FunctionBuilder, left: Local, right: Local): readonly [Local, Local] {
  return [f.shuffle(left, right, lowPair), f.shuffle(left, right, highPair)]
}

/** Merges a cell {min, max} with a pair {low, high}. */
export function mergedExtremes(f: FunctionBuilder, floating: boolean, cell: Local, pair: Local): Local {
  if (floating) return f.shuffle(f.apply('f64x2.pmin', cell, pair), f.apply('f64x2.pmax', cell, pair), outerPair)
  const second = f.vector(new Uint8Array(BigInt64Array.of(0n, -1n).buffer))
  const takes = f.apply('v128.xor', f.apply('i64x2.gt_s', cell, pair), second)
  return f.apply('v128.bitselect', pair, cell, takes)
}

/** The neutral element of a cell. */
function neutral(f: FunctionBuilder, cell: Cell): Local {
  if (cell.kind !== 'extremes' && cell.kind !== 'rows') return f.vector(new Uint8Array(16))
  if (!cell.floating) return f.vector(new Uint8Array(BigInt64Array.of(longMaximum, longMinimum).buffer))
  return f.vector(new Uint8Array(Float64Array.of(Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY).buffer))
}

/** Adds a vector to a cell in memory, according to the kind of the cell. */
export function addToCell(f: FunctionBuilder, cell: Cell, address: Local, offset: number, value: Local): void {
  const old = f.load('v128.load', address, offset)
  const isRange = cell.kind === 'extremes' || cell.kind === 'rows'
  const sum = isRange
    ? mergedExtremes(f, cell.floating, old, value)
    : f.apply(cell.floating ? 'f64x2.add' : 'i64x2.add', old, value)
  f.store('v128.store', address, offset, sum)
}

/** init(state, records): sets records to the neutral element. */
export function writeInit(f: FunctionBuilder, { cells, bytes }: RecordLayout): void {
  eachRecord(f, 1, [0], bytes, () => {
    for (const cell of cells) {
      f.store('v128.store', 0, cell.offset, neutral(f, cell))
      if (cell.kind === 'wide') f.store('v128.store', 0, cell.offset + 16, neutral(f, cell))
    }
  })
}

/** merge(from, into, records): merges records into others. */
export function writeMerge(f: FunctionBuilder, { cells, bytes }: RecordLayout): void {
  eachRecord(f, 2, [0, 1], bytes, () => {
    for (const cell of cells) {
      const places = cell.kind === 'wide' ? [cell.offset, cell.offset + 16] : [cell.offset]
      for (const at of places) addToCell(f, cell, 1, at, f.load('v128.load', 0, at))
    }
  })
}

function eachRecord(
  f: FunctionBuilder,
  left: Local,
  pointers: readonly Local[],
  bytes: number,
  body: () => void,
): void {
  f.block(() =>
    f.loop(() => {
      f.get(left)
      f.op('i32.eqz')
      f.brIf(1)
      body()
      for (const pointer of pointers) step(f, pointer, bytes)
      step(f, left, -1)
      f.br(0)
    }),
  )
}

function step(f: FunctionBuilder, local: Local, by: number): void {
  f.get(local)
  f.i32(by)
  f.op('i32.add')
  f.set(local)
}
