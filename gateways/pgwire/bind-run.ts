// Fast path for batches of a prepared INSERT: consecutive Bind and Execute messages of the same form, even with a
// Sync after each, are appended to the session's rows in one call (engine/pg/bind-rows.ts) and answered with one
// write. All other messages are handled one by one.

import type { BindRun, BindShape, BoundParameters, Description, ParsedStatement } from '../../engine/engine.js'
import type { BatchResponses, PgSession, Prepared } from './context.js'
import { noParameters } from './protocol/bound-parameters.js'
import { bindComplete, commandComplete, noData, readyForQuery } from './protocol/messages.js'
import { logStatement } from './statement-log.js'
import type { Waiting } from './transaction/portals.js'
import { isPlainInsert } from './transaction/run-engine.js'
import { boundRows, respondLater } from './transaction/transaction.js'

const bindType = 66
const responsesAtOnce = 64

/** Number of VALUES rows of an INSERT whose parameters are exactly the values of its rows, in order; else 0. */
function tuplesOf(parsed: ParsedStatement): number {
  const { statement } = parsed
  if (!isPlainInsert(parsed) || statement.kind !== 'insert' || statement.source.kind !== 'rows') return 0
  const { rows } = statement.source
  const width = rows[0]?.values.length ?? 0
  const inOrder = rows.every(
    ({ values }, tuple) =>
      values.length === width &&
      values.every((value, index) => value.kind === 'parameter' && value.index === tuple * width + index + 1),
  )
  return inOrder ? rows.length : 0
}

/**
 * The form that the next Bind to the unnamed portal must have to join a batch; null when the statement cannot be
 * batched.
 */
export function shapeOf(
  { statement, name, shape }: Prepared,
  bound: BoundParameters,
  types: Description['parameters'],
  start: number,
  end: number,
): BindShape | null {
  const tuples = statement === null ? 0 : tuplesOf(statement)
  const { count, bytes, starts, ends } = bound
  if (tuples === 0 || count === 0 || count !== types.length) return null
  const formats = formatsWithin(bytes, start, name, count)
  const known = shape !== null && formats > 0 && shape.formats === formats ? shape : null
  // A column's type follows from its first value that is not NULL, or from the previous Bind.
  const samples = Array.from({ length: count / tuples }, (_, column) => sampleOf(column, bound, tuples))
  const binary = samples.map((sample, column) =>
    known !== null && sample < 0 ? known.binary[column] === true : bound.isBinary(Math.max(sample, column)),
  )
  const columnTypes = samples.map((sample, column) => types[Math.max(sample, column)] as (typeof types)[number])
  const isUniform = types.every(({ oid }, index) => {
    const column = index % samples.length
    if (ends[index]! < 0) return formats > 0 || bound.isBinary(index) === binary[column]
    return oid === columnTypes[column]?.oid && bound.isBinary(index) === binary[column]
  })
  if (!isUniform) return null
  const prefix = Buffer.from(bytes.subarray(start, starts[0]! - 4))
  if (formats > 0)
    for (let index = 0; index < count; index++) prefix[formats + index * 2 + 1] = Number(binary[index % samples.length])
  const after = Math.max(ends[count - 1]!, starts[count - 1]!)
  return { prefix, formats, suffix: Buffer.from(bytes.subarray(after, end)), types: columnTypes, binary, tuples }
}

/** Offset of the format codes within a Bind to the unnamed portal; 0 unless each parameter has one. */
function formatsWithin(bytes: Buffer, start: number, name: string, parameters: number): number {
  const at = 1 + Buffer.byteLength(name) + 1
  return bytes.readUInt16BE(start + at) === parameters ? at + 2 : 0
}

/** The first parameter of a column that is not NULL; -1: none. */
function sampleOf(column: number, { count, ends }: BoundParameters, tuples: number): number {
  for (let index = column; index < count; index += count / tuples) if (ends[index]! >= 0) return index
  return -1
}

/** Consumes as many messages as match the form of the last ones. */
export function takeBinds(pg: PgSession): Waiting {
  const { lastBound, inbound, portals } = pg
  const shape = lastBound?.shape ?? null
  if (lastBound === null || shape === null || lastBound.statement === null) return null
  if (inbound.nextType !== bindType || pg.out.encoding !== null || pg.skipping || pg.status === 'E') return null
  if (pg.status === 'I' && pg.held.length > 0) return null
  const portal = portals.get('')
  if (pg.statements.get(lastBound.name) !== lastBound) return null
  if (portal !== undefined && (portal.prepared !== lastBound || portal.cursor !== null)) return null
  // A Sync outside of a transaction closes all portals, which is a no-op for the unnamed one.
  const syncs = pg.status === 'T' || portals.size === (portal === undefined ? 0 : 1)
  const { waiting } = inbound
  if (waiting === null) return null
  const begunMs = pg.clock.monotonicMs()
  const run = pg.transaction.binds(lastBound.statement, pg.session, waiting.bytes, waiting.at, shape, syncs)
  if (run.binds === 0) return null
  inbound.pass(run.at)
  pg.isIdle = run.synced
  if (run.synced) pg.isAwaited = true
  const tag = `INSERT 0 ${shape.tuples}`
  if (run.synced && pg.status === 'I') portals.clear()
  else portals.set('', { ...executed, prepared: lastBound, done: tag })
  pg.connection.rowsReceived += run.binds * shape.tuples
  pg.counters.queries.insert += run.binds
  if (pg.options.logQueries) logStatement(pg, lastBound.statement, begunMs)
  putResponses(pg, lastBound, tag, run)
  return boundRows(pg)
}

/** A portal whose rows have been consumed. */
const executed = { name: '', bound: noParameters, types: [], binary: [], cursor: null }

function responsesOf(tag: string, described: boolean, ready: boolean): BatchResponses {
  const end = ready ? [readyForQuery('T')] : []
  const one = Buffer.concat([bindComplete, ...(described ? [noData] : []), commandComplete(tag), ...end])
  return { tag, described, ready, one, many: Buffer.concat(Array.from({ length: responsesAtOnce }, () => one)) }
}

function putResponses(pg: PgSession, prepared: Prepared, tag: string, { binds, described, synced }: BindRun): void {
  const ready = synced && pg.status === 'T'
  const last = prepared.responses
  const isSame = last?.tag === tag && last.described === described && last.ready === ready
  const responses = isSame ? last : responsesOf(tag, described, ready)
  prepared.responses = responses
  const { one, many } = responses
  if (synced && pg.status === 'I') {
    respondLater(pg, binds, one)
    return
  }
  let left = binds
  for (; left >= responsesAtOnce; left -= responsesAtOnce) pg.out.put(many)
  for (; left > 0; left--) pg.out.put(one)
}
