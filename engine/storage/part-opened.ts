// A part whose index was read: where its pages lie, and what is known of them.

import type { Files } from '../base/files.js'
import { rangeKinds } from '../kernels/parquet.js'
import { type ChunkKey, chunkKey } from './chunk-key.js'
import type { ColumnMapping } from './parquet-types.js'
import type { PageStatistics, PartHandle } from './part-access.js'
import { boundsAt, nullsAt, type PartColumn, type PartIndex, readPartIndex, sumAt } from './part-index.js'
import type { PartDescriptor } from './schema.js'

interface SymbolUse {
  /** By page: how often its rows were asked for by symbol, up to 255. */
  readonly asked: Uint8Array
  /** The largest id among the part's symbols; null: nobody has looked. */
  idMax: number | null
}

/** One class: pages are found in no time where all parts are alike to compiled code. */
export class OpenedPart implements PartHandle {
  readonly descriptor: PartDescriptor
  readonly path: string
  readonly index: PartIndex
  readonly mappings = new Map<number, ColumnMapping>()
  readonly rows: number
  readonly pageCount: number
  readonly firstRows: Uint32Array
  readonly minTs: BigInt64Array
  readonly maxTs: BigInt64Array
  readonly #first: ChunkKey
  readonly #nulls = new Map<PartColumn, number>()
  readonly #symbolUses = new Map<number, SymbolUse>()

  constructor(descriptor: PartDescriptor, path: string, index: PartIndex, timestampId: number) {
    const timestamps = index.columns.get(timestampId)
    this.descriptor = descriptor
    this.path = path
    this.index = index
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

  /** NULLs of a column in all pages. */
  nulls(column: PartColumn): number {
    let sum = this.#nulls.get(column)
    if (sum !== undefined) return sum
    sum = 0
    for (let page = 0; page < this.pageCount; page++) sum += nullsAt(column, page)
    this.#nulls.set(column, sum)
    return sum
  }

  /** What is known of a column of symbols whose rows are asked for by symbol. */
  symbolUse({ metadata }: PartColumn): SymbolUse {
    let use = this.#symbolUses.get(metadata.id)
    if (use === undefined) {
      use = { asked: new Uint8Array(this.pageCount), idMax: null }
      this.#symbolUses.set(metadata.id, use)
    }
    return use
  }

  chunk({ metadata }: PartColumn, page: number): ChunkKey {
    const { partLow, partHigh } = this.#first
    return { partLow, partHigh, columnId: metadata.id, page }
  }
}

/** Reads the part's index. Throws CorruptionError. */
export function openPart(files: Files, directory: string, descriptor: PartDescriptor, timestampId: number): OpenedPart {
  const path = `${directory}/${descriptor.file}`
  return new OpenedPart(descriptor, path, readPartIndex(files, path), timestampId)
}

/** Most callers want one or the other. */
export class PageFigures implements PageStatistics {
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
