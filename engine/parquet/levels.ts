// Levels of a page of a foreign Parquet file, as u32: which values are there, and where lists begin.
//
//   first form    RLE: length u32, then runs and packed numbers | BIT_PACKED (old): packed numbers, highest bit first
//   second form   runs and packed numbers; the header says their bytes

import { encodings } from '../storage/parquet-types.js'
import type { ForeignColumn } from './columns.js'
import type { ForeignPage } from './pages.js'
import { type EncodedValues, type ValueTools, wordAt } from './values.js'

export interface PageLevels {
  /** Addresses; 0 where the column has none. */
  readonly repetition: number
  readonly definition: number
  /** What follows the levels. */
  readonly rest: Omit<EncodedValues, 'count'>
}

const oldPacked = 4

export function readLevels(tools: ValueTools, column: ForeignColumn, page: ForeignPage): PageLevels {
  const { encoding, place, levels, levelEncodings } = page
  const end = page.address + page.bytes
  let at = page.address
  const read = (limit: number, own: number | undefined, way: number, name: string): number => {
    if (own !== undefined) at += own
    if (limit === 0) return 0
    const target = tools.shared.room(name, page.values * 4)
    const bits = 32 - Math.clz32(limit)
    const from = own === undefined ? at : at - own
    const bytes = own ?? lengthOf(tools, way, from, end)
    const start = own === undefined && way === encodings.rle ? from + 4 : from
    const taken =
      bytes < 0
        ? -1
        : own === undefined && way === oldPacked
          ? tools.foreign.packedLevels(start, end - from, page.values, bits, limit, target)
          : tools.foreign.hybrid(start, bytes, page.values, bits, limit, target)
    if (taken < 0) throw tools.file.error(`the levels of a page do not fit its ${page.values} values`, place)
    if (own === undefined) at = way === oldPacked ? from + taken : start + bytes
    return target
  }
  const repetition = read(column.lists.length, levels?.repetition, levelEncodings.repetition, 'repetition')
  const definition = read(column.definition, levels?.definition, levelEncodings.definition, 'definition')
  return { repetition, definition, rest: { encoding, address: at, bytes: end - at, place } }
}

/** Bytes of levels behind their length; -1 when they end behind the page, or in an encoding that levels have not. */
function lengthOf({ scratch }: ValueTools, way: number, from: number, end: number): number {
  if (way === oldPacked) return end - from
  if (way !== encodings.rle || from + 4 > end) return -1
  const bytes = wordAt(scratch.memory, from)
  return bytes <= end - from - 4 ? bytes : -1
}
