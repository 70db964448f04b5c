// Handles the simple query protocol: a string of any number of statements, each answered in turn, followed by one
// ReadyForQuery. The first error ends the string.

import { NetworkError } from '../../engine/base/errors.js'
import { yieldToEventLoop } from '../../engine/base/event-loop.js'
import type { ParsedStatement } from '../../engine/engine.js'
import type { PgSession } from './context.js'
import { noParameters } from './protocol/bound-parameters.js'
import { commandComplete, emptyQueryResponse, readyForQuery } from './protocol/messages.js'
import type { MessageReader } from './protocol/reader.js'
import { respond, runStatement } from './run.js'
import { logBytes } from './statement-log.js'
import { beginTextBlock, endBlock } from './transaction/block-settings.js'
import { fail } from './transaction/failure.js'
import { checkNoted, deliverNotifications, sendInbox } from './transaction/notifications.js'
import { endCursors } from './transaction/portals.js'
import { noteInserted } from './transaction/run-engine.js'
import { boundRows, settle, storeRows } from './transaction/transaction.js'

export async function simpleQuery(pg: PgSession, reader: MessageReader): Promise<void> {
  if (pg.status === 'I') await settle(pg)
  await pg.portals.get('')?.cursor?.close()
  pg.portals.delete('')
  pg.statements.delete('')
  pg.text = ''
  const begunMs = pg.clock.monotonicMs()
  const { source, at, end } = reader
  try {
    const literals = literalRows(pg, reader)
    const inserted = typeof literals === 'number' ? literals : await literals
    if (inserted < 0) await runText(pg, reader)
    else {
      await storeInserted(pg, inserted)
      if (pg.options.logQueries) logBytes(pg, source, at, end - 1, begunMs)
    }
    if (pg.status === 'I') deliverNotifications(pg)
  } catch (error) {
    if (error instanceof NetworkError) throw error
    fail(pg, error)
  }
  sendInbox(pg)
  pg.out.put(readyForQuery(pg.status))
}

/** How long the statements of one string may run before other connections get a turn. */
const runMs = 20

async function runText(pg: PgSession, reader: MessageReader): Promise<void> {
  pg.text = reader.text()
  reader.done()
  const statements = pg.engine.parse(pg.text)
  if (statements.length === 0) pg.out.put(emptyQueryResponse)
  const [only] = statements
  if (only !== undefined && statements.length === 1) await runOne(pg, only, true)
  else await runSeveral(pg, statements)
  if (pg.status === 'I') {
    checkNoted(pg)
    if (pg.held.length > 0) await settle(pg)
    else await storeRows(pg)
  }
}

/** Ends SET LOCAL settings and cursors with the string, unless it leaves a transaction open. */
async function runSeveral(pg: PgSession, statements: readonly ParsedStatement[]): Promise<void> {
  let retained = false
  pg.isWithinText = true
  try {
    let turnMs = pg.clock.monotonicMs()
    for (const statement of statements) {
      beginTextBlock(pg)
      await runOne(pg, statement, false)
      // Small statements complete synchronously, so thousands of them would block the event loop.
      if (pg.clock.monotonicMs() - turnMs < runMs) continue
      await yieldToEventLoop()
      turnMs = pg.clock.monotonicMs()
    }
    retained = true
  } finally {
    pg.isWithinText = false
    if (pg.status === 'I') {
      endBlock(pg, retained)
      await endCursors(pg, retained)
    }
  }
}

/** Number of rows of a string that is a single INSERT of literals; -1 for any other string. */
function literalRows(pg: PgSession, { source, at, end }: MessageReader): number | Promise<number> {
  if (pg.out.encoding !== null) return -1
  if (pg.status === 'E') return -1
  if (source.indexOf(0, at) !== end - 1) return -1
  return pg.transaction.insertText(source, at, end - 1, pg.session)
}

async function storeInserted(pg: PgSession, rows: number): Promise<void> {
  noteInserted(pg, rows)
  const stored = boundRows(pg)
  if (stored !== null) await stored
  if (pg.status === 'I') await storeRows(pg)
  pg.out.put(commandComplete(`INSERT 0 ${rows}`))
}

/** Stores the rows of a single statement before responding. */
async function runOne(pg: PgSession, statement: ParsedStatement, alone: boolean): Promise<void> {
  try {
    const outcome = await runStatement(pg, statement, { bound: noParameters, types: [], binary: [], columns: null })
    if (alone && pg.status === 'I') await storeRows(pg)
    await respond(pg, outcome, true)
  } finally {
    pg.running = null
  }
}
