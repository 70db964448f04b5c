// Batches of a prepared INSERT: what waits of Bind and Execute like the last ones goes into the session's rows at once
// (engine/pg/bind-rows.ts), and the answers leave as one. Everything else is handled message by message.

import type { BindShape, ParsedStatement } from '../../engine/engine.js'
import type { PgSession, Portal, Prepared } from './context.js'
import { bindComplete, commandComplete, noData } from './messages.js'
import type { Waiting } from './portals.js'
import { boundRows } from './transaction.js'

const bindType = 66
const answersAtOnce = 64

/** Rows of a statement whose parameters are the values of its rows, in order; 0 for any other. */
export function tuplesOf({ statement }: ParsedStatement): number {
  if (statement.kind !== 'insert' || statement.source.kind !== 'rows') return 0
  const { rows } = statement.source
  const width = rows[0]?.values.length ?? 0
  const inOrder = rows.every(
    ({ values }, tuple) =>
      values.length === width &&
      values.every((value, index) => value.kind === 'parameter' && value.index === tuple * width + index + 1),
  )
  return inOrder ? rows.length : 0
}

/** What the next Bind of the statement has to be like; null when it is not for a run. */
export function shapeOf(prepared: Prepared, portal: Portal, start: number, end: number): BindShape | null {
  const { statement } = prepared
  const tuples = statement === null ? 0 : tuplesOf(statement)
  const { bound, types } = portal
  if (tuples === 0 || bound.count === 0 || bound.count !== types.length || portal.name !== '') return null
  const last = bound.count - 1
  const { bytes, starts, ends } = bound
  const behind = Math.max(ends[last] as number, starts[last] as number)
  return {
    prefix: Buffer.from(bytes.subarray(start, (starts[0] as number) - 4)),
    suffix: Buffer.from(bytes.subarray(behind, end)),
    types,
    binary: Array.from({ length: bound.count }, (_, index) => bound.isBinary(index)),
    tuples,
  }
}

/** Takes as many messages as are like the last ones. */
export function takeBinds(pg: PgSession): Waiting {
  const { lastBound, inbound } = pg
  const shape = lastBound?.shape ?? null
  if (lastBound === null || shape === null || lastBound.statement === null) return null
  if (inbound.nextType !== bindType || pg.skipping || pg.status === 'E') return null
  const portal = pg.portals.get('')
  if (portal?.prepared !== lastBound || portal.cursor !== null || pg.statements.get(lastBound.name) !== lastBound) {
    return null
  }
  const { bytes, at } = inbound.waiting
  const run = pg.transaction.binds(lastBound.statement, pg.session, bytes, at, shape)
  if (run.binds === 0) return null
  inbound.pass(run.at)
  const tag = `INSERT 0 ${shape.tuples}`
  portal.done = tag
  pg.connection.rowsReceived += run.binds * shape.tuples
  pg.counters.queries.insert += run.binds
  putAnswers(pg, tag, run.described, run.binds)
  return boundRows(pg)
}

let known = { tag: '', described: false, one: Buffer.alloc(0), many: Buffer.alloc(0) }

function putAnswers({ out }: PgSession, tag: string, described: boolean, count: number): void {
  if (known.tag !== tag || known.described !== described) {
    const one = Buffer.concat([bindComplete, ...(described ? [noData] : []), commandComplete(tag)])
    known = { tag, described, one, many: Buffer.concat(Array.from({ length: answersAtOnce }, () => one)) }
  }
  let left = count
  for (; left >= answersAtOnce; left -= answersAtOnce) out.put(known.many)
  for (; left > 0; left--) out.put(known.one)
}
