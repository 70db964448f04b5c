// What the engine on the main thread makes of plans: rows for an insert, a choice of columns, views of the catalog.

import type { RowTransaction } from '../api/engine.js'
import type { Session } from '../api/session.js'
import type { Copier, CopyRequest, DoneResult, ExecuteOptions, ParsedStatement, Validation } from '../api/statements.js'
import { AccessError, ResourceError, SqlError } from '../base/errors.js'
import { insertSelectRows, walFrameBytesMax } from '../base/limits.js'
import { demandRight, hasRight, readOnlyMessage } from '../base/rights.js'
import type { StoredView } from '../sql/catalog.js'
import type { PlannedStatement } from '../sql/statements/planned.js'
import type { PackedRows, RowsInput } from '../storage/messages.js'
import type { TableVersion } from '../storage/schema.js'
import type { Value } from '../types/value.js'
import type { LocalEngineOptions } from './local-options.js'

export type Planned<Kind extends PlannedStatement['kind']> = Extract<PlannedStatement, { kind: Kind }>

/** Options that a session can set here; the rest is accepted for clients that set what they always set. */
export function setOption({ trace }: Session, { name, values }: Planned<'set'>): void {
  if (name.toLowerCase() === 'query.trace' && trace !== undefined) trace.on = values[0]?.toLowerCase() === 'true'
}

export function copyFile(copier: Copier | null, request: CopyRequest, options: ExecuteOptions): Promise<number> {
  if (options.session.protocol === 'http') throw new SqlError('COPY is not supported over HTTP', request.position)
  if (copier === null) throw new SqlError('COPY of files is not possible here', request.position)
  return copier(request, options)
}

/** A query that is asked for all of its rows. */
export const allRows = { skip: 0, rowsMax: Number.POSITIVE_INFINITY, countAll: false } as const

/** Whoever aborts may say why. */
export function cancelReason(signal: AbortSignal | null | undefined): string {
  const reason: unknown = signal?.reason
  return typeof reason === 'string' ? reason : 'the client went away'
}

export function cancelAtAbort(signal: AbortSignal | null, running: { cancel(reason: string): void }): void {
  signal?.addEventListener('abort', () => running.cancel(cancelReason(signal)))
}

export type InsertTarget = Pick<Planned<'insertSelect'>, 'tableId' | 'columns' | 'batchRows'> &
  Partial<Pick<Planned<'insertSelect'>, 'atomic'>>

/** Where the rows of a query go. */
interface InsertWays {
  /** The client's transaction, when there is one. */
  readonly into: ExecuteOptions['into']
  readonly begin: () => RowTransaction
  readonly insert: (rows: RowsInput) => Promise<number>
}

/** Bytes of an INSERT ATOMIC that wait in the memory, and what one frame of the log surely takes. */
const atomicBytesMax = walFrameBytesMax / 2
const frameBytesMax = (walFrameBytesMax * 3) / 4

/** Inserts rows as they come, many at a time; gives their count. */
export async function insertAll(values: QueryValues, target: InsertTarget, ways: InsertWays): Promise<number> {
  const { into } = ways
  if (into === undefined && target.atomic === true) return insertWhole(values, target, ways.begin())
  return insertInBatches(values, target, async (rows) => {
    if (into === undefined) return ways.insert(rows)
    await into(rows)
    return rows.rows
  })
}

/** Rows that outgrow the memory wait in parts that no table names before the commit. */
async function insertWhole(values: QueryValues, target: InsertTarget, transaction: RowTransaction): Promise<number> {
  try {
    const inserted = await insertInBatches(values, target, async (rows) => {
      transaction.gather(rows)
      if (transaction.bytes < atomicBytesMax || (await transaction.spill())) return rows.rows
      if (transaction.bytes >= frameBytesMax)
        throw new ResourceError(`INSERT ATOMIC is too large for DEDUP, arrays or BINARY [max=${frameBytesMax}]`)
      return rows.rows
    })
    await transaction.commit()
    return inserted
  } catch (error) {
    transaction.clear()
    throw error
  }
}

type QueryValues = AsyncIterable<readonly (readonly Value[])[]>

async function insertInBatches(
  values: QueryValues,
  target: InsertTarget,
  insert: (rows: RowsInput) => Promise<number>,
): Promise<number> {
  const batchRows = Math.min(target.batchRows ?? insertSelectRows, insertSelectRows)
  let inserted = 0
  let waiting: (readonly Value[])[] = []
  for await (const rows of values) {
    waiting.push(...rows)
    for (; waiting.length >= batchRows; waiting = waiting.slice(batchRows))
      inserted += await insert(transposed(target, waiting.slice(0, batchRows)))
  }
  return waiting.length === 0 ? inserted : inserted + (await insert(transposed(target, waiting)))
}

/** Stores an INSERT of literals without a syntax tree; null: the text has to be parsed. */
export function insertLiterals(
  sql: string,
  options: ExecuteOptions,
  begin: () => RowTransaction,
): Promise<DoneResult> | null {
  const isWhole = options.parsed === undefined && options.rowsOnly === undefined && !options.explain
  if (!isWhole || !isPlain(options) || !/^\s*insert\s/i.test(sql)) return null
  const start = performance.now()
  const bytes = Buffer.from(sql, 'utf8')
  const transaction = begin()
  const rows = transaction.insertText(bytes, 0, bytes.length, options.session)
  if (rows < 0) return null
  const compilerMs = performance.now() - start
  return transaction.commit().then(() => ({ kind: 'done', tag: 'INSERT', rows, compilerMs }))
}

export function rowsOf(tableId: number, packed: readonly PackedRows[]): RowsInput {
  return { tableId, rows: packed.reduce((sum, batch) => sum + batch.rows, 0), columns: [], packed }
}

/** Result rows as the columns of an insert. */
function transposed(
  { tableId, columns }: Pick<Planned<'insertSelect'>, 'tableId' | 'columns'>,
  rows: readonly (readonly Value[])[],
): RowsInput {
  return {
    tableId,
    rows: rows.length,
    columns: columns.map(({ columnId, type }, index) => ({
      columnId,
      type,
      values: rows.map((row) => row[index] ?? null),
    })),
  }
}

export function tableOnly(version: TableVersion | undefined): TableVersion | undefined {
  return version?.schema.view === undefined ? version : undefined
}

export function storedView(version: TableVersion | undefined): StoredView | undefined {
  if (version?.schema.view === undefined) return undefined
  const { id, name, view, createdMicros } = version.schema
  return { id, name, sql: view, createdMicros }
}

/** Only the named columns, in their order; names match without case. The timestamp index keeps meaning all columns. */
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
  return { tag: planned.tag, columns: null, timestampIndex: -1 }
}

/** Nothing but the statement is in its text. */
export function isWhole({ text, start, end }: ParsedStatement): boolean {
  return start === 0 && (end === text.length || text.slice(end).trim() === ';')
}

/** Others see their own; administrators see all. */
export function visibleTo<Item extends { readonly user: string }>(
  session: Session | null,
  items: readonly Item[],
): readonly Item[] {
  if (session === null) return []
  return hasRight({ ...session, readOnly: false }, 'admin') ? items : items.filter(({ user }) => user === session.user)
}

/** One's own queries, or those of others as an administrator. */
export function demandCancel(session: Session, owner: string | undefined): void {
  if (session.readOnly) throw new AccessError(session.readOnlyReason ?? readOnlyMessage, 0)
  if (owner !== session.user) demandRight(session, 'admin')
}

/** `making`: the protocols of the sessions whose statements make tables now; who is not there came by lines. */
export function tellNewTables(
  versions: readonly TableVersion[],
  { observer, view }: Pick<LocalEngineOptions, 'observer' | 'view'>,
  making: ReadonlyMap<string, Session['protocol']>,
): void {
  if (observer === undefined) return
  for (const { schema } of versions) {
    if (view.byId(schema.id) !== undefined || schema.view !== undefined) continue
    const origin = making.get(schema.name.toLowerCase()) ?? 'ilp'
    if (origin !== 'internal') observer.tableCreated(schema.name, origin)
  }
}

/** Its plan depends on nothing but its text and the catalog. */
export function isPlain({
  parameters,
  session,
}: Pick<ExecuteOptions, 'session'> & { readonly parameters: readonly unknown[] }): boolean {
  return parameters.length === 0 && (session.transaction === undefined || session.transaction.rows === 0)
}

/** What a statement is does not depend on the rows of the session's transaction. */
export function withoutRows(session: Session): Session {
  return session.transaction === undefined ? session : { ...session, transaction: { rows: 0, own: () => [] } }
}
