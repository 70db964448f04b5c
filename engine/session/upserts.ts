// Executes upserts: MERGE, and INSERT .. ON CONFLICT for tables with declared keys. A query finds the rows to remove
// and to add (sql/statements/upsert.ts), and the writer commits them as one transaction (writer/writer-replace.ts). For
// ON CONFLICT of few rows no query runs if the indexes of keys are in memory: this thread looks up the stored rows
// (exec/run/key-search.ts), and evaluates the SET list over them (sql/statements/conflict-changes.ts).
//
// Upserts of the same table run one after the other. Waiting INSERTs with different keys and the same SET list may run
// together (upsert-turns.ts). If the writer refuses changes as stale, because rows have moved or schemas have changed
// meanwhile, the statement is executed again.

import { setTimeout as sleep } from 'node:timers/promises'
import type { ReadSnapshot } from '../api/session.js'
import type { ExecuteOptions, StatementResult } from '../api/statements.js'
import { assert } from '../base/assert.js'
import { CancelledError, ResourceError, SqlError, TimeoutError } from '../base/errors.js'
import { walFrameBytesMax } from '../base/limits.js'
import { ownRows } from '../pg/own-rows.js'
import type { Insert } from '../sql/ast/ast.js'
import { rowIdColumn } from '../sql/plan/plan.js'
import { boundChange, type ConflictChange, keyText, placesOf, writtenRows } from '../sql/statements/conflict-changes.js'
import { bindContext } from '../sql/statements/new-context.js'
import { planConflicting, planInsertNew } from '../sql/statements/plan-statement.js'
import { actionColumnId, type PlannedStatement, type UpsertQuery, upsertActions } from '../sql/statements/planned.js'
import type { PackedRows, Removal, RowsInput } from '../storage/jobs/messages.js'
import { liveColumns, type TableSnapshot, type TableVersion } from '../storage/schema/schema.js'
import type { SharedUpsert, UpsertResult } from '../threads/upsert-turns.js'
import type { Value } from '../types/value.js'
import type { FoundRows } from './inline-execution.js'
import { gathered } from './insert-new.js'
import { fillTable, type InsertOperations } from './inserts.js'
import { allRows, cancelAtAbort, cancelReason, type Planned, rowsOf } from './plan-helpers.js'

/** Rows of an upsert fit into one frame of the log. */
export const upsertBytesMax = (walFrameBytesMax * 3) / 4
/** How long a statement waits for flushes and compactions that read its rows. */
const patienceMs = 120_000
const [pauseMsFirst, pauseMsMax] = [5, 250]
/** So many times a statement is executed again at once: a version of the table that it needs is there by then. */
const hastyAttempts = 2

type Upsert = Planned<'upsert'>
type Rows = readonly (readonly Value[])[]

/** Options of a statement that reads a snapshot. */
export type Held = ExecuteOptions & { readonly session: { readonly snapshot: ReadSnapshot } }

/** The rows of INSERT, and the schema whose columns they have. */
interface Source {
  readonly rows: Rows
  readonly schemaVersion: number
}

interface FoundQuery {
  readonly found: UpsertQuery
  readonly keys: readonly (readonly number[])[]
}

/** The changes that a query has found, and the rows that they remove from its snapshot of the table. */
export interface Changes extends UpsertResult {
  readonly bytes: number
  readonly removal: Removal
  /** Instead of packed rows: the values, and how many of the changed rows each row of the statement has. */
  readonly input?: RowsInput
  readonly counts?: readonly number[]
}

export async function upsertRows(
  sql: string,
  planned: Upsert,
  options: ExecuteOptions,
  operations: InsertOperations,
  compilerMs: number,
): Promise<StatementResult> {
  const { tableId, tag } = planned
  if (options.into !== undefined)
    throw new SqlError(`${tag === 'INSERT' ? 'ON CONFLICT' : tag} is not supported within a transaction block`, 0)
  const source = await sourceRows(sql, planned, options, operations)
  const changes = await operations.turns.run(tableId, {
    alone: () => attempts(sql, planned, source, options, operations),
    shared: sharedUpsert(sql, planned, source, options, operations),
  })
  const { rows } = changes
  const version = operations.byId(tableId)
  if (planned.returning === null || version === undefined) return { kind: 'done', tag, rows, compilerMs }
  const returned = changes.values ?? ownRows(version, changes.packed)
  const result = operations.lister(planned.returning, version, returned)
  return Object.assign(result, tag === 'INSERT' ? { inserted: rows } : { changed: tag })
}

/** The rows of INSERT; null for MERGE, whose query reads them. */
async function sourceRows(
  sql: string,
  { source, tableId }: Upsert,
  options: ExecuteOptions,
  operations: InsertOperations,
): Promise<Source | null> {
  if (source.kind === 'query') return null
  const version = operations.required(tableId)
  const written = source.insert.kind === 'insert' ? writtenRows(source.insert.rows, version) : null
  if (written !== null) return { rows: written, schemaVersion: version.schema.version }
  const batches = await gathered(source.insert, 'ON CONFLICT', (insert, into) =>
    fillTable(sql, insert, operations.byId(insert.tableId), { ...options, into }, operations),
  )
  const packed = batches.map((batch) => batch.packed)
  const { version: schemaVersion } = version.schema
  // Columns may have changed meanwhile: attempts() then collects the rows again.
  const isCurrent = operations.byId(tableId)?.schema.version === schemaVersion
  return { rows: isCurrent ? ownRows(version, packed) : [], schemaVersion }
}

/** Repeats an attempt, which returns null if the writer has refused its changes as stale. */
export async function untilAccepted<Accepted>(
  options: ExecuteOptions,
  attempt: (isFirst: boolean) => Promise<Accepted | null>,
): Promise<Accepted> {
  const untilMs = performance.now() + (options.timeoutMs > 0 ? options.timeoutMs : patienceMs)
  let pauseMs = pauseMsFirst
  for (let attempted = 0; ; attempted++) {
    if (attempted > hastyAttempts) {
      await sleep(pauseMs)
      pauseMs = Math.min(pauseMs * 2, pauseMsMax)
    }
    const accepted = await attempt(attempted === 0)
    if (accepted !== null) return accepted
    if (options.signal?.aborted === true) throw new CancelledError(cancelReason(options.signal))
    if (performance.now() <= untilMs) continue
    if (options.timeoutMs > 0) throw new TimeoutError(options.timeoutMs)
    throw new ResourceError('the rows of the statement are being flushed or compacted, try again')
  }
}

function attempts(
  sql: string,
  planned: Upsert,
  source: Source | null,
  options: ExecuteOptions,
  operations: InsertOperations,
): Promise<Changes> {
  let [current, from]: [Upsert, Source | null] = [planned, source]
  return untilAccepted(options, async (isFirst) => {
    const isStale = (): boolean =>
      from !== null && operations.byId(planned.tableId)?.schema.version !== from.schemaVersion
    if (isStale() || (from === null && !isFirst)) {
      const again: PlannedStatement = await operations.again()
      assert(again.kind === 'upsert', 'B4: a statement that is planned again is still an upsert')
      current = again
      if (from !== null) from = await sourceRows(sql, current, options, operations)
      if (isStale()) return null
    }
    return attempt(sql, current, from?.rows ?? null, options, operations)
  })
}

/** INSERT .. ON CONFLICT DO UPDATE that may run together with others; null: it may not. */
function sharedUpsert(
  sql: string,
  planned: Upsert,
  source: Source | null,
  options: ExecuteOptions,
  operations: InsertOperations,
): SharedUpsert | null {
  const version = operations.byId(planned.tableId)
  if (source === null || version === undefined || planned.source.kind !== 'rows') return null
  if (version.schema.version !== source.schemaVersion) return null
  const [key = []] = planned.source.keys
  const { statement } = planned.source
  const isAlone = planned.returning !== null || options.isPreview === true
  const kind = isAlone ? null : operations.conflicts.kindOf(statement, key, version, options)
  const places = placesOf(version, key)
  const keys = source.rows.flatMap((row) => keyText(places, row) ?? [])
  if (kind === null || keys.length < source.rows.length || new Set(keys).size < keys.length) return null
  const together = async (group: readonly SharedUpsert[]): Promise<UpsertResult[] | null> => {
    const rows = group.flatMap((one) => one.rows)
    const patient: ExecuteOptions = { ...options, signal: null, timeoutMs: 0 }
    for (let attempted = 0; attempted <= hastyAttempts; attempted++) {
      // The rows have the columns of that schema.
      if (operations.byId(planned.tableId)?.schema.version !== version.schema.version) return null
      const changes = await attempt(sql, planned, rows, patient, operations)
      if (changes !== null) return resultsOf(group, changes, version, key)
    }
    return null
  }
  return { kind, rows: source.rows, keys, isCancelled: () => options.signal?.aborted === true, together }
}

/** How many of the changed rows each statement has, by their keys, which the statements do not change. */
function resultsOf(
  group: readonly SharedUpsert[],
  { packed, counts: found }: Changes,
  version: TableVersion,
  key: readonly number[],
): UpsertResult[] {
  if (found !== undefined) {
    let next = 0
    const rowsOfNext = (): number => found[next++] ?? 0
    return group.map(({ rows }) => ({ packed: [], rows: rows.reduce((sum) => sum + rowsOfNext(), 0) }))
  }
  const counts = new Map<string, number>()
  const places = placesOf(version, key)
  for (const row of ownRows(version, packed)) {
    const text = keyText(places, row) ?? ''
    counts.set(text, (counts.get(text) ?? 0) + 1)
  }
  return group.map(({ keys }) => ({ packed: [], rows: keys.reduce((sum, text) => sum + (counts.get(text) ?? 0), 0) }))
}

/** Returns null if the statement must be executed again. */
async function attempt(
  sql: string,
  planned: Upsert,
  source: Rows | null,
  options: ExecuteOptions,
  operations: InsertOperations,
): Promise<Changes | null> {
  const version = operations.required(planned.tableId)
  const changes = changesByKeys(sql, planned, version, source, options, operations)
  if (changes !== null) return (await isCommitted(planned, changes, options, operations)) ? changes : null
  const query = queryOf(sql, planned, version, source, options, operations)
  const { snapshots, release } = operations.hold([...new Set([planned.tableId, ...query.found.query.tables])])
  try {
    const changes = await changesWithin(sql, planned, query, heldBy(options, snapshots), operations)
    return changes !== null && (await isCommitted(planned, changes, options, operations)) ? changes : null
  } finally {
    release()
  }
}

/** Commits the changes, if there are any. False: the statement must be executed again. */
async function isCommitted(
  { tableId }: Upsert,
  { rows, input, packed, removal }: Changes,
  { isPreview }: ExecuteOptions,
  operations: InsertOperations,
): Promise<boolean> {
  if (rows === 0 || isPreview === true) return true
  const replaced = [{ input: input ?? rowsOf(tableId, packed), removal }]
  if ((await operations.replace(replaced)).isStale !== true) return true
  // The first removal of a part's rows is refused until readers know of removals: they do now.
  return (await operations.replace(replaced)).isStale !== true
}

/** With more rows, a query is not slower. */
const searchedRowsMax = 256

/** The changes of ON CONFLICT with few rows, whose keys are found in indexes; null: a query must find them. */
function changesByKeys(
  sql: string,
  planned: Upsert,
  version: TableVersion,
  source: Rows | null,
  options: ExecuteOptions,
  operations: InsertOperations,
): Changes | null {
  const { source: from, tableId } = planned
  if (from.kind !== 'rows' || source === null || source.length > searchedRowsMax || from.keys.length > 1) return null
  const { statement } = from
  const [key = []] = from.keys
  const places = placesOf(version, key)
  const texts = new Set(source.flatMap((row) => keyText(places, row) ?? []))
  if (texts.size < source.length) return null
  const change = conflictChange(sql, statement, key, version, options, operations)
  const keys = source.map((row) => places.map((place) => row[place] ?? null))
  const searched = change === null ? null : operations.inline?.search(tableId, { columnIds: key, keys })
  if (change === null || searched?.snapshot.version !== version) return null
  try {
    return changesOfFound(planned, source, searched, change)
  } catch (thrown) {
    // The query fails as well, or another row before this one.
    if (thrown instanceof SqlError) return null
    throw thrown
  }
}

/** What the statement makes of a stored row; null: a query must find that. */
function conflictChange(
  sql: string,
  statement: Insert,
  key: readonly number[],
  version: TableVersion,
  options: ExecuteOptions,
  operations: InsertOperations,
): ConflictChange | null {
  const { conflicts } = operations
  if (statement.conflict?.assignments === null) return () => null
  const kind = conflicts.kindOf(statement, key, version, options)
  if (kind === null) return null
  return conflicts.changeOf(kind, () =>
    boundChange(statement, key, version, bindContext({ sql, ...operations.planOptions(options) })),
  )
}

function changesOfFound(
  { tag, tableId }: Upsert,
  source: Rows,
  { snapshot, found }: FoundRows,
  change: ConflictChange,
): Changes | null {
  const { schema } = snapshot.version
  const places = new RowIds(snapshot)
  const changed: (readonly Value[])[] = []
  const counts = source.map((row, index) => {
    const before = changed.length
    if (found[index]?.length === 0) changed.push(row)
    for (const stored of found[index] ?? []) {
      const values = change(stored.values, row)
      if (values === null) continue
      changed.push(values)
      places.addRow(stored.runIndex, stored.row)
    }
    return changed.length - before
  })
  const columns = liveColumns(schema).map(({ id, type }, index) => ({
    ...{ columnId: id, type },
    values: changed.map((row) => row[index] ?? null),
  }))
  const times = columns.find(({ columnId }) => columnId === schema.timestampId)?.values ?? []
  if (times.some((time) => typeof time !== 'bigint' || time < 0n)) return null
  const input = { tableId, rows: changed.length, columns }
  return {
    ...{ packed: [], values: changed, rows: changed.length, counts, bytes: 0, input },
    removal: places.removal(tag),
  }
}

/** The options of statements that read these snapshots. */
export function heldBy(options: ExecuteOptions, snapshots: readonly TableSnapshot[]): Held {
  const byId = new Map(snapshots.map((held) => [held.version.schema.id, held]))
  const snapshot: ReadSnapshot = { snapshotOf: (tableId) => byId.get(tableId), release: () => {} }
  return { ...options, session: { ...options.session, snapshot } }
}

/** The changes of an upsert within a snapshot; null if the table has changed since the statement was planned. */
export async function upsertWithin(
  sql: string,
  planned: Upsert,
  options: Held,
  operations: InsertOperations,
): Promise<Changes | null> {
  const source = await sourceRows(sql, planned, options, operations)
  const version = options.session.snapshot.snapshotOf(planned.tableId)?.version ?? operations.required(planned.tableId)
  if (source !== null && source.schemaVersion !== version.schema.version) return null
  const query = queryOf(sql, planned, version, source?.rows ?? null, options, operations)
  return changesWithin(sql, planned, query, options, operations)
}

async function changesWithin(
  sql: string,
  planned: Upsert,
  { found, keys }: FoundQuery,
  options: Held,
  operations: InsertOperations,
): Promise<Changes | null> {
  const target = options.session.snapshot.snapshotOf(planned.tableId)
  assert(target !== undefined, 'Q1: the target is held')
  if (target.version.schema.version !== found.schemaVersion) return null
  const changes = await changesOf(sql, planned, found, target, options, operations)
  if (planned.tag === 'INSERT') requireDistinct(target.version, changes, keys)
  return changes
}

/** The query of the changes, and the keys of which two changed rows must not have the same value. */
function queryOf(
  sql: string,
  { source }: Upsert,
  version: TableVersion,
  rows: Rows | null,
  options: ExecuteOptions,
  operations: InsertOperations,
): FoundQuery {
  if (source.kind === 'query') return { found: source.found, keys: [] }
  const { statement, keys } = source
  const own = rows ?? []
  const firsts = firstOfKeys(version, keys, own)
  if (statement.conflict?.assignments !== null)
    return {
      found: planConflicting(source, version, own, sql, operations.planOptions(options)),
      keys: firsts.length < own.length ? keys : [],
    }
  const { query, columns } = planInsertNew(version, firsts, operations.planOptions(options), keys)
  return { found: { query, columns, schemaVersion: version.schema.version }, keys: [] }
}

async function changesOf(
  sql: string,
  { tag }: Upsert,
  { query, columns }: UpsertQuery,
  target: TableSnapshot,
  options: ExecuteOptions,
  operations: InsertOperations,
): Promise<Changes> {
  const { timestampId } = target.version.schema
  const encoding = { kind: 'packed', columns, timestampId, batchRows: 65_536 } as const
  const running = operations.run(sql, query, { ...options, ...allRows, encoding })
  cancelAtAbort(options.signal, running)
  const places = new RowIds(target)
  const packed: PackedRows[] = []
  let [rows, bytes] = [0, 0]
  for await (const batch of running.batches) {
    bytes += batch.bytes
    if (bytes > upsertBytesMax)
      throw new ResourceError(`${tag} changes too much for one transaction [maxBytes=${upsertBytesMax}]`)
    places.add(batch.packed, rows)
    rows += batch.packed.rows
    packed.push({ ...batch.packed, columns: batch.packed.columns.filter(({ columnId }) => columnId >= 0) })
  }
  return { packed, rows, bytes, removal: places.removal(tag) }
}

/** Collects which rows the changes remove, from the first two columns of their query. */
export class RowIds {
  readonly #target: TableSnapshot
  /** Row numbers by part or memtable, in the order of the snapshot. */
  readonly #removed = new Map<number, number[]>()
  readonly #hidden: number[] = []

  constructor(target: TableSnapshot) {
    this.#target = target
  }

  addRow(runIndex: number, row: number): void {
    const known = this.#removed.get(runIndex)
    if (known === undefined) this.#removed.set(runIndex, [row])
    else known.push(row)
  }

  /** `first`: number of rows in earlier batches. */
  add({ rows, columns }: PackedRows, first: number): void {
    const rowIds = fixedColumn(columns, rowIdColumn)
    const action = fixedColumn(columns, actionColumnId)
    // DO NOTHING only inserts.
    if (rowIds === null || action === null) return
    for (let row = 0; row < rows; row++) {
      if (action.getInt32(row * 4, true) === upsertActions.delete) this.#hidden.push(first + row)
      const runIndex = rowIds.getInt32(row * 8 + 4, true)
      // NULL: the row is inserted.
      if (runIndex < 0) continue
      this.addRow(runIndex, rowIds.getUint32(row * 8, true))
    }
  }

  /** Throws if a row is changed twice. */
  removal(tag: Upsert['tag']): Removal {
    const { version, transaction = 0 } = this.#target
    const { parts, memtables, schema } = version
    const sorted = [...this.#removed].map(([runIndex, rows]) => [runIndex, distinctRows(rows, tag)] as const)
    return {
      ...{ schemaVersion: schema.version, transaction, hidden: Uint32Array.from(this.#hidden) },
      parts: sorted.flatMap(([runIndex, rows]) => {
        const part = parts[runIndex]
        return part === undefined ? [] : [[part.id, rows] as const]
      }),
      memtables: sorted.flatMap(([runIndex, rows]) => {
        const memtable = memtables[runIndex - parts.length]
        return memtable === undefined ? [] : [[memtable.id, rows] as const]
      }),
    }
  }
}

export function fixedColumn(columns: PackedRows['columns'], wanted: number): DataView | null {
  const values = columns.find(({ columnId }) => columnId === wanted)?.values
  if (values?.kind !== 'fixed') return null
  return new DataView(values.bytes.buffer, values.bytes.byteOffset, values.bytes.byteLength)
}

export function distinctRows(rows: readonly number[], tag: Upsert['tag'] | 'WITH'): Uint32Array {
  const sorted = Uint32Array.from(rows).sort()
  for (let index = 1; index < sorted.length; index++) if (sorted[index] === sorted[index - 1]) throw changedTwice(tag)
  return sorted
}

function changedTwice(tag: Upsert['tag'] | 'WITH'): SqlError {
  const what = tag === 'INSERT' ? 'ON CONFLICT DO UPDATE' : tag
  return new SqlError(`${what} command cannot affect row a second time`, 0)
}

/** Throws if two changed rows of ON CONFLICT DO UPDATE have a key in common: the second one would change the first. */
function requireDistinct(version: TableVersion, { packed }: Changes, keys: readonly (readonly number[])[]): void {
  const rows = keys.length === 0 ? [] : ownRows(version, packed)
  if (rows.length > 1 && firstOfKeys(version, keys, rows).length < rows.length) throw changedTwice('INSERT')
}

/** Keeps the first of several rows with equal keys. */
function firstOfKeys(version: TableVersion, keys: readonly (readonly number[])[], rows: Rows): Rows {
  const places = keys.map((key) => placesOf(version, key))
  const seen = places.map(() => new Set<string>())
  return rows.filter((row) => {
    const texts = places.map((key) => keyText(key, row))
    if (texts.some((text, index) => text !== null && seen[index]?.has(text) === true)) return false
    for (const [index, text] of texts.entries()) if (text !== null) seen[index]?.add(text)
    return true
  })
}
