// Helpers for tests of parts (Parquet files): tables in shared memory with columns of every type and boundary values,
// as a RowSource, the input of the part writer.

import { type Files, nodeFiles } from '../../../engine/base/files.js'
import { loadKernels } from '../../../engine/kernels/load.js'
import { createAllocator, initializeHeap } from '../../../engine/memory/allocator.js'
import { type Allocator, budgets } from '../../../engine/memory/budgets.js'
import { createSharedMemory, type SharedMemory } from '../../../engine/memory/shared-memory.js'
import { ChunkCache } from '../../../engine/storage/cache/chunk-cache.js'
import { createChunkCache } from '../../../engine/storage/cache/chunk-slots.js'
import type { PageCodec } from '../../../engine/storage/part/parquet-codec.js'
import type { PartAccess } from '../../../engine/storage/part/part-access.js'
import { createPartAccess } from '../../../engine/storage/part/part-reader.js'
import { Scratch } from '../../../engine/storage/part/part-scratch.js'
import type { PartTools, RowSource } from '../../../engine/storage/part/part-writer.js'
import type { ColumnSchema, TableSchema, TableVersion } from '../../../engine/storage/schema/schema.js'
import { type DataType, dataType, widthOf } from '../../../engine/types/column-types.js'
import { referenceKernels } from '../../reference/kernels.js'

const MIB = 1024 * 1024

export interface Bench {
  readonly memory: SharedMemory
  readonly allocator: Allocator
  readonly tools: PartTools
  readonly cacheAddress: number
  readonly access: PartAccess
}

export interface BenchOptions {
  readonly useReference?: boolean
  readonly codec?: PageCodec
  readonly cacheMiB?: number
  readonly memoryMiB?: number
  readonly files?: Files
}

/** Everything that parts need, over a fresh memory. */
export function bench(directory: string, options: BenchOptions = {}): Bench {
  const { useReference = false, codec = 'lz4_raw', cacheMiB = 64, memoryMiB = 512, files = nodeFiles() } = options
  const memory = createSharedMemory(memoryMiB * MIB)
  const rest = memoryMiB * MIB
  initializeHeap(memory, { limits: [rest, rest, cacheMiB * MIB, rest, 64 * MIB] })
  const allocator = createAllocator(memory, 0)
  const kernels = useReference ? referenceKernels(memory) : loadKernels(memory)
  const kernel = kernels.parquet
  const scratch = new Scratch(memory, allocator, budgets.flush)
  const cacheAddress = createChunkCache(memory, allocator, cacheMiB * MIB)
  const cache = new ChunkCache(memory, allocator, cacheAddress, 0)
  const access = createPartAccess({ files, directory, memory, allocator, kernels, cache })
  return { memory, allocator, cacheAddress, access, tools: { files, kernel, scratch, directory, codec, group: null } }
}

export const everyType: readonly DataType[] = [
  ...(['BOOLEAN', 'BYTE', 'SHORT', 'CHAR', 'INT', 'LONG', 'DATE', 'TIMESTAMP', 'TIMESTAMP_NS'] as const),
  ...(['FLOAT', 'DOUBLE', 'STRING', 'VARCHAR', 'SYMBOL', 'LONG256', 'UUID', 'IPv4', 'BINARY'] as const),
]
  .map((name) => dataType(name))
  .concat([5, 7, 8, 15, 16, 31, 32, 60].map((bits) => dataType('GEOHASH', bits)))
  .concat([dataType('ARRAY', 1), dataType('ARRAY', 3)])
  .concat([dataType('DECIMAL', 9, 2), dataType('DECIMAL', 18), dataType('DECIMAL', 38, 10), dataType('DECIMAL', 76, 3)])

export function schemaOf(types: readonly DataType[], rest: Partial<TableSchema> = {}): TableSchema {
  const columns = types.map((type, id): ColumnSchema => ({ id, name: `c${id}`, type, dropped: false }))
  return {
    ...{ id: 1, name: 't', version: 1, columns, timestampId: -1, partitionBy: 'NONE', bypassWal: false },
    ...{ dedupKeys: [], ttl: null, maxUncommittedRows: 1, o3MaxLagMicros: 0, createdMicros: 0 },
    ...rest,
  }
}

export function versionOf(schema: TableSchema): TableVersion {
  return { version: 1, schema, parts: [], memtables: [], dictionaries: [] }
}

/** xorshift, so that a printed seed repeats a failure. */
export function random(seed: number): () => number {
  let state = seed | 0 || 1
  return () => {
    state ^= state << 13
    state ^= state >>> 17
    state ^= state << 5
    return (state >>> 0) / 2 ** 32
  }
}

/** A column's values in memory layout: width bytes each, or texts. null is the type's NULL. */
export type Cell = Uint8Array | null

/** A value of the type: NULL, a bound, one of few, or anything. `variety`: 0 = one value, 1 = anything. */
export function randomCell(type: DataType, next: () => number, variety: number): Cell {
  if (next() < 0.1) return null
  if (type.name === 'SYMBOL') return u32(Math.floor(next() * (1 + variety * 500)))
  if (isText(type)) return randomText(type, next, variety)
  const width = widthOf(type)
  const cell = new Uint8Array(width)
  const roll = next()
  if (type.name === 'BOOLEAN') return cell.fill(next() < 0.5 ? 0 : 1)
  if (roll < 0.05) return cell
  if (roll < 0.1) return notNull(type, cell.fill(255))
  if (roll < 0.15) {
    cell.fill(255)[width - 1] = 0x7f
    return notNull(type, cell)
  }
  const bytes = Math.max(1, Math.ceil(width * variety))
  for (let i = 0; i < bytes; i++) cell[i] = Math.floor(next() * (1 + variety * 255))
  return notNull(type, cell)
}

function u32(value: number): Uint8Array {
  return new Uint8Array(Uint32Array.of(value).buffer)
}

function isText(type: DataType): boolean {
  return ['STRING', 'VARCHAR', 'BINARY', 'ARRAY'].includes(type.name)
}

function randomText(type: DataType, next: () => number, variety: number): Uint8Array {
  if (type.name === 'ARRAY') {
    const shape = Array.from({ length: type.a }, () => Math.floor(next() * 4))
    const count = shape.reduce((product, length) => product * length, 1)
    const head = Math.ceil((4 + shape.length * 4) / 8) * 8
    const bytes = new Uint8Array(head + count * 8)
    new Uint32Array(bytes.buffer, 0, head / 4).set([shape.length, ...shape])
    new Float64Array(bytes.buffer, head).forEach((_, i, all) => {
      all[i] = next() < 0.1 ? Number.NaN : next() * 100
    })
    return bytes
  }
  if (type.name === 'BINARY')
    return Uint8Array.from({ length: Math.floor(next() * 40) }, () => Math.floor(next() * 256))
  const words = ['', 'a', 'usa-west-1', 'Größe', '日本語', 'x'.repeat(15), 'y'.repeat(16), 'z'.repeat(17)]
  const word = words[Math.floor(next() * words.length)] as string
  return new TextEncoder().encode(variety < 0.5 ? word : word + Math.floor(next() * 1e6))
}

/** NULL as the type has it in memory. */
function nullBytes(type: DataType): Uint8Array {
  const width = widthOf(type)
  const cell = new Uint8Array(width)
  if (['BOOLEAN', 'BYTE', 'SHORT', 'CHAR', 'IPv4'].includes(type.name)) return cell
  if (type.name === 'FLOAT') return cell.fill(0xc0, 2, 3).fill(0x7f, 3, 4)
  if (type.name === 'DOUBLE') return cell.fill(0xf8, 6, 7).fill(0x7f, 7, 8)
  if (type.name === 'SYMBOL' || type.name === 'GEOHASH') return cell.fill(255)
  if (type.name === 'UUID' || type.name === 'LONG256') {
    for (let i = 7; i < width; i += 8) cell[i] = 0x80
    return cell
  }
  cell[width - 1] = 0x80
  return cell
}

/** Replaces NaN by a number: all of them are NULL. */
function notNull(type: DataType, cell: Uint8Array): Uint8Array {
  if (type.name === 'FLOAT' && Number.isNaN(new Float32Array(cell.slice().buffer)[0])) cell[3] = 0x3f
  if (type.name === 'DOUBLE' && Number.isNaN(new Float64Array(cell.slice().buffer)[0])) cell[7] = 0x3f
  return cell
}

/** Writes cells as a column; answers its address. */
export function storeColumn(
  memory: SharedMemory,
  allocator: Allocator,
  type: DataType,
  cells: readonly Cell[],
): number {
  const width = widthOf(type)
  const address = allocator.allocateOrThrow(cells.length * width + 128, budgets.queries)
  if (!isText(type)) {
    cells.forEach((cell, i) => {
      memory.u8.set(cell ?? nullBytes(type), address + i * width)
    })
    return address
  }
  const bytes = cells.reduce((sum, cell) => sum + (cell?.length ?? 0), 0)
  let at = allocator.allocateOrThrow(bytes + 128, budgets.queries)
  cells.forEach((cell, i) => {
    memory.u32[(address + i * 8) >>> 2] = cell === null ? 0 : at
    memory.i32[(address + i * 8 + 4) >>> 2] = cell === null ? -1 : cell.length
    if (cell === null) return
    memory.u8.set(cell, at)
    at += cell.length
  })
  return address
}

/** Cells of decoded values, as hex, so that a mismatch is readable. */
export function cellsAt(memory: SharedMemory, type: DataType, address: number, rows: number): string[] {
  const width = widthOf(type)
  const out: string[] = []
  for (let i = 0; i < rows; i++) {
    if (address === 0) out.push('null')
    else if (!isText(type)) out.push(hexOf(memory.u8.slice(address + i * width, address + (i + 1) * width)))
    else {
      const length = memory.i32[(address + i * 8 + 4) >>> 2]!
      const at = memory.u32[(address + i * 8) >>> 2]!
      out.push(length === -1 ? 'null' : hexOf(memory.u8.slice(at, at + length)))
    }
  }
  return out
}

export function hexOfCell(type: DataType, cell: Cell): string {
  if (cell === null) return isText(type) ? 'null' : hexOf(nullBytes(type))
  return hexOf(cell)
}

function hexOf(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('hex')
}

/** Columns of cells as the rows of a part. A symbol's text is `s<id>`. */
export function sourceOf(
  { memory, allocator }: Bench,
  schema: TableSchema,
  columns: readonly (readonly Cell[] | undefined)[],
): RowSource {
  const addresses = schema.columns.map(({ type }, id) => {
    const cells = columns[id]
    return cells === undefined ? 0 : storeColumn(memory, allocator, type, cells)
  })
  return {
    rows: Math.max(...columns.map((cells) => cells?.length ?? 0)),
    has: (id) => addresses[id] !== 0,
    read: ({ id, type }, first) => {
      const address = addresses[id] as number
      return address === 0 ? 0 : address + first * widthOf(type)
    },
    symbol: (_, id) => new TextEncoder().encode(`s${id}`),
  }
}

/** Runs a generator to its end. */
export function drain<T>(steps: Generator<unknown, T>): T {
  for (;;) {
    const { done, value } = steps.next()
    if (done === true) return value
  }
}
