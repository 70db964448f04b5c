// Makes a morsel readable in timestamp order: returns a view of it that is sorted and lacks the rows that later
// transactions have removed or replaced. A column of the view is copied when it is first read, into memory that
// release() frees.

import { sortScratchBytes } from '../../kernels/sort.js'
import { type DataType, widthOf } from '../../types/column-types.js'
import type { ExecContext } from '../batch/context.js'
import { changedMorsel, type ScanMorsel } from './morsels.js'

/**
 * Returns the morsel itself if it is sorted and has no replaced rows. `typeOf` gives the type of every column that is
 * read.
 */
export function orderedView(
  context: ExecContext,
  morsel: ScanMorsel,
  timestampId: number,
  typeOf: (columnId: number) => DataType,
): ScanMorsel {
  const ordered = morsel.sorted || timestampId < 0
  if (ordered && morsel.superseded === 0) return morsel
  const { arena, kernels } = context
  const live = liveRows(context, morsel)
  let order = live.index
  if (!ordered) {
    const ts = arena.take(live.count * 8)
    kernels.sort.gather(8, morsel.column(timestampId), live.index, live.count, ts)
    const sorted = arena.take(live.count * 4)
    const scratchBytes = sortScratchBytes(live.count)
    const scratch = arena.take(scratchBytes)
    kernels.sort.sortPermutation(ts, live.count, scratch, scratchBytes, sorted)
    order = arena.take(live.count * 4)
    kernels.sort.gather(4, live.index, sorted, live.count, order)
    for (const address of [ts, sorted, scratch, live.index]) arena.give(address)
  }
  return gatheredMorsel(context, morsel, order, live.count, typeOf)
}

/** Numbers of the rows that no visible row has replaced. */
function liveRows({ arena, memory }: ExecContext, morsel: ScanMorsel): { index: number; count: number } {
  const { u32 } = memory
  const index = arena.take(morsel.rows * 4)
  const first = index >>> 2
  const by = morsel.superseded >>> 2
  let count = 0
  for (let row = 0; row < morsel.rows; row++) {
    const replacement = by === 0 ? 0 : u32[by + row]!
    if (replacement === 0 || replacement - 1 >= morsel.visibleRows) u32[first + count++] = row
  }
  return { index, count }
}

function gatheredMorsel(
  { arena, kernels }: ExecContext,
  morsel: ScanMorsel,
  order: number,
  rows: number,
  typeOf: (columnId: number) => DataType,
): ScanMorsel {
  const columns = new Map<number, number>()
  const column = (columnId: number): number => {
    const known = columns.get(columnId)
    if (known !== undefined) return known
    const source = morsel.column(columnId)
    const width = widthOf(typeOf(columnId))
    const address = source === 0 ? 0 : arena.take(rows * width)
    if (source !== 0) kernels.sort.gather(width, source, order, rows, address)
    columns.set(columnId, address)
    return address
  }
  const release = (): void => {
    for (const address of columns.values()) if (address !== 0) arena.give(address)
    columns.clear()
    arena.give(order)
    morsel.release()
  }
  return changedMorsel(morsel, {
    rows,
    sorted: true,
    superseded: 0,
    column,
    pick: () => false,
    symbolRows: () => -1,
    keys: () => undefined,
    unpack: () => false,
    decode: () => false,
    strings: () => undefined,
    stored: () => undefined,
    release,
  })
}
