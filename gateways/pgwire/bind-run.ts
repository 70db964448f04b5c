// Batches of a prepared INSERT: what waits of Bind and Execute like the last ones, also with a Sync behind each, goes into
// the session's rows at once (engine/pg/bind-rows.ts), and the answers leave as one. Everything else is handled message by message.

import type { BindRun, BindShape, BoundParameters, Description, ParsedStatement } from '../../engine/engine.js'
import { noParameters } from './bound-parameters.js'
import type { PgSession, Prepared } from './context.js'
import { bindComplete, commandComplete, noData, readyForQuery } from './messages.js'
import type { Waiting } from './portals.js'
import { answerLater, boundRows } from './transaction.js'

const bindType = 66
const answersAtOnce = 64

/** Rows of a statement whose parameters are the values of its rows, in order; 0 for any other. */
export function tuplesOf({ statement }: ParsedStatement): number {
  if (statement.kind !== 'insert' || statement.source.kind !== 'rows' || statement.returning !== null) return 0
  const { rows } = statement.source
  const width = rows[0]?.values.length ?? 0
  const inOrder = rows.every(
    ({ values }, tuple) =>
      values.length === width &&
      values.every((value, index) => value.kind === 'parameter' && value.index === tuple * width + index + 1),
  )
  return inOrder ? rows.length : 0
}

/** What the next Bind of the statement has to be like, to the portal without a name; null when it is not for a run. */
export function shapeOf(
  { statement }: Prepared,
  bound: BoundParameters,
  types: Description['parameters'],
  start: number,
  end: number,
): BindShape | null {
  const tuples = statement === null ? 0 : tuplesOf(statement)
  if (tuples === 0 || bound.count === 0 || bound.count !== types.length) return null
  const last = bound.count - 1
  const { bytes, starts, ends } = bound
  const width = bound.count / tuples
  const binary = Array.from({ length: bound.count }, (_, index) => bound.isBinary(index))
  const isUniform = types.every(
    ({ oid }, index) => oid === types[index % width]?.oid && binary[index] === binary[index % width],
  )
  if (!isUniform) return null
  const behind = Math.max(ends[last] as number, starts[last] as number)
  return {
    prefix: Buffer.from(bytes.subarray(start, (starts[0] as number) - 4)),
    suffix: Buffer.from(bytes.subarray(behind, end)),
    types,
    binary,
    tuples,
  }
}

/** Takes as many messages as are like the last ones. */
export function takeBinds(pg: PgSession): Waiting {
  const { lastBound, inbound, portals } = pg
  const shape = lastBound?.shape ?? null
  if (lastBound === null || shape === null || lastBound.statement === null) return null
  if (inbound.nextType !== bindType || pg.skipping || pg.status === 'E') return null
  if (pg.held.some(({ keepsTables }) => !keepsTables)) return null
  const portal = portals.get('')
  if (pg.statements.get(lastBound.name) !== lastBound) return null
  if (portal !== undefined && (portal.prepared !== lastBound || portal.cursor !== null)) return null
  // Sync outside of a transaction closes the portals: one without a name has nothing to close.
  const syncs = pg.status === 'T' || portals.size === (portal === undefined ? 0 : 1)
  const { bytes, at } = inbound.waiting
  const run = pg.transaction.binds(lastBound.statement, pg.session, bytes, at, shape, syncs)
  if (run.binds === 0) return null
  inbound.pass(run.at)
  pg.isUnfinished = !run.synced
  const tag = `INSERT 0 ${shape.tuples}`
  if (run.synced && pg.status === 'I') portals.clear()
  else portals.set('', { ...executed, prepared: lastBound, done: tag })
  pg.connection.rowsReceived += run.binds * shape.tuples
  pg.counters.queries.insert += run.binds
  putAnswers(pg, tag, run)
  return boundRows(pg)
}

/** A portal whose rows are taken. */
const executed = { name: '', bound: noParameters, types: [], binary: [], cursor: null }

interface Answers {
  readonly tag: string
  readonly described: boolean
  /** With the answer to Sync. */
  readonly ready: boolean
  readonly one: Buffer
  readonly many: Buffer
}

let known: Answers = { tag: '', described: false, ready: false, one: Buffer.alloc(0), many: Buffer.alloc(0) }

function answersOf(tag: string, described: boolean, ready: boolean): Answers {
  if (known.tag !== tag || known.described !== described || known.ready !== ready) {
    const end = ready ? [readyForQuery('T')] : []
    const one = Buffer.concat([bindComplete, ...(described ? [noData] : []), commandComplete(tag), ...end])
    known = { tag, described, ready, one, many: Buffer.concat(Array.from({ length: answersAtOnce }, () => one)) }
  }
  return known
}

function putAnswers(pg: PgSession, tag: string, { binds, described, synced }: BindRun): void {
  const { one, many } = answersOf(tag, described, synced && pg.status === 'T')
  if (synced && pg.status === 'I') {
    answerLater(pg, binds, one)
    return
  }
  let left = binds
  for (; left >= answersAtOnce; left -= answersAtOnce) pg.out.put(many)
  for (; left > 0; left--) pg.out.put(one)
}
