// Operator: table scan that returns the rows in any order. It reads them morsel by morsel (memtable block or page), and
// returns those within the time ranges that satisfy the filter.

import type { ExecContext } from '../batch/context.js'
import { rowsFor } from '../batch/small-batches.js'
import { batchRowsMax, type Operator, type Pull } from '../batch/vector.js'
import type { Run, ScanMorsel } from './morsels.js'
import type { ScanShape } from './scan-shape.js'
import { longScanMorsels, type Slice, SliceReader, type WantedRows } from './scan-slices.js'
import { scanRuns } from './zones.js'

/** `chosen`: morsels to read instead of all of the snapshot's. */
export function scanOperator(
  context: ExecContext,
  shape: ScanShape,
  chosen: readonly ScanMorsel[] | null = null,
  wanted: WantedRows | null = null,
): Operator {
  const batchRows = Math.min(context.streamRows ?? batchRowsMax, rowsFor(shape.types.length))
  const long = chosen !== null && chosen.length >= longScanMorsels / 4
  const reader = new SliceReader(context, shape, long ? 'long' : 'cached', wanted)
  let morsels = chosen?.values()
  let slices: Slice[] = []
  let nextRow = 0
  let current: ScanMorsel | null = null
  const close = (): void => {
    current?.release()
    current = null
  }
  context.onEnd(close)

  const advance = (): boolean => {
    close()
    morsels ??= eachMorsel(scanRuns(context, shape))
    current = morsels.next().value ?? null
    if (current === null) return false
    slices = wanted?.skips(current) === true ? [] : reader.slices(current)
    nextRow = slices[0]?.from ?? 0
    return true
  }

  const pull = (): Pull => {
    while (current === null || slices.length === 0) if (!advance()) return null
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
  const rest = (): void => {
    current?.release()
    reader.goIdle()
  }
  return { pull, goIdle: rest }
}

/** Lists the morsels of a run only when the scan reaches it, since that may open a part. */
function* eachMorsel(runs: readonly Run[]): Generator<ScanMorsel, undefined> {
  for (const { morsels } of runs) yield* morsels
}
