// Takes requests of line protocol and QWP (columnar protocol over WebSocket) from the ingest ring, the ring buffer
// through which the main thread passes them, decodes and commits them. An atomic request is committed when its last
// block is decoded. Other requests are committed block by block, so their size is not limited by memory.
//
// A message stays in the ring until its rows are committed, because the strings of decoded rows are addresses into it.
// Of an atomic request with several blocks, the strings of a block are copied before the next block is read, so that
// its space in the ring becomes free.

import { assert } from '../../base/assert.js'
import { type ErrorRecord, errorRecord, ResourceError, RowError } from '../../base/errors.js'
import { lineFlags, precisionCodes, type RingMessage, ringKinds, ringPeek, ringRelease } from '../../memory/ring.js'
import { noSourcePosition, type SourcePosition, sourcePositionKinds } from '../../wal/source-position.js'
import type { Lsn } from '../../wal/types.js'
import type { Receipt } from '../jobs/messages.js'
import { unpackSourcePosition } from '../manifest/source-positions.js'
import { enforcedKey } from '../schema/schema.js'
import type { RowDecoder } from './row-decoder.js'
import { commitRows, keysChecked, type StagedTable, settleRows } from './writer-commit.js'
import { enqueue, receiptOf, sendReceiptNow, type WriterState } from './writer-state.js'

const nanosByPrecision: Record<number, bigint> = {
  [precisionCodes.n]: 1n,
  [precisionCodes.u]: 1000n,
  [precisionCodes.ms]: 1_000_000n,
  [precisionCodes.s]: 1_000_000_000n,
  [precisionCodes.m]: 60_000_000_000n,
  [precisionCodes.h]: 3_600_000_000_000n,
  [precisionCodes.auto]: 0n,
}

/** State of the request whose blocks are being read. */
export interface LineProgress {
  /** The request's last block has not arrived yet: no other request may change the catalog. */
  open: boolean
  /** Number of rows in committed blocks. */
  rows: number
  lsn: Lsn
  /** A commit failed: the rest of the request is skipped. */
  error: ErrorRecord | null
  /** The current block is decoded and waits for memory. */
  decoded: boolean
  /** Source position of the rows, committed with them. */
  sourcePosition: SourcePosition
  /** The rows do not continue the stored source position: the request is skipped. */
  outOfSequence: boolean
  /** Of the request's format. */
  decoder: RowDecoder
}

export function newLineProgress({ decoders }: Pick<WriterState, 'decoders'>): LineProgress {
  return {
    decoder: decoders.lines,
    open: false,
    rows: 0,
    lsn: 0,
    error: null,
    decoded: false,
    sourcePosition: noSourcePosition,
    outOfSequence: false,
  }
}

/** 'blocked': the memtables have no memory; call again later. */
export type TakeResult = 'idle' | 'taken' | 'blocked'

/** Processes one message of the ring, if there is one. */
export function takeLines(state: WriterState, progress: LineProgress, giveUp: boolean): TakeResult {
  const message = ringPeek(state.options.memory)
  if (message === null) return 'idle'
  if (message.kind === ringKinds.lines || message.kind === ringKinds.qwp) {
    if (!progress.decoded) decodeMessage(state, progress, message)
    if (!finishMessage(state, progress, message, giveUp)) return 'blocked'
  }
  progress.decoded = false
  ringRelease(state.options.memory)
  return 'taken'
}

function decodeMessage(state: WriterState, progress: LineProgress, message: RingMessage): void {
  if ((message.flags & lineFlags.first) !== 0) {
    progress.decoder = message.kind === ringKinds.qwp ? state.decoders.qwp : state.decoders.lines
    Object.assign(progress, { open: true, rows: 0, lsn: 0, error: null, ...sourcePositionOf(state, message) })
    progress.decoder.begin({
      connectionId: message.connectionId,
      atomic: (message.flags & lineFlags.atomic) !== 0,
      skipBadLines: (message.flags & lineFlags.skipBadLines) !== 0,
      partial: (message.flags & lineFlags.partial) !== 0,
      unitNanos: nanosByPrecision[message.precision] ?? 1n,
      nowMicros: message.nowMicros,
      // Connectors write all timestamps with nanoseconds.
      allNanos: progress.sourcePosition.kind === sourcePositionKinds.kafka,
    })
  }
  assert(progress.open, 'P3: the blocks of a request follow its first one')
  if (progress.error === null && !progress.outOfSequence) progress.decoder.block(message.address, message.bytes)
  else progress.decoder.skip(message.address, message.bytes)
  progress.decoded = true
}

/** Decodes the source position, and whether it does not continue the stored one. */
function sourcePositionOf(
  state: WriterState,
  message: RingMessage,
): Pick<LineProgress, 'sourcePosition' | 'outOfSequence'> {
  if (message.sourcePositionBytes === 0) return { sourcePosition: noSourcePosition, outOfSequence: false }
  const at = message.sourcePositionAddress
  const { sourcePosition, previous } = unpackSourcePosition(
    state.options.memory.u8.subarray(at, at + message.sourcePositionBytes),
  )
  return { sourcePosition, outOfSequence: !state.sourcePositions.follows(sourcePosition, previous) }
}

/** Commits the decoded rows if they are due; false if memory is missing. */
function finishMessage(state: WriterState, progress: LineProgress, message: RingMessage, giveUp: boolean): boolean {
  const { decoder } = progress
  const atomic = (message.flags & lineFlags.atomic) !== 0
  const last = (message.flags & lineFlags.last) !== 0
  if (atomic && decoder.error !== null) discard(state, progress)
  if (atomic && !last) {
    own(state, progress)
    return true
  }
  let hopeless = giveUp
  while (decoder.paused && progress.error === null) {
    if (!commitOrFail(state, progress, message.requestId, false, hopeless)) return false
    // The committed rows can be flushed, so memory may become free.
    hopeless = false
    decoder.goOn()
  }
  if (!commitOrFail(state, progress, message.requestId, last, hopeless)) return false
  if (decoder.rows === 0 && last) sendReceipt(state, progress, message.requestId)
  return true
}

/** Whether there are rows to commit, or a source position of a request without rows. */
function commits({ decoder, sourcePosition, error, outOfSequence }: LineProgress, last: boolean): boolean {
  return (
    decoder.rows > 0 ||
    (last && sourcePosition !== noSourcePosition && error === null && decoder.error === null && !outOfSequence)
  )
}

/** False if memory is missing and may become free. */
function commitOrFail(
  state: WriterState,
  progress: LineProgress,
  requestId: number,
  last: boolean,
  giveUp: boolean,
): boolean {
  refuseKeys(state, progress)
  if (!commits(progress, last) || commitDecoded(state, progress, requestId, last)) return true
  if (!giveUp || logFailed(state)) return false
  fail(state, progress, new ResourceError('out of memory for rows'))
  return true
}

/** Reports the rows that an enforced key refuses, or fails the request. */
function refuseKeys(state: WriterState, progress: LineProgress): void {
  const { decoder } = progress
  if (decoder.rows === 0) return
  try {
    const refused = decoder.result().flatMap((staged) => {
      if (enforcedKey(staged.table.schema) === undefined) return []
      settleRows(state, staged)
      return state.keyChecks.refused(staged.table, staged.chunks).map((row) => ({ ...row, table: staged.table }))
    })
    const [first] = refused
    if (first === undefined) return
    if (!decoder.refuse(refused)) fail(state, progress, new RowError(first.message, 0))
    else if (decoder.error !== null) discard(state, progress)
  } catch (thrown) {
    if (!(thrown instanceof ResourceError)) throw thrown
    fail(state, progress, thrown)
  }
}

function logFailed({ wal }: WriterState): boolean {
  return !wal.takesRows
}

function own(state: WriterState, progress: LineProgress): void {
  try {
    progress.decoder.own()
  } catch (thrown) {
    if (!(thrown instanceof ResourceError)) throw thrown
    fail(state, progress, thrown)
  }
}

/** Commits the staged rows; the receipt is sent with the last ones. False if memory is missing. */
function commitDecoded(state: WriterState, progress: LineProgress, requestId: number, last: boolean): boolean {
  const { decoder } = progress
  const { rows } = decoder
  const tables = decoder.result()
  try {
    const receipts = (lsn: Lsn) => {
      progress.lsn = lsn
      return last ? [receipt(progress, requestId, rows, tables)] : []
    }
    if (!commitRows(state, tables, receipts, last ? progress.sourcePosition : noSourcePosition, keysChecked))
      return false
    decoder.release()
    progress.rows += rows
    if (last) progress.open = false
  } catch (thrown) {
    if (!(thrown instanceof ResourceError)) throw thrown
    // A stream waits until the log accepts its rows.
    if (logFailed(state) && !decoder.atomic) return false
    fail(state, progress, thrown)
    if (last) sendReceipt(state, progress, requestId)
  }
  return true
}

function receipt(
  { decoder, ...progress }: LineProgress,
  requestId: number,
  rows: number,
  tables: readonly StagedTable[],
): Receipt {
  const { rejects, rejected, error } = decoder
  return receiptOf(requestId, {
    rows: progress.rows + rows,
    rejects,
    rejected,
    error: progress.error ?? error,
    lsn: progress.lsn,
    existed: progress.outOfSequence,
    ...(decoder.namesTables
      ? { tables: tables.map(({ table }) => [table.schema.name, table.transaction] as const) }
      : {}),
  })
}

/** Responds to a request that ends without rows to commit. */
function sendReceipt(state: WriterState, progress: LineProgress, requestId: number): void {
  if (!progress.open) return
  discard(state, progress)
  const outcome = receipt(progress, requestId, 0, [])
  // If earlier blocks were committed, the receipt waits until their rows are durable.
  if (progress.rows === 0) sendReceiptNow(state, outcome)
  else enqueue(state, { receipts: [outcome] })
  progress.open = false
}

function fail(state: WriterState, progress: LineProgress, error: Error): void {
  progress.error = errorRecord(error)
  discard(state, progress)
}

/** Discards the staged rows and the request's additions to the catalog. */
function discard({ catalog }: WriterState, { decoder }: LineProgress): void {
  decoder.release()
  catalog.undo()
}
