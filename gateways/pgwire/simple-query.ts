// The simple protocol: a text of any number of statements, each answered in turn, ended by one ReadyForQuery. The first
// error ends the text.

import type { ParsedStatement } from '../../engine/engine.js'
import { noParameters } from './bound-parameters.js'
import type { PgSession } from './context.js'
import { fail } from './failure.js'
import { emptyQueryResponse, readyForQuery } from './messages.js'
import type { MessageReader } from './reader.js'
import { answer, runStatement } from './run.js'
import { settle, storeRows } from './transaction.js'

export async function simpleQuery(pg: PgSession, reader: MessageReader): Promise<void> {
  const text = reader.text()
  reader.done()
  if (pg.status === 'I') await settle(pg)
  await pg.portals.get('')?.cursor?.close()
  pg.portals.delete('')
  pg.statements.delete('')
  try {
    const statements = pg.engine.parse(text)
    if (statements.length === 0) pg.out.put(emptyQueryResponse)
    for (const statement of statements) await runOne(pg, statement, statements.length === 1)
    if (pg.status === 'I') await storeRows(pg)
  } catch (error) {
    fail(pg, error)
  }
  pg.out.put(readyForQuery(pg.status))
}

/** The rows of a statement that is alone are stored before the client hears of them. */
async function runOne(pg: PgSession, statement: ParsedStatement, alone: boolean): Promise<void> {
  try {
    const outcome = await runStatement(pg, statement, { bound: noParameters, types: [], binary: [], columns: null })
    if (alone && pg.status === 'I') await storeRows(pg)
    await answer(pg, outcome, true)
  } finally {
    pg.running = null
  }
}
