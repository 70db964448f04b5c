// Operator: table scan that returns the rows in any order. It reads them morsel by morsel (memtable block or page), and
// returns those within the time ranges that satisfy the filter.

import type { ExecContext } from '../batch/context.js'
import { rowsFor } from '../batch/small-batches.js'
import { batchRowsMax, type Operator, type Pull } from '../batch/vector.js'
import { type Run, rowCount, type ScanMorsel } from './morsels.js'
import type { ScanCount } from './scan-progress.js'
import { columnsRead, type ScanShape } from './scan-shape.js'
import { longScanMorsels, type Slice, SliceReader, type WantedRows } from './scan-slices.js'
import { scanRuns } from './zones.js'

/** `chosen`: morsels to read instead of all of the snapshot's; `counted`: where their rows are counted, if at all. */
export function scanOperator(
  context: ExecContext,
  shape: ScanShape,
  chosen: readonly ScanMorsel[] | null = null,
  wanted: WantedRows | null = null,
  counted: ScanCount | null = null,
): Operator {
  const batchRows = Math.min(context.streamRows ?? batchRowsMax, rowsFor(shape.types.length))
  const long = chosen !== null && chosen.length >= longScanMorsels / 4
  const reader = new SliceReader(context, shape, long ? 'long' : 'cached', wanted)
  let morsels = chosen?.values()
  let slices: Slice[] = []
  let nextRow = 0
  /** The next morsel, until it can be read. */
  let upcoming: ScanMorsel | null = null
  let current: ScanMorsel | null = null
  const columnIds = columnsRead(shape)
  let count = counted
  const close = (): void => {
    current?.release()
    if (current !== null && count !== null) count.read += current.rows
    current = null
  }
  context.onEnd(() => {
    close()
    if (count !== null && chosen === null) context.progress?.end(count)
  })
  const begin = (): Generator<ScanMorsel, undefined> => {
    const runs = scanRuns(context, shape, reader.keys)
    count = context.progress?.begin(shape.snapshot, rowCount(runs)) ?? null
    return eachMorsel(runs)
  }

  const advance = (): 'working' | 'waiting' | null => {
    close()
    morsels ??= begin()
    upcoming ??= morsels.next().value ?? null
    if (upcoming === null) return null
    const isSkipped = wanted?.skips(upcoming) === true
    if (!isSkipped && !upcoming.ready(columnIds)) return 'waiting'
    current = upcoming
    upcoming = null
    slices = isSkipped ? [] : reader.longSlices(current)
    nextRow = slices[0]?.from ?? 0
    return 'working'
  }

  const pull = (): Pull => {
    while (current === null || slices.length === 0) {
      const outcome = advance()
      if (outcome !== 'working') return outcome
    }
    // Its pages may have been unpinned, and removed from this disk, since the last batch.
    if (!current.ready(columnIds)) return 'waiting'
    const slice = slices[0] as Slice
    const from = nextRow
    const to = Math.min(slice.to, from + batchRows)
    nextRow = to
    if (to === slice.to) {
      slices.shift()
      nextRow = slices[0]?.from ?? 0
    }
    return reader.read(current, from, to) ?? 'working'
  }
  const goIdle = (): void => {
    current?.release()
    reader.goIdle()
  }
  return { pull, goIdle }
}

/** Lists the morsels of a run only when the scan reaches it, since that may open a part. */
function* eachMorsel(runs: readonly Run[]): Generator<ScanMorsel, undefined> {
  for (const { morsels } of runs) yield* morsels
}
