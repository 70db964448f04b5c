// Operator: scan of Parquet files that other programs wrote, for read_parquet() and iceberg(). It decodes columns page
// by page (engine/parquet). Batches point into the decoded pages, so a batch ends where a page of any column ends. One
// file is open at a time. Row groups whose statistics contradict the query's conditions are skipped.
//
// Columns of an Iceberg table are found by their field ids, so files that are older than a schema change have the
// current columns: a missing column is a constant, and values of a promoted type are widened. Rows that the table has
// deleted are left out.

import { budgets } from '../../memory/budgets.js'
import { ColumnReader, type ColumnTools, type RowReader } from '../../parquet/column-reader.js'
import { foreignColumns, leafCount } from '../../parquet/columns.js'
import { chunkOf, type ForeignGroups, readGroups, readSchema } from '../../parquet/footer.js'
import { type ForeignColumn, leavesOf } from '../../parquet/foreign-column.js'
import type { EqualityDelete, ForeignFile, ForeignSource } from '../../parquet/foreign-file.js'
import { type ChunkTest, chunkTest } from '../../parquet/group-bounds.js'
import { NestedReader, type ValuesOf } from '../../parquet/nested-reader.js'
import { openForeign } from '../../parquet/read-columns.js'
import { TableColumns } from '../../parquet/table-columns.js'
import type { Plan } from '../../sql/plan/plan.js'
import { Scratch } from '../../storage/part/part-scratch.js'
import { type DataType, typeText, widthOf } from '../../types/column-types.js'
import type { Value } from '../../types/value.js'
import { arenaAllocator } from '../batch/arena-allocator.js'
import type { ExecContext } from '../batch/context.js'
import { ensureCapacity, GatheredBatch, type GrowableBuffer } from '../batch/selection.js'
import { StringHeap } from '../batch/string-heap.js'
import { valueReader, writeValue } from '../batch/values.js'
import { type Batch, batchRowsMax, type Operator, type Pull, type Vector } from '../batch/vector.js'
import { DeletedRows } from './deleted-rows.js'
import { EqualityDeletes, type EqualityKeys } from './equality-deletes.js'
import { readRows } from './read-rows.js'

type ForeignPlan = Extract<Plan, { kind: 'foreign' }>

export function foreignOperator(context: ExecContext, plan: ForeignPlan): Operator {
  const scan = new ForeignScan(context, plan)
  context.onEnd(() => scan.close())
  return scan
}

/** What the files of a scan share. */
interface ScanTools {
  readonly context: ExecContext
  readonly plan: ForeignPlan
  readonly shared: Scratch
  readonly deleted: DeletedRows
  readonly equality: EqualityDeletes
  readonly gathered: GatheredBatch
  readonly selection: GrowableBuffer
  readonly constants: Constants
  readonly tests: readonly { readonly column: number; readonly test: ChunkTest }[]
}

class ForeignScan implements Operator {
  readonly #tools: ScanTools
  #next = 0
  #file: OpenedFile | null = null

  constructor(context: ExecContext, plan: ForeignPlan) {
    const types = plan.wanted.map(({ type }) => type)
    this.#tools = {
      ...{ context, plan },
      shared: new Scratch(context.memory, arenaAllocator(context.arena), budgets.queries),
      deleted: new DeletedRows(context),
      equality: new EqualityDeletes(context, (file, columns, take) =>
        readRows(context, file, (elements) => keyColumns(file, columns, elements), take),
      ),
      gathered: new GatheredBatch(context, types),
      selection: { address: 0, rows: 0 },
      constants: new Constants(context),
      tests: plan.conditions.flatMap((condition) => {
        const test = chunkTest(condition)
        return test === null ? [] : [{ column: condition.column, test }]
      }),
    }
  }

  pull(): Pull {
    this.#file ??= this.#open()
    if (this.#file === null) return null
    const pulled = this.#file.pull()
    if (pulled !== null) return pulled
    this.#file.close()
    this.#file = null
    return 'working'
  }

  close(): void {
    this.#file?.close()
    this.#file = null
  }

  #open(): OpenedFile | null {
    const source = this.#tools.plan.files[this.#next]
    if (source === undefined) return null
    this.#next++
    const file = openForeign(source)
    try {
      return new OpenedFile(file, source, this.#tools)
    } catch (error) {
      file.close()
      throw error
    }
  }
}

/** A wanted column: one of the file, or the value that all rows of the file have. */
type Found =
  | { readonly kind: 'column'; readonly column: ForeignColumn }
  | { readonly kind: 'constant'; readonly value: Value }

class OpenedFile {
  readonly #file: ForeignFile
  readonly #tools: ScanTools
  readonly #footer: ForeignGroups
  /** Those of the plan, and behind them others that equality deletes compare. */
  readonly #wanted: readonly Wanted[]
  readonly #found: readonly Found[]
  /** By wanted column; null: a constant. */
  readonly #readers: readonly (RowReader | null)[]
  readonly #open: readonly RowReader[]
  /** Positions in ascending order; empty: no row is deleted. */
  readonly #deleted: Float64Array
  readonly #sequence: number
  /** Values that rows are deleted by, and the numbers of their columns. */
  readonly #keys: readonly { readonly keys: EqualityKeys; readonly columns: readonly number[] }[]
  /** Of the first deleted row that is not passed. */
  #nextDeleted = 0
  #group = -1
  #rowsLeft = 0
  /** Of the next row within the file. */
  #position = 0

  constructor(file: ForeignFile, source: ForeignSource, tools: ScanTools) {
    const { plan, context, shared } = tools
    this.#file = file
    this.#tools = tools
    const { elements, rows } = readSchema(file)
    const equality = source.data === undefined ? [] : tools.equality.of(source.data.equality)
    this.#wanted = withKeyColumns(
      plan.wanted,
      equality.flatMap(({ columns }) => columns),
    )
    this.#keys = equality.map(({ keys, columns }) => ({
      keys,
      columns: columns.map(({ field }) => this.#wanted.findIndex((one) => one.field?.id === field.id)),
    }))
    this.#sequence = source.data?.sequence ?? 0
    this.#found = wantedColumns(file, source, { exact: plan.exact, wanted: this.#wanted }, elements)
    const leaves = this.#found.flatMap((found) =>
      found.kind === 'column' ? leavesOf(found.column).map(({ leaf }) => leaf) : [],
    )
    this.#footer = readGroups(file, leafCount(elements), new Set(leaves))
    const found = this.#footer.groups.reduce((sum, group) => sum + group.rows, 0)
    if (found !== rows) throw file.error(`the row groups have ${found} rows, but the footer says ${rows}`)
    this.#deleted =
      source.data === undefined || source.data.positions.length === 0
        ? new Float64Array(0)
        : tools.deleted.of(source.data)
    const { memory, arena, kernels } = context
    const { parquet, foreign } = kernels
    const own: ColumnTools = { memory, allocator: arenaAllocator(arena), file, shared, parquet, foreign }
    const valuesOf: ValuesOf = (type, address) => valueReader(memory, context.strings, { type, address, dictionary: 0 })
    this.#readers = this.#found.map((one) => (one.kind === 'column' ? readerOf(own, one.column, valuesOf) : null))
    this.#open = this.#readers.filter((reader) => reader !== null)
  }

  /** null after the last row of the file. */
  pull(): Pull {
    if (this.#rowsLeft === 0) {
      if (this.#group + 1 >= this.#footer.groups.length) return null
      this.#openGroup(++this.#group)
      return 'working'
    }
    const waiting = this.#open.find(({ ready }) => ready === 0)
    if (waiting !== undefined) {
      this.#tools.context.alive()
      waiting.load()
      return 'working'
    }
    const rows = this.#open.reduce((least, { ready }) => Math.min(least, ready), Math.min(batchRowsMax, this.#rowsLeft))
    this.#rowsLeft -= rows
    const { plan, constants } = this.#tools
    const vectors = this.#readers.map((reader, index): Vector => {
      const type = this.#wanted[index]?.type as DataType
      const found = this.#found[index]
      if (reader !== null) return { type, address: reader.take(rows), dictionary: 0 }
      return { type, address: constants.of(type, found?.kind === 'constant' ? found.value : null), dictionary: 0 }
    })
    const from = this.#position
    this.#position += rows
    const batch = { rows, vectors: vectors.slice(0, plan.wanted.length) }
    const isWhole = this.#deleted.length === 0 && this.#keys.length === 0
    return isWhole ? batch : this.#withoutDeleted(batch, vectors, from)
  }

  close(): void {
    for (const reader of this.#open) reader.release()
    this.#file.close()
  }

  /** `all`: with the vectors that equality deletes compare; `from`: the position of the batch's first row. */
  #withoutDeleted(batch: Batch, all: readonly Vector[], from: number): Pull {
    const deleted = this.#deleted
    const { context, gathered, selection } = this.#tools
    const before = this.#nextDeleted
    while (this.#nextDeleted < deleted.length && deleted[this.#nextDeleted]! < from + batch.rows) this.#nextDeleted++
    if (this.#nextDeleted === before && this.#keys.length === 0) return batch
    const index = ensureCapacity(context, selection, batch.rows, 4)
    let rows = keptRows(context.memory.u32, index >>> 2, batch.rows, deleted, before, from)
    for (const { keys, columns } of this.#keys) {
      const addresses = columns.map((column) => all[column]?.address ?? 0)
      rows = keys.keep(addresses, index, rows, this.#sequence)
    }
    if (rows === 0) return 'working'
    return rows === batch.rows ? batch : gathered.gather(batch.vectors, index, rows)
  }

  #openGroup(group: number): void {
    const { groups, dataEnd } = this.#footer
    const found = groups[group]
    if (found === undefined) return
    const { rows } = found
    const chunks = this.#open.map(({ column }) =>
      leavesOf(column).map(({ leaf }) => chunkOf(this.#file, found, leaf, dataEnd, { column: column.name, group })),
    )
    const mayPass = this.#tools.tests.every(({ column, test }) => {
      const reader = this.#readers[column]
      // The statistics of a nested column are those of its leaves, and say nothing about its JSON.
      if (reader == null || reader.column.nested !== null) return true
      const [chunk] = chunks[this.#open.indexOf(reader)] ?? []
      return chunk === undefined || test(reader.column, chunk)
    })
    if (!mayPass) {
      this.#skip(rows)
      return
    }
    for (const [index, reader] of this.#open.entries()) {
      reader.open(chunks[index] ?? [], rows, { column: reader.column.name, group })
    }
    this.#rowsLeft = rows
  }

  #skip(rows: number): void {
    this.#position += rows
    while (this.#nextDeleted < this.#deleted.length && this.#deleted[this.#nextDeleted]! < this.#position)
      this.#nextDeleted++
  }
}

function readerOf(tools: ColumnTools, column: ForeignColumn, valuesOf: ValuesOf): RowReader {
  const { nested } = column
  return nested === null ? new ColumnReader(tools, column) : new NestedReader(tools, column, nested, valuesOf)
}

/** Writes the numbers of the rows that are not deleted to `out`; returns how many. */
function keptRows(
  out: Uint32Array,
  at: number,
  rows: number,
  deleted: Float64Array,
  first: number,
  from: number,
): number {
  let [count, next] = [0, first]
  for (let row = 0; row < rows; row++) {
    while (next < deleted.length && deleted[next]! < from + row) next++
    if (next < deleted.length && deleted[next] === from + row) continue
    out[at + count] = row
    count++
  }
  return count
}

/** Runs of one value, as long as a batch. */
class Constants {
  readonly #context: ExecContext
  readonly #heap: StringHeap
  readonly #known = new Map<string, number>()

  constructor(context: ExecContext) {
    this.#context = context
    this.#heap = new StringHeap(context.arena)
  }

  of(type: DataType, value: Value): number {
    const text = value instanceof Uint8Array ? Buffer.from(value).toString('hex') : String(value)
    const key = `${typeText(type)} ${value === null ? 'null' : `= ${text}`}`
    const known = this.#known.get(key)
    if (known !== undefined) return known
    const { memory, arena, symbols } = this.#context
    const width = widthOf(type)
    const address = arena.take(width * batchRowsMax)
    writeValue({ memory, heap: this.#heap, symbols }, type, address, 0, value)
    for (let filled = 1; filled < batchRowsMax; filled *= 2)
      memory.copy(address + filled * width, address, address + Math.min(filled, batchRowsMax - filled) * width)
    this.#known.set(key, address)
    return address
  }
}

type Wanted = ForeignPlan['wanted'][number]

/** The columns with those that equality deletes compare. */
function withKeyColumns(wanted: readonly Wanted[], keys: EqualityDelete['columns']): Wanted[] {
  const all = [...wanted]
  for (const key of keys) {
    if (!all.some(({ field }) => field?.id === key.field.id)) all.push({ ...key, index: -1 })
  }
  return all
}

/** The columns of a file of equality deletes. Throws SqlError if it lacks one. */
function keyColumns(
  file: ForeignFile,
  columns: EqualityDelete['columns'],
  elements: Parameters<typeof foreignColumns>[1],
): ForeignColumn[] {
  const known = new TableColumns(file, elements)
  return columns.map((column) => {
    const found = known.find(column)
    if (found === undefined) throw file.error('a file of deletes lacks a column', { column: column.name })
    return found
  })
}

function wantedColumns(
  file: ForeignFile,
  { data }: ForeignSource,
  plan: Pick<ForeignPlan, 'exact' | 'wanted'>,
  elements: Parameters<typeof foreignColumns>[1],
): Found[] {
  if (data === undefined) {
    const { columns } = foreignColumns(file, elements, plan.exact)
    return plan.wanted.map((wanted) => ({ kind: 'column', column: sameColumn(file, columns, wanted) }))
  }
  const columns = new TableColumns(file, elements)
  return plan.wanted.map((wanted): Found => {
    const column = columns.find(wanted)
    if (column !== undefined) return { kind: 'column', column }
    const { field } = wanted
    const value = data.values.get(field?.id ?? -1)
    return { kind: 'constant', value: value === undefined ? (field?.initial ?? null) : value }
  })
}

/** Checks that the file still has the column of the plan, since another program may have replaced the file. */
function sameColumn(
  file: ForeignFile,
  columns: readonly ForeignColumn[],
  { index, name, type }: ForeignPlan['wanted'][number],
): ForeignColumn {
  const column = columns[index]
  if (column !== undefined && column.name === name && typeText(column.type) === typeText(type)) return column
  throw file.error('the file was replaced by one with different columns', { column: name })
}
