// Late materialisation for aggregations in generated code (WebAssembly compiled for the query): evaluates a selective
// filter first, and then decodes only the values of the selected rows from the pages of the other columns. This can
// change the rounding of sums, but a range of rows (a unit of parallel work) must have the same result, bit for bit, on
// every thread. So only the rows of a range decide whether it is done there.

import { pageRowsMax } from '../../base/limits.js'
import type { SelectFragment } from '../../kernels/jit/jit.js'
import { dictionariesOf } from '../../storage/schema/schema.js'
import { type DataType, widthOf } from '../../types/column-types.js'
import type { ExecContext } from '../batch/context.js'
import type { Vector } from '../batch/vector.js'
import { columnsOf } from '../expression/expression-shape.js'
import { FragmentInputs } from '../expression/fragments.js'
import { type IndexedRows, indexedRows, sparseShare } from './indexed-rows.js'
import type { ScanMorsel } from './morsels.js'
import type { ScanShape } from './scan-shape.js'
import type { SliceReader } from './scan-slices.js'

const timestampType: DataType = { name: 'TIMESTAMP', a: 0, b: 0 }
const byteType: DataType = { name: 'BYTE', a: 0, b: 0 }

export interface FewRows {
  readonly rows: number
  readonly vectors: readonly Vector[]
  /** Reads the timestamps of the selected rows; returns their address. */
  times(timestampId: number): number
}

/**
 * null when there is no filter, or no columns beyond those of the filter are read. For symbol columns of the filter it
 * still applies when rows are found by the inverted index, since counts are exact either way.
 */
export function sparseRows(
  context: ExecContext,
  inputs: FragmentInputs,
  scan: ScanShape,
  timed: boolean,
): SparseRows | null {
  const { filter } = scan
  if (filter === null || context.jit === null) return null
  const own = columnsOf(filter)
  const scanned = scan.types.length
  const isOwn = !timed && inputs.columns.every((column) => own.includes(column % scanned))
  const indexed = indexedRows(context, scan)
  const areSymbols = inputs.columns.every((column) => scan.types[column % scanned]?.name === 'SYMBOL')
  if (isOwn && (indexed === null || !areSymbols)) return null
  return new SparseRows(context, scan, inputs, indexed, isOwn)
}

/** The compiled filter over all rows. */
interface RowsFilter {
  readonly required: FragmentInputs
  readonly fragment: SelectFragment
  readonly block: number
}

/** null when the filter cannot be compiled, or reads no column. */
function rowsFilter(context: ExecContext, scan: ScanShape, narrowFrom: number): RowsFilter | null {
  const dictionaries = dictionariesOf(scan.snapshot.version)
  const dictionaryOf = (column: number): number => dictionaries.get(scan.columnIds[column] as number) ?? 0
  const required = new FragmentInputs(context, dictionaryOf, narrowFrom)
  const predicate = scan.filter === null ? null : required.expression(scan.filter)
  if (predicate === null || required.columns.length === 0) return null
  const fragment = context.jit?.select({ columns: required.types, predicate, output: 'rows' }) ?? null
  if (fragment === null) return null
  const block = context.arena.keep(fragment.blockBytes)
  fragment.writeConstants(block)
  required.bindLookups(fragment, block)
  return { required, fragment, block }
}

export class SparseRows {
  readonly #context: ExecContext
  readonly #scan: ScanShape
  readonly #inputs: FragmentInputs
  readonly #indexed: IndexedRows | null
  readonly #indexedOnly: boolean
  readonly #index: number
  /** undefined: not compiled yet, since the inverted index has sufficed. */
  #filter: RowsFilter | null | undefined
  /** Buffers for the selected values by column id; by the negative column number for symbols as bytes. */
  readonly #areas = new Map<number, number>()
  #dense = false

  constructor(
    context: ExecContext,
    scan: ScanShape,
    inputs: FragmentInputs,
    indexed: IndexedRows | null,
    listedOnly: boolean,
  ) {
    this.#context = context
    this.#scan = scan
    this.#inputs = inputs
    this.#indexed = indexed
    this.#indexedOnly = listedOnly
    this.#index = context.arena.keep((pageRowsMax + 16) * 4)
  }

  /** Called at the start of a chunk. */
  begin(): void {
    this.#dense = false
  }

  /**
   * null when this or an earlier morsel of the chunk has too many selected rows, so that all rows are processed
   * instead.
   */
  select(reader: SliceReader, morsel: ScanMorsel, from: number, rows: number): FewRows | null {
    if (this.#dense) return null
    const values = (column: number, count: number): Vector => this.#column(reader, morsel, from, column, count)
    const indexed = this.#indexed?.select(morsel, from, rows, this.#index, values) ?? -1
    if (indexed < 0 && this.#indexedOnly) return null
    const count = indexed < 0 ? this.#lookedAt(reader, morsel, from, rows) : indexed
    if (count < 0) return null
    this.#dense = count * sparseShare > rows
    if (this.#dense) return null
    const vectors: Vector[] = []
    if (count > 0)
      for (const column of this.#inputs.columns) vectors[column] = this.#column(reader, morsel, from, column, count)
    const times = (timestampId: number): number => this.#pick(morsel, from, timestampId, timestampType, count)
    return { rows: count, vectors, times }
  }

  /** Filters all rows; returns how many pass, -1 when the filter cannot be compiled. */
  #lookedAt(reader: SliceReader, morsel: ScanMorsel, from: number, rows: number): number {
    if (this.#filter === undefined) this.#filter = rowsFilter(this.#context, this.#scan, this.#inputs.narrowFrom)
    if (this.#filter === null) return -1
    const { required, fragment, block } = this.#filter
    required.bind(fragment, block, reader.vectors(morsel, from, required.columns, true))
    return fragment.run(block, rows, this.#index, 0)
  }

  #column(reader: SliceReader, morsel: ScanMorsel, from: number, column: number, count: number): Vector {
    const { types, columnIds } = this.#scan
    if (column >= types.length) return this.#narrow(reader, morsel, from, column, count)
    const columnId = columnIds[column] as number
    const type = types[column] as DataType
    const address = this.#pick(morsel, from, columnId, type, count)
    if (address === 0) return reader.vectors(morsel, from, [column], true)[column] as Vector
    return { type, address, dictionary: reader.dictionaryOf(column) }
  }

  /** Symbols as bytes, narrowed from ids of four bytes. */
  #narrow(reader: SliceReader, morsel: ScanMorsel, from: number, column: number, count: number): Vector {
    const { kernels, arena } = this.#context
    const { address, dictionary } = this.#column(reader, morsel, from, column - this.#scan.types.length, count)
    const target = this.#areas.get(-column) ?? arena.keep(pageRowsMax / sparseShare + 64)
    this.#areas.set(-column, target)
    kernels.parquet.narrow(address, count, 1, target)
    return { type: byteType, address: target, dictionary }
  }

  /** 0 when the morsel lacks the column. */
  #pick(morsel: ScanMorsel, from: number, columnId: number, type: DataType, count: number): number {
    const width = widthOf(type)
    const { arena, kernels } = this.#context
    const area = this.#areas.get(columnId) ?? arena.keep((pageRowsMax / sparseShare) * width + 64)
    this.#areas.set(columnId, area)
    if (morsel.pick(columnId, this.#index, from, count, area)) return area
    const whole = morsel.column(columnId)
    if (whole === 0) return 0
    kernels.sort.gather(width, whole + from * width, this.#index, count, area)
    return area
  }
}
