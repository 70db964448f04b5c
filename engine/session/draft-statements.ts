// Executes schema changes within a transaction. Each statement is planned against a copy of the catalog that has the
// transaction's earlier changes (its draft). COMMIT sends these changes and the transaction's rows to the writer as one
// request (storage/writer/writer-transaction.ts).
//
// If the transaction also changes existing rows of a table whose schema it has changed (by UPDATE, DELETE, or a new
// column type), COMMIT replaces the table's contents: it reads the rows as the transaction sees them, and has the
// writer empty the table and insert them. The writer rejects this if another client has changed the table since it was
// read; COMMIT then reads it again, up to five times in all.

import type { DraftedStatement } from '../api/engine.js'
import type { OwnRows, Session } from '../api/session.js'
import type { ExecuteOptions, ParsedStatement } from '../api/statements.js'
import { assert } from '../base/assert.js'
import { ResourceError, SqlError, whenReady } from '../base/errors.js'
import { walFrameBytesMax } from '../base/limits.js'
import type { SharedMemory } from '../memory/shared-memory.js'
import type { Catalog } from '../sql/catalog.js'
import { draftedCatalog, draftOf } from '../sql/scope/drafted-catalog.js'
import { type PlanOptions, planRebuilt } from '../sql/statements/plan-statement.js'
import type { PlannedStatement } from '../sql/statements/planned.js'
import type { DraftedTable, PackedRows, RowsInput, SchemaChange } from '../storage/jobs/messages.js'
import {
  changedMeanwhile,
  type Draft,
  type DraftSource,
  type DraftTable,
  draftAfter,
  emptyDraft,
  keepsRows,
  losesRepeats,
  withRebuilt,
} from '../storage/schema/draft.js'
import type { TableVersion } from '../storage/schema/schema.js'
import { requireRoom } from '../threads/write-guard.js'
import type { WriterRequests } from '../threads/writer-requests.js'
import type { CatalogView } from './catalog-view.js'
import { fillTable, type InsertOperations } from './inserts.js'
import { lossNotices } from './lost-values.js'
import { type Planned, rowsOf } from './plan-helpers.js'
import { resumed } from './planner.js'
import { LocalTransaction } from './row-transaction.js'

/** COMMIT does not rebuild tables with more rows. */
const rebuiltRowsMax = 200_000
/** Maximal bytes, so that they fit a log frame. */
const frameBytesMax = (walFrameBytesMax * 7) / 8
/** How often a table is read again because another transaction has changed it. */
const readsMax = 5

export interface DraftStatementsOptions {
  readonly memory: SharedMemory
  readonly view: CatalogView
  readonly catalog: Catalog
  readonly plan: (parsed: ParsedStatement, options: ExecuteOptions) => PlannedStatement
  readonly planOptions: (options: ExecuteOptions) => PlanOptions
  readonly inserts: (sql: string, options: ExecuteOptions) => InsertOperations
  readonly requests: Pick<WriterRequests, 'send' | 'sendWith'>
  readonly making: Map<string, Session>
}

type Gathered = Map<number, { readonly packed: PackedRows[]; bytes: number }>

export class DraftStatements {
  readonly #options: DraftStatementsOptions

  constructor(options: DraftStatementsOptions) {
    this.#options = options
  }

  /** The draft after the statement. Throws like execute(); stores nothing. */
  async draft(parsed: ParsedStatement, options: ExecuteOptions): Promise<DraftedStatement> {
    const before = draftOf(options.session.pending ?? []) ?? emptyDraft()
    const planned = await whenReady((planning) => this.#options.plan(parsed, resumed(options, planning)))
    switch (planned.kind) {
      case 'none':
        return { tag: planned.tag, draft: before, emptied: new Set(), large: false, notes: [], fill: null }
      case 'change': {
        const draft = await this.#after(before, planned.changes)
        const large = [...draft.tables].some(([id, table]) => keepsRows(table) && this.#isLarge(id, table))
        const notes = await lossNotices(planned, parsed.text, options, this.#options.inserts(parsed.text, options))
        return { tag: planned.tag, draft, emptied: emptiedBy(before, planned.changes), large, notes, fill: null }
      }
      case 'createTableAs':
        return this.#madeAs(before, planned, parsed.text, options)
      default: {
        const name = parsed.statement.kind.toUpperCase()
        throw new SqlError(`${name} is not supported within a transaction`, parsed.statement.position)
      }
    }
  }

  async #madeAs(
    before: Draft,
    planned: Planned<'createTableAs'>,
    sql: string,
    options: ExecuteOptions,
  ): Promise<DraftedStatement> {
    const draft = await this.#after(before, [planned.change])
    const version = [...draft.tables.values()].at(-1)?.version
    assert(version != null, 'B4: CREATE TABLE AS makes a table')
    const fill: DraftedStatement['fill'] = (into) => {
      const target = { ...planned, tableId: version.schema.id }
      return fillTable(sql, target, version, { ...options, into }, this.#options.inserts(sql, options))
    }
    return { tag: planned.tag, draft, emptied: new Set(), large: false, notes: [], fill }
  }

  async #after(before: Draft, changes: readonly SchemaChange[]): Promise<Draft> {
    const count = changes.filter(({ kind }) => kind === 'createTable').length
    let next = count === 0 ? 0 : await this.#takeIds(count)
    const source: DraftSource = { ...this.#source, newId: () => next++ }
    return changes.reduce((draft, change) => draftAfter(draft, change, source), before)
  }

  get #source(): Pick<DraftSource, 'stored'> {
    return { stored: (id) => this.#options.view.byId(id) }
  }

  async #takeIds(count: number): Promise<number> {
    const { firstTableId } = await this.#options.requests.send((requestId) => ({ kind: 'tableIds', requestId, count }))
    assert(firstTableId !== undefined, 'M1: the writer gives ids')
    return firstTableId
  }

  /** Stores the changes and rows of the session's transaction atomically; returns the number of rows. */
  async commit(options: ExecuteOptions): Promise<number> {
    const { memory, catalog } = this.#options
    requireRoom(memory)
    const draft = this.#whole(options.session)
    await catalog.counters?.settled()
    for (let reads = 1; ; reads++) {
      const rebuilt = [...draft.tables].filter(([, table]) => keepsRows(table))
      const read = new Map(rebuilt.map(([id, table]) => [id, this.#readOf(id, table)]))
      const rows = ownRowsOf(options.session, draft)
      for (const [id, { version }] of rebuilt) await this.#read(rows, id, version as TableVersion, options)
      try {
        return await this.#store(draft, rows, read, options)
      } catch (error) {
        if (rebuilt.length === 0 || reads === readsMax || !isChange(error)) throw error
      }
    }
  }

  /**
   * The draft, with the tables whose existing rows the transaction changes. Throws SqlError if one has too many rows.
   */
  #whole({ pending = [] }: Session): Draft {
    const draft = draftOf(pending)
    assert(draft !== null, 'B4: a draft is committed for its schema changes')
    const ids = pending.flatMap(({ statement }, index) => {
      if (statement === null) return []
      const then = draftOf(pending.slice(0, index))
      const id = draftedCatalog(this.#options.catalog, then).table(statement.table.name)?.schema.id
      return id === undefined || draft.tables.get(id)?.version === null ? [] : [id]
    })
    const whole = withRebuilt(draft, ids, this.#source)
    for (const [id, table] of whole.tables) {
      if (keepsRows(table) && this.#isLarge(id, table)) throw tooLarge(table)
      if (keepsRows(table) && losesRepeats(table) && this.#storedRows(id) > 0) throw repeatsLost(table)
      if (keepsRows(table) && !table.emptied && this.#hasSealedBuckets(id)) throw sealedAgain(table)
    }
    return whole
  }

  isLarge(name: string, { pending = [] }: Session): boolean {
    const draft = draftOf(pending)
    const version = draftedCatalog(this.#options.catalog, draft).table(name)
    if (version === undefined) return false
    const { id } = version.schema
    const plain = { version, base: version, emptied: false, rebuilt: false, retyped: new Map() }
    return this.#isLarge(id, draft?.tables.get(id) ?? plain)
  }

  #storedRows(id: number): number {
    const stored = this.#options.view.byId(id)
    return stored === undefined ? 0 : this.#options.view.rowCount(stored)
  }

  /** Of views that are not live. */
  #hasSealedBuckets(id: number): boolean {
    const { view } = this.#options
    const isMaterialized = (viewId: number): boolean => {
      const materialized = view.byId(viewId)?.schema.materialized
      return materialized !== undefined && materialized.live === undefined
    }
    return view.byId(id)?.schema.sealed?.some(({ viewId }) => isMaterialized(viewId)) === true
  }

  #isLarge(id: number, { base, emptied }: DraftTable): boolean {
    return base !== null && !emptied && this.#storedRows(id) > rebuiltRowsMax
  }

  #readOf(id: number, { base }: DraftTable): DraftedTable['read'] {
    const { view } = this.#options
    const stored = view.byId(id)
    if (base === null) return null
    if (stored === undefined) throw changedMeanwhile(base.schema.name)
    return { transaction: view.visibleTransaction(stored), rewrites: stored.rewrites ?? 0 }
  }

  /** Reads all rows of the table as the transaction sees them. */
  async #read(rows: Gathered, id: number, version: TableVersion, options: ExecuteOptions): Promise<void> {
    const { snapshot: _, ...session } = options.session
    const now = { ...options, session }
    const planned = planRebuilt(version, this.#options.planOptions(now))
    const gathered: PackedRows[] = []
    let bytes = 0
    const into: ExecuteOptions['into'] = async (_id, batch) => {
      gathered.push(batch.packed)
      bytes += batch.bytes
    }
    const operations = this.#options.inserts('', now)
    await fillTable('', { ...planned, tableId: id, batchRows: null }, version, { ...now, into }, operations)
    rows.set(id, { packed: gathered, bytes })
  }

  async #store(
    draft: Draft,
    rows: Gathered,
    read: ReadonlyMap<number, DraftedTable['read']>,
    { session }: ExecuteOptions,
  ): Promise<number> {
    const { requests, making } = this.#options
    requireSize(rows)
    const drafts = [...draft.tables].flatMap(([id, table]) => draftedOf(draft, id, table, read.get(id) ?? null))
    const inputs = [...rows].map(([id, { packed }]) => rowsOf(id, packed))
    const made = drafts.flatMap(({ base, schema }) =>
      base === 0 && schema !== null ? [schema.name.toLowerCase()] : [],
    )
    for (const name of made) making.set(name, session)
    try {
      const message = (requestId: number, tables: readonly RowsInput[]) =>
        ({ kind: 'transaction', requestId, drafts, tables }) as const
      const receipt = await requests.sendWith(inputs, message)
      return receipt.rows
    } finally {
      for (const name of made) making.delete(name)
    }
  }
}

function repeatsLost({ base }: DraftTable): SqlError {
  return new SqlError(
    `rows that precede DEDUP cannot be changed in a transaction that also changes schemas [table=${base?.schema.name}]`,
    0,
  )
}

function sealedAgain({ base }: DraftTable): SqlError {
  return new SqlError(
    `rows of a table whose materialized views keep buckets of dropped rows cannot be changed in a transaction that also changes schemas [table=${base?.schema.name}]`,
    0,
  )
}

function tooLarge({ base, version }: DraftTable): SqlError {
  const name = (version ?? base)?.schema.name ?? ''
  return new SqlError(
    `rows of a large table cannot be changed in a transaction that also changes schemas [table=${name}, max=${rebuiltRowsMax}]`,
    0,
  )
}

/** Empty for a table that the transaction has created and dropped. */
function draftedOf(draft: Draft, id: number, table: DraftTable, read: DraftedTable['read']): DraftedTable[] {
  const { version, base, emptied } = table
  if (base === null && version === null) return []
  const given = draft.given.get(id)
  const own = version?.schema ?? null
  const schema = own === null || given === undefined ? own : { ...own, sequence: given }
  const name = base?.schema.name ?? own?.name ?? ''
  const isEmptied = base !== null && (emptied || keepsRows(table))
  const stored = { tableId: id, base: base?.schema.version ?? 0, name }
  return [{ ...stored, schema, emptied: isEmptied, truncated: emptied, read }]
}

function requireSize(rows: Gathered): void {
  let bytes = 0
  for (const table of rows.values()) bytes += table.bytes
  if (bytes > frameBytesMax)
    throw new ResourceError(
      `the transaction is too large for its schema changes [bytes=${bytes}, max=${frameBytesMax}]`,
    )
}

/** The rows that the transaction has inserted, except those of tables that are rebuilt, whose rows are read. */
function ownRowsOf({ pending = [], transaction }: Session, draft: Draft): Gathered {
  const rows: Gathered = new Map()
  const add = (own: OwnRows | null | undefined): void => {
    if (!(own instanceof LocalTransaction)) return
    for (const { tableId, packed, bytes } of own.gathered()) {
      const table = draft.tables.get(tableId)
      if (table !== undefined && (table.version === null || keepsRows(table))) continue
      const known = rows.get(tableId) ?? { packed: [], bytes: 0 }
      known.packed.push(...packed.map((batch) => withoutDropped(batch, table)))
      known.bytes += bytes
      rows.set(tableId, known)
    }
  }
  for (const { rows: own, emptied } of pending) {
    add(own)
    for (const id of emptied ?? []) rows.delete(id)
  }
  add(transaction)
  return rows
}

function withoutDropped(batch: PackedRows, table: DraftTable | undefined): PackedRows {
  const columns = table?.version?.schema.columns
  if (columns === undefined) return batch
  return { ...batch, columns: batch.columns.filter(({ columnId }) => columns[columnId]?.dropped !== true) }
}

function emptiedBy({ tables }: Draft, changes: readonly SchemaChange[]): Set<number> {
  const ids = changes.flatMap((change) =>
    change.kind === 'truncateTable' || change.kind === 'dropTable' ? [change.tableId] : [],
  )
  return new Set(ids.filter((id) => tables.get(id)?.version !== null))
}

function isChange(error: unknown): boolean {
  return error instanceof SqlError && error.message.startsWith('the table has changed meanwhile')
}
