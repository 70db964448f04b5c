// Encodes the server's responses to QWP ingestion (rows as columnar messages over WebSocket), each as one WebSocket
// message, little-endian.
//
//   accepted      0x00 | sequence i64 | table count u16 | (name bytes u16 | name | transaction i64) * count
//   durable       0x02 | table count u16 | (name bytes u16 | name | transaction i64) * count
//   rejected      status u8 | sequence i64 | message bytes u16 | message
//
// Clients treat a rejection as final if its status is a schema mismatch, a parse error or a missing right. After any
// other status they reconnect and repeat the message.

import { AccessError, GapError, NetworkError, ResourceError, RowError } from '../../engine/base/errors.js'
import type { Receipt } from '../../engine/engine.js'

const statuses = {
  accepted: 0x00,
  durable: 0x02,
  schemaMismatch: 0x03,
  parseError: 0x05,
  internalError: 0x06,
  securityError: 0x08,
  writeError: 0x09,
  dictionaryGap: 0x0d,
} as const

/** Clients refuse longer ones. */
const messageBytesMax = 1024
const cutSign = '…'

export function acceptedFrame(sequence: number, tables: NonNullable<Receipt['tables']>): Buffer {
  const head = Buffer.alloc(9)
  head.writeUInt8(statuses.accepted, 0)
  head.writeBigInt64LE(BigInt(sequence), 1)
  return Buffer.concat([head, tableEntries(tables)])
}

export function durableFrame(tables: NonNullable<Receipt['tables']>): Buffer {
  return Buffer.concat([Buffer.of(statuses.durable), tableEntries(tables)])
}

function tableEntries(tables: NonNullable<Receipt['tables']>): Buffer {
  const count = Buffer.alloc(2)
  count.writeUInt16LE(tables.length, 0)
  const entries = tables.map(([name, transaction]) => {
    const text = Buffer.from(name)
    const entry = Buffer.alloc(2 + text.length + 8)
    entry.writeUInt16LE(text.length, 0)
    text.copy(entry, 2)
    entry.writeBigInt64LE(BigInt(transaction), 2 + text.length)
    return entry
  })
  return Buffer.concat([count, ...entries])
}

export function rejectedFrame(sequence: number, error: Error): Buffer {
  const text = cutText(isKnown(error) ? error.message : 'internal error')
  const frame = Buffer.alloc(11 + text.length)
  frame.writeUInt8(statusOf(error), 0)
  frame.writeBigInt64LE(BigInt(sequence), 1)
  frame.writeUInt16LE(text.length, 9)
  text.copy(frame, 11)
  return frame
}

function statusOf(error: Error): number {
  if (error instanceof RowError) return statuses.schemaMismatch
  if (error instanceof NetworkError) return statuses.parseError
  if (error instanceof GapError) return statuses.dictionaryGap
  if (error instanceof AccessError) return statuses.securityError
  return error instanceof ResourceError ? statuses.writeError : statuses.internalError
}

/** Whether the error is the client's, or of the moment; others are ours. */
export function isKnown(error: Error): boolean {
  return statusOf(error) !== statuses.internalError
}

/** The UTF-8 of a message, cut to what clients accept. */
export function cutText(text: string, bytesMax = messageBytesMax): Buffer {
  const bytes = Buffer.from(text)
  if (bytes.length <= bytesMax) return bytes
  let end = bytesMax - Buffer.byteLength(cutSign)
  while (((bytes[end] ?? 0) & 0xc0) === 0x80) end--
  return Buffer.concat([bytes.subarray(0, end), Buffer.from(cutSign)])
}
