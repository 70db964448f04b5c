// Line-protocol requests from the ingest ring to the log. Atomic requests are committed when their last block is
// decoded, others block by block, so that their size is not bounded by memory.
//
// A message stays in the ring until what was decoded from it is committed: staged texts point into it. Between the
// blocks of an atomic request the texts are copied out.

import { assert } from '../../base/assert.js'
import { type ErrorRecord, errorRecord, ResourceError } from '../../base/errors.js'
import { lineFlags, precisionCodes, type RingMessage, ringKinds, ringPeek, ringRelease } from '../../memory/ring.js'
import { noOrigin, type Origin, originKinds } from '../../wal/origin.js'
import type { Lsn } from '../../wal/types.js'
import type { Receipt } from '../jobs/messages.js'
import { unpackOrigin } from '../manifest/origins.js'
import { commitRows } from './writer-commit.js'
import { answerNow, enqueue, receiptOf, type WriterState } from './writer-state.js'

const nanosByPrecision: Record<number, bigint> = {
  [precisionCodes.n]: 1n,
  [precisionCodes.u]: 1000n,
  [precisionCodes.ms]: 1_000_000n,
  [precisionCodes.s]: 1_000_000_000n,
  [precisionCodes.m]: 60_000_000_000n,
  [precisionCodes.h]: 3_600_000_000_000n,
}

/** The request whose blocks are being read. */
export interface LineProgress {
  /** A request has begun and its last block is not here yet: nothing else may change the catalog. */
  open: boolean
  /** Rows of committed blocks. */
  rows: number
  lsn: Lsn
  /** A commit failed: the rest of the request is read over. */
  error: ErrorRecord | null
  /** The decoded block waits for memory. */
  decoded: boolean
  /** Where the rows come from; committed with them. */
  origin: Origin
  /** They were stored already, or others before them are missing: the request is read over. */
  astray: boolean
}

export function newLineProgress(): LineProgress {
  return { open: false, rows: 0, lsn: 0, error: null, decoded: false, origin: noOrigin, astray: false }
}

/** 'blocked': the memtables lack memory; call again later. */
export type TakeResult = 'idle' | 'taken' | 'blocked'

/** Takes one message of the ring, if there is one. `bytes` of it are added to the count. */
export function takeLines(state: WriterState, progress: LineProgress, giveUp: boolean): TakeResult {
  const message = ringPeek(state.options.memory)
  if (message === null) return 'idle'
  if (message.kind === ringKinds.lines) {
    if (!progress.decoded) decodeMessage(state, progress, message)
    if (!finishMessage(state, progress, message, giveUp)) return 'blocked'
  }
  progress.decoded = false
  ringRelease(state.options.memory)
  return 'taken'
}

function decodeMessage(state: WriterState, progress: LineProgress, message: RingMessage): void {
  const { decoder } = state
  if ((message.flags & lineFlags.first) !== 0) {
    Object.assign(progress, { open: true, rows: 0, lsn: 0, error: null, ...originOf(state, message) })
    decoder.begin({
      atomic: (message.flags & lineFlags.atomic) !== 0,
      skipBadLines: (message.flags & lineFlags.skipBadLines) !== 0,
      partial: (message.flags & lineFlags.partial) !== 0,
      unitNanos: nanosByPrecision[message.precision] ?? 1n,
      nowMicros: message.nowMicros,
      // Connectors write every timestamp so.
      allNanos: progress.origin.kind === originKinds.kafka,
    })
  }
  assert(progress.open, 'P3: the blocks of a request follow its first one')
  if (progress.error === null && !progress.astray) decoder.block(message.address, message.bytes)
  progress.decoded = true
}

/** A request whose rows do not follow what is stored of their stream must not be stored. */
function originOf(state: WriterState, message: RingMessage): Pick<LineProgress, 'origin' | 'astray'> {
  if (message.originBytes === 0) return { origin: noOrigin, astray: false }
  const at = message.originAddress
  const { origin, previous } = unpackOrigin(state.options.memory.u8.subarray(at, at + message.originBytes))
  return { origin, astray: !state.origins.follows(origin, previous) }
}

/** Commits what is due; false when memory lacks. */
function finishMessage(state: WriterState, progress: LineProgress, message: RingMessage, giveUp: boolean): boolean {
  const { decoder } = state
  const atomic = (message.flags & lineFlags.atomic) !== 0
  const last = (message.flags & lineFlags.last) !== 0
  if (atomic && decoder.error !== null) discard(state)
  if (atomic && !last) {
    own(state, progress)
    return true
  }
  let hopeless = giveUp
  while (decoder.paused && progress.error === null) {
    if (!commitOrFail(state, progress, message.requestId, false, hopeless)) return false
    // What was committed can be flushed.
    hopeless = false
    decoder.goOn()
  }
  if (!commitOrFail(state, progress, message.requestId, last, hopeless)) return false
  if (decoder.rows === 0 && last) answer(state, progress, message.requestId)
  return true
}

/** There are rows, or the origin is to be told of a request whose rows are none. */
function commits({ decoder }: WriterState, { origin, error, astray }: LineProgress, last: boolean): boolean {
  return decoder.rows > 0 || (last && origin !== noOrigin && error === null && decoder.error === null && !astray)
}

/** False when memory lacks and may come back. */
function commitOrFail(
  state: WriterState,
  progress: LineProgress,
  requestId: number,
  last: boolean,
  giveUp: boolean,
): boolean {
  if (!commits(state, progress, last) || commitDecoded(state, progress, requestId, last)) return true
  if (!giveUp || logFailed(state)) return false
  fail(state, progress, new ResourceError('out of memory for rows'))
  return true
}

function logFailed({ wal }: WriterState): boolean {
  return !wal.takesRows
}

function own(state: WriterState, progress: LineProgress): void {
  try {
    state.decoder.own()
  } catch (thrown) {
    if (!(thrown instanceof ResourceError)) throw thrown
    fail(state, progress, thrown)
  }
}

/** Commits the staged rows; the receipt travels with the last ones. False when memory lacks. */
function commitDecoded(state: WriterState, progress: LineProgress, requestId: number, last: boolean): boolean {
  const { decoder } = state
  const { rows } = decoder
  const tables = decoder.result()
  try {
    const receipts = (lsn: Lsn) => {
      progress.lsn = lsn
      return last ? [receipt(state, progress, requestId, rows)] : []
    }
    if (!commitRows(state, tables, receipts, last ? progress.origin : noOrigin)) return false
    decoder.release()
    progress.rows += rows
    if (last) progress.open = false
  } catch (thrown) {
    if (!(thrown instanceof ResourceError)) throw thrown
    // A stream waits until the log takes its rows.
    if (logFailed(state) && !decoder.atomic) return false
    fail(state, progress, thrown)
    if (last) answer(state, progress, requestId)
  }
  return true
}

function receipt(state: WriterState, progress: LineProgress, requestId: number, rows: number): Receipt {
  const { rejects, rejected, error } = state.decoder
  return receiptOf(requestId, {
    rows: progress.rows + rows,
    rejects,
    rejected,
    error: progress.error ?? error,
    lsn: progress.lsn,
    existed: progress.astray,
  })
}

/** A request that ends without rows to commit. */
function answer(state: WriterState, progress: LineProgress, requestId: number): void {
  if (!progress.open) return
  discard(state)
  const outcome = receipt(state, progress, requestId, 0)
  // Rows of earlier blocks are answered for when they are durable.
  if (progress.rows === 0) answerNow(state, outcome)
  else enqueue(state, { receipts: [outcome] })
  progress.open = false
}

function fail(state: WriterState, progress: LineProgress, error: Error): void {
  progress.error = errorRecord(error)
  discard(state)
}

/** Gives up what is staged, and what the request has added to the catalog. */
function discard(state: WriterState): void {
  state.decoder.release()
  state.catalog.undo()
}
