// Rows that the filter of a scan leaves, where it asks for a few symbols and pages list their rows by symbol
// (storage/cache/symbol-lists.ts): the rest of the filter is asked of those alone.

import { pageRowsMax } from '../../base/limits.js'
import { dictionaryCount } from '../../memory/column-layout.js'
import type { Expression } from '../../sql/plan/plan.js'
import { allOf, conjuncts } from '../../sql/typing/walk-expression.js'
import type { ExecContext } from '../batch/context.js'
import { wantedSymbols } from '../batch/symbol-matches.js'
import type { Vector } from '../batch/vector.js'
import { compileFilter, type RowFilter } from '../expression/row-filter.js'
import type { Piece } from './pieces.js'
import type { ScanShape } from './scan-shape.js'

/** With fewer selected rows than one in so many, values are picked from pages instead of decoding them. */
export const sparseShare = 16

/** Values of a column at the rows that were listed, so many of them. */
type ListedValues = (column: number, rows: number) => Vector

export interface ListedRows {
  /**
   * Writes the rows (u32) of [from, from + rows) of a piece that pass, ascending and counted from `from`; returns how many,
   * -1 when they are not listed and all rows are to be looked at.
   */
  select(piece: Piece, from: number, rows: number, out: number, values: ListedValues): number
}

/** null: the filter asks for no symbols. */
export function listedRows(context: ExecContext, scan: ScanShape): ListedRows | null {
  const asked = firstAsked(context, scan)
  if (asked === null) return null
  const { columnId, ids, others } = asked
  const rest = allOf(others)
  const select = (piece: Piece, from: number, rows: number, out: number): number =>
    piece.symbolRows(columnId, ids, from, rows, out)
  return rest === null ? { select } : { select: narrowed(context, select, filterOf(context, scan, rest)) }
}

/** How many symbols of a column the rows of a scan can have, if its filter says so; NULL is none of them. */
export function symbolsOf(context: ExecContext, scan: ScanShape, columnId: number): number | null {
  return firstAsked(context, scan, (asked) => asked === columnId)?.ids.length ?? null
}

/** The part of the rows that the filter's symbols leave, if all of them are as frequent; 1: it asks for none. */
export function askedShare(context: ExecContext, scan: ScanShape): number {
  const asked = firstAsked(context, scan)
  return asked === null ? 1 : Math.min(1, asked.ids.length / Math.max(1, asked.count))
}

/** The first condition on a symbol column for which that is wanted, and what else the filter says. */
function firstAsked(
  context: ExecContext,
  scan: ScanShape,
  isWanted: (columnId: number) => boolean = () => true,
): (AskedSymbols & { readonly others: readonly Expression[] }) | null {
  const parts = scan.filter === null ? [] : conjuncts(scan.filter)
  for (const part of parts) {
    const asked = askedSymbols(context, scan, part)
    if (asked === null || !isWanted(asked.columnId)) continue
    const { columnId, ids, count } = asked
    return { columnId, ids, count, others: parts.filter((other) => other !== part) }
  }
  return null
}

interface AskedSymbols {
  readonly columnId: number
  readonly ids: readonly number[]
  /** Symbols of the column. */
  readonly count: number
}

function askedSymbols(context: ExecContext, scan: ScanShape, condition: Expression): AskedSymbols | null {
  const wanted = wantedSymbols(condition, context)
  const columnId = wanted === undefined ? undefined : scan.columnIds[wanted.column]
  const [, dictionary] = scan.snapshot.version.dictionaries.find(([id]) => id === columnId) ?? []
  if (wanted === undefined || columnId === undefined || dictionary === undefined) return null
  const count = dictionaryCount(context.memory, dictionary)
  return { columnId, ids: wanted.idsIn(dictionary, count), count }
}

function filterOf(context: ExecContext, { types, columnIds, snapshot }: ScanShape, rest: Expression): RowFilter {
  const dictionaries = new Map(snapshot.version.dictionaries)
  const dictionaryOf = (column: number): number => dictionaries.get(columnIds[column] as number) ?? 0
  return compileFilter(context, rest, { types, dictionaryOf })
}

function narrowed(
  { kernels, space }: ExecContext,
  listed: (piece: Piece, from: number, rows: number, out: number) => number,
  rest: RowFilter,
): ListedRows['select'] {
  let kept = 0
  return (piece, from, rows, out, values) => {
    const count = listed(piece, from, rows, out)
    if (count <= 0) return count
    if (count * sparseShare > rows) return -1
    const vectors: Vector[] = []
    for (const column of rest.columns) vectors[column] = values(column, count)
    if (kept === 0) kept = space.take((pageRowsMax / sparseShare) * 4)
    const left = rest.select(vectors, count, kept)
    // In place: the row kept as the n-th is the n-th or a later one of those listed.
    kernels.sort.gather(4, out, kept, left, out)
    return left
  }
}
