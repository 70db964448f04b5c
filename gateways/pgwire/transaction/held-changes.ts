// UPDATE and DELETE within BEGIN wait for COMMIT: ROLLBACK forgets them. What they are going to change is counted when they come,
// for their tags. So do statements that change schemas (held-schemas.ts).
//
// Rows of the transaction that a change is about are stored before it is carried out, rows that came behind it after
// (join-rows.ts). A change that is about none of them goes before them all, so that they can be stored as one.
//
// Queries of the transaction see what waits laid over the tables (engine/sql/statements/pending.ts). A statement that takes
// effect at once and may be about it (UPDATE with FROM, DELETE with USING) has it carried out before, with a warning: ROLLBACK
// cannot take it back then. Whether it may is told by the names in its syntax tree. Behind a change of schemas it is refused.

import { demandRight } from '../../../engine/base/rights.js'
import type { ChangePreview, ParsedStatement, Session } from '../../../engine/engine.js'
import { LateSignal } from '../../common/late-signal.js'
import type { HeldChange, PgSession, RunOptions } from '../context.js'
import { waits } from './held-schemas.js'
import { demandNoDraft, gatherNames, hasDraft, heldMax, ownRowsMax, showHeld } from './held-state.js'
import { RowCursor, type Rows } from './row-cursor.js'
import { parametersOf, pgEncoding, runInEngine, skipsRows, tagOf, timeoutOf } from './run-engine.js'
import { carryOutHeld, settle } from './transaction.js'

type Statement = ParsedStatement['statement']
type Of<Kind extends Statement['kind']> = Extract<Statement, { kind: Kind }>
type Changes = Of<'update' | 'delete'>

const tags = { update: 'UPDATE', delete: 'DELETE' } as const satisfies Record<Changes['kind'], string>
const heldBytesMax = 32 * 1024 * 1024

/** About the session, or looked at when what they name runs. */
const unrelated: ReadonlySet<Statement['kind']> = new Set([
  ...(['transaction', 'set', 'reset', 'deallocate', 'discard', 'prepare', 'execute', 'fetch', 'close'] as const),
  ...(['no operation', 'channel', 'empty'] as const),
])

/** Carries out what waits and may matter to the statement. Null: there is nothing. */
export function carryOutBefore(pg: PgSession, { statement }: ParsedStatement): Promise<void> | null {
  if (pg.held.length === 0 || unrelated.has(statement.kind)) return null
  if ((seesPending(statement) || waits(pg, statement)) && pg.held.every(isReadable)) return null
  if (!isTouched(pg.held, statement)) return null
  if (pg.status === 'I') return settle(pg)
  demandNoDraft(pg)
  return carryOutHeld(pg)
}

/** Statements that read tables, or wait as the others do. */
function seesPending(statement: Statement): boolean {
  switch (statement.kind) {
    case 'query':
    case 'explain':
    case 'declare cursor':
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
  // Its rows are stored behind it.
  if (statement.kind === 'insert' && statement.source.kind === 'rows' && !skipsRows(statement)) return false
  const names = new Set<string>()
  gatherNames(statement, names)
  return held.some(({ tables, change }) => change.draft !== undefined || [...tables].some((table) => names.has(table)))
}

function isPlainChange(statement: Statement): statement is Of<'update' | 'delete'> {
  if (statement.kind !== 'update' && statement.kind !== 'delete') return false
  const { from, joins, commonTables, declarations } = statement
  return from === null && joins.length + commonTables.length + declarations.length === 0
}

/** Keeps the change for COMMIT; answers its tag, with RETURNING its rows. Null: it cannot wait. */
export function hold(pg: PgSession, parsed: ParsedStatement, options: RunOptions): Promise<string | Rows> | null {
  const { statement } = parsed
  if (!(pg.status === 'T' || hasDraft(pg)) || !isPlainChange(statement) || !mayWait(pg)) return null
  const { name } = statement.table
  if (pg.engine.table(name, pg.session) === undefined) return null
  const late = pg.engine.isLarge(name, pg.session)
  // Nobody has asked for a transaction.
  return late && pg.status === 'I' ? null : holding(pg, parsed, statement, { ...options, late })
}

function mayWait({ held, transaction }: PgSession): boolean {
  if (held.length >= heldMax || transaction.adopted > 0) return false
  return held.reduce((sum, { rows }) => sum + (rows?.bytes ?? 0), transaction.bytes) <= heldBytesMax
}

async function holding(
  pg: PgSession,
  parsed: ParsedStatement,
  statement: Changes,
  options: RunOptions & { readonly late: boolean },
): Promise<string | Rows> {
  demandRight(pg.session, 'write', statement.position)
  const oids = options.types.map(({ oid }) => oid)
  // Binds it, so that what is wrong with it is said now; tables may have changed until COMMIT.
  const check = (): void => void pg.engine.describe(parsed, pg.session, oids)
  check()
  const preview = await previewOf(pg, pg.session, parsed, options)
  const { rows } = preview
  const names = new Set<string>()
  gatherNames(statement, names)
  const own = (await isAboutRows(pg, parsed, { statement, names, rows, options })) ? pg.transaction : null
  // Its rows have been answered when it is carried out.
  const silent = { ...parsed, statement: { ...statement, returning: null } }
  pg.held.push({
    rows: own,
    change: { sql: parsed.text, parameters: parametersOf(options), statement: silent.statement },
    tables: new Set([statement.table.name.toLowerCase(), ...(own?.tables ?? [])]),
    names,
    late: options.late,
    check,
    run: () => runInEngine(pg, silent, { ...options, columns: null }),
  })
  if (own !== null) pg.transaction = pg.engine.begin()
  showHeld(pg)
  return preview.result === null
    ? tagOf(tags[statement.kind], rows)
    : new RowCursor(preview.result, options.binary, null)
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
  if (names.has('select')) return true
  if (named.length > 1 || named[0] !== statement.table.name.toLowerCase()) return true
  const { transaction: _, ...session } = pg.session
  const counted = { ...parsed, statement: { ...statement, returning: null } }
  return (await previewOf(pg, session, counted, options)).rows !== rows
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
