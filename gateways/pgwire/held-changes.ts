// UPDATE, DELETE, TRUNCATE and DROP TABLE within BEGIN wait for COMMIT: ROLLBACK forgets them. What an UPDATE or DELETE is
// going to change is counted when it comes, for its tag.
//
// Rows of the transaction that a change is about are stored before it is carried out, rows that came behind it after
// (join-rows.ts). A change that is about none of them goes before them all, so that they can be stored as one.
//
// Queries of the transaction see what waits laid over the tables (engine/sql/statements/pending.ts). A statement that takes
// effect at once and may be about it has it carried out before, with a warning: ROLLBACK cannot take it back then. Whether
// it may is told by the names in its syntax tree. UPDATE with FROM, DELETE with USING and all other changes of tables take effect at once.

import { demandRight } from '../../engine/base/rights.js'
import type { ChangePreview, ParsedStatement, Session } from '../../engine/engine.js'
import { LateSignal } from '../common/late-signal.js'
import type { HeldChange, PgSession, RunOptions } from './context.js'
import { RowCursor, type Rows } from './row-cursor.js'
import { parametersOf, pgEncoding, runInEngine, skipsRows, tagOf, timeoutOf } from './run-engine.js'
import { carryOutHeld, ownRowsMax, showHeld } from './transaction.js'

type Statement = ParsedStatement['statement']
type TableName = Of<'update'>['table']
type Of<Kind extends Statement['kind']> = Extract<Statement, { kind: Kind }>
type Changes = Of<'update' | 'delete' | 'truncate' | 'drop table'>

const tags = {
  update: 'UPDATE',
  delete: 'DELETE',
  truncate: 'TRUNCATE TABLE',
  'drop table': 'DROP TABLE',
} as const satisfies Record<Changes['kind'], string>
const heldMax = 1000
const heldBytesMax = 32 * 1024 * 1024

/** About the session, or looked at when what they name runs. */
const unrelated: ReadonlySet<Statement['kind']> = new Set([
  ...(['transaction', 'set', 'reset', 'deallocate', 'discard', 'prepare', 'execute', 'fetch', 'close'] as const),
  ...(['no operation', 'channel', 'empty'] as const),
])

/** Carries out what waits and may matter to the statement. Null: there is nothing. */
export function carryOutBefore(pg: PgSession, { statement }: ParsedStatement): Promise<void> | null {
  if (pg.held.length === 0 || unrelated.has(statement.kind)) return null
  if (seesPending(statement) && pg.held.every(isReadable)) return null
  if (!isTouched(pg.held, statement)) return null
  return carryOutHeld(pg)
}

/** Statements that read tables, or wait as the others do. */
function seesPending(statement: Statement): boolean {
  switch (statement.kind) {
    case 'query':
    case 'explain':
    case 'declare cursor':
    case 'truncate':
    case 'drop table':
      return true
    case 'update':
    case 'delete':
      return isPlainChange(statement)
    case 'copy':
      return statement.direction === 'to'
    case 'insert':
      return statement.source.kind === 'query' || skipsRows(statement)
    default:
      return false
  }
}

/** Rows that it finds travel with the plan of whoever reads. */
function isReadable({ rows }: HeldChange): boolean {
  return rows === null || (rows.adopted === 0 && rows.rows <= ownRowsMax)
}

function isTouched(held: readonly HeldChange[], statement: Statement): boolean {
  const names = new Set<string>()
  gatherNames(statement, names)
  const isInsert = statement.kind === 'insert' && statement.source.kind === 'rows' && !skipsRows(statement)
  return held.some(({ tables, keepsTables }) => {
    // Its rows are stored behind it.
    if (isInsert) return !keepsTables
    return !keepsTables || [...tables].some((table) => names.has(table))
  })
}

function isPlainChange(statement: Statement): statement is Of<'update' | 'delete'> {
  if (statement.kind !== 'update' && statement.kind !== 'delete') return false
  const { from, joins, commonTables, declarations } = statement
  return from === null && joins.length + commonTables.length + declarations.length === 0
}

/** Every text in a piece of the syntax tree: names are among them. */
function gatherNames(node: unknown, names: Set<string>): void {
  if (typeof node === 'string') names.add(node.toLowerCase())
  else if (typeof node === 'object' && node !== null) for (const part of Object.values(node)) gatherNames(part, names)
}

/** Keeps the change for COMMIT; answers its tag, with RETURNING its rows. Null: it cannot wait. */
export function hold(pg: PgSession, parsed: ParsedStatement, options: RunOptions): Promise<string | Rows> | null {
  const { statement } = parsed
  if (pg.status !== 'T' || !mayWait(statement) || pg.held.length >= heldMax || pg.transaction.adopted > 0) return null
  if (pg.held.reduce((sum, { rows }) => sum + (rows?.bytes ?? 0), pg.transaction.bytes) > heldBytesMax) return null
  if (!tablesOf(statement).some(({ name }) => pg.engine.tableExists(name))) return null
  return holding(pg, parsed, statement, options)
}

function mayWait(statement: Statement): statement is Changes {
  return statement.kind === 'truncate' || statement.kind === 'drop table' || isPlainChange(statement)
}

async function holding(
  pg: PgSession,
  parsed: ParsedStatement,
  statement: Changes,
  options: RunOptions,
): Promise<string | Rows> {
  demandRight(pg.session, 'write', statement.position)
  const oids = options.types.map(({ oid }) => oid)
  // Binds it, so that what is wrong with it is said now; tables may have changed until COMMIT.
  const check = (): void => void pg.engine.describe(parsed, pg.session, oids)
  check()
  const preview = tellsRows(statement) ? await previewOf(pg, pg.session, parsed, options) : nothing
  const { rows } = preview
  const names = new Set<string>()
  gatherNames(statement, names)
  const own = (await isAboutRows(pg, parsed, { statement, names, rows, options })) ? pg.transaction : null
  const changed = tablesOf(statement).map(({ name }) => name.toLowerCase())
  // Its rows have been answered when it is carried out.
  const silent = { ...parsed, statement: withoutReturning(statement) }
  pg.held.push({
    rows: own,
    change: { sql: parsed.text, parameters: parametersOf(options), statement: silent.statement },
    tables: new Set([...changed, ...(own?.tables ?? [])]),
    names,
    keepsTables: statement.kind !== 'drop table',
    check,
    run: () => runInEngine(pg, silent, { ...options, columns: null }),
  })
  if (own !== null) pg.transaction = pg.engine.begin()
  showHeld(pg)
  return preview.result === null
    ? tagOf(tags[statement.kind], rows)
    : new RowCursor(preview.result, options.binary, null)
}

const nothing: ChangePreview = { rows: 0, result: null }

function withoutReturning(statement: Changes): Changes {
  return tellsRows(statement) ? { ...statement, returning: null } : statement
}

interface Counted {
  readonly statement: Changes
  readonly names: ReadonlySet<string>
  readonly rows: number
  readonly options: RunOptions
}

/** Whether the change would come out otherwise if the rows of the transaction were stored behind it. */
async function isAboutRows(
  pg: PgSession,
  parsed: ParsedStatement,
  { statement, names, rows, options }: Counted,
): Promise<boolean> {
  const named = pg.transaction.tables.filter((table) => names.has(table))
  if (named.length === 0) return false
  if (!tellsRows(statement) || names.has('select')) return true
  if (named.length > 1 || named[0] !== statement.table.name.toLowerCase()) return true
  const { transaction: _, ...session } = pg.session
  const counted = { ...parsed, statement: withoutReturning(statement) }
  return (await previewOf(pg, session, counted, options)).rows !== rows
}

function tellsRows(statement: Changes): statement is Of<'update' | 'delete'> {
  return statement.kind === 'update' || statement.kind === 'delete'
}

function tablesOf(statement: Changes): readonly TableName[] {
  return 'table' in statement ? [statement.table] : statement.tables
}

/** The rows that it is about, its transaction's among them. */
function previewOf(
  pg: PgSession,
  session: Session,
  parsed: ParsedStatement,
  options: RunOptions,
): Promise<ChangePreview> {
  const running = new LateSignal()
  pg.running = running
  return pg.engine.preview(parsed, {
    ...{ session, encoding: pgEncoding(pg, options.binary) },
    ...{ parameters: parametersOf(options), skip: 0, rowsMax: Number.POSITIVE_INFINITY, countAll: false },
    ...{ columns: null, timeoutMs: timeoutOf(pg), signal: running, explain: false },
  })
}
