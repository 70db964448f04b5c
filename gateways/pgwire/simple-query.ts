// The simple protocol: a text of any number of statements, each answered in turn, ended by one ReadyForQuery. The first
// error ends the text.

import type { ParsedStatement } from '../../engine/engine.js'
import type { PgSession } from './context.js'
import { fail } from './failure.js'
import { emptyQueryResponse, readyForQuery } from './messages.js'
import type { MessageReader } from './reader.js'
import { answer, runStatement } from './run.js'

export async function simpleQuery(pg: PgSession, reader: MessageReader): Promise<void> {
  const text = reader.text()
  reader.done()
  pg.portals.delete('')
  pg.statements.delete('')
  try {
    const statements = pg.engine.parse(text)
    if (statements.length === 0) pg.out.put(emptyQueryResponse)
    for (const statement of statements) await runOne(pg, statement)
  } catch (error) {
    fail(pg, error)
  }
  pg.out.put(readyForQuery(pg.status))
}

async function runOne(pg: PgSession, statement: ParsedStatement): Promise<void> {
  try {
    await answer(pg, await runStatement(pg, statement, { parameters: [], binary: [], columns: null }), true)
  } finally {
    pg.running = null
  }
}
