// LocalTransaction: the rows that a client has inserted in an open transaction. They are collected on the main thread.
// If they need too much memory, they are written to parts (Parquet files) beforehand, where the tables allow it
// (spilled-rows.ts); a large COPY writes parts from the start. COMMIT stores all rows in all of their tables atomically:
//
//   all rows in memory   one frame of the log has them (storage/writer/writer-commit.ts)
//   some are in parts    the others are written to parts, too, and one record of the manifest adds the parts to their
//                        tables (storage/writer/writer-register.ts). A transaction with rows of a table that does not
//                        take parts is refused

import type { Engine, RowTransaction, TransactionMark } from '../api/engine.js'
import type { CsvLoad, TableShape } from '../api/ingest.js'
import type { Session } from '../api/session.js'
import type { Description, ParsedStatement } from '../api/statements.js'
import { assert } from '../base/assert.js'
import type { Clock } from '../base/clock.js'
import { AccessError, ResourceError, SqlError } from '../base/errors.js'
import { requireRight } from '../base/rights.js'
import type { SharedMemory } from '../memory/shared-memory.js'
import { BinaryRows, type DefaultColumn } from '../pg/binary-rows.js'
import { type BindShape, collectBinds } from '../pg/bind-rows.js'
import { type BoundParameters, collectInsert, type InsertTargets, insertTargets } from '../pg/collect-insert.js'
import { collectLiterals, firstTuple, type InsertHead, insertHead } from '../pg/literal-rows.js'
import { ownRows } from '../pg/own-rows.js'
import { ownedRows, RowCollector, type TakenRows } from '../pg/row-collector.js'
import { type BindRun, RowWindow } from '../pg/row-window.js'
import { writtenRows } from '../pg/written-rows.js'
import type { Insert } from '../sql/ast/ast.js'
import { type ExpressionScope, rowlessScope } from '../sql/bind/expression.js'
import { tableOf } from '../sql/bind/show.js'
import type { Catalog, Parameter } from '../sql/catalog.js'
import { nativeDialect } from '../sql/dialect.js'
import type { BindContext } from '../sql/scope/bind-context.js'
import { draftedCatalog } from '../sql/scope/drafted-catalog.js'
import { conflictKeys } from '../sql/statements/conflict.js'
import { bindContext } from '../sql/statements/new-context.js'
import type { PackedRows, Receipt, RowsInput } from '../storage/jobs/messages.js'
import type { Draft } from '../storage/schema/draft.js'
import { requireTable, requireTypes, type TableVersion } from '../storage/schema/schema.js'
import { requireRoom } from '../threads/write-guard.js'
import type { WriterRequests } from '../threads/writer-requests.js'
import { decodeParameter } from '../types/pg-decode-value.js'
import type { Value } from '../types/value.js'
import type { CatalogView } from './catalog-view.js'
import { defaultColumns, filledRows } from './filled-rows.js'
import { maySpill, SpilledRows } from './spilled-rows.js'

interface RowTransactionOptions {
  readonly epoch: () => number
  readonly table: (insert: Insert, text: string, draft: Draft | null, session: Session) => TableVersion
  readonly context: (
    parsed: Pick<ParsedStatement, 'text'>,
    session: Session | undefined,
    parameters: readonly Parameter[],
  ) => ExpressionScope
  /** The rows are no longer needed when the call returns. */
  readonly store: (tables: readonly TakenRows[]) => Promise<Receipt>
  /** Adds the parts of all loads to their tables. */
  readonly storeParts: (loads: readonly CsvLoad[]) => Promise<Receipt>
  readonly version: (tableId: number) => TableVersion | undefined
  readonly droppedNames: CatalogView['droppedNames']
  readonly engine: Pick<Engine, 'load'>
  readonly shared: SharedInserts
}

interface TransactionContext {
  readonly memory: SharedMemory
  readonly view: Pick<CatalogView, 'epoch' | 'droppedNames'>
  readonly clock: Clock
}

export function openTransaction(
  catalogOf: (session: Session | null) => Catalog,
  { memory, clock, view }: TransactionContext,
  requests: Pick<WriterRequests, 'sendRows' | 'send'>,
  engine: Pick<Engine, 'load'>,
  shared: SharedInserts,
): RowTransaction {
  const stored = catalogOf(null)
  // Timestamps from now() do not decrease within a batch, even if the clock is set back.
  let batchMicros = 0
  const contextOf = (sql: string, parameters: readonly Parameter[], session?: Session): BindContext => {
    batchMicros = Math.max(batchMicros, clock.nowMicros())
    const catalog = catalogOf(session ?? null)
    return bindContext({
      sql,
      catalog,
      parameters,
      nowMicros: batchMicros,
      user: '',
      dialect: nativeDialect,
      ...session,
    })
  }
  /** Throws while writes are refused. The state of the sequences used must be stored first; null: it is. */
  const sequencesStored = (): Promise<void> | null => {
    batchMicros = 0
    requireRoom(memory)
    return stored.counters?.settled() ?? null
  }
  return new LocalTransaction({
    epoch: () => view.epoch,
    table: ({ table }, sql, draft, session) => {
      const drafted = draftedCatalog(catalogOf(session), draft)
      const version = table.schema === null ? drafted.table(table.name) : undefined
      if (version !== undefined) requireTable(version.schema, table.position)
      return version ?? tableOf(table, { ...contextOf(sql, []), catalog: drafted })
    },
    context: ({ text }, session, parameters) => rowlessScope(contextOf(text, parameters, session)),
    store: async (tables) => {
      const settled = sequencesStored()
      if (settled === null) return requests.sendRows(tables.map(inputOf))
      const owned = tables.map((table) => ({ ...table, packed: table.packed.map(ownedRows) }))
      await settled
      return requests.sendRows(owned.map(inputOf))
    },
    storeParts: async (loads) => {
      await sequencesStored()
      const parts = loads.map((load) => load.handOver())
      return requests.send((requestId) => ({ kind: 'registerParts', requestId, loads: parts }))
    },
    version: (tableId) => stored.stored?.(tableId),
    droppedNames: view.droppedNames,
    engine,
    shared,
  })
}

function inputOf({ tableId, packed, rows }: TakenRows): RowsInput {
  return { tableId, rows, columns: [], packed }
}

interface RegisteredLoad {
  readonly load: CsvLoad
  readonly rows: number
}

/** Limit for the transaction's own rows that a statement of it reads: they are part of its plan. */
const ownRowsMax = 250_000

/** What the transactions of an engine share. */
export class SharedInserts {
  #window: RowWindow | null = null
  #head: InsertHead = { text: '', statement: null }

  /** A single one for all sessions, since it is used within one call only. */
  get window(): RowWindow {
    this.#window ??= new RowWindow()
    return this.#window
  }

  /** The parsed head of an INSERT text. The last one is kept, for texts that differ in their values only. */
  headOf(text: string): InsertHead {
    if (this.#head.text !== text) this.#head = insertHead(text)
    return this.#head
  }
}

export class LocalTransaction implements RowTransaction {
  readonly #options: RowTransactionOptions
  readonly #collector = new RowCollector()
  #loads: RegisteredLoad[] = []
  #spilled: SpilledRows
  #draft: Draft | null = null
  /** The targets of the last statement; valid for one epoch. */
  #last: { readonly statement: Insert; readonly epoch: number; readonly targets: InsertTargets } | null = null

  constructor(options: RowTransactionOptions) {
    this.#options = options
    this.#spilled = new SpilledRows(options.engine)
  }

  get rows(): number {
    return this.#collector.rows + this.registered
  }

  get registered(): number {
    return this.#loads.reduce((sum, { rows }) => sum + rows, this.#spilled.rows)
  }

  get bytes(): number {
    return this.#collector.bytes
  }

  get tables(): string[] {
    return this.#collector.tableIds.flatMap((id) => this.#version(id)?.schema.name.toLowerCase() ?? [])
  }

  see(draft: Draft | null): void {
    if (draft === this.#draft) return
    this.#draft = draft
    this.#last = null
  }

  /** The table as the transaction has changed it; undefined if there is none. */
  #version(tableId: number): TableVersion | undefined {
    const drafted = this.#draft?.tables.get(tableId)
    return drafted === undefined ? this.#options.version(tableId) : (drafted.version ?? undefined)
  }

  /** The collected rows, which stay here. */
  gathered(): readonly (TakenRows & { readonly bytes: number })[] {
    return this.#collector.gathered()
  }

  join(later: RowTransaction): void {
    assert(later instanceof LocalTransaction, 'R4: transactions that are stored as one are of one engine')
    assert(later.registered === 0, 'R4: rows that were adopted are not joined')
    this.#collector.join(later.#collector)
  }

  insert(
    parsed: ParsedStatement,
    session: Session,
    bound: BoundParameters | null,
    types: Description['parameters'],
  ): number {
    const { statement, text } = parsed
    if (statement.kind !== 'insert' || statement.source.kind !== 'rows') throw new SqlError('no rows to insert', 0)
    requireRight(session, 'write', statement.position)
    const { context } = this.#options
    let made: ExpressionScope | undefined
    const scope = (): ExpressionScope => (made ??= context(parsed, session, valuesOf(bound, types)))
    const { rows } = statement.source
    return collectInsert(
      { rows, targets: this.#targets(statement, text, session), bound, types, sql: text, scope },
      this.#collector,
    )
  }

  insertText(bytes: Buffer, start: number, end: number, session: Session): number | Promise<number> {
    const tuples = firstTuple(bytes, start, end)
    if (tuples < 0) return -1
    const text = bytes.toString('utf8', start, tuples)
    const { statement } = this.#options.shared.headOf(text)
    if (statement === null) return -1
    try {
      requireRight(session, 'write', statement.position)
      const targets = this.#targets(statement, text, session)
      if (targets.targets.length > targets.named) return -1
      const { collector, context } = { collector: this.#collector, context: this.#options.context }
      let made: ExpressionScope | undefined
      const scope = (): ExpressionScope => (made ??= context({ text }, session, []))
      const written = writtenRows(text, { targets, collector, scope })
      return collectLiterals(bytes, tuples, end, { targets, collector, written })
    } catch (error) {
      if (error instanceof SqlError || error instanceof AccessError) return -1
      throw error
    }
  }

  binds(
    parsed: ParsedStatement,
    session: Session,
    bytes: Buffer,
    start: number,
    shape: BindShape,
    syncs: boolean,
  ): BindRun {
    const { statement, text } = parsed
    const { shared } = this.#options
    const none = { binds: 0, at: start, described: false, synced: false }
    if (statement.kind !== 'insert') return none
    try {
      requireRight(session, 'write', statement.position)
      const targets = this.#targets(statement, text, session)
      // Values of the other columns are not in the messages.
      if (targets.targets.length > targets.named) return none
      return collectBinds(shared.window, bytes, start, shape, syncs, targets, this.#collector)
    } catch (error) {
      if (error instanceof SqlError || error instanceof AccessError) return none
      throw error
    }
  }

  add(tableId: number, rows: PackedRows, bytes: number): void {
    const columns = this.#defaults(
      tableId,
      rows.columns.map(({ columnId }) => columnId),
    )
    const filled = filledRows({ packed: rows, bytes }, columns)
    this.#collector.add(tableId, filled.packed, filled.bytes)
  }

  /** Columns with a default that are not in `columnIds`. */
  #defaults(tableId: number, columnIds: readonly number[]): DefaultColumn[] {
    const scope = () => this.#options.context({ text: '' }, undefined, [])
    return defaultColumns(this.#version(tableId), columnIds, scope)
  }

  binaryRows(tableId: number, columns: TableShape['columns'], timestamp: string | null): BinaryRows {
    const targets = columns.map(({ id, name, type, wanted, enumeration }) => ({
      columnId: id,
      name,
      type,
      wanted,
      ...(enumeration === undefined ? {} : { enumeration }),
      required: name === timestamp,
    }))
    return new BinaryRows(
      this.#collector,
      tableId,
      targets,
      this.#defaults(
        tableId,
        columns.map(({ id }) => id),
      ),
    )
  }

  own(version: TableVersion): readonly (readonly Value[])[] {
    const batches = this.#collector.of(version.schema.id)
    const rows = batches.reduce((sum, batch) => sum + batch.rows, 0)
    if (rows > ownRowsMax) {
      throw new ResourceError(
        `the transaction holds too many rows of the table to read them before COMMIT [table=${version.schema.name}, rows=${rows}, max=${ownRowsMax}]`,
      )
    }
    return ownRows(version, batches)
  }

  register(load: CsvLoad, rows: number): void {
    this.#loads.push({ load, rows })
  }

  get spillable(): boolean {
    if (this.#draft !== null) return false
    return this.#collector.tableIds
      .map((id) => this.#version(id))
      .every((version) => version !== undefined && maySpill(version))
  }

  async spill(): Promise<boolean> {
    if (!this.spillable) return false
    await this.#spillInto(this.#spilled, this.#collector.take())
    return true
  }

  /** Throws SqlError, and spills nothing, if a table was dropped or changed, or does not take parts. */
  async #spillInto(spilled: SpilledRows, tables: readonly TakenRows[]): Promise<void> {
    const found = tables.map(({ tableId, packed }) => ({ version: this.#spilledTable(tableId), packed }))
    for (const { version, packed } of found) for (const { columns } of packed) requireTypes(version.schema, columns)
    for (const { version, packed } of found) await spilled.add(version, packed)
  }

  #spilledTable(tableId: number): TableVersion {
    const version = this.#version(tableId)
    if (version === undefined) throw this.#options.droppedNames.error(tableId)
    if (maySpill(version)) return version
    throw new SqlError(
      `rows of a table with DEDUP, enforced keys, arrays or BINARY are not supported in a transaction that is too large for the log: commit them first [table=${version.schema.name}]`,
      0,
    )
  }

  mark(): TransactionMark {
    return { ...this.#collector.mark(), loads: this.#loads.length }
  }

  backTo(mark: TransactionMark): void {
    if (!this.#collector.isAfter(mark)) this.#spilled.clear()
    this.#closeLoads(this.#collector.isAfter(mark) ? mark.loads : 0)
    this.#collector.backTo(mark)
  }

  clear(): void {
    this.#spilled.clear()
    this.#closeLoads(0)
    this.#collector.clear()
  }

  /** Closes the loads from an index on. */
  #closeLoads(index: number): void {
    closeAll(this.#loads.splice(index))
  }

  /** If all rows are in memory, they have been handed to the writer when the call returns. */
  async commit(): Promise<Receipt | null> {
    const isAlone = this.#loads.length === 0 && this.#spilled.rows === 0
    return isAlone ? this.#store(this.#collector.takeBorrowed()) : this.#commitParts()
  }

  /** Stores all rows as parts. */
  async #commitParts(): Promise<Receipt> {
    const [tables, loads, spilled] = [this.#collector.take(), this.#loads, this.#spilled]
    this.#loads = []
    this.#spilled = new SpilledRows(this.#options.engine)
    try {
      await this.#spillInto(spilled, tables)
      loads.push(...(await spilled.take()))
      return await this.#options.storeParts(loads.map(({ load }) => load))
    } finally {
      spilled.clear()
      closeAll(loads)
    }
  }

  /** Copies the rows before it returns. */
  async #store(tables: readonly TakenRows[]): Promise<Receipt | null> {
    if (tables.length === 0) return null
    return this.#options.store(tables)
  }

  #targets(statement: Insert, text: string, session: Session): InsertTargets {
    const epoch = this.#options.epoch()
    const last = this.#last
    if (last !== null && last.statement === statement && last.epoch === epoch) return last.targets
    const version = this.#options.table(statement, text, this.#draft, session)
    // Such rows are compared with those of the table (upserts.ts).
    if (conflictKeys(statement, version) !== null)
      throw new SqlError('ON CONFLICT is not supported within a transaction block', statement.conflict?.position ?? 0)
    const targets = insertTargets(statement, version)
    this.#last = { statement, epoch, targets }
    return targets
  }
}

function closeAll(loads: readonly RegisteredLoad[]): void {
  for (const { load } of loads) load.close().catch(() => {})
}

function valuesOf(bound: BoundParameters | null, types: Description['parameters']): Parameter[] {
  if (bound === null) return []
  return types.map((type, index) => {
    const end = bound.ends[index]!
    const bytes = end < 0 ? null : bound.bytes.subarray(bound.starts[index], end)
    return decodeParameter(bytes, bound.isBinary(index), type, index)
  })
}
