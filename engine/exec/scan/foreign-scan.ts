// Operator: read_parquet(), the rows of Parquet files that other programs wrote. Columns are decoded page by page
// (engine/parquet), and batches point into the decoded pages, so a batch ends where a page of any column ends. One file
// is open at a time.

import { budgets } from '../../memory/budgets.js'
import { ColumnReader, type ColumnTools } from '../../parquet/column-reader.js'
import { type ForeignColumn, foreignColumns } from '../../parquet/columns.js'
import { chunkOf, type ForeignGroups, readGroups, readSchema } from '../../parquet/footer.js'
import type { ForeignFile } from '../../parquet/foreign-file.js'
import { openForeign } from '../../parquet/read-columns.js'
import type { Plan } from '../../sql/plan/plan.js'
import { Scratch } from '../../storage/part/part-scratch.js'
import { typeText } from '../../types/column-types.js'
import { arenaAllocator } from '../batch/arena-allocator.js'
import type { ExecContext } from '../batch/context.js'
import { batchRowsMax, type Operator, type Pull, type Vector } from '../batch/vector.js'

type ForeignPlan = Extract<Plan, { kind: 'foreign' }>

export function foreignOperator(context: ExecContext, plan: ForeignPlan): Operator {
  const scan = new ForeignScan(context, plan)
  context.onEnd(() => scan.close())
  return scan
}

class ForeignScan implements Operator {
  readonly #context: ExecContext
  readonly #plan: ForeignPlan
  readonly #shared: Scratch
  #next = 0
  #file: OpenedFile | null = null

  constructor(context: ExecContext, plan: ForeignPlan) {
    this.#context = context
    this.#plan = plan
    this.#shared = new Scratch(context.memory, arenaAllocator(context.arena), budgets.queries)
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
    const source = this.#plan.files[this.#next]
    if (source === undefined) return null
    this.#next++
    const file = openForeign(source)
    try {
      return new OpenedFile(file, this.#context, this.#plan, this.#shared)
    } catch (error) {
      file.close()
      throw error
    }
  }
}

class OpenedFile {
  readonly #file: ForeignFile
  readonly #context: ExecContext
  readonly #plan: ForeignPlan
  readonly #footer: ForeignGroups
  readonly #readers: readonly ColumnReader[]
  #group = -1
  #rowsLeft = 0

  constructor(file: ForeignFile, context: ExecContext, plan: ForeignPlan, shared: Scratch) {
    this.#file = file
    this.#context = context
    this.#plan = plan
    const { elements, rows } = readSchema(file)
    const columns = foreignColumns(file, elements, plan.exact)
    const wanted = plan.wanted.map((column) => wantedColumn(file, columns, column))
    this.#footer = readGroups(file, columns.length, new Set(wanted.map(({ leaf }) => leaf)))
    const found = this.#footer.groups.reduce((sum, group) => sum + group.rows, 0)
    if (found !== rows) throw file.error(`the row groups have ${found} rows, but the footer says ${rows}`)
    const { memory, arena, kernels } = context
    const { parquet, foreign } = kernels
    const tools: ColumnTools = { memory, allocator: arenaAllocator(arena), file, shared, parquet, foreign }
    this.#readers = wanted.map((column) => new ColumnReader(tools, column))
  }

  /** null after the last row of the file. */
  pull(): Pull {
    if (this.#rowsLeft === 0) {
      if (this.#group + 1 >= this.#footer.groups.length) return null
      this.#openGroup(++this.#group)
      return 'working'
    }
    const waiting = this.#readers.find(({ ready }) => ready === 0)
    if (waiting !== undefined) {
      this.#context.alive()
      waiting.load()
      return 'working'
    }
    const rows = this.#readers.reduce(
      (least, { ready }) => Math.min(least, ready),
      Math.min(batchRowsMax, this.#rowsLeft),
    )
    this.#rowsLeft -= rows
    const vectors = this.#readers.map((reader, index): Vector => {
      const { type } = this.#plan.wanted[index] as ForeignPlan['wanted'][number]
      return { type, address: reader.take(rows), dictionary: 0 }
    })
    return { rows, vectors }
  }

  close(): void {
    for (const reader of this.#readers) reader.release()
    this.#file.close()
  }

  #openGroup(group: number): void {
    const { groups, dataEnd } = this.#footer
    const found = groups[group] as ForeignGroups['groups'][number]
    const { rows } = found
    for (const reader of this.#readers) {
      const { name, leaf } = reader.column
      const place = { column: name, group }
      reader.open(chunkOf(this.#file, found, leaf, dataEnd, place), rows, place)
    }
    this.#rowsLeft = rows
  }
}

/** Checks that the file still has the column of the plan, since another program may have replaced the file. */
function wantedColumn(
  file: ForeignFile,
  columns: readonly ForeignColumn[],
  { index, name, type }: ForeignPlan['wanted'][number],
): ForeignColumn {
  const column = columns[index]
  if (column !== undefined && column.name === name && typeText(column.type) === typeText(type)) return column
  throw file.error('the file was replaced by one with different columns', { column: name })
}
