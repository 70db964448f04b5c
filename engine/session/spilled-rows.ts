// SpilledRows: rows of an open transaction that were written to parts (Parquet files) to free memory. The parts are
// added to their tables by the commit. Each table has one bulk load (threads/load-client.ts), which receives all of its
// spilled rows. When another session adds or drops columns, a further load receives the rows that follow. Tables with
// DEDUP, enforced keys, ARRAY or BINARY columns cannot be spilled to.

import type { Engine } from '../api/engine.js'
import type { CsvLoad } from '../api/ingest.js'
import type { CsvShape } from '../csv/shape.js'
import type { PackedRows } from '../storage/jobs/messages.js'
import { comparesRows, isTable, liveColumns, type TableVersion } from '../storage/schema/schema.js'

/** Nominal size: the rows are already packed, and blocks only pace the load. */
const blockBytes = 4096

export interface SpilledLoad {
  readonly load: CsvLoad
  rows: number
}

/** Spilled rows are not compared with others (DEDUP, enforced keys), and the load does not support arrays and BINARY. */
export function maySpill({ schema }: TableVersion): boolean {
  const isText = liveColumns(schema).every(({ type }) => type.name !== 'ARRAY' && type.name !== 'BINARY')
  return isText && !comparesRows(schema) && isTable(schema)
}

export class SpilledRows {
  readonly #engine: Pick<Engine, 'load'>
  /** By table and columns. */
  readonly #loads = new Map<string, SpilledLoad>()

  constructor(engine: Pick<Engine, 'load'>) {
    this.#engine = engine
  }

  get rows(): number {
    let rows = 0
    for (const spilled of this.#loads.values()) rows += spilled.rows
    return rows
  }

  async add(version: TableVersion, batches: readonly PackedRows[]): Promise<void> {
    const spilled = this.#of(version)
    for (const batch of batches) {
      await spilled.load.rows(batch)
      spilled.rows += batch.rows
    }
  }

  /** Ends the loads and returns them; the caller commits or closes them. */
  async take(): Promise<SpilledLoad[]> {
    const taken = [...this.#loads.values()]
    this.#loads.clear()
    try {
      for (const { load } of taken) await load.end()
      return taken
    } catch (error) {
      for (const { load } of taken) load.close().catch(() => {})
      throw error
    }
  }

  clear(): void {
    for (const { load } of this.#loads.values()) load.close().catch(() => {})
    this.#loads.clear()
  }

  #of(version: TableVersion): SpilledLoad {
    const { schema } = version
    const columnIds = liveColumns(schema).map(({ id }) => id)
    const key = [schema.id, ...columnIds].join()
    const known = this.#loads.get(key)
    if (known !== undefined) return known
    const load = this.#engine.load({
      ...{
        tableId: schema.id,
        shape: shapeOf(version),
        columnIds,
        blockBytes,
      },
      onDecoded: () => {},
    })
    const spilled = { load, rows: 0 }
    this.#loads.set(key, spilled)
    return spilled
  }
}

function shapeOf({ schema }: TableVersion): CsvShape {
  const columns = liveColumns(schema)
  return {
    delimiter: 9,
    columns: columns.map(({ name, type }) => ({ name, type, pattern: null })),
    timestamp: columns.findIndex(({ id }) => id === schema.timestampId),
    header: false,
  }
}
