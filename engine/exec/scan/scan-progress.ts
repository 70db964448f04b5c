// ScanProgress: how many rows the table scans of a query have read, and how many they have to read. Scans that several
// threads share count when the coordinator merges a chunk, others when they leave a morsel, so there is no cost per row.
//
// A scan knows its rows when it begins, after zone maps have ruled pages out. Until then its rows are those of the
// parts within its time ranges.
//
// An operator that spills begins again: the scans of its first attempt are forgotten.

import type { Plan, Query } from '../../sql/plan/plan.js'
import { plansOf } from '../../sql/plan/walk-plan.js'
import type { TableSnapshot } from '../../storage/schema/schema.js'
import { touches } from './morsels.js'

/** The rows of one scan. */
export interface ScanCount {
  rows: number
  read: number
}

/** Chunks that together read so many rows of a scan. */
export interface CountedChunks {
  readonly count: ScanCount
  readonly rows: number
}

export interface RowsRead {
  readonly read: number
  readonly total: number
}

export class ScanProgress {
  readonly #query: Query
  readonly #snapshots: readonly TableSnapshot[]
  /** Of this part: the progress of the whole query, or of the part around it. */
  readonly #whole: ScanProgress | null
  readonly #begun = new Map<TableSnapshot, ScanCount[]>()
  /** Rows of the scans of each snapshot before any of them begins; null: not determined yet. */
  #expected: ReadonlyMap<TableSnapshot, readonly number[]> | null = null

  constructor(query: Query, snapshots: readonly TableSnapshot[], whole: ScanProgress | null = null) {
    this.#query = query
    this.#snapshots = snapshots
    this.#whole = whole
  }

  /** The scans of an operator that may begin again. */
  part(): ScanProgress {
    return new ScanProgress(this.#query, this.#snapshots, this)
  }

  /** The operator begins again, so what its scans have read does not count. */
  forget(): void {
    for (const [snapshot, counts] of this.#begun) for (const count of [...counts]) this.#remove(snapshot, count)
  }

  #remove(snapshot: TableSnapshot, count: ScanCount): void {
    const counts = this.#begun.get(snapshot) ?? []
    const index = counts.indexOf(count)
    if (index >= 0) counts.splice(index, 1)
    if (this.#whole !== null) this.#whole.#remove(snapshot, count)
  }

  /** A scan of that snapshot begins. */
  begin(snapshot: TableSnapshot, rows: number): ScanCount {
    const count = this.#whole?.begin(snapshot, rows) ?? { rows, read: 0 }
    const counts = this.#begun.get(snapshot)
    if (counts === undefined) this.#begun.set(snapshot, [count])
    else counts.push(count)
    return count
  }

  /** The same for a scan whose rows are read in chunks. */
  chunked(snapshot: TableSnapshot, rows: number): CountedChunks {
    return { count: this.begin(snapshot, rows), rows }
  }

  /** The scan reads no further rows. */
  end(count: ScanCount): void {
    count.rows = Math.min(count.rows, count.read)
  }

  rows(): RowsRead {
    this.#expected ??= this.#expectation()
    let read = 0
    let total = 0
    for (const counts of this.#begun.values()) {
      for (const count of counts) {
        read += Math.min(count.read, count.rows)
        total += count.rows
      }
    }
    for (const [snapshot, expected] of this.#expected) {
      const begun = this.#begun.get(snapshot)?.length ?? 0
      for (const rows of expected.slice(begun)) total += rows
    }
    return { read: Math.round(read), total: Math.round(total) }
  }

  #expectation(): Map<TableSnapshot, number[]> {
    const expected = new Map<TableSnapshot, number[]>()
    for (const plan of plansOf(this.#query)) {
      const snapshot = plan.kind === 'scan' ? this.#snapshots[plan.table] : undefined
      if (plan.kind !== 'scan' || snapshot === undefined) continue
      const rows = expected.get(snapshot) ?? []
      expected.set(snapshot, rows)
      rows.push(rowsWithin(snapshot, plan))
    }
    return expected
  }
}

function rowsWithin(
  { version, visibleRows }: TableSnapshot,
  { ranges }: Pick<Extract<Plan, { kind: 'scan' }>, 'ranges'>,
): number {
  const within = version.schema.timestampId < 0 ? null : ranges
  let rows = visibleRows.reduce((sum, visible) => sum + visible, 0)
  for (const { minTs, maxTs, rows: stored } of version.parts) if (touches(within, minTs, maxTs)) rows += stored
  return rows
}
