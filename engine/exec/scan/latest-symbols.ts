// Operators: LATEST ON one symbol column (dictionary-encoded strings) of a table without a filter, and GROUP BY that
// needs only the newest row of each group. They first find where the newest row of each symbol is stored
// (newest-places.ts), and then read only these rows.

import { nonNull } from '../../base/assert.js'
import { sortScratchBytes } from '../../kernels/sort.js'
import { dictionaryCount, visibleTransaction } from '../../memory/column-layout.js'
import type { SharedMemory } from '../../memory/shared-memory.js'
import { firstLast } from '../../sql/plan/first-last.js'
import { type Expression, type Plan, rowIdColumn } from '../../sql/plan/plan.js'
import { precedesDedup, type TableVersion } from '../../storage/schema/schema.js'
import { sameType, widthOf } from '../../types/column-types.js'
import type { ExecContext } from '../batch/context.js'
import { RowBuffer } from '../batch/row-buffer.js'
import { GatheredBatch } from '../batch/selection.js'
import { rowsFor } from '../batch/small-batches.js'
import { sortedOrder } from '../batch/sort-order.js'
import { type Batch, isBatch, type Operator, type Pull, type Vector } from '../batch/vector.js'
import { type LatestPlan, orderedRows } from './latest.js'
import { listRuns, type ScanMorsel } from './morsels.js'
import { NewestPlaces, type PlacesShape } from './newest-places.js'
import { columnsRead, type ScanShape } from './scan-shape.js'
import { scanRuns } from './zones.js'

type AggregatePlan = Extract<Plan, { kind: 'aggregate' }>

/** undefined when the plan has another form. */
export function latestBySymbol(context: ExecContext, plan: LatestPlan, scan: ScanShape): Operator | undefined {
  const [key = -1, ...more] = plan.keys
  if (more.length > 0) return undefined
  return newestRows(context, scan, key, (rows) => rows.byTime(plan.timestampIndex))
}

/**
 * GROUP BY one symbol column, if every aggregate is max() of the designated timestamp or last(): its groups are the
 * newest rows. They come in the order in which the table got its symbols.
 */
export function newestGroups(context: ExecContext, plan: AggregatePlan, scan: ScanShape): Operator | undefined {
  if (plan.ordered === true || !areNewest(plan, scan)) return undefined
  const read = [...plan.keys, ...plan.aggregates.map(({ args }) => args[0])].map(columnOf)
  const input = newestRows(context, scan, read[0] ?? -1, (rows) => rows.bySymbol())
  if (input === undefined) return undefined
  const pull = (): Pull => {
    const batch = input.pull()
    return isBatch(batch) ? { rows: batch.rows, vectors: read.map((column) => nonNull(batch.vectors[column])) } : batch
  }
  return { pull }
}

/** Whether the newest row of each symbol has all that the groups need. */
export function areNewest(
  { keys, aggregates }: Pick<AggregatePlan, 'keys' | 'aggregates'>,
  { snapshot, columnIds, filter }: Pick<ScanShape, 'snapshot' | 'columnIds' | 'filter'>,
): boolean {
  const [key, ...more] = keys
  const { timestampId } = snapshot.version.schema
  if (key?.kind !== 'column' || key.type.name !== 'SYMBOL' || more.length > 0 || filter !== null) return false
  if (timestampId < 0 || aggregates.length === 0) return false
  return aggregates.every((call) => {
    const [argument] = call.args
    if (argument?.kind !== 'column' || !sameType(argument.type, call.type)) return false
    const end = firstLast(call)
    if (end !== undefined) return end.descending && !end.present
    return call.name === 'max' && columnIds[argument.index] === timestampId
  })
}

function columnOf(expression: Expression | undefined): number {
  return expression?.kind === 'column' ? expression.index : -1
}

function newestRows(
  context: ExecContext,
  scan: ScanShape,
  key: number,
  orderOf: (rows: PlacedRows) => number,
): Operator | undefined {
  const columnId = scan.columnIds[key]
  const known = scan.snapshot.version.dictionaries.find(([id]) => id === columnId)
  if (columnId === undefined || known === undefined || scan.filter !== null) return undefined
  if (scan.types[key]?.name !== 'SYMBOL') return undefined
  const [, dictionary] = known
  let rows: PlacedRows | null = null
  let emit: (() => Batch | null) | null = null
  const pull = (): Pull => {
    if (emit !== null) return emit()
    rows ??= new PlacedRows(context, scan, columnId, dictionaryCount(context.memory, dictionary) + 1)
    const done = rows.step()
    if (done === 'waiting') return done
    if (done && rows.buffer.rows === 0) return null
    if (done) emit = orderedRows(context, scan.types, rows.buffer, orderOf(rows))
    return 'working'
  }
  return { pull }
}

/** Which rows of the table do not count, as NewestPlaces needs to know. */
function replacedRows(
  memory: SharedMemory,
  { schema, memtables, removals }: TableVersion,
  columnId: number,
): PlacesShape['replaced'] {
  const { dedupKeys, dedupSkips } = schema
  if (dedupKeys.length === 0) return 'marked'
  if (!dedupKeys.includes(columnId) || dedupSkips === true || removals !== undefined) return 'compared'
  // Until it is flushed, a memtable may have rows that other keys have replaced, those of an earlier DEDUP.
  const isEarlier = memtables.some(({ address }) => {
    const transaction = visibleTransaction(memory, address)
    return transaction > 0 && precedesDedup(schema, transaction)
  })
  // Rows with equal keys have equal timestamps, and the later one is the newer one even if both counted.
  return isEarlier ? 'compared' : 'bySymbol'
}

class PlacedRows {
  readonly buffer: RowBuffer
  readonly #context: ExecContext
  readonly #scan: ScanShape
  readonly #places: NewestPlaces
  readonly #read: readonly number[]
  readonly #gathered: GatheredBatch
  /** Places (unit << 32 | row) in commit order; 0 until they are known. */
  #sorted = 0
  /** For each place: which of the found symbols it has, counted in the order of their ids. */
  #slots = 0
  #count = 0
  #next = 0
  /** Numbers of the rows that are read from one morsel. */
  #index = 0

  constructor(context: ExecContext, scan: ScanShape, columnId: number, slots: number) {
    this.#context = context
    this.#scan = scan
    const { timestampId } = scan.snapshot.version.schema
    const { ranges } = scan
    const replaced = replacedRows(context.memory, scan.snapshot.version, columnId)
    // With row ids, the rows have a column that only scanRuns adds.
    const runs =
      replaced === 'bySymbol' && !scan.columnIds.includes(rowIdColumn)
        ? listRuns(context.memory, context.partAccess, scan.snapshot, null)
        : scanRuns(context, { ...scan, ranges: null })
    this.#places = new NewestPlaces(context, runs, { columnId, timestampId, ranges, slots, replaced })
    this.#read = columnsRead(scan)
    this.buffer = new RowBuffer(context, scan.types)
    this.#gathered = new GatheredBatch(context, scan.types)
  }

  /** True when all rows are in the buffer. */
  step(): boolean | 'waiting' {
    if (this.#sorted !== 0) return this.#next === this.#count || this.#readMorsel()
    const found = this.#places.step()
    if (found !== true) return found
    if (this.#places.count === 0) return true
    this.#sort()
    this.buffer.reserve(this.#count)
    return false
  }

  /** Numbers of the buffer's rows in time order; ties keep their order. */
  byTime(timestampIndex: number): number {
    return sortedOrder(this.#context, this.buffer, [{ index: timestampIndex, descending: false, nullsFirst: true }])
  }

  /** Numbers of the buffer's rows by symbol id, NULL first. */
  bySymbol(): number {
    const { arena, memory } = this.#context
    const order = arena.take(this.#count * 4)
    const slots = this.#slots >>> 2
    for (let row = 0; row < this.#count; row++) memory.u32[(order >>> 2) + memory.u32[slots + row]!] = row
    return order
  }

  #sort(): void {
    const { arena, kernels } = this.#context
    const count = this.#places.count
    const batchRows = Math.min(count, rowsFor(this.#scan.types.length))
    this.#index = arena.take(batchRows * 4)
    const places = arena.take(count * 8 + 8)
    this.#count = this.#places.write(places)
    this.#places.free()
    const scratchBytes = sortScratchBytes(count)
    const scratch = arena.take(scratchBytes)
    this.#slots = arena.take(count * 4)
    kernels.sort.sortPermutation(places, count, scratch, scratchBytes, this.#slots)
    this.#sorted = arena.take(count * 8 + 8)
    kernels.sort.gather(8, places, this.#slots, count, this.#sorted)
    for (const address of [places, scratch]) arena.give(address)
  }

  /** Reads the next rows that are in one morsel. */
  #readMorsel(): false | 'waiting' {
    const { u32 } = this.#context.memory
    const word = this.#sorted >>> 2
    const unit = u32[word + this.#next * 2 + 1]!
    const { morsels } = nonNull(this.#places.units[unit]).run
    const morsel = morselOf(morsels, u32[word + this.#next * 2]!)
    if (!morsel.ready(this.#read)) return 'waiting'
    const last = Math.min(this.#count, this.#next + rowsFor(this.#scan.types.length))
    const end = morsel.firstRow + morsel.rows
    const index = this.#index
    let rows = 0
    for (let at = this.#next; at < last && u32[word + at * 2 + 1]! === unit && u32[word + at * 2]! < end; at++)
      u32[(index >>> 2) + rows++] = u32[word + at * 2]! - morsel.firstRow
    this.buffer.append({
      rows,
      vectors: this.#scan.types.map((_, column) => this.#column(morsel, column, index, rows)),
    })
    morsel.release()
    this.#next += rows
    return false
  }

  #column(morsel: ScanMorsel, column: number, index: number, rows: number): Vector {
    const { snapshot, columnIds } = this.#scan
    const type = nonNull(this.#scan.types[column])
    const columnId = nonNull(columnIds[column])
    const dictionary = snapshot.version.dictionaries.find(([id]) => id === columnId)?.[1] ?? 0
    const address = this.#gathered.room(column, rows)
    if (!morsel.pick(columnId, index, 0, rows, address)) {
      const whole = morsel.column(columnId)
      if (whole === 0) return { type, address: this.#context.arena.nulls(type), dictionary }
      this.#context.kernels.sort.gather(widthOf(type), whole, index, rows, address)
    }
    return { type, address, dictionary }
  }
}

/** The morsel with this row of its part or memtable. */
function morselOf(morsels: readonly ScanMorsel[], row: number): ScanMorsel {
  let [from, to] = [0, morsels.length - 1]
  while (from < to) {
    const middle = (from + to + 1) >>> 1
    if (nonNull(morsels[middle]).firstRow <= row) from = middle
    else to = middle - 1
  }
  return nonNull(morsels[from])
}
