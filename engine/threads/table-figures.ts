// Figures of one table for the statements that show them: rows, bounds and partitions, unflushed rows included. Computed
// when asked: parts by their descriptors, memtables by a pass over the designated timestamps of their visible rows.

import type { SharedMemory } from '../memory/shared-memory.js'
import type { PartitionFigures, TableFigures } from '../sql/catalog.js'
import { blockAt, blockColumn, blockCount, dictionaryCount, lastWriteMicros, visibleRows } from '../storage/layout.js'
import { partitionNamer } from '../storage/partition.js'
import type { GenerationRef, TableVersion } from '../storage/schema.js'
import type { CatalogView } from './catalog-view.js'

interface Bounds {
  rows: number
  bytes: number
  minTs: bigint | null
  maxTs: bigint | null
}

export function tableFigures(memory: SharedMemory, view: CatalogView, tableId: number): TableFigures {
  const version = view.byId(tableId)
  if (version === undefined) return noFigures
  const partitions = partitionsOf(memory, version)
  const all = [...partitions.values()]
  const lastWrite = Math.max(0, ...version.generations.map(({ address }) => lastWriteMicros(memory, address)))
  return {
    rows: all.reduce((sum, { rows }) => sum + rows, 0),
    minTs: all.reduce((least, { minTs }) => lesser(least, minTs), null as bigint | null),
    maxTs: all.reduce((most, { maxTs }) => greater(most, maxTs), null as bigint | null),
    lastWriteMicros: lastWrite === 0 ? null : lastWrite,
    visibleTxn: view.visibleTransaction(version),
    changesAfterTxn: view.changesAfterTxn(tableId),
    rewrites: version.rewrites ?? 0,
    pendingRows: version.generations.reduce((sum, { address }) => sum + visibleRows(memory, address), 0),
    partitions: named(partitions),
    symbolCounts: new Map(
      version.dictionaries.map(([columnId, address]) => [columnId, dictionaryCount(memory, address)]),
    ),
  }
}

const noFigures: TableFigures = {
  rows: 0,
  minTs: null,
  maxTs: null,
  lastWriteMicros: null,
  visibleTxn: 0,
  changesAfterTxn: [],
  rewrites: 0,
  pendingRows: 0,
  partitions: [],
  symbolCounts: new Map(),
}

function named(partitions: ReadonlyMap<string, Bounds>): PartitionFigures[] {
  return [...partitions].map(([name, bounds]) => ({ name, ...bounds })).sort((x, y) => (x.name < y.name ? -1 : 1))
}

function partitionsOf(memory: SharedMemory, version: TableVersion): Map<string, Bounds> {
  const partitions = new Map<string, Bounds>()
  const timed = version.schema.timestampId >= 0
  for (const part of version.parts) {
    const bounds = boundsOf(partitions, part.partition)
    bounds.rows += part.rows
    bounds.bytes += part.bytes
    if (timed) widen(bounds, part.minTs, part.maxTs)
  }
  for (const generation of version.generations) addGeneration(memory, version, generation, partitions)
  return partitions
}

function addGeneration(
  memory: SharedMemory,
  version: TableVersion,
  generation: GenerationRef,
  partitions: Map<string, Bounds>,
): void {
  const { schema } = version
  const nameOf = partitionNamer(schema)
  const visible = visibleRows(memory, generation.address)
  let left = visible
  for (let index = 0; index < blockCount(memory, generation.address) && left > 0; index++) {
    const block = blockAt(memory, generation.address, index)
    const rows = Math.min(left, memory.u32[(block + 8) >>> 2] as number)
    left -= rows
    if (schema.timestampId < 0) boundsOf(partitions, 'default').rows += rows
    else {
      const marks = memory.u32[(block + 36) >>> 2] as number
      // Rows that a visible row of a DEDUP table has replaced are nobody's.
      const isDead =
        marks === 0
          ? () => false
          : (row: number) => {
              const mark = Atomics.load(memory.u32, (marks >>> 2) + row)
              return mark > 0 && mark - 1 < visible
            }
      addRows(memory.i64, blockColumn(memory, block, schema.timestampId) >>> 3, { rows, isDead }, nameOf, partitions)
    }
  }
}

function addRows(
  i64: BigInt64Array,
  first: number,
  { rows, isDead }: { readonly rows: number; readonly isDead: (row: number) => boolean },
  nameOf: (ts: bigint) => string,
  partitions: Map<string, Bounds>,
): void {
  for (let row = 0; row < rows; row++) {
    if (isDead(row)) continue
    const ts = i64[first + row] as bigint
    const bounds = boundsOf(partitions, nameOf(ts))
    bounds.rows += 1
    widen(bounds, ts, ts)
  }
}

function boundsOf(partitions: Map<string, Bounds>, name: string): Bounds {
  const known = partitions.get(name)
  if (known !== undefined) return known
  const bounds: Bounds = { rows: 0, bytes: 0, minTs: null, maxTs: null }
  partitions.set(name, bounds)
  return bounds
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
