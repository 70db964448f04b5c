// Adds row ids to a scan: a virtual LONG column (rowIdColumn) that tells where each row is stored. Statements that
// replace or remove rows use row ids to say which stored rows they mean.
//
//   row id   source << 32 | row
//   source   0, 1, .. over the parts (Parquet files) of the snapshot, then over its memtables
//   row      number of the row within the part or memtable

import { assert } from '../../base/assert.js'
import { rowIdColumn } from '../../sql/plan/plan.js'
import type { TableVersion } from '../../storage/schema/schema.js'
import type { ExecContext } from '../batch/context.js'
import { changedMorsel, type Run, runOf, type ScanMorsel } from './morsels.js'

/** The runs with the virtual column. */
export function withRowIds(context: ExecContext, version: TableVersion, timed: boolean, runs: readonly Run[]): Run[] {
  const numbers = new Map<number, number>()
  for (const [index, { id }] of version.parts.entries()) numbers.set(id, index)
  for (const [index, { id }] of version.memtables.entries()) numbers.set(-1 - id, version.parts.length + index)
  return runs.map(({ morsels, memtable }) =>
    runOf(
      morsels.map((morsel) => placedMorsel(context, morsel, numbers.get(morsel.source) ?? -1)),
      timed,
      memtable,
    ),
  )
}

function placedMorsel({ memory, arena }: ExecContext, morsel: ScanMorsel, number: number): ScanMorsel {
  assert(number >= 0, 'S2: a scanned row is in a part or memtable of the snapshot')
  let places = 0
  const others = (columnId: number): boolean => columnId !== rowIdColumn
  return changedMorsel(morsel, {
    column: (columnId) => {
      if (others(columnId)) return morsel.column(columnId)
      if (places !== 0) return places
      places = arena.take(morsel.rows * 8)
      const { u32 } = memory
      for (let row = 0, word = places >>> 2; row < morsel.rows; row++, word += 2) {
        u32[word] = morsel.firstRow + row
        u32[word + 1] = number
      }
      return places
    },
    pick: (columnId, ...rest) => others(columnId) && morsel.pick(columnId, ...rest),
    symbolRows: (columnId, ...rest) => (others(columnId) ? morsel.symbolRows(columnId, ...rest) : -1),
    strings: (columnId) => (others(columnId) ? morsel.strings(columnId) : undefined),
    unpack: (columnId, ...rest) => others(columnId) && morsel.unpack(columnId, ...rest),
    decode: (columnId, room) => others(columnId) && morsel.decode(columnId, room),
    stored: (columnId) => (others(columnId) ? morsel.stored(columnId) : undefined),
    nulls: (columnId) => (others(columnId) ? morsel.nulls(columnId) : 0),
    bounds: (columnId) => (others(columnId) ? morsel.bounds(columnId) : undefined),
    sum: (columnId) => (others(columnId) ? morsel.sum(columnId) : undefined),
    release: () => {
      if (places !== 0) arena.give(places)
      places = 0
      morsel.release()
    },
  })
}
