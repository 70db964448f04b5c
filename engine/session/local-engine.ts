// LocalEngine: implements Engine on the main thread. It sends lines and rows to the writer, plans SQL, runs queries
// inline or on query threads, and matches replies with requests. It never blocks and takes no lock.

import type { Connector, Engine, EngineMetrics, RowTransaction } from '../api/engine.js'
import type { CsvDecoding, CsvLoad, LineRequest, LineTicket, LoadOptions, TableShape } from '../api/ingest.js'
import { type LakeCatalog, noLake } from '../api/lake.js'
import type { ReadSnapshot, Session } from '../api/session.js'
import type {
  ChangePreview,
  CheckedStatement,
  Copier,
  Description,
  DoneResult,
  ExecuteOptions,
  ParsedStatement,
  RowsResult,
  StatementResult,
  VirtualRelation,
} from '../api/statements.js'
import { andThen } from '../base/and-then.js'
import { SqlError, whenReady } from '../base/errors.js'
import type { CsvShape } from '../csv/shape.js'
import { setMetric } from '../memory/metrics.js'
import type { Catalog } from '../sql/catalog.js'
import { certainRows } from '../sql/plan/estimate.js'
import { explainColumns } from '../sql/statements/explain.js'
import { planReturning, planRows } from '../sql/statements/plan-statement.js'
import type { PlannedStatement, SideEffects } from '../sql/statements/planned.js'
import type { FromWriter, LineReject, PackedRows, Receipt, RowsInput } from '../storage/jobs/messages.js'
import { shapeOf } from '../threads/csv-client.js'
import { openLoad } from '../threads/load-client.js'
import { QueryRows } from '../threads/query-rows.js'
import { UpsertTurns } from '../threads/upsert-turns.js'
import { guardWrite, requireRoom } from '../threads/write-guard.js'
import { WriterRequests } from '../threads/writer-requests.js'
import { dataType } from '../types/column-types.js'
import type { ViewRefresher } from '../views/view-refresher.js'
import type { KafkaPosition } from '../wal/source-position.js'
import type { PinnedSnapshots } from './catalog-view.js'
import { changeRows } from './changes-in-with.js'
import { BackupStatements, Checkpoints } from './checkpoints.js'
import { Connectors } from './connectors.js'
import { DraftStatements } from './draft-statements.js'
import { engineMetrics } from './engine-metrics.js'
import { explainedOf, explainLines } from './explain.js'
import { type InsertOperations, insertRows, returningRows } from './inserts.js'
import { LineIngestion } from './line-ingestion.js'
import { type CatalogOf, isHidden, localCatalog } from './local-catalog.js'
import type { LocalEngineOptions } from './local-options.js'
import { lossNotices } from './lost-values.js'
import { internalStatement, openRefresher, type RefreshExecute } from './open-refresher.js'
import {
  activityOf,
  allRows,
  asExplained,
  cancelAtAbort,
  cancelQuery,
  changeFor,
  copyFile,
  insertLiterals,
  type Planned,
  reportNewTables,
  rowsOf,
  runOptions,
  selectColumns,
  setOption,
} from './plan-helpers.js'
import { anew, Planner, resumed } from './planner.js'
import { QueryRuns, sleepBefore } from './query-runs.js'
import { type BeginList, previewChange, rewriteRows } from './rewrite-returning.js'
import { openTransaction, SharedInserts } from './row-transaction.js'
import { entryExists, seenTable, seenTables } from './seen-tables.js'
import { sideEffectRows } from './side-effects.js'
import { type Requested, Stoppable } from './stoppable.js'
import { tableRelations } from './table-relations.js'
import { upsertRows } from './upserts.js'
import { UserCatalog } from './user-catalog.js'

type Answer = ReturnType<Engine['run']>

/** A statement that is planned, and how long that took. */
interface Begun {
  readonly sql: string
  readonly options: ExecuteOptions
  readonly compilerMs: number
  readonly cached?: boolean
  /** Of now(). */
  readonly nowMicros?: number
}

type WithRows = 'query' | 'user' | 'backup' | 'insertReturning' | 'rewrite' | 'upsert' | 'withChanges'
type WithoutRows = 'checkpoint' | 'refresh' | 'connector' | 'set' | 'cancelQuery' | 'none'

export class LocalEngine implements Engine {
  readonly users: UserCatalog
  readonly backups: BackupStatements
  lake: LakeCatalog = noLake
  readonly #options: LocalEngineOptions
  readonly #lines: LineIngestion
  readonly #planner: Planner
  readonly #requests: WriterRequests
  readonly #changes: Stoppable
  readonly #checkpoints: Checkpoints
  readonly #drafts: DraftStatements
  readonly #views: ViewRefresher
  readonly #relations = new Map<string, VirtualRelation>()
  readonly #connectors = new Connectors()
  readonly #files: { copier: Copier | null } = { copier: null }
  readonly #runs: QueryRuns
  readonly #catalogOf: CatalogOf
  readonly #catalog: Catalog
  /** Names of tables that running statements create, with their sessions. */
  readonly #making = new Map<string, Session>()
  readonly #upserts = new UpsertTurns()
  readonly #inserted = new SharedInserts()
  #closing: Promise<void> | null = null

  constructor(options: LocalEngineOptions) {
    const { memory, view, queries, clock } = options
    this.#options = options
    this.#requests = new WriterRequests(options.postWriter)
    this.#runs = new QueryRuns(options, this.#requests)
    this.#changes = new Stoppable({ memory, view, queries, activity: this.#runs.activity, requests: this.#requests })
    this.#checkpoints = new Checkpoints(this.#requests, clock)
    this.backups = new BackupStatements(this.#checkpoints)
    this.#lines = new LineIngestion(options, this.#requests)
    this.users = new UserCatalog({
      configured: options.configuredUsers,
      clock,
      store: (bytes) => this.#requests.send((requestId) => ({ kind: 'users', requestId, bytes })),
    })
    this.#catalogOf = localCatalog(options, {
      ...{ relations: this.#relations, users: this.users },
      note: (tableId, sequence) => this.#requests.change({ kind: 'alterTable', tableId, changes: { sequence } }),
      activity: () => this.#runs.running(),
    })
    this.#catalog = this.#catalogOf(null)
    this.#planner = new Planner(options, this.#catalogOf, (sql, query, requested) =>
      this.#runs.run(sql, query, requested, () => {}),
    )
    this.#drafts = new DraftStatements({
      ...{ memory, view, catalog: this.#catalog, requests: this.#requests, making: this.#making },
      plan: (parsed, requested) => this.#planner.plan(parsed.text, { ...requested, parsed }).planned,
      planOptions: (requested) => this.#planner.options(requested),
      inserts: (sql, requested) => this.#inserts(sql, requested),
    })
    const execute: RefreshExecute = (sql, session, signal, encoding) =>
      this.execute(sql, { ...internalStatement, session, signal, encoding })
    const inserts = (requested: ExecuteOptions): InsertOperations => this.#inserts('', requested)
    this.#views = openRefresher(options, this.#catalog, this.#requests, execute, inserts)
    for (const { relation } of [this.#lines, this.#checkpoints, this.#views, this.#views.live]) this.relation(relation)
    for (const relation of tableRelations(view, memory)) this.relation(relation)
  }

  lines(request: LineRequest): LineTicket {
    return this.#lines.send(request)
  }

  flush(tableId: number): Promise<Receipt> {
    return this.#requests.send((requestId) => ({ kind: 'checkpoint', requestId, tableId }))
  }

  forgetConnection(connectionId: number): void {
    this.#options.postWriter({ kind: 'forgetConnection', connectionId })
  }

  parse(text: string): readonly ParsedStatement[] {
    return this.#planner.parse(text)
  }

  describe(parsed: ParsedStatement, session: Session, oids: readonly number[]): Description {
    return this.#planner.describe(parsed, session, oids)
  }

  validate(sql: string, session: Session): CheckedStatement {
    return this.#planner.validate(sql, session)
  }

  begin(): RowTransaction {
    const catalogOf = (session: Session | null): Catalog =>
      this.#catalogOf(session === null ? null : { session, planned: null })
    return openTransaction(catalogOf, this.#options, this.#requests, this, this.#inserted)
  }

  csv(shape: CsvShape): CsvDecoding {
    return this.#options.queries.csv(shape)
  }

  load(options: LoadOptions): CsvLoad {
    requireRoom(this.#options.memory)
    const symbolsOf = (held: PinnedSnapshots) => this.#requests.symbolsOf(held)
    return openLoad({ ...this.#options, symbolsOf, request: (message) => this.#requests.send(message) }, options)
  }

  async rows(tableId: number, packed: readonly PackedRows[]): Promise<Receipt> {
    requireRoom(this.#options.memory)
    return this.#requests.sendRows([rowsOf(tableId, packed)])
  }

  rejects(connectionId: number, rejects: readonly LineReject[], stored: boolean): void {
    this.#lines.reject(connectionId, rejects, stored)
  }

  async execute(sql: string, options: ExecuteOptions): Promise<StatementResult> {
    return this.run(sql, options)
  }

  run(sql: string, options: ExecuteOptions): Answer {
    const startMs = performance.now()
    const literals = insertLiterals(sql, options, this, () => this.#ended(options.session, sql, startMs))
    if (literals === null) return this.#planned(sql, options, startMs)
    return literals.then((inserted) => inserted ?? this.#planned(sql, options, startMs))
  }

  #planned(sql: string, options: ExecuteOptions, startMs: number): Answer {
    const nowMicros = this.#options.clock.nowMicros()
    const requested = options.explain ? asExplained(options) : options
    const plan = whenReady((planning) => this.#planner.plan(sql, resumed(requested, planning), nowMicros))
    return andThen(plan, ({ planned, cached, planning }) => {
      const compilerMs = performance.now() - startMs
      const begun = { sql, options: resumed(options, planning), nowMicros, cached, compilerMs }
      return andThen(this.#catalog.counters?.settled(), () =>
        planned.kind === 'query' ? this.#answer(planned, begun) : this.#change(planned, begun, startMs),
      )
    })
  }

  #answer(planned: Planned<'query'>, begun: Begun): Answer {
    const { acts, sleepMs } = planned
    if (planned.explained !== undefined || begun.options.explain) return this.#explain(planned, begun)
    return andThen(sleepMs > 0 ? sleepBefore(sleepMs, begun.options) : undefined, () =>
      acts === undefined ? this.#query(planned, begun) : this.#act(acts, begun),
    )
  }

  async #change(
    planned: Exclude<PlannedStatement, { kind: 'query' }>,
    begun: Begun & { readonly nowMicros: number },
    startMs: number,
  ): Promise<StatementResult> {
    const { sql, options, compilerMs, nowMicros } = begun
    if (options.rowsOnly !== undefined) throw new SqlError(options.rowsOnly, 0)
    guardWrite(this.#options.memory, planned)
    const inserts = this.#inserts(sql, options, nowMicros, compilerMs)
    try {
      if (planned.kind === 'user') return await this.#changeUsers(planned, begun)
      if (planned.kind === 'backup') return this.#list(planned.columns, await this.backups.run(planned), begun)
      if (planned.kind === 'insertReturning') return await returningRows(sql, planned, options, inserts)
      if (planned.kind === 'upsert') return await upsertRows(sql, planned, options, inserts, compilerMs)
      if (planned.kind === 'withChanges') return await changeRows(sql, planned, options, inserts, compilerMs)
      if (planned.kind === 'rewrite') {
        const change = this.#views.rewritten(planned, (it) => this.#changes.rewrite(it, this.#requested(sql, options)))
        return await rewriteRows(planned, this.#options.view.byId(planned.tableId), change, inserts.lister, compilerMs)
      }
      return { kind: 'done', ...(await this.#execute(sql, planned, options, nowMicros)), compilerMs }
    } finally {
      this.#ended(options.session, sql, startMs)
    }
  }

  async #act(acts: SideEffects, begun: Begun): Promise<RowsResult> {
    const { sql, options } = begun
    const { session, signal } = options
    const running = this.#runs.run(sql, acts.query, { ...options, ...allRows, encoding: { kind: 'values' } }, () => {})
    cancelAtAbort(signal, running)
    const { counters } = this.#catalog
    const rows = await sideEffectRows(acts, running, { counters, session })
    await counters?.settled()
    return this.#list(acts.columns, rows, begun)
  }

  async #explain(planned: Planned<'query'>, begun: Begun): Promise<StatementResult> {
    const { sql, options, compilerMs } = begun
    const quiet = { ...options, ...allRows, encoding: { kind: 'count' } } as const
    const lines = await explainLines(planned.explained ?? explainedOf(planned), {
      statistics: (tableId) => this.#catalog.statistics(tableId),
      run: (query, profile) => this.#runs.run(sql, query, { ...quiet, profile }, () => {}),
      signal: options.signal,
    })
    if (options.explain) return { kind: 'plan', lines, compilerMs }
    return this.#list(
      explainColumns,
      lines.map((line) => [line]),
      begun,
    )
  }

  /** A result whose rows are known. */
  #list(columns: Parameters<typeof planRows>[0], rows: Parameters<typeof planRows>[1], begun: Begun): RowsResult {
    const { sql, options, compilerMs } = begun
    return this.#query(planRows(columns, rows, this.#planner.options(options)), { sql, options, compilerMs })
  }

  #ended(session: Session, sql: string, startMs: number): void {
    if (session.internal !== true)
      this.#options.observer?.statementEnded(session, sql, (performance.now() - startMs) * 1000)
  }

  /** Handles a message of the writer. */
  receive(message: FromWriter): void {
    switch (message.kind) {
      case 'published':
        reportNewTables(message.versions, this.#options, this.#making)
        this.#options.view.publish(message.versions, message.dropped, message.visible)
        for (const receipt of message.receipts) this.#requests.answer(receipt)
        return
      case 'job':
        this.#options.queries.runJob(message.jobId, message.job)
        return
      case 'ready':
        this.users.load(message.users)
        for (const position of message.positions) this.#lines.positions.note(position)
        return
    }
  }

  table(name: string, session?: Session): TableShape | undefined {
    return shapeOf(seenTable(name, session, this.#catalog, this.#options.view))
  }

  tableExists(name: string, session?: Session): boolean {
    const { view, systemTable } = this.#options
    return !isHidden(name, session ?? null, systemTable) && entryExists(name, session, this.#catalog, view)
  }

  tableNames(): string[] {
    return this.#options.view.tables().map(({ schema }) => schema.name)
  }

  metrics(): EngineMetrics {
    return engineMetrics(this.#options, this.#runs.activity.size)
  }

  holdSnapshot(snapshot?: ReadSnapshot): ReadSnapshot {
    return this.#options.view.holdSnapshot(snapshot)
  }

  draft(statement: ParsedStatement, options: ExecuteOptions): ReturnType<Engine['draft']> {
    return this.#drafts.draft(statement, options)
  }

  isLarge(name: string, session: Session): boolean {
    return this.#drafts.isLarge(name, session)
  }

  commitDraft(options: ExecuteOptions): Promise<number> {
    return this.#drafts.commit(options)
  }

  relation(relation: VirtualRelation): void {
    this.#relations.set(relation.name.toLowerCase(), relation)
  }

  connector(connector: Connector): void {
    this.#connectors.add(connector)
  }

  positions(connector: string): readonly KafkaPosition[] {
    return this.#lines.positions.of(connector)
  }

  copier(copier: Copier): void {
    this.#files.copier = copier
  }

  refuseBelow(freeBytes: number): void {
    setMetric(this.#options.memory, 'freeBytesMin', freeBytes)
  }

  writerEnded(): void {
    this.#requests.writerEnded()
  }

  close(): Promise<void> {
    this.#closing ??= this.#close()
    return this.#closing
  }

  async #close(): Promise<void> {
    this.#lines.close()
    await this.#views.close()
    await this.#requests.send((requestId) => ({ kind: 'close', requestId }))
    await this.#options.endThreads()
    this.#options.view.close()
  }

  #query(planned: Planned<'query'>, { sql, options, compilerMs, cached = false, nowMicros }: Begun): RowsResult {
    const { query, columns } = selectColumns(planned, options.columns)
    const startMs = performance.now() - compilerMs
    const run = runOptions(options, columns)
    const running = this.#runs.run(sql, query, run, () => this.#ended(options.session, sql, startMs), nowMicros)
    running.moved = planned.moved
    cancelAtAbort(options.signal, running)
    const rowsCertain = (): number =>
      certainRows(query.plan, (table) => this.#catalog.statistics(query.tables[table] ?? -1))
    return new QueryRows(running, { columns, timestampIndex: query.timestampIndex, rowsCertain, compilerMs, cached })
  }

  async #execute(
    sql: string,
    planned: Exclude<PlannedStatement, { kind: WithRows }>,
    options: ExecuteOptions,
    nowMicros: number,
  ): Promise<Pick<DoneResult, 'tag' | 'rows' | 'notes'>> {
    switch (planned.kind) {
      case 'change': {
        const notes = await lossNotices(planned, sql, options, this.#inserts(sql, options, nowMicros))
        for (const change of planned.changes)
          if (!(await this.#views.performs(change)))
            await this.#changes.change(change, this.#requested(sql, options), (it) =>
              changeFor(options.session, it, this.#requests, this.#making),
            )
        return { tag: planned.tag, rows: 0, notes: [...(planned.notes ?? []), ...notes] }
      }
      case 'insert':
      case 'insertNew':
      case 'insertSelect':
      case 'createTableAs':
        return {
          tag: planned.tag,
          rows: await insertRows(sql, planned, options, this.#inserts(sql, options, nowMicros)),
        }
      case 'copy':
        return { tag: planned.tag, rows: await copyFile(this.#files.copier, planned.request, options) }
      default:
        await this.#command(planned, options)
        return { tag: planned.tag, rows: 0 }
    }
  }

  /** Statements without rows. */
  async #command(planned: Planned<WithoutRows>, { session, signal }: ExecuteOptions): Promise<void> {
    if (planned.kind === 'checkpoint') await this.#checkpoints.run(planned.action)
    else if (planned.kind === 'refresh') await this.#views.refresh(planned, signal)
    else if (planned.kind === 'connector') await this.#connectors.alter(planned)
    else if (planned.kind === 'set') setOption(session, planned)
    else if (planned.kind === 'cancelQuery')
      cancelQuery(planned, session, this.#runs.activity, [this.#options.queries, this.#changes])
  }

  /** A generated secret is returned as a row, because it is shown only once. */
  async #changeUsers({ users, change, tag }: Planned<'user'>, begun: Begun): Promise<StatementResult> {
    const secret = await this.users.change(users, change)
    if (secret === null) return { kind: 'done', tag, rows: 0, compilerMs: begun.compilerMs }
    const columns = secret.columns.map((name) => ({ name, type: dataType('VARCHAR') }))
    return this.#list(columns, [secret.row], begun)
  }

  async #insert(...tables: readonly RowsInput[]): Promise<number> {
    await this.#catalog.counters?.settled()
    return (await this.#requests.sendRows(tables)).rows
  }

  #requested(sql: string, { signal, timeoutMs, session }: ExecuteOptions): Requested {
    return { signal, timeoutMs, activityOf: (id) => activityOf(id, sql, session, this.#options.clock) }
  }

  #inserts(
    sql: string,
    options: ExecuteOptions,
    nowMicros = this.#options.clock.nowMicros(),
    compilerMs = 0,
  ): InsertOperations {
    const { view } = this.#options
    return {
      ...seenTables(options.session, view),
      byName: (name) => view.table(name),
      planOptions: (requested) => this.#planner.options(requested, nowMicros),
      run: (text, query, requested) => this.#runs.run(text, query, requested, () => {}, nowMicros),
      begin: () => this.begin(),
      store: (rows) => this.#insert(options.session.refreshes === undefined ? rows : { ...rows, refreshes: true }),
      change: (change) => changeFor(options.session, change, this.#requests, this.#making),
      lister: this.#lister(sql, options, compilerMs),
      again: () => whenReady((planning) => this.#planner.plan(sql, anew(options, planning), nowMicros).planned),
      hold: (tableIds) => view.hold(tableIds),
      replace: this.#views.replacing(this.#requests),
      list: (columns, rows) => this.#list(columns, rows, { sql, options, compilerMs }),
      ...{ turns: this.#upserts, conflicts: this.#planner.conflicts, inline: this.#options.inline },
    }
  }

  /** Starts the query of a RETURNING list over its rows. */
  #lister(sql: string, options: ExecuteOptions, compilerMs = 0): BeginList {
    return (list, version, rows) => {
      const planned = planReturning(list, version, rows, sql, this.#planner.options(options))
      return this.#query(planned, { sql, options, compilerMs })
    }
  }

  async preview(parsed: ParsedStatement, requested: ExecuteOptions): Promise<ChangePreview> {
    const { touched, options } = await this.#planner.preview(parsed, requested)
    const { query } = touched.query
    return previewChange(touched, {
      run: (kind) => this.#runs.run(parsed.text, query, { ...options, ...allRows, encoding: { kind } }, () => {}),
      begin: this.#lister(parsed.text, options),
    })
  }
}
