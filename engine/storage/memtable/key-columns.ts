// Hashes and compares rows by the bytes of their key columns. The columns are in shared memory: in blocks of memtables,
// pages of parts (Parquet files), or batches of uncommitted rows.

import { assert } from '../../base/assert.js'
import type { SharedMemory } from '../../memory/shared-memory.js'
import { isVariable, widthOf } from '../../types/column-types.js'
import type { TableSchema } from '../schema/schema.js'
import { fillNull } from './memtable-values.js'

/** Memory for the NULLs of columns without values. */
export const nullBytes = 64 * 32

/** Location of the values of a key column. Stride 0: one NULL for all rows. */
export interface KeyColumn {
  readonly address: number
  readonly stride: number
  readonly width: number
  readonly variable: boolean
}

/**
 * The columns with these ids. `addressOf` returns 0 for a column without values, whose rows are NULL; `nulls` is the
 * address of nullBytes bytes.
 */
export function keyColumnsAt(
  memory: SharedMemory,
  schema: Pick<TableSchema, 'columns'>,
  ids: readonly number[],
  nulls: number,
  addressOf: (id: number) => number,
): KeyColumn[] {
  assert(nulls % 8 === 0, 'A1: NULLs are aligned as values are')
  return ids.map((id, index) => {
    const type = schema.columns[id]?.type
    if (type === undefined) throw new RangeError('a key column exists')
    const [address, width, variable] = [addressOf(id), widthOf(type), isVariable(type)]
    if (address !== 0) return { address, stride: width, width, variable }
    const none = nulls + (index % 64) * 32
    fillNull(memory, type, none, 0, 1)
    return { address: none, stride: 0, width, variable }
  })
}

export function hashRow({ u8, u32, i32 }: SharedMemory, columns: readonly KeyColumn[], row: number): number {
  let hash = 0x2545f491
  for (let column = 0; column < columns.length; column++) {
    const { address, stride, width, variable } = columns[column] as KeyColumn
    const at = address + row * stride
    const bytes = variable ? i32[(at + 4) >>> 2]! : width
    if (variable || width < 4) {
      const first = variable ? u32[at >>> 2]! : at
      hash = Math.imul(hash ^ bytes, 0x01000193)
      for (let byte = 0; byte < bytes; byte++) hash = Math.imul(hash ^ u8[first + byte]!, 0x01000193)
    } else {
      for (let word = at >>> 2; word < (at + width) >>> 2; word++) {
        hash = Math.imul(hash ^ i32[word]!, 0x85ebca6b)
        hash ^= hash >>> 15
      }
    }
  }
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35)
  return hash ^ (hash >>> 16)
}

function sameValue(memory: SharedMemory, x: KeyColumn, xRow: number, y: KeyColumn, yRow: number): boolean {
  const { u8, u32, i32 } = memory
  let left = x.address + xRow * x.stride
  let right = y.address + yRow * y.stride
  let bytes = x.width
  if (x.variable) {
    bytes = i32[(left + 4) >>> 2]!
    if (bytes !== i32[(right + 4) >>> 2]) return false
    left = u32[left >>> 2]!
    right = u32[right >>> 2]!
  } else if (bytes >= 4) {
    for (let at = 0; at < bytes; at += 4) if (u32[(left + at) >>> 2] !== u32[(right + at) >>> 2]) return false
    return true
  }
  for (let byte = 0; byte < bytes; byte++) if (u8[left + byte] !== u8[right + byte]) return false
  return true
}

export function sameRow(
  memory: SharedMemory,
  x: readonly KeyColumn[],
  xRow: number,
  y: readonly KeyColumn[],
  yRow: number,
): boolean {
  for (let column = 0; column < x.length; column++)
    if (!sameValue(memory, x[column] as KeyColumn, xRow, y[column] as KeyColumn, yRow)) return false
  return true
}
