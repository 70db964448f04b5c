// Values that all rows of a group share. A group consists of the rows that are equal by ORDER BY (peers), or of all
// rows of a partition. Rows come in the order of the window. A first pass over them finds the number of rows and the
// values of each group; a second pass, which has the rows in blocks, takes them from there.

import { assert } from '../../base/assert.js'
import type { PlanColumn, WindowCall } from '../../sql/plan/plan.js'
import { type DataType, dataType } from '../../types/column-types.js'
import type { Value } from '../../types/value.js'
import type { ExecContext } from '../batch/context.js'
import { type ValueReader, valueReader } from '../batch/values.js'
import { isBatch, type Operator } from '../batch/vector.js'
import type { Steps } from '../join/join-build.js'
import { valuesOperator } from '../operators/rows-of-values.js'
import { type Block, blockOf, type OrderedCall } from './window-blocks.js'
import type { Prepared } from './window-calls.js'
import { type OrderKeys, WindowOrder, type Working } from './window-order.js'
import { ResultColumn, type WindowResult } from './window-result.js'
import type { WindowRows } from './window-rows.js'
import { type Fold, foldOf } from './window-running.js'

export type Level = 'peers' | 'partition'

/** The columns of the first pass. */
export function groupColumns(calls: readonly WindowCall[]): PlanColumn[] {
  return [{ name: 'rows', type: dataType('LONG') }, ...calls.map(({ name, type }) => ({ name, type }))]
}

/** Groups whose values are returned together. */
const groupsMin = 1024

/** The first pass: a row for each group, with the number of its rows and the values of the calls. */
export function* groupRows(
  rows: WindowRows,
  input: Operator,
  keys: OrderKeys | null,
  calls: readonly Prepared[],
  level: Level,
): Steps {
  if (keys === null) return
  const groups = new Groups(rows, calls)
  for (let from = 0; ; ) {
    const batch = input.pull()
    if (batch === null) break
    if (!isBatch(batch)) {
      yield batch
      continue
    }
    rows.append(batch)
    const order = yield* WindowOrder.make(rows, keys)
    const block = blockOf(order, from, rows.rows)
    groups.add(block, level === 'peers' ? block.startsPeers : block.startsPartition)
    yield* groups.take(groupsMin)
    rows.forgetWork()
    rows.store.keepLast(1)
    from = 1
  }
  groups.finish()
  yield* groups.take(1)
}

class Groups {
  readonly #folds: readonly Fold[]
  readonly #finished: Value[][] = []
  readonly #output: Operator
  /** Rows of the current group. */
  #count = 0

  constructor(rows: WindowRows, calls: readonly Prepared[]) {
    this.#folds = calls.map(({ call, slots }) => foldOf(rows, call, slots))
    const columns = groupColumns(calls.map(({ call }) => call))
    this.#output = valuesOperator(rows.own, columns, (_from, count) => this.#finished.splice(0, count))
  }

  add({ from, to, startsPartition }: Block, starts: (row: number) => boolean): void {
    for (const fold of this.#folds) fold.bind()
    for (let row = from; row < to; row++) {
      if (starts(row)) this.finish()
      // The frame of peers begins with the partition.
      if (startsPartition(row)) for (const fold of this.#folds) fold.reset()
      for (const fold of this.#folds) fold.add(row)
      this.#count++
    }
  }

  finish(): void {
    if (this.#count > 0) this.#finished.push([BigInt(this.#count), ...this.#folds.map((fold) => fold.value(0))])
    this.#count = 0
  }

  /** Returns the finished groups if there are so many. */
  *take(least: number): Steps {
    if (this.#finished.length < least) return
    while (this.#finished.length > 0) {
      const batch = this.#output.pull()
      if (batch !== null) yield batch
    }
  }
}

/** The second pass: the values of the groups, in their order. */
export class GroupValues {
  readonly #context: ExecContext
  readonly #source: Operator
  readonly #calls: readonly WindowCall[]
  /** Of the columns of the current batch. */
  #readers: readonly ValueReader[] = []
  #batchRows = 0
  #next = 0
  /** Number of rows and values of the current group. */
  #group: readonly Value[] = []
  /** By row of the block. */
  #counts = new Float64Array(0)
  #results: readonly WindowResult[] = []

  /** `source`: the rows of the first pass with these calls. */
  constructor(context: ExecContext, source: Operator, calls: readonly WindowCall[]) {
    this.#context = context
    this.#source = source
    this.#calls = calls
  }

  /** Finds the values for the rows of a block. */
  advance(rows: WindowRows, { from, to }: Block, starts: (row: number) => boolean): void {
    const columns = this.#calls.map(({ type }) => new ResultColumn(rows, type))
    const counts = new Float64Array(rows.rows)
    for (let row = from, repeats = false; row < to; row++, repeats = true) {
      if (starts(row)) {
        this.#group = this.#read()
        repeats = false
      }
      counts[row] = Number(this.#group[0])
      for (const [index, column] of columns.entries()) {
        if (repeats) column.repeat(row)
        else column.set(row, this.#group[index + 1] ?? null)
      }
    }
    this.#counts = counts
    this.#results = columns.map(({ result }) => result)
  }

  #read(): readonly Value[] {
    if (this.#next === this.#batchRows) {
      const { memory, strings } = this.#context
      const pulled = this.#source.pull()
      assert(isBatch(pulled), 'Q2: both passes find the same groups')
      this.#readers = pulled.vectors.map((vector) => valueReader(memory, strings, vector))
      this.#batchRows = pulled.rows
      this.#next = 0
    }
    const row = this.#next++
    return this.#readers.map((read) => read(row))
  }

  /** Rows of the group of a row of the block. */
  rowsOf(row: number): number {
    return this.#counts[row] ?? 0
  }

  resultOf(call: WindowCall): WindowResult {
    const result = this.#results[this.#calls.indexOf(call)]
    assert(result !== undefined, 'Q2: the first pass has computed the call')
    return result
  }
}

export interface GroupLevels {
  readonly peers: GroupValues | null
  readonly partition: GroupValues | null
}

/** A call with one value for each group. */
export class GroupCall implements OrderedCall {
  readonly type: DataType
  readonly reach = null
  readonly #call: WindowCall
  readonly #values: GroupValues

  constructor(call: WindowCall, values: GroupValues | null) {
    assert(values !== null, 'Q2: a first pass has found the values')
    this.type = call.type
    this.#call = call
    this.#values = values
  }

  *result(): Working<WindowResult> {
    yield 'working'
    return this.#values.resultOf(this.#call)
  }

  neededFor(to: number): number {
    return to
  }

  drop(): void {}
}
