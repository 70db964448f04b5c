// The BLOCK, which holds the parameters of a generated kernel (a WebAssembly function compiled for one form of query)
// beyond its arguments. The caller owns the memory (16-byte aligned).
//
//   constants   16 bytes each, the value in every lane
//   row table   256 bytes, in kernels that select rows: for each set of four lanes their numbers, compacted
//   columns     u32 each: addresses of the columns' first rows
//   outputs     u32 each: target addresses of the columns of a projection
//   counts      u32 each: number of values of each part of a group number
//   lookups     {address u32, last index u32} each

import type { SharedMemory } from '../../memory/shared-memory.js'
import type { FunctionBuilder } from './assembler.js'
import type { Local } from './code-writer.js'
import type { Environment } from './lanes.js'
import type { Parameters } from './lower.js'

export interface BlockLayout {
  readonly rowTable: number
  readonly columns: number
  readonly outputs: number
  readonly counts: number
  readonly lookups: number
  readonly bytes: number
}

const rowTableBytes = 256

export function blockLayout(
  { constants, columns, lookups }: Parameters,
  parts: { readonly rowTable?: boolean; readonly outputs?: number; readonly counts?: number },
): BlockLayout {
  const rowTable = constants.length * 16
  const columnsAt = rowTable + (parts.rowTable === true ? rowTableBytes : 0)
  const outputs = columnsAt + columns.length * 4
  const counts = outputs + (parts.outputs ?? 0) * 4
  const lookupsAt = counts + (parts.counts ?? 0) * 4
  const bytes = (lookupsAt + lookups.length * 8 + 15) & ~15
  return { rowTable, columns: columnsAt, outputs, counts, lookups: lookupsAt, bytes }
}

/** Loads the block's contents into locals, in the head of a function whose parameter `block` is its address. */
export function environmentOf(
  f: FunctionBuilder,
  block: Local,
  { columns, constants, lookups }: Parameters,
  layout: BlockLayout,
): Environment {
  return f.hoist(() => ({
    f,
    columns,
    constants: constants.map((_, index) => f.load('v128.load', block, index * 16)),
    pointers: columns.map((_, index) => f.load('i32.load', block, layout.columns + index * 4)),
    lookups: lookups.map((_, index) => ({
      table: f.load('i32.load', block, layout.lookups + index * 8),
      last: f.apply('i32x4.splat', f.load('i32.load', block, layout.lookups + index * 8 + 4)),
    })),
  }))
}

/** Writes the part of the block that is constant for a query. */
export function writeConstants(
  memory: SharedMemory,
  block: number,
  constants: readonly Uint8Array[],
  rowTable: number | null,
): void {
  constants.forEach((bytes, index) => {
    memory.u8.set(bytes, block + index * 16)
  })
  if (rowTable !== null) writeRowTable(memory, block + rowTable)
}

function writeRowTable({ u32 }: SharedMemory, address: number): void {
  for (let set = 0; set < 16; set++) {
    let next = (address >>> 2) + set * 4
    for (let lane = 0; lane < 4; lane++) if ((set & (1 << lane)) !== 0) u32[next++] = lane
  }
}
