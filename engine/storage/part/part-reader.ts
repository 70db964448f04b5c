// The implementation of PartAccess (part-access.ts) for files: opens parts (Parquet files), decodes their pages into
// the chunk cache, pins them there, and returns their addresses. There is one object per thread.

import { assert } from '../../base/assert.js'
import { CorruptionError } from '../../base/errors.js'
import type { Files } from '../../base/files.js'
import type { Kernels } from '../../kernels/load.js'
import { nullKinds } from '../../kernels/parquet.js'
import { type Allocator, budgets } from '../../memory/budgets.js'
import type { SharedMemory } from '../../memory/shared-memory.js'
import {
  type ChunkCost,
  type ChunkLoader,
  codePages,
  dictionaryPage,
  type PageCache,
  packedPages,
} from '../cache/chunk-cache.js'
import type { ChunkKey } from '../cache/chunk-key.js'
import { InvertedIndex } from '../cache/inverted-index.js'
import { keepList, listKey, pinList } from '../cache/newest-lists.js'
import { PageWindows, windowHeaderBytes } from '../cache/page-windows.js'
import { isRemoteOnly, type PartDescriptor, type TableVersion } from '../schema/schema.js'
import { PageKeys } from './page-keys.js'
import { pageCodecs } from './parquet-codec.js'
import { type ColumnMapping, encodings, mappingOf } from './parquet-types.js'
import type { DictionaryPage, PageStatistics, PartAccess, PartHandle } from './part-access.js'
import {
  type DecodedDictionary,
  type DecodeTools,
  damaged,
  decodedBytes,
  decodePage,
  isAsInMemory,
  isPickable,
  type PageInFile,
  packedValues,
  type RawPage,
  readBody,
  readPage,
} from './part-decode.js'
import { dictionaryHeaderBytes, loadDictionary, loadSymbolIds } from './part-entries.js'
import { PartFiles } from './part-files.js'
import { nullsAt, type PartColumn, pageAt } from './part-index.js'
import { type OpenedPart, openPart, StoredPageStatistics } from './part-opened.js'
import { Scratch } from './part-scratch.js'
import { type StoredOptions, type StoredPage, storedPage } from './part-stored.js'
import type { RemoteBlocks } from './remote-blocks.js'
import { isSidecar, RemotePartFile } from './remote-file.js'
import { pagesReady, partReady } from './remote-reads.js'

export interface PartAccessOptions {
  readonly files: Files
  /** The database directory. */
  readonly directory: string
  readonly memory: SharedMemory
  readonly allocator: Allocator
  readonly kernels: Pick<Kernels, 'parquet' | 'sort' | 'foreign'>
  readonly cache: PageCache
  /** If absent, parts that are only in the object store can be opened, but not read. */
  readonly remote?: RemoteBlocks
}

/** Maximum number of open parts that a thread caches. */
const handlesMax = 4096

export function createPartAccess(options: PartAccessOptions): PartAccess {
  return new PartReader(options)
}

class PartReader implements PartAccess {
  readonly keys: PartAccess['keys']
  private readonly files: Files
  private readonly directory: string
  private readonly memory: SharedMemory
  private readonly cache: PartAccessOptions['cache']
  private readonly tools: DecodeTools
  private readonly lists: Pick<PartAccessOptions, 'memory' | 'allocator' | 'cache'>
  private readonly invertedIndex: InvertedIndex
  private readonly windows: PageWindows
  private readonly partFiles: PartFiles
  /** By part id; that of the sidecar is negative, as both may be in use while a part's file is being dropped. */
  private readonly handles = new Map<number, OpenedPart>()
  private readonly remote: RemoteBlocks | null

  constructor({ files, directory, memory, allocator, kernels, cache, remote }: PartAccessOptions) {
    this.files = files
    this.remote = remote ?? null
    this.directory = directory
    this.memory = memory
    this.cache = cache
    const pageKeys = new PageKeys(memory, cache, (path, read) => this.partFiles.with(path, read))
    this.keys = (part, page) => pageKeys.of(part, page)
    this.lists = { memory, allocator, cache }
    // Work buffers are allocated from the cache's budget, so allocating them evicts chunks.
    const evicting: Allocator = { ...allocator, allocateOrThrow: (bytes) => cache.reserve(bytes) }
    this.windows = new PageWindows(evicting)
    this.partFiles = new PartFiles((path) =>
      isSidecar(path) ? new RemotePartFile(files, path, this.remote) : files.open(path, 'read'),
    )
    this.tools = { kernels, kernel: kernels.parquet, scratch: new Scratch(memory, evicting, budgets.cache) }
    this.invertedIndex = new InvertedIndex({
      memory,
      cache,
      sort: kernels.sort,
      parts: this,
      ids: this.symbolIds.bind(this),
    })
  }

  open(part: PartDescriptor, version: TableVersion): PartHandle {
    const key = isRemoteOnly(part) ? -part.id : part.id
    let opened = this.handles.get(key)
    if (opened === undefined) {
      opened = openPart(this.files, this.directory, part, version.schema.timestampId)
      if (this.handles.size >= handlesMax) this.forget([Math.abs(this.handles.keys().next().value as number)])
      assert(this.handles.size < handlesMax, 'F4: a thread remembers few parts')
      this.handles.set(key, opened)
    }
    for (const column of version.schema.columns) {
      if (!opened.mappings.has(column.id) && opened.index.columns.has(column.id)) {
        opened.mappings.set(column.id, mappingOf(column.type))
      }
    }
    return opened
  }

  ready(part: PartHandle, columnIds: readonly number[], page: number): boolean {
    return this.remote === null || pagesReady(this.remote, part, columnIds, page)
  }

  readyWhole(part: PartHandle): boolean {
    return this.remote === null || partReady(this.remote, part)
  }

  pin(opened: OpenedPart, columnId: number, page: number): number {
    const column = opened.index.columns.get(columnId)
    if (column === undefined) return 0
    assert(page >= 0, 'F2: pages count from 0')
    assert(page < opened.pageCount, 'F2: a page of the part is read')
    const key = opened.chunk(column, page)
    const load: ChunkLoader['load'] = (room) => this.load(opened, column, columnId, page, room)
    const past = this.cache.isFull ? this.pinPast(opened, column, key, load) : 0
    return past === 0 ? this.cache.pin(key, { load }) : past
  }

  unpin(address: number): void {
    if (address !== 0 && !this.windows.give(address)) this.cache.unpin(address)
  }

  /**
   * When the cache is full, reads an uncompressed page of fixed-width values into one of the thread's own buffers
   * instead of evicting other pages. Returns 0 if the page must be pinned in the cache.
   */
  private pinPast(opened: OpenedPart, column: PartColumn, key: ChunkKey, load: ChunkLoader['load']): number {
    const mapping = opened.mappings.get(key.columnId)
    if (mapping === undefined || mapping.conversion === 'text' || column.metadata.codec !== pageCodecs.none) return 0
    const bytes = rowsOf(opened, key.page) * mapping.memoryBytes
    const cached = this.cache.pinReady(key)
    if (cached !== 0) this.cache.wanted(bytes)
    if (cached !== 0 || !this.cache.passes(key, bytes)) return cached
    const target = this.windows.take(bytes + 64)
    if (target === 0) return 0
    try {
      load(() => target)
    } catch (error) {
      this.windows.give(target)
      throw error
    }
    return target
  }

  /** `room` returns an address before which 64 bytes are writable. */
  private load(
    opened: OpenedPart,
    column: PartColumn,
    columnId: number,
    page: number,
    room: (bytes: number) => number,
  ): { needs: number; cost: ChunkCost } {
    const mapping = opened.mappings.get(columnId)
    if (mapping === undefined || !isAsInMemory(column, mapping, page)) {
      return this.loadPage(opened, column, columnId, page, room)
    }
    const bytes = rowsOf(opened, page) * mapping.memoryBytes
    this.withPage(opened, column, page, (place) => {
      const levels = place.bytes - bytes
      if (levels < 0 || levels > windowHeaderBytes) throw damaged(place, 'the values of a page are unreadable')
      readBody(this.tools, place, room(bytes) - levels)
    })
    return { needs: 0, cost: 'read' }
  }

  pinPacked(opened: OpenedPart, columnId: number, page: number): number {
    const column = opened.index.columns.get(columnId)
    const mapping = opened.mappings.get(columnId)
    if (column === undefined || mapping === undefined || !isPickable(mapping)) return 0
    if (column.metadata.dictionary === null || (mapping.optional && nullsAt(column, page) > 0)) return 0
    const key = opened.chunk(column, page + packedPages)
    const ready = this.cache.pinReady(key)
    if (ready !== 0 || this.cache.has(opened.chunk(column, page))) return ready
    const load = (room: (bytes: number) => number) => this.loadPacked(opened, column, columnId, page, room)
    return this.cache.pin(key, { load })
  }

  pick(packed: number, index: number, first: number, count: number, target: number): void {
    const { u32 } = this.memory
    const word = packed >>> 2
    const dictionary = u32[word + 3]!
    const done = this.tools.kernel.pickIndexed(
      packed + packedHeaderBytes,
      u32[word + 2]!,
      u32[word]!,
      u32[word + 1]!,
      dictionary + dictionaryHeaderBytes,
      u32[dictionary >>> 2]!,
      u32[word + 4]!,
      index,
      first,
      count,
      target,
    )
    if (done !== 0)
      throw new CorruptionError('the values of a page are unreadable', 'a page in the chunk cache', packed)
  }

  symbolRows(
    opened: OpenedPart,
    columnId: number,
    page: number,
    ids: readonly number[],
    from: number,
    rows: number,
    out: number,
  ): number {
    const column = opened.index.columns.get(columnId)
    return column === undefined ? -1 : this.invertedIndex.select(opened, column, page, ids, from, rows, out)
  }

  pinCodes(opened: OpenedPart, columnId: number, page: number): DictionaryPage | undefined {
    const column = opened.index.columns.get(columnId)
    const mapping = opened.mappings.get(columnId)
    if (column === undefined || mapping?.conversion !== 'text' || column.metadata.dictionary === null) return undefined
    const key = opened.chunk(column, page + codePages)
    const data = this.cache.pin(key, { load: (room) => this.loadCodes(opened, column, columnId, page, room) })
    const { u32 } = this.memory
    const dictionary = u32[data >>> 2]!
    const entries = dictionary + dictionaryHeaderBytes - 8
    return { data, codes: data + packedHeaderBytes, entries, count: u32[dictionary >>> 2]! + 1 }
  }

  unpack(opened: OpenedPart, columnId: number, page: number, target: number, width: 1 | 4): boolean {
    const mapping = opened.mappings.get(columnId)
    const entries = opened.index.columns.get(columnId)?.metadata.dictionary?.count ?? 0
    if (mapping?.memoryBytes !== 4 || entries === 0 || entries > unpackedEntriesMax) return false
    const packed = this.pinPacked(opened, columnId, page)
    if (packed === 0) return false
    const { u32 } = this.memory
    const word = packed >>> 2
    const [rows, bits, bytes, dictionary] = [u32[word], u32[word + 1], u32[word + 2], u32[word + 3]] as Packed
    let values = dictionary + dictionaryHeaderBytes
    const count = u32[dictionary >>> 2]!
    const { kernel, scratch } = this.tools
    if (width === 1) {
      const lowest = scratch.room('lowest bytes', unpackedEntriesMax)
      kernel.narrow(values, count, 1, lowest)
      values = lowest
    }
    const done = kernel.decodeIndexed(packed + packedHeaderBytes, bytes, rows, bits, values, count, width, target)
    this.cache.unpin(packed)
    if (done !== 0) {
      throw new CorruptionError('the values of a page are unreadable', 'a page in the chunk cache', packed)
    }
    return true
  }

  decode(opened: OpenedPart, columnId: number, page: number, room: (bytes: number) => number): boolean {
    const column = opened.index.columns.get(columnId)
    const dictionaryEntries = column?.metadata.dictionary && opened.mappings.get(columnId)?.conversion === 'text'
    if (column === undefined || dictionaryEntries) return false
    if (this.cache.has(opened.chunk(column, page))) return false
    this.loadPage(opened, column, columnId, page, room)
    return true
  }

  statistics(opened: OpenedPart, columnId: number, page: number): PageStatistics | undefined {
    const column = opened.index.columns.get(columnId)
    const mapping = opened.mappings.get(columnId)
    if (column === undefined || mapping === undefined) return undefined
    return new StoredPageStatistics(column, page, mapping.range)
  }

  nulls(opened: OpenedPart, columnId: number): number | undefined {
    const column = opened.index.columns.get(columnId)
    return column === undefined ? undefined : opened.nulls(column)
  }

  mayHold(opened: OpenedPart, columnId: number, ids: readonly number[]): boolean {
    const column = opened.index.columns.get(columnId)
    if (column === undefined) return false
    const mapping = opened.mappings.get(columnId)
    if (mapping?.conversion !== 'symbol') return true
    let found = false
    this.symbolIds(opened, column, (held) => {
      found = ids.some((id) => held.includes(id))
    })
    return found
  }

  symbols(opened: OpenedPart, columnId: number): Int32Array | undefined {
    const column = opened.index.columns.get(columnId)
    if (column === undefined) return new Int32Array(0)
    let ids: Int32Array | undefined
    if (opened.mappings.get(columnId)?.conversion === 'symbol') {
      this.symbolIds(opened, column, (held) => {
        ids = held.slice()
      })
    }
    return ids
  }

  pinNewest(opened: OpenedPart, columnId: number): number {
    return pinList(this.lists, listKey(opened.pageKey(columnId, 0)))
  }

  keepNewest(opened: OpenedPart, columnId: number, list: number, bytes: number): void {
    keepList(this.lists, listKey(opened.pageKey(columnId, 0)), list, bytes)
  }

  /** Calls `use` with the part's symbols as ids of the table's dictionary. */
  private symbolIds(opened: OpenedPart, column: PartColumn, use: (ids: Int32Array) => void): void {
    const mapping = opened.mappings.get(column.metadata.id) as ColumnMapping
    const { data, decoded } = this.pinDictionary(opened, column, mapping)
    const first = decoded.address >>> 2
    use(this.memory.i32.subarray(first, first + decoded.count))
    this.cache.unpin(data)
  }

  stored(opened: OpenedPart, columnId: number, page: number): StoredPage | undefined {
    const column = opened.index.columns.get(columnId)
    const mapping = opened.mappings.get(columnId)
    if (column === undefined || mapping === undefined) return undefined
    const withFile: StoredOptions['withFile'] = (read) => this.partFiles.with(opened.path, read)
    const dictionary: StoredOptions['dictionary'] = (use) => {
      const { data, decoded } = this.pinDictionary(opened, column, mapping)
      try {
        use(decoded.address, decoded.count)
      } finally {
        this.cache.unpin(data)
      }
    }
    const { tools } = this
    return storedPage({ tools, index: opened.index, column, page, partId: opened.descriptor.id, withFile, dictionary })
  }

  forget(partIds: readonly number[]): void {
    for (const id of partIds) for (const key of [id, -id]) this.handles.delete(key)
  }

  goIdle(): void {
    for (const files of [this.partFiles, this.remote]) files?.closeAll()
  }

  close(): void {
    this.goIdle()
    this.handles.clear()
    this.tools.scratch.release()
    this.windows.release()
  }

  private loadPage(
    opened: OpenedPart,
    column: PartColumn,
    columnId: number,
    page: number,
    room: (bytes: number) => number,
  ): { needs: number; cost: ChunkCost } {
    const mapping = opened.mappings.get(columnId)
    assert(mapping !== undefined, 'F2: a part is opened with a version that knows its columns')
    const hasDictionary = column.metadata.dictionary !== null
    const dictionary = hasDictionary ? this.pinDictionary(opened, column, mapping) : undefined
    const { codec, encoding } = column.metadata
    this.takePage(opened, column, page, dictionary?.data ?? 0, (raw, rows) =>
      decodePage(this.tools, mapping, raw, dictionary?.decoded, rows, room(decodedBytes(mapping, rows, raw))),
    )
    const cost = codec !== pageCodecs.none ? 'decompress' : encoding === encodings.plain ? 'read' : 'decode'
    // The entries point into the dictionary's strings, so it stays pinned as long as the page is cached.
    if (dictionary !== undefined && mapping.conversion === 'text') return { needs: dictionary.data, cost }
    if (dictionary !== undefined) this.cache.unpin(dictionary.data)
    return { needs: 0, cost }
  }

  /**
   * Chunk: {rows, bits, bytes, address of the dictionary's chunk, bytes of a value (u32 each), padded to 64} and the
   * codes.
   */
  private loadPacked(
    opened: OpenedPart,
    column: PartColumn,
    columnId: number,
    page: number,
    room: (bytes: number) => number,
  ): { needs: number; cost: ChunkCost } {
    const mapping = opened.mappings.get(columnId) as ColumnMapping
    const dictionary = this.pinDictionary(opened, column, mapping)
    this.takePage(opened, column, page, dictionary.data, (raw, rows, place) => {
      const values = packedValues(this.tools, mapping, raw, rows)
      if (values === undefined) throw damaged(place, 'a page does not have the encoding that the part index names')
      const data = room(packedHeaderBytes + values.bytes)
      const { u32 } = this.memory
      const width = mapping.diskBytes > 0 ? mapping.diskBytes : mapping.memoryBytes
      u32.set([rows, values.bits, values.bytes, dictionary.data, width], data >>> 2)
      this.memory.copy(data + packedHeaderBytes, values.address, values.address + values.bytes)
    })
    const { codec } = column.metadata
    return { needs: dictionary.data, cost: codec === pageCodecs.none ? 'read' : 'decompress' }
  }

  /** Chunk: {address of the dictionary's chunk u32, padded to 64} and the codes. */
  private loadCodes(
    opened: OpenedPart,
    column: PartColumn,
    columnId: number,
    page: number,
    room: (bytes: number) => number,
  ): { needs: number; cost: ChunkCost } {
    const mapping = opened.mappings.get(columnId) as ColumnMapping
    const { data, decoded } = this.pinDictionary(opened, column, mapping)
    const numbers = { address: decoded.address + decoded.count * 8, count: decoded.count }
    this.takePage(opened, column, page, data, (raw, rows) => {
      const target = room(packedHeaderBytes + rows * 4)
      const codes: ColumnMapping = { ...mapping, conversion: 'none', memoryBytes: 4, nullKind: nullKinds.i32Zero }
      decodePage(this.tools, codes, raw, numbers, rows, target + packedHeaderBytes)
      this.memory.u32[target >>> 2] = data
    })
    const { codec } = column.metadata
    return { needs: data, cost: codec === pageCodecs.none ? 'decode' : 'decompress' }
  }

  /** Reads a page and calls `take`. If that fails, releases the pin `pinned` (0: none). */
  private takePage(
    opened: OpenedPart,
    column: PartColumn,
    page: number,
    pinned: number,
    take: (raw: RawPage, rows: number, place: PageInFile) => void,
  ): void {
    try {
      const rows = rowsOf(opened, page)
      this.withPage(opened, column, page, (place) => take(readPage(this.tools, place), rows, place))
    } catch (error) {
      if (pinned !== 0) this.cache.unpin(pinned)
      throw error
    }
  }

  /** Calls `read` with the page in its open file. The checksum is verified at the first read and from time to time. */
  private withPage(opened: OpenedPart, column: PartColumn, page: number, read: (place: PageInFile) => void): void {
    const { codec, encoding } = column.metadata
    const { checks } = this.cache
    const key = opened.chunk(column, page)
    this.partFiles.with(opened.path, (file) => {
      const isDue = checks.isDue(key)
      const { offset, headerBytes, bytes, rawBytes, crc } = pageAt(column, page)
      read({ offset, headerBytes, bytes, rawBytes, crc, file, codec, encoding, isChecked: !isDue })
      if (isDue) checks.remember(key)
    })
  }

  /** Pins the column's dictionary, which part-entries.ts loads. */
  private pinDictionary(
    opened: OpenedPart,
    column: PartColumn,
    mapping: ColumnMapping,
  ): { data: number; decoded: DecodedDictionary } {
    const key = opened.chunk(column, dictionaryPage)
    const data = this.cache.pin(key, {
      load: (room) => {
        this.partFiles.with(opened.path, (file) => {
          if (mapping.conversion === 'symbol') loadSymbolIds(this.memory, file, column, room)
          else loadDictionary(this.tools, file, column, mapping, room)
        })
        return { needs: 0, cost: 'decompress' }
      },
    })
    return { data, decoded: { address: data + dictionaryHeaderBytes, count: this.memory.u32[data >>> 2]! } }
  }
}

type Packed = [rows: number, bits: number, bytes: number, dictionary: number]

/** With at most this many entries, decoding is about as fast as reading decoded values from memory. */
const unpackedEntriesMax = 256
const packedHeaderBytes = 64

function rowsOf({ firstRows }: OpenedPart, page: number): number {
  assert(page >= 0, 'F2: pages count from 0')
  assert(page + 1 < firstRows.length, 'F2: a page of the part is read')
  return firstRows[page + 1]! - firstRows[page]!
}
