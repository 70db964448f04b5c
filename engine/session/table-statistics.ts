// Computes the statistics of a table for SHOW PARTITIONS and similar statements: rows, time bounds and partitions,
// including rows that are still in the memtable. They are computed on request from the descriptions of parts (Parquet
// files) and the headers of memtable blocks. For rows and time bounds, the rows of a memtable block are read only if
// the snapshot sees just some of them, if rows in it have been replaced, or if it has rows of several partitions.
// Whether a symbol column contains NULL is found by reading its codes.

import {
  blockAt,
  blockColumn,
  blockCount,
  blockRows,
  blockTimes,
  dictionaryCount,
  lastWriteMicros,
  supersededRows,
  symbolNull,
  visibleRows,
} from '../memory/column-layout.js'
import type { SharedMemory } from '../memory/shared-memory.js'
import { rememberedWork } from '../memory/storage-work.js'
import { rememberedTransactions } from '../memory/transactions.js'
import type { PartitionStatistics, SchemaChange, TableStatistics } from '../sql/catalog.js'
import { partitionDefault, partitionNamer } from '../storage/schema/partition.js'
import type { TableVersion } from '../storage/schema/schema.js'
import type { CatalogView } from './catalog-view.js'

interface Bounds {
  rows: number
  bytes: number
  minTs: bigint | null
  maxTs: bigint | null
}

export function tableStatistics(memory: SharedMemory, view: CatalogView, tableId: number): TableStatistics {
  const version = view.byId(tableId)
  return version === undefined ? noStatistics : new StatisticsOfTable(memory, view, version)
}

class StatisticsOfTable implements TableStatistics {
  readonly #memory: SharedMemory
  readonly #view: CatalogView
  readonly #version: TableVersion
  #all: Bounds | undefined
  #partitions: PartitionStatistics[] | undefined

  constructor(memory: SharedMemory, view: CatalogView, version: TableVersion) {
    this.#memory = memory
    this.#view = view
    this.#version = version
  }

  get rows(): number {
    return this.#bounds.rows
  }

  get minTs(): bigint | null {
    return this.#bounds.minTs
  }

  get maxTs(): bigint | null {
    return this.#bounds.maxTs
  }

  get lastWriteMicros(): number | null {
    const { memtables } = this.#version
    const micros = Math.max(0, ...memtables.map(({ address }) => lastWriteMicros(this.#memory, address)))
    return micros === 0 ? null : micros
  }

  get visibleTxn(): number {
    return this.#view.visibleTransaction(this.#version)
  }

  get schemaChanges(): readonly SchemaChange[] {
    return this.#view.schemaChanges(this.#version.schema.id)
  }

  get rewrites(): number {
    return this.#version.rewrites ?? 0
  }

  get repeats(): number {
    return (this.#version.repeats ?? 0) + unflushedRepeats(this.#memory, this.#version)
  }

  get storageWork(): TableStatistics['storageWork'] {
    return rememberedWork(this.#memory, this.#version.schema.id)
  }

  get partitions(): readonly PartitionStatistics[] {
    this.#partitions ??= named(partitionsOf(this.#memory, this.#version))
    return this.#partitions
  }

  get symbolCounts(): ReadonlyMap<number, number> {
    const { dictionaries } = this.#version
    return new Map(dictionaries.map(([columnId, address]) => [columnId, dictionaryCount(this.#memory, address)]))
  }

  get nullSymbols(): ReadonlySet<number> {
    return nullSymbolsOf(this.#memory, this.#version)
  }

  get transactions(): TableStatistics['transactions'] {
    return rememberedTransactions(this.#memory, this.#version.schema.id)
  }

  get #bounds(): Bounds {
    this.#all ??= boundsOfAll(this.#memory, this.#version)
    return this.#all
  }
}

const noStatistics: TableStatistics = {
  rows: 0,
  minTs: null,
  maxTs: null,
  lastWriteMicros: null,
  visibleTxn: 0,
  schemaChanges: [],
  rewrites: 0,
  repeats: 0,
  storageWork: [],
  partitions: [],
  symbolCounts: new Map(),
  nullSymbols: new Set(),
  transactions: new Map(),
}

function named(partitions: ReadonlyMap<string, Bounds>): PartitionStatistics[] {
  return [...partitions].map(([name, bounds]) => ({ name, ...bounds })).sort((x, y) => (x.name < y.name ? -1 : 1))
}

function partitionsOf(memory: SharedMemory, version: TableVersion): Map<string, Bounds> {
  const partitions = new Map<string, Bounds>()
  const timed = version.schema.timestampId >= 0
  for (const part of version.parts) addPart(boundsOf(partitions, part.partition), part, timed)
  const nameOf = timed ? partitionNamer(version.schema) : () => partitionDefault
  for (const block of visibleBlocks(memory, version)) {
    const [name, last] = block.bounds === null ? [] : [nameOf(block.bounds.minTs), nameOf(block.bounds.maxTs)]
    if (name !== undefined && name === last) addWhole(boundsOf(partitions, name), block)
    else addRows(memory, block, (ts) => boundsOf(partitions, nameOf(ts)))
  }
  return partitions
}

function boundsOfAll(memory: SharedMemory, version: TableVersion): Bounds {
  const all = noBounds()
  for (const part of version.parts) addPart(all, part, version.schema.timestampId >= 0)
  for (const block of visibleBlocks(memory, version)) {
    if (block.bounds === null) addRows(memory, block, () => all)
    else addWhole(all, block)
  }
  return all
}

/** Parts list their symbol columns with NULL; the codes of unflushed rows are searched for the first NULL. */
function nullSymbolsOf(memory: SharedMemory, version: TableVersion): Set<number> {
  const { dictionaries, parts } = version
  const found = new Set<number>()
  for (const [id] of dictionaries) {
    const inParts = parts.some((part) => part.nullSymbolIds?.includes(id) || !part.columnIds.includes(id))
    if (inParts || hasUnflushedNull(memory, version, id)) found.add(id)
  }
  return found
}

function unflushedRepeats(memory: SharedMemory, version: TableVersion): number {
  let count = 0
  for (const { rows, isDead } of visibleBlocks(memory, version)) {
    for (let row = 0; isDead !== null && row < rows; row++) if (isDead(row)) count++
  }
  return count
}

function hasUnflushedNull(memory: SharedMemory, version: TableVersion, columnId: number): boolean {
  for (const { address, rows, isDead } of visibleBlocks(memory, version)) {
    const codes = blockColumn(memory, address, columnId)
    if (codes === 0) return true
    const column = memory.i32.subarray(codes >>> 2, (codes >>> 2) + rows)
    for (let row = column.indexOf(symbolNull); row >= 0; row = column.indexOf(symbolNull, row + 1)) {
      if (isDead?.(row) !== true) return true
    }
  }
  return false
}

function addPart(bounds: Bounds, part: TableVersion['parts'][number], timed: boolean): void {
  bounds.rows += part.rows
  bounds.bytes += part.bytes
  if (timed) widen(bounds, part.minTs, part.maxTs)
}

/** A memtable block, as a reader sees it. */
interface VisibleBlock {
  readonly address: number
  readonly rows: number
  /** Address of the designated timestamps; null without such a column. */
  readonly timestamps: number | null
  /** Time bounds of the rows; null when the rows have to be read. */
  readonly bounds: { readonly minTs: bigint; readonly maxTs: bigint } | null
  /** Whether a visible row has replaced this one. */
  readonly isDead: ((row: number) => boolean) | null
}

function* visibleBlocks(memory: SharedMemory, { schema, memtables }: TableVersion): Generator<VisibleBlock> {
  const timed = schema.timestampId >= 0
  for (const { address } of memtables) {
    const visible = visibleRows(memory, address)
    let left = visible
    for (let index = 0; index < blockCount(memory, address) && left > 0; index++) {
      const block = blockAt(memory, address, index)
      const written = blockRows(memory, block)
      const rows = Math.min(left, written)
      left -= rows
      const marks = supersededRows(memory, block)
      const isWhole = timed && rows === written && marks === 0
      yield {
        address: block,
        rows,
        timestamps: timed ? blockColumn(memory, block, schema.timestampId) : null,
        bounds: isWhole ? blockTimes(memory, block) : null,
        isDead: marks === 0 ? null : deadRows(memory.u32, marks, visible),
      }
    }
  }
}

function deadRows(u32: Uint32Array, marks: number, visible: number): (row: number) => boolean {
  return (row) => {
    const mark = Atomics.load(u32, (marks >>> 2) + row)
    return mark > 0 && mark - 1 < visible
  }
}

function addWhole(into: Bounds, { rows, bounds }: VisibleBlock): void {
  into.rows += rows
  if (bounds !== null) widen(into, bounds.minTs, bounds.maxTs)
}

function addRows({ i64 }: SharedMemory, block: VisibleBlock, boundsAt: (ts: bigint) => Bounds): void {
  const { rows, timestamps, isDead } = block
  if (timestamps === null) {
    boundsAt(0n).rows += rows
    return
  }
  const first = timestamps >>> 3
  for (let row = 0; row < rows; row++) {
    if (isDead?.(row)) continue
    const ts = i64[first + row]!
    const bounds = boundsAt(ts)
    bounds.rows += 1
    widen(bounds, ts, ts)
  }
}

function boundsOf(partitions: Map<string, Bounds>, name: string): Bounds {
  const known = partitions.get(name)
  if (known !== undefined) return known
  const bounds = noBounds()
  partitions.set(name, bounds)
  return bounds
}

function noBounds(): Bounds {
  return { rows: 0, bytes: 0, minTs: null, maxTs: null }
}

function widen(bounds: Bounds, minTs: bigint, maxTs: bigint): void {
  bounds.minTs = lesser(bounds.minTs, minTs)
  bounds.maxTs = greater(bounds.maxTs, maxTs)
}

function lesser(x: bigint | null, y: bigint | null): bigint | null {
  if (x === null || y === null) return x ?? y
  return x < y ? x : y
}

function greater(x: bigint | null, y: bigint | null): bigint | null {
  if (x === null || y === null) return x ?? y
  return x > y ? x : y
}
