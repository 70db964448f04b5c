// PartAccess over real files: opens parts, decodes pages into the chunk cache, hands out their addresses. One per thread.

import { crc32 } from 'node:zlib'
import { assert } from '../base/assert.js'
import type { File, Files } from '../base/files.js'
import type { ParquetKernel } from '../kernels/parquet.js'
import { rangeKinds } from '../kernels/parquet.js'
import type { Allocator } from '../memory/budgets.js'
import { budgets } from '../memory/budgets.js'
import type { SharedMemory } from '../memory/shared-memory.js'
import { type ChunkCache, dictionaryPage } from './chunk-cache.js'
import { type ColumnMapping, mappingOf } from './parquet-types.js'
import type { PageStatistics, PartAccess, PartHandle } from './part-access.js'
import {
  type DecodedDictionary,
  type DecodeTools,
  damaged,
  decodedBytes,
  decodePage,
  type PagePlace,
  readPage,
} from './part-decode.js'
import { rangeValue } from './part-footer.js'
import { type PartColumn, type PartIndex, readPartIndex } from './part-index.js'
import { Scratch } from './part-scratch.js'
import type { PartDescriptor, TableVersion } from './schema.js'

export interface PartAccessOptions {
  readonly files: Files
  /** The database directory. */
  readonly directory: string
  readonly memory: SharedMemory
  readonly allocator: Allocator
  readonly kernel: ParquetKernel
  readonly cache: ChunkCache
}

/** Opened parts that a thread remembers. */
const handlesMax = 4096

export function createPartAccess(options: PartAccessOptions): PartAccess {
  return new PartReader(options)
}

interface OpenedPart extends PartHandle {
  readonly path: string
  readonly index: PartIndex
  readonly mappings: Map<number, ColumnMapping>
}

class PartReader implements PartAccess {
  private readonly files: Files
  private readonly directory: string
  private readonly memory: SharedMemory
  private readonly cache: ChunkCache
  private readonly tools: DecodeTools
  private readonly handles = new Map<number, OpenedPart>()

  constructor({ files, directory, memory, allocator, kernel, cache }: PartAccessOptions) {
    this.files = files
    this.directory = directory
    this.memory = memory
    this.cache = cache
    // Work buffers count as cache: a decoder evicts chunks for them as for its chunk.
    const evicting: Allocator = { ...allocator, demand: (bytes) => cache.reserve(bytes) }
    this.tools = { kernel, scratch: new Scratch(memory, evicting, budgets.cache) }
  }

  open(part: PartDescriptor, version: TableVersion): PartHandle {
    let opened = this.handles.get(part.id)
    if (opened === undefined) {
      opened = this.openPart(part, version.schema.timestampId)
      if (this.handles.size >= handlesMax) this.forget([this.handles.keys().next().value as number])
      this.handles.set(part.id, opened)
    }
    for (const column of version.schema.columns) {
      if (!opened.mappings.has(column.id) && opened.index.columns.has(column.id)) {
        opened.mappings.set(column.id, mappingOf(column.type))
      }
    }
    return opened
  }

  pin(part: PartHandle, columnId: number, page: number): number {
    const opened = part as OpenedPart
    const column = opened.index.columns.get(columnId)
    if (column === undefined) return 0
    assert(page >= 0 && page < opened.pageCount, 'a page of the part')
    const key = { partId: opened.descriptor.id, columnId, page }
    return this.cache.pin(key, { load: (room) => this.loadPage(opened, column, columnId, page, room) })
  }

  unpin(address: number): void {
    if (address !== 0) this.cache.unpin(address)
  }

  statistics(part: PartHandle, columnId: number, page: number): PageStatistics | undefined {
    const opened = part as OpenedPart
    const bounds = opened.index.columns.get(columnId)?.bounds
    const mapping = opened.mappings.get(columnId)
    if (bounds === undefined || mapping === undefined) return undefined
    const [min, max] = [bounds.min[page], bounds.max[page]]
    const value = (bytes: Buffer | undefined) =>
      bytes === undefined || bytes.length === 0 ? undefined : widenedValue(mapping.range, bytes)
    return { nulls: bounds.nullCounts[page] ?? 0, min: value(min), max: value(max) }
  }

  forget(partIds: readonly number[]): void {
    for (const id of partIds) this.handles.delete(id)
  }

  close(): void {
    this.handles.clear()
    this.tools.scratch.release()
  }

  private openPart(descriptor: PartDescriptor, timestampId: number): OpenedPart {
    const path = `${this.directory}/${descriptor.file}`
    const index = readPartIndex(this.files, path)
    const bounds = index.columns.get(timestampId)?.bounds
    return {
      descriptor,
      path,
      index,
      mappings: new Map(),
      rows: index.rows,
      pageCount: index.firstRows.length - 1,
      firstRows: index.firstRows,
      minTs: BigInt64Array.from(bounds?.min ?? [], (value) => value.readBigInt64LE(0)),
      maxTs: BigInt64Array.from(bounds?.max ?? [], (value) => value.readBigInt64LE(0)),
    }
  }

  private loadPage(
    opened: OpenedPart,
    column: PartColumn,
    columnId: number,
    page: number,
    room: (bytes: number) => number,
  ): { needs: number } {
    const mapping = opened.mappings.get(columnId)
    assert(mapping !== undefined, 'a part is opened with a version that knows its columns')
    const hasDictionary = column.dictionaryOffset !== undefined
    const dictionary = hasDictionary ? this.pinDictionary(opened, column, columnId, mapping) : undefined
    const file = this.files.open(opened.path, 'read')
    try {
      const [offset, bytes] = [column.offsets[page] as number, column.bytes[page] as number]
      const raw = readPage(this.tools, { file, offset, bytes, codec: column.codec })
      const rows = (opened.firstRows[page + 1] as number) - (opened.firstRows[page] as number)
      decodePage(this.tools, mapping, raw, dictionary?.decoded, rows, room(decodedBytes(mapping, rows, raw)))
    } catch (error) {
      if (dictionary !== undefined) this.cache.unpin(dictionary.data)
      throw error
    } finally {
      file.close()
    }
    // Entries point into a dictionary of texts: that stays as long as the page.
    if (dictionary !== undefined && mapping.conversion === 'text') return { needs: dictionary.data }
    if (dictionary !== undefined) this.cache.unpin(dictionary.data)
    return { needs: 0 }
  }

  /** A dictionary's chunk is {count u32, 0 to 64 bytes} and its values. */
  private pinDictionary(
    opened: OpenedPart,
    column: PartColumn,
    columnId: number,
    mapping: ColumnMapping,
  ): { data: number; decoded: DecodedDictionary } {
    const key = { partId: opened.descriptor.id, columnId, page: dictionaryPage }
    const data = this.cache.pin(key, {
      load: (room) => {
        const file = this.files.open(opened.path, 'read')
        try {
          if (mapping.conversion === 'symbol') this.loadSymbolIds(file, column, room)
          else this.loadDictionary(file, column, mapping, room)
        } finally {
          file.close()
        }
        return { needs: 0 }
      },
    })
    return { data, decoded: { address: data + dictionaryHeaderBytes, count: this.memory.u32[data >>> 2] as number } }
  }

  private loadSymbolIds(file: File, column: PartColumn, room: (bytes: number) => number): void {
    const run = column.symbols
    const place: PagePlace = { file, offset: run?.offset ?? 0, bytes: (run?.count ?? 0) * 4, codec: 0 }
    if (run === undefined) throw damaged(place, 'a part names no symbol ids')
    const data = room(dictionaryHeaderBytes + place.bytes)
    const ids = this.memory.u8.subarray(data + dictionaryHeaderBytes, data + dictionaryHeaderBytes + place.bytes)
    const read = file.read(ids, place.offset)
    if (read < place.bytes || crc32(ids) !== run.crc) throw damaged(place, 'the symbol ids of a part are damaged')
    this.memory.u32[data >>> 2] = run.count
  }

  private loadDictionary(
    file: File,
    column: PartColumn,
    mapping: ColumnMapping,
    room: (bytes: number) => number,
  ): void {
    const place = {
      ...{ file, codec: column.codec },
      ...{ offset: column.dictionaryOffset as number, bytes: column.dictionaryBytes },
    }
    const raw = readPage(this.tools, place)
    const count = raw.header.dictionary_page_header?.num_values ?? -1
    const text = mapping.conversion === 'text'
    if (count < 0 || (!text && raw.bytes !== count * mapping.diskBytes)) {
      throw damaged(place, 'a dictionary has another size')
    }
    const valueBytes = text ? count * 8 : 0
    const data = room(dictionaryHeaderBytes + valueBytes + raw.bytes)
    const values = data + dictionaryHeaderBytes
    this.memory.u32[data >>> 2] = count
    this.memory.u8.copyWithin(values + valueBytes, raw.address, raw.address + raw.bytes)
    if (text && this.tools.kernel.plainTextEntries(values + valueBytes, raw.bytes, count, values) !== 0) {
      throw damaged(place, 'a dictionary has texts of other lengths')
    }
  }
}

const dictionaryHeaderBytes = 64

function widenedValue(kind: number, bytes: Buffer): number | bigint {
  assert(kind >= rangeKinds.i32, 'a column with bounds has a range')
  return rangeValue(kind, bytes, 0)
}
