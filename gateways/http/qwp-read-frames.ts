// Encodes the server's messages to clients that query over QWP (columnar protocol over WebSocket), little-endian.
//
//   message      magic "QWP1" | version u8 (1) | flags u8 | table count u16 | payload bytes u32 | payload
//   server info  0x18 | role u8 (0: alone) | epoch u64 | capabilities u32 | clock i64 (ns) | cluster: bytes u16, name
//                | node: bytes u16, name
//   batch        0x11 | request i64 | number of the batch varint | body (engine/exec/encode/encode-qwp.ts)
//   end          0x12 | request i64 | number of the last batch varint | rows varint
//   error        0x13 | request i64 | status u8 | bytes u16 | message
//   done         0x16 | request i64 | kind of statement u8 | changed rows varint
//   reset        0x17 | what u8 (1: the dictionary of symbols)
//
// Batches have the flags 0x04 (timestamps have an encoding byte), 0x08 (symbols are numbers of the dictionary) and,
// when the body is compressed, 0x10.

import { AccessError, CancelledError, NetworkError, ResourceError, TimeoutError } from '../../engine/base/errors.js'
import { batchRoomBytes, varint } from '../../engine/engine.js'
import { type ErrorReport, errorReportOf } from '../common/error-reports.js'
import { cutText } from './qwp-frames.js'

const kinds = { batch: 0x11, end: 0x12, error: 0x13, done: 0x16, reset: 0x17, serverInfo: 0x18 } as const
const flags = { encodedTimes: 0x04, dictionary: 0x08, compressed: 0x10 } as const
const statuses = {
  schemaMismatch: 0x03,
  parseError: 0x05,
  internalError: 0x06,
  securityError: 0x08,
  cancelled: 0x0a,
  limitExceeded: 0x0b,
  queryTimeout: 0x0e,
} as const

/** Requests may have flags after their parameters, and a timeout. */
const capabilities = { queryFlags: 0x02, queryTimeout: 0x08 } as const
const roleAlone = 0
const resetDictionary = 1
const magic = 0x31505751
const version = 1
const headerBytes = 12

/** Kinds of statements as other servers of this dialect number them; 0: none of these. */
const statementKinds: Readonly<Record<string, number>> = {
  ...{ INSERT: 2, TRUNCATE: 3, ALTER: 4, SET: 6, DROP: 7, UPDATE: 14, VACUUM: 17 },
  ...{ 'CREATE TABLE': 9, 'RENAME TABLE': 12, BEGIN: 18, COMMIT: 19, ROLLBACK: 20 },
  ...{ 'CREATE TABLE AS': 21, 'CREATE USER': 28, 'ALTER USER': 29, 'CREATE VIEW': 34, 'ALTER VIEW': 36 },
}

/** The number of the request in errors that belong to none. */
export const noRequest = -1n

export function serverInfo(nowMicros: number): Buffer {
  const payload = Buffer.alloc(26)
  payload.writeUInt8(kinds.serverInfo, 0)
  payload.writeUInt8(roleAlone, 1)
  payload.writeUInt32LE(capabilities.queryFlags | capabilities.queryTimeout, 10)
  payload.writeBigInt64LE(BigInt(Math.floor(nowMicros)) * 1000n, 14)
  return message(payload)
}

export function resetFrame(): Buffer {
  return message(Buffer.of(kinds.reset, resetDictionary))
}

export function endFrame(requestId: bigint, batches: number, rows: number): Buffer {
  return message(ofRequest(kinds.end, requestId, varint(Math.max(0, batches - 1)), varint(rows)))
}

export function doneFrame(requestId: bigint, tag: string, rows: number): Buffer {
  const known = statementKinds[tag] ?? statementKinds[tag.split(' ')[0] ?? ''] ?? 0
  return message(ofRequest(kinds.done, requestId, Buffer.of(known), varint(rows)))
}

interface ErrorDetails {
  /** The statement is valid with other values of its parameters. */
  readonly isOfBinds?: boolean
  /** The request has a timeout. Clients that know none do not know its status, either. */
  readonly hasTimeout?: boolean
}

export function errorFrame(requestId: bigint, error: unknown, details: ErrorDetails = {}): Buffer {
  const report = errorReportOf(error)
  const text = cutText(error instanceof TimeoutError ? 'timeout, query aborted' : textOf(report))
  const length = Buffer.alloc(2)
  length.writeUInt16LE(text.length, 0)
  const status = statusOf(error, report, details)
  return message(ofRequest(kinds.error, requestId, Buffer.of(status), length, text))
}

function textOf({ category, message: text, place, hint }: ErrorReport): string {
  if (category === 'internal') return 'internal error'
  const hinted = hint === undefined ? text : `${text}; ${hint}`
  return place === 0 ? hinted : `${hinted} [position=${place}]`
}

function statusOf(error: unknown, { category }: ErrorReport, { isOfBinds, hasTimeout }: ErrorDetails): number {
  if (isOfBinds === true) return statuses.schemaMismatch
  if (hasTimeout === true && error instanceof TimeoutError) return statuses.queryTimeout
  if (error instanceof AccessError) return statuses.securityError
  if (error instanceof CancelledError) return statuses.cancelled
  if (error instanceof TimeoutError || error instanceof ResourceError) return statuses.limitExceeded
  if (error instanceof NetworkError || category === 'request') return statuses.parseError
  return statuses.internalError
}

/** A batch of an encoded block. */
export interface EncodedBatch {
  /** The room for the header, then the body. */
  readonly bytes: Uint8Array
  /** Symbols of the result up to and with this batch. */
  readonly symbols: number
  readonly isCompressed: boolean
}

/** The batches of a block. */
export function batchesOf(block: Uint8Array): EncodedBatch[] {
  const view = new DataView(block.buffer, block.byteOffset, block.length)
  const batches: EncodedBatch[] = []
  for (let at = 0; at < block.length; ) {
    const end = at + batchRoomBytes + view.getUint32(at, true)
    const symbols = view.getUint32(at + 4, true)
    batches.push({ bytes: block.subarray(at, end), symbols, isCompressed: view.getUint8(at + 8) === 1 })
    at = end
  }
  return batches
}

/** The message of a batch, whose header is written into the room before the body. */
export function batchFrame(requestId: bigint, number: number, { bytes, isCompressed }: EncodedBatch): Uint8Array {
  const head = ofRequest(kinds.batch, requestId, varint(number))
  const start = batchRoomBytes - head.length - headerBytes
  const set = flags.encodedTimes | flags.dictionary | (isCompressed ? flags.compressed : 0)
  const payloadBytes = head.length + bytes.length - batchRoomBytes
  bytes.set(header(set, 1, payloadBytes), start)
  bytes.set(head, start + headerBytes)
  return bytes.subarray(start)
}

function ofRequest(kind: number, requestId: bigint, ...fields: readonly Uint8Array[]): Buffer {
  const head = Buffer.alloc(9)
  head.writeUInt8(kind, 0)
  head.writeBigInt64LE(requestId, 1)
  return Buffer.concat([head, ...fields])
}

function message(payload: Buffer): Buffer {
  return Buffer.concat([header(0, 0, payload.length), payload])
}

function header(flagBits: number, tables: number, payloadBytes: number): Buffer {
  const bytes = Buffer.alloc(headerBytes)
  bytes.writeUInt32LE(magic, 0)
  bytes.writeUInt8(version, 4)
  bytes.writeUInt8(flagBits, 5)
  bytes.writeUInt16LE(tables, 6)
  bytes.writeUInt32LE(payloadBytes, 8)
  return bytes
}
