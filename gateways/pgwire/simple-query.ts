// Handles the simple query protocol: a string of any number of statements, each answered in turn, followed by one
// ReadyForQuery. The first error ends the string.

import { NetworkError } from '../../engine/base/errors.js'
import { yieldToEventLoop } from '../../engine/base/event-loop.js'
import type { ParsedStatement } from '../../engine/engine.js'
import type { PgSession } from './context.js'
import { noParameters } from './protocol/bound-parameters.js'
import { commandComplete, emptyQueryResponse, readyForQuery } from './protocol/messages.js'
import type { MessageReader } from './protocol/reader.js'
import { type Outcome, respond, runStatement } from './run.js'
import { logBytes } from './statement-log.js'
import { beginTextBlock, endBlock } from './transaction/block-settings.js'
import { fail } from './transaction/failure.js'
import { checkNoted, deliverNotifications, sendInbox } from './transaction/notifications.js'
import { endCursors, type Waiting } from './transaction/portals.js'
import { noteInserted } from './transaction/run-engine.js'
import { boundRows, settle, storeIfAny } from './transaction/transaction.js'

export async function simpleQuery(pg: PgSession, reader: MessageReader): Promise<void> {
  const unsettled = pg.status === 'I' ? settle(pg) : null
  if (unsettled !== null) await unsettled
  const cursor = pg.portals.get('')?.cursor ?? null
  if (cursor !== null) await cursor.close()
  pg.portals.delete('')
  pg.statements.delete('')
  pg.text = ''
  const begunMs = pg.clock.monotonicMs()
  const { source, at, end } = reader
  try {
    const literals = literalRows(pg, reader)
    const inserted = typeof literals === 'number' ? literals : await literals
    const running = inserted < 0 ? runText(pg, reader) : storeInserted(pg, inserted)
    if (running !== null) await running
    if (inserted >= 0 && pg.options.logQueries) logBytes(pg, source, at, end - 1, begunMs)
    if (pg.status === 'I') deliverNotifications(pg)
  } catch (error) {
    if (error instanceof NetworkError) throw error
    fail(pg, error)
  } finally {
    pg.running = null
  }
  sendInbox(pg)
  pg.out.put(readyForQuery(pg.status))
}

/** How long the statements of one string may run before other connections get a turn. */
const runMs = 20

function runText(pg: PgSession, reader: MessageReader): Waiting {
  pg.text = reader.text()
  reader.done()
  const statements = pg.engine.parse(pg.text)
  if (statements.length === 0) pg.out.put(emptyQueryResponse)
  const [only] = statements
  const running = only !== undefined && statements.length === 1 ? runOne(pg, only, true) : runSeveral(pg, statements)
  return running === null ? storeText(pg) : running.then(() => storeText(pg) ?? undefined)
}

/** Stores what a string has left to store, unless a transaction is open. */
function storeText(pg: PgSession): Waiting {
  if (pg.status !== 'I') return null
  checkNoted(pg)
  return pg.held.length > 0 ? settle(pg) : storeIfAny(pg)
}

/** Ends SET LOCAL settings and cursors with the string, unless it leaves a transaction open. */
async function runSeveral(pg: PgSession, statements: readonly ParsedStatement[]): Promise<void> {
  let retained = false
  pg.isWithinText = true
  try {
    let turnMs = pg.clock.monotonicMs()
    for (const statement of statements) {
      beginTextBlock(pg)
      const running = runOne(pg, statement, false)
      if (running !== null) await running
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

function storeInserted(pg: PgSession, rows: number): Waiting {
  noteInserted(pg, rows)
  const bound = boundRows(pg)
  const stored = bound === null ? storeBlock(pg) : bound.then(() => storeBlock(pg) ?? undefined)
  const tag = (): void => pg.out.put(commandComplete(`INSERT 0 ${rows}`))
  if (stored !== null) return stored.then(tag)
  tag()
  return null
}

function storeBlock(pg: PgSession): Waiting {
  return pg.status === 'I' ? storeIfAny(pg) : null
}

/** Stores the rows of a single statement before responding. */
function runOne(pg: PgSession, statement: ParsedStatement, alone: boolean): Waiting {
  const outcome = runStatement(pg, statement, { bound: noParameters, types: [], binary: [], columns: null })
  const answer = (settled: Outcome): Waiting => {
    const stored = alone ? storeBlock(pg) : null
    return stored === null ? respond(pg, settled, true) : stored.then(() => respond(pg, settled, true) ?? undefined)
  }
  return outcome instanceof Promise ? outcome.then((settled) => answer(settled) ?? undefined) : answer(outcome)
}
