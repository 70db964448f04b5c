// Functions that several files of the engine on the main thread use: session settings, checks of COPY, cancellation,
// rows of INSERT .. VALUES, selection of result columns, descriptions of statements, and conversions of catalog entries
// and query requests.

import type { RowTransaction } from '../api/engine.js'
import type { Session } from '../api/session.js'
import type {
  CheckedStatement,
  Copier,
  CopyRequest,
  DoneResult,
  ExecuteOptions,
  ParsedStatement,
  StopSignal,
  Validation,
} from '../api/statements.js'
import type { Clock } from '../base/clock.js'
import { AccessError, SqlError } from '../base/errors.js'
import { resultWindowBytes } from '../base/limits.js'
import { hasRight, readOnlyMessage, requireRight } from '../base/rights.js'
import { redactedText } from '../base/secret-text.js'
import type { Encoding } from '../exec/run/messages.js'
import type { ProfileMode } from '../exec/run/profile.js'
import type { QueryActivity, StoredView } from '../sql/catalog.js'
import type { Query } from '../sql/plan/plan.js'
import type { PlannedStatement } from '../sql/statements/planned.js'
import type { PackedRows, Receipt, RowsInput, SchemaChange } from '../storage/jobs/messages.js'
import { type Enumeration, isTable, type StoredSequence, type TableVersion } from '../storage/schema/schema.js'
import type { RunningQuery } from '../threads/query-pool.js'
import type { DataType } from '../types/column-types.js'
import type { LocalEngineOptions } from './local-options.js'

export type Planned<Kind extends PlannedStatement['kind']> = Extract<PlannedStatement, { kind: Kind }>

/** Sets a session option. Unknown options are accepted, because clients routinely set options of other servers. */
export function setOption({ trace }: Session, { name, values }: Planned<'set'>): void {
  if (name.toLowerCase() === 'query.trace' && trace !== undefined) trace.on = values[0]?.toLowerCase() === 'true'
}

const copyOverHttp =
  'COPY is not supported over HTTP: use the PostgreSQL wire protocol (port 8812), or /imp and /exp for files'

export function copyFile(copier: Copier | null, request: CopyRequest, options: ExecuteOptions): Promise<number> {
  if (!options.session.dialect.copyStatements) throw new SqlError(copyOverHttp, request.position)
  if (copier === null) throw new SqlError('COPY of files is not possible here', request.position)
  return copier(request, options)
}

/** Requests all rows of a query. */
export const allRows = { skip: 0, rowsMax: Number.POSITIVE_INFINITY, countAll: false } as const

/** The reason of the abort, if the signal has one. */
export function cancelReason(signal: StopSignal | null): string {
  const reason: unknown = signal?.reason
  return typeof reason === 'string' ? reason : 'the client disconnected'
}

/** Cancels the query at the abort of the signal, which may outlive it: nothing listens when the query has ended. */
export function cancelAtAbort(
  signal: StopSignal | null,
  running: Pick<RunningQuery, 'ready' | 'summary' | 'cancel'>,
): void {
  if (signal === null || running.ready !== null) return
  const cancel = (): void => running.cancel(cancelReason(signal))
  const ended = (): void => signal.removeEventListener('abort', cancel)
  signal.addEventListener('abort', cancel)
  running.summary.then(ended, ended)
}

/**
 * Stores an INSERT of literals without building a syntax tree, and calls `ended`; null when the text has to be parsed.
 */
export function insertLiterals(
  sql: string,
  options: ExecuteOptions,
  engine: { begin(): RowTransaction },
  ended: () => void,
): Promise<DoneResult | null> | null {
  if (options.parsed !== undefined || options.rowsOnly !== undefined || options.explain) return null
  if (options.parameters.length > 0 || !beginsInsert(sql) || hasOwnChanges(options.session)) return null
  const start = performance.now()
  const bytes = Buffer.from(sql, 'utf8')
  const transaction = engine.begin()
  const collected = transaction.insertText(bytes, 0, bytes.length, options.session)
  return collected === -1 ? null : storeLiterals(transaction, collected, start, ended)
}

/** The first letter rules out most statements. */
function beginsInsert(sql: string): boolean {
  const first = sql.charCodeAt(0)
  return (first === 73 || first === 105 || first <= 32 || first > 127) && /^\s*insert\s/i.test(sql)
}

async function storeLiterals(
  transaction: RowTransaction,
  collected: number | Promise<number>,
  start: number,
  ended: () => void,
): Promise<DoneResult | null> {
  let rows = 0
  try {
    rows = typeof collected === 'number' ? collected : await collected
    if (rows < 0) return null
    const compilerMs = performance.now() - start
    await transaction.commit()
    return { kind: 'done', tag: 'INSERT', rows, compilerMs }
  } finally {
    // Negative: the statement starts again, with the parser.
    if (rows >= 0) ended()
  }
}

export function rowsOf(tableId: number, packed: readonly PackedRows[]): RowsInput {
  return { tableId, rows: packed.reduce((sum, batch) => sum + batch.rows, 0), columns: [], packed }
}

export function tableOnly(version: TableVersion | undefined): TableVersion | undefined {
  return version !== undefined && isTable(version.schema) ? version : undefined
}

export function storedView(version: TableVersion | undefined): StoredView | undefined {
  if (version?.schema.view === undefined) return undefined
  const { id, name, view, createdMicros } = version.schema
  return { id, name, sql: view, createdMicros }
}

export function storedSequence(version: TableVersion | undefined): StoredSequence | undefined {
  if (version?.schema.sequence === undefined) return undefined
  const { id, name, sequence } = version.schema
  return { id, name, sequence }
}

export function storedEnumeration(version: TableVersion | undefined): Enumeration | undefined {
  if (version?.schema.labels === undefined) return undefined
  const { id, name, labels } = version.schema
  return { id, name, labels }
}

/**
 * Selects the named columns, in this order; names are case-insensitive. The timestamp index still refers to all
 * columns.
 */
export function selectColumns(
  planned: Planned<'query'>,
  names: readonly string[] | null,
): Pick<Planned<'query'>, 'query' | 'columns'> {
  if (names === null) return planned
  const { query, columns } = planned
  const indexes = names.map((name) => {
    const index = columns.findIndex((column) => column.name.toLowerCase() === name.toLowerCase())
    if (index < 0) throw new SqlError(`column not found: '${name}'`, 0)
    return index
  })
  const picked = indexes.map((index) => columns[index] as (typeof columns)[number])
  const expressions = indexes.map((index, at) => ({
    kind: 'column' as const,
    index,
    type: (picked[at] as (typeof picked)[number]).type,
    position: 0,
  }))
  const plan = { kind: 'project' as const, columns: picked, input: query.plan, expressions }
  return { query: { ...query, plan }, columns: picked }
}

export function validationOf(planned: PlannedStatement): Validation {
  if (planned.kind === 'query') {
    return { tag: 'SELECT', columns: planned.columns, timestampIndex: planned.query.timestampIndex }
  }
  if (planned.kind === 'withChanges' || planned.kind === 'backup')
    return { tag: planned.tag, columns: planned.columns, timestampIndex: -1 }
  const returning = 'returning' in planned ? planned.returning : null
  return { tag: planned.tag, columns: returning?.columns ?? null, timestampIndex: -1 }
}

const queryTypes: Readonly<Record<string, string>> = {
  'DROP TABLE': 'DROP',
  'DROP VIEW': 'DROP',
  'TRUNCATE TABLE': 'TRUNCATE',
  REINDEX: 'REPAIR',
}

export function checkedOf(planned: PlannedStatement): CheckedStatement {
  return { ...validationOf(planned), queryType: queryTypeOf(planned) }
}

function queryTypeOf(planned: PlannedStatement): string {
  switch (planned.kind) {
    case 'query':
      return planned.explained === undefined ? 'SELECT' : 'EXPLAIN'
    case 'insertSelect':
      return 'INSERT AS SELECT'
    case 'createTableAs':
      return 'CREATE AS SELECT'
    case 'checkpoint':
      return planned.action === 'flush' ? planned.tag : `${planned.tag} ${planned.action.toUpperCase()}`
    default:
      return queryTypes[planned.tag] ?? planned.tag
  }
}

/** Whether the text contains nothing else, apart from trailing blanks and a semicolon. */
export function isWhole({ text, start, end }: ParsedStatement): boolean {
  return start === 0 && (end === text.length || /^\s*;?\s*$/.test(text.slice(end)))
}

export function activityOf(
  queryId: number,
  sql: string,
  { user, processId = 0 }: Session,
  clock: Clock,
): QueryActivity {
  return { queryId, user, processId, startMicros: clock.nowMicros(), sql: redactedText(sql) }
}

/** Users see their own items, administrators see all. */
export function visibleTo<Item extends { readonly user: string }>(
  session: Session | null,
  items: readonly Item[],
): readonly Item[] {
  if (session === null) return []
  return hasRight({ ...session, readOnly: false }, 'admin') ? items : items.filter(({ user }) => user === session.user)
}

/** Users may cancel their own queries, administrators all. */
export function cancelQuery(
  { queryId, position }: Planned<'cancelQuery'>,
  session: Session,
  activity: ReadonlyMap<number, { readonly user: string }>,
  runners: readonly { cancel(queryId: number, reason: string): boolean }[],
): void {
  const id = Number(queryId)
  if (session.readOnly) throw new AccessError(session.readOnlyReason ?? readOnlyMessage, 0)
  if (activity.get(id)?.user !== session.user) requireRight(session, 'admin')
  if (!runners.some((runner) => runner.cancel(id, 'cancelled by user')))
    throw new SqlError(`query to cancel not found in registry [id=${queryId}]`, position)
}

/**
 * Reports new tables to the observer. `making`: sessions of the statements that are creating tables, by name; other
 * tables come from line protocol.
 */
export function reportNewTables(
  versions: readonly TableVersion[],
  { observer, view }: Pick<LocalEngineOptions, 'observer' | 'view'>,
  making: ReadonlyMap<string, Session>,
): void {
  if (observer === undefined) return
  for (const { schema } of versions) {
    if (view.byId(schema.id) !== undefined || !isTable(schema)) continue
    const session = making.get(schema.name.toLowerCase()) ?? null
    if (session?.internal !== true) observer.tableCreated(schema.name, session)
  }
}

/** Registers the session while its change creates a table. */
export async function changeFor(
  session: Session,
  change: SchemaChange,
  requests: { change(change: SchemaChange): Promise<Receipt> },
  making: Map<string, Session>,
): Promise<Receipt> {
  if (change.kind !== 'createTable') return requests.change(change)
  const name = change.schema.name.toLowerCase()
  making.set(name, session)
  try {
    return await requests.change(change)
  } finally {
    making.delete(name)
  }
}

/** Whether the session's transaction holds rows or changes, which its statements see. */
export function hasOwnChanges({ transaction, pending = [] }: Session): boolean {
  return pending.length > 0 || (transaction !== undefined && transaction.rows > 0)
}

/** Options for planning a statement that is to be explained, not executed. */
export function asExplained(options: ExecuteOptions): ExecuteOptions {
  return { ...options, session: { ...options.session, describes: true } }
}

/**
 * A session for describing a statement: without the rows and row changes of its transaction, which do not matter for a
 * description, and without its abort signal.
 */
export function asDescribed({ signal: _, ...rest }: Session): Session {
  const pending = (rest.pending ?? []).flatMap((change) =>
    change.draft === undefined ? [] : [{ ...change, rows: null }],
  )
  const session = { ...rest, describes: true, pending }
  return session.transaction === undefined ? session : { ...session, transaction: { rows: 0, own: () => [] } }
}

export type RunOptions = Pick<
  ExecuteOptions,
  'session' | 'skip' | 'rowsMax' | 'countAll' | 'timeoutMs' | 'windowBytes'
> & { readonly encoding: Encoding; readonly profile?: ProfileMode }

function isEncoded(options: ExecuteOptions): options is ExecuteOptions & { readonly encoding: Encoding } {
  return options.encoding.kind !== 'columns'
}

/** `columns` of the result: query threads pack them by their index. */
export function runOptions(options: ExecuteOptions, columns: readonly { readonly type: DataType }[]): RunOptions {
  // Other encodings are passed on without a copy, which would take a noticeable part of a small query's time.
  if (isEncoded(options)) return options
  const places = columns.map(({ type }, columnId) => ({ columnId, type }))
  const packed = { kind: 'packed', columns: places, timestampId: -1, batchRows: Number.POSITIVE_INFINITY } as const
  return { ...options, encoding: packed }
}

/** The request to run a query, without thread and snapshots. */
export function requestOf(query: Query, options: RunOptions, jit: boolean, nowMicros: number) {
  return {
    query,
    encoding: options.encoding,
    skip: options.skip,
    rowsMax: options.rowsMax,
    countAll: options.countAll,
    nowMicros,
    timeoutMs: options.timeoutMs,
    jit,
    windowBytes: options.windowBytes ?? resultWindowBytes,
    profile: options.profile,
  }
}
