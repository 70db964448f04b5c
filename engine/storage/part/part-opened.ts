// Opens a part (Parquet file): loads its index into memory and derives what readers need from it (time ranges of pages,
// counts of NULL, types). Also checks that the file's identity is that in the manifest (the list of all tables' files).

import { CorruptionError } from '../../base/errors.js'
import type { Files } from '../../base/files.js'
import { rangeKinds } from '../../kernels/parquet.js'
import { type ChunkKey, chunkKey } from '../cache/chunk-key.js'
import { type DetachedPart, isRemoteOnly, localFileOf, type PartDescriptor } from '../schema/schema.js'
import type { ColumnMapping } from './parquet-types.js'
import type { PageStatistics, PartHandle } from './part-access.js'
import { boundsAt, nullsAt, type PartColumn, type PartIndex, readPartIndex, sumAt } from './part-index.js'
import { readRemoteIndex } from './remote-file.js'
import type { Sidecar } from './sidecar.js'

/** Facts about a part that are both in the manifest and in its file. */
export type NamedPart = Pick<PartDescriptor | DetachedPart, 'id' | 'rows' | 'minTs' | 'maxTs'>

interface SymbolUse {
  /** By page: how often rows were requested by symbol, up to a limit. */
  readonly requested: Uint8Array
  /** The largest id among the part's symbols; null if not yet determined. */
  idMax: number | null
}

/** All parts are of one class, so that V8 keeps one object shape on the hot path of finding pages. */
export class OpenedPart implements PartHandle {
  readonly descriptor: PartDescriptor
  readonly path: string
  readonly index: PartIndex
  /** Null: the part's file is on this disk. */
  readonly sidecar: Sidecar | null
  readonly mappings = new Map<number, ColumnMapping>()
  readonly rows: number
  readonly pageCount: number
  readonly firstRows: Uint32Array
  readonly minTs: BigInt64Array
  readonly maxTs: BigInt64Array
  readonly #first: ChunkKey
  readonly #nulls = new Map<PartColumn, number>()
  readonly #symbolUses = new Map<number, SymbolUse>()

  constructor(descriptor: PartDescriptor, path: string, { index, sidecar }: ReadIndex, timestampId: number) {
    const timestamps = index.columns.get(timestampId)
    this.descriptor = descriptor
    this.path = path
    this.index = index
    this.sidecar = sidecar
    this.rows = index.metadata.rows
    this.pageCount = index.firstRows.length - 1
    this.firstRows = index.firstRows
    this.minTs = new BigInt64Array(timestamps === undefined ? 0 : this.pageCount)
    this.maxTs = new BigInt64Array(timestamps === undefined ? 0 : this.pageCount)
    this.#first = chunkKey(descriptor.id, 0, 0)
    for (let page = 0; page < this.pageCount && timestamps !== undefined; page++) {
      const bounds = boundsAt(timestamps, page, rangeKinds.i64)
      this.minTs[page] = BigInt(bounds?.min ?? 0)
      this.maxTs[page] = BigInt(bounds?.max ?? 0)
    }
  }

  /** Number of NULLs of a column in all pages. */
  nulls(column: PartColumn): number {
    let sum = this.#nulls.get(column)
    if (sum !== undefined) return sum
    sum = 0
    for (let page = 0; page < this.pageCount; page++) sum += nullsAt(column, page)
    this.#nulls.set(column, sum)
    return sum
  }

  /** Statistics on requests of a column's rows by symbol. */
  symbolUse({ metadata }: PartColumn): SymbolUse {
    let use = this.#symbolUses.get(metadata.id)
    if (use === undefined) {
      use = { requested: new Uint8Array(this.pageCount), idMax: null }
      this.#symbolUses.set(metadata.id, use)
    }
    return use
  }

  chunk({ metadata }: PartColumn, page: number): ChunkKey {
    return this.pageKey(metadata.id, page)
  }

  pageKey(columnId: number, page: number): ChunkKey {
    const { partLow, partHigh } = this.#first
    return { partLow, partHigh, columnId, page }
  }
}

/** Reads the part's index. Throws CorruptionError, also if the file is another part than the manifest names. */
export function openPart(files: Files, directory: string, descriptor: PartDescriptor, timestampId: number): OpenedPart {
  const path = `${directory}/${localFileOf(descriptor)}`
  const read = isRemoteOnly(descriptor)
    ? readRemoteIndex(files, path)
    : { index: readPartIndex(files, path), sidecar: null }
  checkIdentity(path, read.index, descriptor)
  return new OpenedPart(descriptor, path, read, timestampId)
}

interface ReadIndex {
  readonly index: PartIndex
  readonly sidecar: Sidecar | null
}

/**
 * Throws if the file is not the part that the manifest names. Such a file has valid checksums: it may have been
 * exchanged with another, or be an older state of its folder.
 */
export function checkIdentity(path: string, index: PartIndex, named: NamedPart): void {
  const { metadata } = index
  const bounds = boundsOf(index)
  const differs =
    (metadata.partId !== named.id && `id=${metadata.partId}, named=${named.id}`) ||
    (metadata.rows !== named.rows && `rows=${metadata.rows}, named=${named.rows}`) ||
    (bounds !== undefined &&
      (bounds.min !== BigInt(named.minTs) || bounds.max !== BigInt(named.maxTs)) &&
      `bounds=${bounds.min} to ${bounds.max}, named=${named.minTs} to ${named.maxTs}`)
  if (differs !== false)
    throw new CorruptionError(`a part is not the one that the manifest names [${differs}]`, path, 0)
}

/** The descriptor of a part as the manifest would have it, from its file. */
export function descriptorOf(index: PartIndex, file: string, bytes: number): PartDescriptor {
  const { partId: id, partition, rows, minTxn, maxTxn } = index.metadata
  const columns = [...index.columns.values()]
  const columnIds = columns.map(({ metadata }) => metadata.id)
  const pages = index.firstRows.length - 1
  const hasNull = (column: PartColumn): boolean =>
    Array.from({ length: pages }, (_, page) => nullsAt(column, page)).some((nulls) => nulls > 0)
  const nullSymbolIds = columns
    .filter((column) => column.metadata.type.name === 'SYMBOL' && hasNull(column))
    .map(({ metadata }) => metadata.id)
  const { min: minTs, max: maxTs } = boundsOf(index) ?? { min: 0n, max: 0n }
  const part = { id, file, partition, rows, bytes, minTs, maxTs, minTxn, maxTxn, columnIds }
  return nullSymbolIds.length === 0 ? part : { ...part, nullSymbolIds }
}

/** Range of the designated timestamp; undefined if the part was written without one. */
function boundsOf({ columns, metadata, firstRows }: PartIndex): { min: bigint; max: bigint } | undefined {
  const timestamps = columns.get(metadata.timestampId)
  const last = firstRows.length - 2
  if (timestamps === undefined || last < 0) return undefined
  const [first, end] = [boundsAt(timestamps, 0, rangeKinds.i64), boundsAt(timestamps, last, rangeKinds.i64)]
  return first === undefined || end === undefined ? undefined : { min: BigInt(first.min), max: BigInt(end.max) }
}

/** Page statistics that are decoded on access, because most callers need only one of them. */
export class StoredPageStatistics implements PageStatistics {
  readonly #column: PartColumn
  readonly #page: number
  readonly #range: number

  constructor(column: PartColumn, page: number, range: number) {
    this.#column = column
    this.#page = page
    this.#range = range
  }

  get nulls(): number {
    return nullsAt(this.#column, this.#page)
  }

  get sum(): PageStatistics['sum'] {
    return sumAt(this.#column, this.#page, this.#range)
  }

  get bounds(): PageStatistics['bounds'] {
    return this.#range < 0 ? undefined : boundsAt(this.#column, this.#page, this.#range)
  }
}
