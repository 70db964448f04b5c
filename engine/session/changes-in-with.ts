// Executes statements with data changes in WITH (`WITH x AS (INSERT .. RETURNING ..) ..`). All parts of the statement
// read one snapshot of the tables. Their changes are collected and then committed by one request to the writer, as one
// transaction (storage/writer/writer-replace.ts), so an error before the commit leaves no change. The writer refuses
// the request as stale if rows have moved, or if another upsert was committed after the snapshot. Then the whole
// statement is planned and executed again.

import type { ExecuteOptions, ResultColumn, StatementResult } from '../api/statements.js'
import { assert } from '../base/assert.js'
import { ResourceError, SqlError, whenReady } from '../base/errors.js'
import { ownRows } from '../pg/own-rows.js'
import type { Plan } from '../sql/plan/plan.js'
import { changedRows } from '../sql/statements/changes-in-with.js'
import { type PlanOptions, planOfWith, planReturning } from '../sql/statements/plan-statement.js'
import type { PlannedStatement, Returning } from '../sql/statements/planned.js'
import type { PackedRows, Removal, TableReplacement } from '../storage/jobs/messages.js'
import { requireReturnable } from '../storage/jobs/rewrite-changes.js'
import type { Value } from '../types/value.js'
import { packedValues } from './insert-new.js'
import { type InsertOperations, insertRows } from './inserts.js'
import { allRows, cancelAtAbort, type Planned, rowsOf } from './plan-helpers.js'
import { anew, resumed } from './planner.js'
import { sleepBefore } from './query-runs.js'
import { distinctRows, type Held, heldBy, untilAccepted, upsertBytesMax, upsertWithin } from './upserts.js'

type Rows = readonly (readonly Value[])[]

/** The result of one of the statements. */
interface Result {
  readonly columns: readonly ResultColumn[]
  readonly rows: Rows
}

/** The changes of one of the statements. */
interface Change {
  readonly tableId: number
  readonly rows: number
  readonly packed: readonly PackedRows[]
  readonly removal: Removal | null
}

interface Outcome {
  /** Of the last statement. */
  readonly result: Result | null
  readonly rows: number
}

export async function changeRows(
  sql: string,
  planned: Planned<'withChanges'>,
  options: ExecuteOptions,
  operations: InsertOperations,
  compilerMs: number,
): Promise<StatementResult> {
  const { tag, targets } = planned
  const work = (): Promise<Outcome> =>
    untilAccepted(options, async (isFirst) => {
      const current: PlannedStatement = isFirst ? planned : await operations.again()
      assert(current.kind === 'withChanges', 'B4: a statement that is planned again is still of its kind')
      return attempt(sql, current, options, operations)
    })
  // In the order of the ids, so that two statements do not wait for each other.
  const inOrder = [...targets].sort((x, y) => y - x)
  const run = inOrder.reduce((inner, id) => () => operations.turns.inTurn(id, inner), work)
  const { result, rows } = await run()
  if (result === null) return { kind: 'done', tag, rows, compilerMs }
  const list = operations.list(result.columns, result.rows)
  if (tag === 'SELECT') return list
  return Object.assign(list, tag === 'INSERT' ? { inserted: rows } : { changed: tag })
}

/** Returns null if the statement must be executed again. */
async function attempt(
  sql: string,
  { statement, tables }: Planned<'withChanges'>,
  options: ExecuteOptions,
  operations: InsertOperations,
): Promise<Outcome | null> {
  const { snapshots, release } = operations.hold(tables)
  try {
    // What was read to decide the columns of the plan is read again, in the snapshot.
    const held = heldBy(anew(options, undefined), snapshots)
    const names: NonNullable<PlanOptions['commonTables']>[number][] = []
    // The RETURNING lists of statements are planned like the statements.
    const planOptions = (requested: ExecuteOptions): PlanOptions => ({
      ...operations.planOptions(requested),
      commonTables: names,
    })
    const within: Within = { sql, options: held, operations: { ...operations, planOptions }, changes: new Changes() }
    const run = async (part: Parameters<typeof planOfWith>[0]): Promise<Outcome | null> => {
      let own: Held = held
      const plan = (planning?: object): PlannedStatement => {
        own = resumed(own, planning)
        return planOfWith(part, sql, planOptions(own))
      }
      const planned = await whenReady(plan)
      return executed(planned, { ...within, options: own })
    }
    for (const table of statement.tables) {
      if ('query' in table) {
        names.push(table)
        continue
      }
      const done = await run(table.statement)
      if (done === null) return null
      names.push(changedRows(table, done.result?.columns ?? null, done.result?.rows ?? []))
    }
    const outcome = await run(statement.statement)
    const replaced = within.changes.byTable()
    if (outcome === null || options.isPreview === true || replaced.length === 0) return outcome
    const { isStale } = await operations.replace(replaced)
    return isStale === true ? null : outcome
  } finally {
    release()
  }
}

interface Within {
  readonly sql: string
  readonly options: Held
  readonly operations: InsertOperations
  readonly changes: Changes
}

async function executed(planned: PlannedStatement, within: Within): Promise<Outcome | null> {
  if (planned.kind === 'query') {
    if (planned.sleepMs > 0) await sleepBefore(planned.sleepMs, within.options)
    const rows = await rowsOfQuery(planned, within)
    return { result: { columns: planned.columns, rows }, rows: rows.length }
  }
  const change = await changeOf(planned, within)
  if (change === null) return null
  within.changes.add(change)
  const returning = 'returning' in planned ? planned.returning : null
  const result = returning === null ? null : await returnedRows(returning, change, within)
  return { result, rows: change.rows }
}

async function changeOf(planned: PlannedStatement, within: Within): Promise<Change | null> {
  const { sql, options, operations } = within
  switch (planned.kind) {
    case 'upsert': {
      const found = await upsertWithin(sql, planned, options, operations)
      if (found === null) return null
      within.changes.count(found.bytes)
      return { tableId: planned.tableId, ...found }
    }
    case 'insertReturning':
      return changeOf(planned.insert, within)
    case 'insert':
    case 'insertSelect':
    case 'insertNew':
      return inserted(planned, within)
    default:
      throw new SqlError('WITH takes INSERT, UPDATE, DELETE, MERGE and queries', 0)
  }
}

async function inserted(
  planned: Planned<'insert' | 'insertSelect' | 'insertNew'>,
  { sql, options, operations, changes }: Within,
): Promise<Change> {
  const packed: PackedRows[] = []
  const into: NonNullable<ExecuteOptions['into']> = async (_, batch) => {
    changes.count(batch.bytes)
    if (batch.packed.rows > 0) packed.push(batch.packed)
  }
  const tableId = planned.kind === 'insert' ? planned.rows.tableId : planned.tableId
  if (planned.kind === 'insert') await into(tableId, packedValues(planned.rows))
  else await insertRows(sql, planned, { ...options, into }, operations)
  return { tableId, rows: packed.reduce((sum, { rows }) => sum + rows, 0), packed, removal: null }
}

async function returnedRows(
  returning: Returning,
  { tableId, packed, rows: count }: Change,
  within: Within,
): Promise<Result> {
  const { sql, options, operations } = within
  requireReturnable(count)
  const version = options.session.snapshot.snapshotOf(tableId)?.version
  assert(version !== undefined, 'Q1: the changed tables are held')
  const planned = planReturning(returning, version, ownRows(version, packed), sql, operations.planOptions(options))
  return { columns: planned.columns, rows: await rowsOfQuery(planned, within) }
}

/** The rows of a plan that only picks columns of known rows, as that of RETURNING * does; null for other plans. */
function knownRows(plan: Plan): Rows | null {
  if (plan.kind === 'values') return plan.rows
  const rows = plan.kind === 'project' ? knownRows(plan.input) : null
  if (rows === null || plan.kind !== 'project') return null
  const places = plan.expressions.flatMap((expression) => (expression.kind === 'column' ? [expression.index] : []))
  if (places.length < plan.expressions.length) return null
  return rows.map((row) => places.map((place) => row[place] ?? null))
}

async function rowsOfQuery({ query }: Planned<'query'>, { sql, options, operations }: Within): Promise<Rows> {
  const known = knownRows(query.plan)
  if (known !== null) return known
  const running = operations.run(sql, query, { ...options, ...allRows, encoding: { kind: 'values' } })
  cancelAtAbort(options.signal, running)
  const rows: (readonly Value[])[] = []
  for await (const batch of running.values) {
    requireReturnable(rows.length + batch.length)
    for (const row of batch) rows.push(row)
  }
  return rows
}

/** The changes of all statements, which must fit into one frame of the log. */
class Changes {
  readonly #changes: Change[] = []
  #bytes = 0

  /** Throws ResourceError. */
  count(bytes: number): void {
    this.#bytes += bytes
    if (this.#bytes > upsertBytesMax)
      throw new ResourceError(`WITH changes too much for one transaction [maxBytes=${upsertBytesMax}]`)
  }

  add(change: Change): void {
    this.#changes.push(change)
  }

  /** Throws SqlError if two statements change the same row. */
  byTable(): TableReplacement[] {
    const tableIds = [...new Set(this.#changes.flatMap(({ rows, tableId }) => (rows > 0 ? [tableId] : [])))]
    return tableIds.map((tableId) => {
      const own = this.#changes.filter((change) => change.tableId === tableId && change.rows > 0)
      return {
        input: rowsOf(
          tableId,
          own.flatMap(({ packed }) => packed),
        ),
        removal: joined(own),
      }
    })
  }
}

/** The removals of several changes of a table. The hidden rows are numbered by their place among all added rows. */
function joined(changes: readonly Change[]): Removal | null {
  const removals = changes.flatMap(({ removal }) => removal ?? [])
  const [first] = removals
  if (first === undefined) return null
  let before = 0
  const hidden = changes.flatMap(({ removal, rows }) => {
    const own = [...(removal?.hidden ?? [])].map((row) => before + row)
    before += rows
    return own
  })
  const together = (pieces: Removal['parts']): Removal['parts'] => {
    const ids = [...new Set(pieces.map(([id]) => id))]
    return ids.map((id) => {
      const rows = pieces.flatMap(([piece, numbers]) => (piece === id ? [...numbers] : []))
      return [id, distinctRows(rows, 'WITH')] as const
    })
  }
  return {
    ...{ schemaVersion: first.schemaVersion, transaction: first.transaction, hidden: Uint32Array.from(hidden) },
    parts: together(removals.flatMap(({ parts }) => parts)),
    memtables: together(removals.flatMap(({ memtables }) => memtables)),
  }
}
