// The log of statements (log.sql.query.progress.exe): each that was carried out, with the time until its first rows were
// there. A batch of INSERTs that was read at once is one line, rows that were written out are cut off.

import { shownText } from '../../engine/base/secret-text.js'
import type { ParsedStatement } from '../../engine/engine.js'
import type { PgSession } from './context.js'

const charactersMax = 10_000

export function logStatement(pg: PgSession, { text, start, end }: ParsedStatement, begunMs: number): void {
  logText(pg, text.slice(start, Math.min(end, start + charactersMax)), begunMs)
}

/** Of a statement that nobody had to parse. */
export function logBytes(pg: PgSession, bytes: Buffer, start: number, end: number, begunMs: number): void {
  logText(pg, bytes.toString('utf8', start, Math.min(end, start + charactersMax)), begunMs)
}

function logText({ log, clock }: PgSession, text: string, begunMs: number): void {
  const timeMs = Math.round((clock.monotonicMs() - begunMs) * 1000) / 1000
  log('I', 'pg', `[exe] ${shownText(text)} [cached=false, time=${timeMs}ms]`)
}
