// A part whose index was read: where its pages lie, and what is known of them.

import type { Files } from '../base/files.js'
import { rangeKinds } from '../kernels/parquet.js'
import type { ColumnMapping } from './parquet-types.js'
import type { PageStatistics, PartHandle } from './part-access.js'
import { boundsAt, nullsAt, type PartColumn, type PartIndex, readPartIndex, sumAt } from './part-index.js'
import type { PartDescriptor } from './schema.js'

export interface OpenedPart extends PartHandle {
  readonly path: string
  readonly index: PartIndex
  readonly mappings: Map<number, ColumnMapping>
  /** NULLs of a column in all pages. */
  nulls(column: PartColumn): number
}

/** Reads the part's index. Throws CorruptionError. */
export function openPart(files: Files, directory: string, descriptor: PartDescriptor, timestampId: number): OpenedPart {
  const path = `${directory}/${descriptor.file}`
  const index = readPartIndex(files, path)
  const pageCount = index.firstRows.length - 1
  const timestamps = index.columns.get(timestampId)
  const [minTs, maxTs] = [new BigInt64Array(pageCount), new BigInt64Array(pageCount)]
  for (let page = 0; page < pageCount && timestamps !== undefined; page++) {
    const bounds = boundsAt(timestamps, page, rangeKinds.i64)
    minTs[page] = BigInt(bounds?.min ?? 0)
    maxTs[page] = BigInt(bounds?.max ?? 0)
  }
  const { rows } = index.metadata
  const known = new Map<PartColumn, number>()
  const nulls = (column: PartColumn): number => {
    let sum = known.get(column)
    if (sum !== undefined) return sum
    sum = 0
    for (let page = 0; page < pageCount; page++) sum += nullsAt(column, page)
    known.set(column, sum)
    return sum
  }
  const mappings = new Map<number, ColumnMapping>()
  const handle = { descriptor, path, index, mappings, nulls, rows, pageCount }
  if (timestamps !== undefined) return { ...handle, firstRows: index.firstRows, minTs, maxTs }
  return { ...handle, firstRows: index.firstRows, minTs: new BigInt64Array(0), maxTs: new BigInt64Array(0) }
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
