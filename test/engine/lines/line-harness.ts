// Support for the tests of line protocol: a decoder over a small shared memory, which returns the decoded rows as
// plain values.

import { type Kernels, loadKernels } from '../../../engine/kernels/load.js'
import { LineDecoder, type LineRequestOptions } from '../../../engine/lines/decode.js'
import type { LineSettings } from '../../../engine/lines/general.js'
import { createAllocator, initializeHeap } from '../../../engine/memory/allocator.js'
import { dictionaryEntry } from '../../../engine/memory/column-layout.js'
import { createSharedMemory, type SharedMemory } from '../../../engine/memory/shared-memory.js'
import { DictionaryIndexes } from '../../../engine/storage/memtable/dictionary-indexes.js'
import { newTableDefaults, WriterCatalog } from '../../../engine/storage/writer/writer-catalog.js'
import type { WriterTable } from '../../../engine/storage/writer/writer-table.js'
import { type DataType, storageOf, widthOf } from '../../../engine/types/column-types.js'

const MIB = 1024 * 1024

export interface LineHarness {
  readonly memory: SharedMemory
  readonly catalog: WriterCatalog
  readonly decoder: LineDecoder
  /** Copies lines to where decode() has them; returns the address. */
  put(bytes: Uint8Array): number
  /** A list: the blocks of one request, each at the place of the one before. */
  decode(text: string | Uint8Array | readonly string[], request?: Partial<LineRequestOptions>): DecodeResult
}

interface DecodeResult {
  readonly error: string | null
  readonly rejects: readonly { line: number; message: string }[]
  readonly rejected: number
  /** By table: rows as {column: value}, timestamps included. */
  readonly tables: Record<string, Record<string, unknown>[]>
}

export function lineHarness(path: 'kernel' | 'general', own: Partial<LineSettings> = {}): LineHarness {
  const memory = createSharedMemory(64 * MIB)
  initializeHeap(memory, { limits: [24 * MIB, 24 * MIB, MIB, MIB, MIB] })
  const allocator = createAllocator(memory, 1)
  const kernels: Kernels = loadKernels(memory)
  const catalog = new WriterCatalog(
    { memory, allocator, symbols: kernels.ilp, kernels, indexes: new DictionaryIndexes(), readSymbols: () => [] },
    1,
  )
  const settings = { createTables: true, createColumns: true, nameReplacement: '', defaults: newTableDefaults, ...own }
  const kernel = path === 'kernel' ? kernels.ilp : undefined
  const decoder = new LineDecoder({ memory, allocator, kernel, catalog, settings })
  const ring = allocator.allocateOrThrow(4 * MIB, 0)
  const put = (bytes: Uint8Array): number => {
    memory.u8.set(bytes, ring)
    return ring
  }
  return {
    memory,
    catalog,
    decoder,
    put,
    decode: (text, request = {}) => {
      decoder.begin({
        atomic: true,
        skipBadLines: false,
        partial: false,
        unitNanos: 1n,
        allNanos: false,
        nowMicros: 1_000_000,
        ...request,
      })
      const blocks = typeof text === 'string' || text instanceof Uint8Array ? [text] : text
      for (const [index, block] of blocks.entries()) {
        if (index > 0) decoder.own()
        const bytes = typeof block === 'string' ? new TextEncoder().encode(block) : block
        put(bytes)
        decoder.block(ring, bytes.length)
      }
      const tables: DecodeResult['tables'] = {}
      for (const target of decoder.result()) {
        // A column may lie in the piece without a value, or not at all: either way its rows are NULL.
        const columns = target.table.schema.columns.filter(({ dropped }) => !dropped)
        for (const chunk of target.chunks) for (const { id } of columns) target.columnFor(chunk, id)
        tables[target.table.schema.name] = target.chunks.flatMap((chunk) =>
          Array.from({ length: chunk.rows }, (_, row) =>
            Object.fromEntries(
              [...chunk.columns.values()]
                .sort((a, b) => a.id - b.id)
                .map((column) => [
                  target.table.columnById(column.id).name,
                  readValue(memory, target.table, column.id, column.type, column.address, row),
                ]),
            ),
          ),
        )
      }
      const { error, rejects, rejected } = decoder
      decoder.release()
      if (error !== null) catalog.undo()
      else catalog.keep()
      const shown = rejects.map(({ line, message }) => ({ line, message }))
      return { error: error?.message ?? null, rejects: shown, rejected, tables }
    },
  }
}

/**
 * The value as JavaScript shows it best: texts as strings, wide values as hexadecimal, NULL as the sentinel or null.
 */
export function readValue(
  memory: SharedMemory,
  table: WriterTable | { dictionary(id: number): { readonly address: number } },
  id: number,
  type: DataType,
  address: number,
  row: number,
): unknown {
  const at = address + row * widthOf(type)
  if (type.name === 'SYMBOL') {
    const symbol = memory.i32[at >>> 2]!
    if (symbol < 0) return null
    const entry = dictionaryEntry(memory, table.dictionary(id).address, symbol) >>> 2
    const text = memory.u32[entry]!
    return new TextDecoder().decode(memory.u8.slice(text, text + memory.u32[entry + 1]!))
  }
  switch (storageOf(type)) {
    case 'i8':
      return memory.i8[at]
    case 'i16':
      return memory.i16[at >>> 1]
    case 'u16':
      return memory.u16[at >>> 1]
    case 'i32':
      return memory.i32[at >>> 2]
    case 'f32':
      return memory.f32[at >>> 2]
    case 'f64':
      return memory.f64[at >>> 3]
    case 'i64':
      return memory.i64[at >>> 3]
    case 'b16':
    case 'b32':
      return Buffer.from(memory.u8.slice(at, at + widthOf(type)).reverse()).toString('hex')
    case 'entry': {
      const bytes = memory.i32[(at >>> 2) + 1]!
      if (bytes < 0) return null
      const start = memory.u32[at >>> 2]!
      const copy = memory.u8.slice(start, start + bytes)
      return type.name === 'ARRAY' || type.name === 'BINARY'
        ? Buffer.from(copy).toString('hex')
        : new TextDecoder().decode(copy)
    }
    default:
      return undefined
  }
}
