// Finds the rows of a page that may pass a filter by means of inverted indexes, which list the rows of each symbol
// (dictionary-encoded string) in a page (storage/cache/inverted-index.ts). If the filter requires certain symbols and
// the page has such an index, the other conditions are evaluated only for the rows that the index lists.

import { pageRowsMax } from '../../base/limits.js'
import { dictionaryCount } from '../../memory/column-layout.js'
import type { Expression } from '../../sql/plan/plan.js'
import { allOf, conjuncts } from '../../sql/typing/walk-expression.js'
import { dictionariesOf } from '../../storage/schema/schema.js'
import type { ExecContext } from '../batch/context.js'
import { wantedSymbols } from '../batch/symbol-matches.js'
import type { Vector } from '../batch/vector.js'
import { compileFilter, type RowFilter } from '../expression/row-filter.js'
import type { ScanMorsel } from './morsels.js'
import type { ScanShape } from './scan-shape.js'

/**
 * When fewer than one row in this many is selected, single values are read from the encoded page instead of decoding
 * it.
 */
export const sparseShare = 16

/** Values of a column at the first `rows` row numbers of the index. */
type ListedValues = (column: number, rows: number) => Vector

export interface IndexedRows {
  /**
   * Writes the rows (u32) of [from, from + rows) of a morsel that pass, ascending and relative to `from`. Returns how
   * many, or -1 when there is no index, or it lists too many rows: then all rows must be filtered.
   */
  select(morsel: ScanMorsel, from: number, rows: number, out: number, values: ListedValues): number
}

/** null when the filter does not require certain symbols. */
export function indexedRows(context: ExecContext, scan: ScanShape): IndexedRows | null {
  const required = firstRequired(context, scan)
  if (required === null) return null
  const { columnId, ids, others } = required
  const rest = allOf(others)
  const select = (morsel: ScanMorsel, from: number, rows: number, out: number): number =>
    morsel.symbolRows(columnId, ids, from, rows, out)
  return rest === null ? { select } : { select: narrowed(context, select, filterOf(context, scan, rest)) }
}

/**
 * How many symbols of a column the filter admits; null when it does not restrict the column. NULL is not among them.
 */
export function symbolsOf(context: ExecContext, scan: ScanShape, columnId: number): number | null {
  return firstRequired(context, scan, (required) => required === columnId)?.ids.length ?? null
}

/**
 * Estimated fraction of the rows with the symbols that the filter requires, if all symbols are equally frequent; 1 if
 * it requires none.
 */
export function selectedFraction(context: ExecContext, scan: ScanShape): number {
  const required = firstRequired(context, scan)
  return required === null ? 1 : Math.min(1, required.ids.length / Math.max(1, required.count))
}

/** The first condition that requires symbols of an acceptable column, and the filter's other conditions. */
function firstRequired(
  context: ExecContext,
  scan: ScanShape,
  isWanted: (columnId: number) => boolean = () => true,
): (RequiredSymbols & { readonly others: readonly Expression[] }) | null {
  const parts = scan.filter === null ? [] : conjuncts(scan.filter)
  for (const part of parts) {
    const required = requiredSymbols(context, scan, part)
    if (required === null || !isWanted(required.columnId)) continue
    const { columnId, ids, count } = required
    return { columnId, ids, count, others: parts.filter((other) => other !== part) }
  }
  return null
}

interface RequiredSymbols {
  readonly columnId: number
  readonly ids: readonly number[]
  /** Number of symbols in the dictionary. */
  readonly count: number
}

function requiredSymbols(context: ExecContext, scan: ScanShape, condition: Expression): RequiredSymbols | null {
  const wanted = wantedSymbols(condition, context)
  const columnId = wanted === undefined ? undefined : scan.columnIds[wanted.column]
  const [, dictionary] = scan.snapshot.version.dictionaries.find(([id]) => id === columnId) ?? []
  if (wanted === undefined || columnId === undefined || dictionary === undefined) return null
  const count = dictionaryCount(context.memory, dictionary)
  return { columnId, ids: wanted.idsIn(dictionary, count), count }
}

function filterOf(context: ExecContext, { types, columnIds, snapshot }: ScanShape, rest: Expression): RowFilter {
  const dictionaries = dictionariesOf(snapshot.version)
  const dictionaryOf = (column: number): number => dictionaries.get(columnIds[column] as number) ?? 0
  return compileFilter(context, rest, { types, dictionaryOf })
}

function narrowed(
  { kernels, arena }: ExecContext,
  indexed: (morsel: ScanMorsel, from: number, rows: number, out: number) => number,
  rest: RowFilter,
): IndexedRows['select'] {
  let retained = 0
  return (morsel, from, rows, out, values) => {
    const count = indexed(morsel, from, rows, out)
    if (count <= 0) return count
    if (count * sparseShare > rows) return -1
    if (retained === 0) retained = arena.take((pageRowsMax / sparseShare) * 4)
    return passingOf(kernels, rest, { out, count, retained }, values)
  }
}

/** Rows that an index lists: `count` row numbers (u32) at `out`, and room for as many at `retained`. */
interface ListedRows {
  readonly out: number
  readonly count: number
  readonly retained: number
}

/** Reduces the listed rows to those that pass the filter; returns how many. */
export function passingOf(
  kernels: ExecContext['kernels'],
  filter: RowFilter,
  { out, count, retained }: ListedRows,
  values: ListedValues,
): number {
  if (count === 0) return 0
  const vectors: Vector[] = []
  for (const column of filter.columns) vectors[column] = values(column, count)
  const left = filter.select(vectors, count, retained)
  // Safe in place: no row moves to a higher position.
  kernels.sort.gather(4, out, retained, left, out)
  return left
}
