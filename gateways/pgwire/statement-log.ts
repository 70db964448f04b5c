// Logs statements (setting log.sql.query.progress.exe): each one that ran, with the time until its first rows. A
// batch of INSERTs that was processed at once is one record, and long statements are truncated.

import { redactedText } from '../../engine/base/secret-text.js'
import type { ParsedStatement } from '../../engine/engine.js'
import type { PgSession } from './context.js'

const charactersMax = 10_000

export function logStatement(pg: PgSession, { text, start, end }: ParsedStatement, begunMs: number): void {
  logText(pg, text.slice(start, Math.min(end, start + charactersMax)), begunMs)
}

/** Logs a statement that was not parsed. */
export function logBytes(pg: PgSession, bytes: Buffer, start: number, end: number, begunMs: number): void {
  logText(pg, bytes.toString('utf8', start, Math.min(end, start + charactersMax)), begunMs)
}

function logText({ log, clock }: PgSession, text: string, begunMs: number): void {
  const timeMs = Math.round((clock.monotonicMs() - begunMs) * 1000) / 1000
  log('I', 'pg', `[exe] ${redactedText(text)} [cached=false, time=${timeMs}ms]`)
}
