// Aggregates pages by their statistics instead of their rows: the index of a part (Parquet file) stores the number of
// NULLs, sum, minimum and maximum of columns of a page, from which the accumulators are updated without reading the
// page. Possible only without a filter and without GROUP BY, for count(), sum(), avg(), min() and max() of plain
// columns.

import type { Cell } from '../../kernels/jit/cells.js'
import type { AggregateFragment } from '../../kernels/jit/jit.js'
import type { SharedMemory } from '../../memory/shared-memory.js'
import type { FragmentInputs } from '../expression/fragments.js'
import type { ScanMorsel } from './morsels.js'
import type { ScanShape } from './scan-shape.js'

interface CellStatistics {
  readonly count: number
  readonly sum: number | bigint
  readonly min: number | bigint
  readonly max: number | bigint
}

/** undefined when every morsel has to be read. */
export function zoneMapAggregates(
  memory: SharedMemory,
  fragment: AggregateFragment,
  inputs: FragmentInputs,
  { filter, columnIds }: ScanShape,
  keys: number,
): ZoneMapAggregates | undefined {
  if (filter !== null || keys > 0) return undefined
  const cells: KnownCell[] = []
  for (const cell of fragment.plan.record.cells) {
    if (cell.kind === 'rows' || (cell.node !== null && cell.node.operation !== 'column')) return undefined
    const column = cell.node === null ? -1 : (inputs.columns[cell.node.index] as number)
    cells.push({ cell, columnId: column < 0 ? -1 : (columnIds[column] as number) })
  }
  return new ZoneMapAggregates(memory, cells)
}

interface KnownCell {
  readonly cell: Cell
  /** -1 for an aggregate over rows, such as count(). */
  readonly columnId: number
}

export class ZoneMapAggregates {
  readonly #memory: SharedMemory
  readonly #cells: readonly KnownCell[]

  constructor(memory: SharedMemory, cells: readonly KnownCell[]) {
    this.#memory = memory
    this.#cells = cells
  }

  /**
   * The statistics of a morsel for each accumulator; undefined when it has to be read. The caller checks for replaced
   * rows.
   */
  statistics(morsel: ScanMorsel): readonly CellStatistics[] | undefined {
    const found: CellStatistics[] = []
    for (const cell of this.#cells) {
      const statistics = statisticsOf(morsel, cell)
      if (statistics === undefined) return undefined
      found.push(statistics)
    }
    return found
  }

  /** Adds the statistics to the accumulators in `record`. */
  add(statistics: readonly CellStatistics[], record: number): void {
    this.#cells.forEach(({ cell }, index) => {
      const word = (record + cell.offset) >>> 3
      if (cell.floating) addFloating(this.#memory, cell, statistics[index] as CellStatistics, word)
      else addInteger(this.#memory, cell, statistics[index] as CellStatistics, word)
    })
  }
}

function statisticsOf(morsel: ScanMorsel, { cell: { kind }, columnId }: KnownCell): CellStatistics | undefined {
  const nulls = columnId < 0 ? 0 : morsel.nulls(columnId)
  if (nulls === undefined) return undefined
  const count = morsel.rows - nulls
  if (kind === 'count' || count === 0) return { count, sum: 0, min: 0, max: 0 }
  if (kind === 'extremes') {
    const bounds = morsel.bounds(columnId)
    return bounds === undefined ? undefined : { count, sum: 0, min: bounds.min, max: bounds.max }
  }
  const sum = morsel.sum(columnId)
  return sum === undefined ? undefined : { count, sum, min: 0, max: 0 }
}

function addFloating(
  { f64 }: SharedMemory,
  { kind }: Cell,
  { count, sum, min, max }: CellStatistics,
  word: number,
): void {
  if (count === 0) return
  if (kind === 'extremes') {
    f64[word] = Math.min(f64[word]!, Number(min))
    f64[word + 1] = Math.max(f64[word + 1]!, Number(max))
    return
  }
  f64[word] = f64[word]! + Number(sum)
  f64[word + 1] = f64[word + 1]! + count
}

function addInteger(
  { i64 }: SharedMemory,
  { kind }: Cell,
  { count, sum, min, max }: CellStatistics,
  word: number,
): void {
  if (count === 0) return
  const [low, high] = [i64[word]!, i64[word + 1]!]
  if (kind === 'count') i64[word] = low + BigInt(count)
  else if (kind === 'extremes') {
    i64[word] = smaller(low, BigInt(min))
    i64[word + 1] = -smaller(-high, -BigInt(max))
  } else {
    const total = BigInt(sum)
    i64[word] = low + total
    i64[word + 1] = high + BigInt(count)
    if (kind === 'wide') i64[word + 2] = i64[word + 2]! + (total >> 32n)
  }
}

function smaller(a: bigint, b: bigint): bigint {
  return a < b ? a : b
}
