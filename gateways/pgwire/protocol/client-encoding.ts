// Converts strings of a client whose `client_encoding` is a single-byte encoding: input becomes UTF-8 before anything
// reads it, output is converted last. Queries and names go through MessageReader, parameters through `recodedBound`,
// rows through `recodedRows`, all other messages through `recodedMessages`. COPY has its own encoding.

import { isAscii } from 'node:buffer'
import type { BoundParameters, Description, ResultColumn } from '../../../engine/engine.js'
import { pgOidOf } from '../../../engine/types/column-types.js'
import { type CopyEncoding, encodingNamed } from './copy-encodings.js'
import { PgError } from './sqlstate.js'

export interface ClientEncoding extends CopyEncoding {
  readonly write: NonNullable<CopyEncoding['write']>
}

/**
 * Canonical name: UTF8 or a name that clientEncoding() accepts. Null: unknown. SQL_ASCII (raw bytes) is treated as
 * UTF-8.
 */
export function encodingName(written: string): string | null {
  const bare = written.replace(/^'(.*)'$/, '$1')
  const known = encodingNamed(bare)
  if (known === null || known === undefined) return known === null ? 'UTF8' : null
  if (known.write !== null) return known.name
  throw new PgError('0A000', `conversion between ${known.name} and UTF8 is not supported`)
}

/** Null: UTF-8. */
export function clientEncoding(name: string | undefined): ClientEncoding | null {
  if (name === undefined || name === 'UTF8') return null
  const found = made.get(name) ?? encodingNamed(name) ?? null
  if (found?.write == null) return null
  const encoding = { ...found, write: found.write }
  made.set(name, encoding)
  return encoding
}

const made = new Map<string, ClientEncoding>()

// INPUT
// -------------------------------------------------------------------------------------------------------------

/** Types whose binary format is a string. */
const textOids: ReadonlySet<number> = new Set([18, 19, 25, 114, 705, 1042, 1043, 3802])
/** Arrays of such types: strings with length prefixes. */
const textArrayOids: ReadonlySet<number> = new Set([199, 1002, 1003, 1009, 1014, 1015, 3807])

export function recodedBound(
  bound: BoundParameters,
  types: Description['parameters'],
  { reader }: ClientEncoding,
): BoundParameters {
  const { bytes, starts, ends, count } = bound
  const binary = Array.from({ length: count }, (_, index) => bound.isBinary(index))
  const read = reader()
  const values = binary.map((isBinary, index) => {
    const value = bytes.subarray(starts[index], Math.max(starts[index] ?? 0, ends[index] ?? 0))
    return isText(isBinary, types[index]?.oid ?? 0) && !isAscii(value) ? read(value) : value
  })
  const made = { starts: new Int32Array(count), ends: new Int32Array(count) }
  let at = 0
  for (const [index, value] of values.entries()) {
    made.starts[index] = at
    at += value.length
    made.ends[index] = (ends[index] ?? -1) < 0 ? -1 : at
  }
  return { ...made, count, bytes: Buffer.concat(values), isBinary: (index) => binary[index] === true }
}

function isText(isBinary: boolean, oid: number): boolean {
  if (!isBinary) return true
  if (!textArrayOids.has(oid)) return textOids.has(oid)
  throw new PgError('0A000', 'binary arrays of strings are UTF-8, but client_encoding is another encoding')
}

// OUTPUT
// ------------------------------------------------------------------------------------------------------------

/** Converts DataRow messages. Throws PgError for a character that the client's encoding lacks. */
export function recodedRows(
  block: Uint8Array,
  columns: readonly ResultColumn[],
  binary: readonly boolean[],
  encoding: ClientEncoding,
): Buffer {
  const source = Buffer.from(block.buffer, block.byteOffset, block.length)
  const strings = columns.map(({ type }, index) =>
    isText((binary.length === 1 ? binary[0] : binary[index]) === true, pgOidOf(type)),
  )
  const parts: Uint8Array[] = []
  for (let at = 0; at < source.length; ) {
    const end = at + 1 + source.readInt32BE(at + 1)
    const row = source.subarray(at, end)
    if (isAscii(row)) parts.push(row)
    else parts.push(...recodedRow(row, strings, encoding))
    at = end
  }
  return Buffer.concat(parts)
}

function recodedRow(row: Buffer, strings: readonly boolean[], { write }: ClientEncoding): Uint8Array[] {
  const parts: Uint8Array[] = []
  let at = rowHeaderBytes
  for (const text of strings) {
    const length = row.readInt32BE(at)
    const value = row.subarray(at + 4, at + 4 + Math.max(0, length))
    const recoded = text && !isAscii(value) ? write(value) : value
    parts.push(length < 0 ? row.subarray(at, at + 4) : int32(recoded.length), recoded)
    at += 4 + value.length
  }
  return messageOf(row, rowHeaderBytes, parts)
}

const rowHeaderBytes = 7

/** Converts row descriptions, errors, notices, settings and notifications; DataRow and CopyData stay unchanged. */
export function recodedMessages(messages: Uint8Array, encoding: ClientEncoding): Uint8Array {
  if (isAscii(messages)) return messages
  const source = Buffer.from(messages.buffer, messages.byteOffset, messages.length)
  const parts: Uint8Array[] = []
  for (let at = 0; at < source.length; ) {
    const end = at + 1 + source.readInt32BE(at + 1)
    parts.push(...recodedMessage(source.subarray(at, end), encoding))
    at = end
  }
  return Buffer.concat(parts)
}

/** Row descriptions fail on unmappable characters; other messages replace them. */
function recodedMessage(message: Buffer, { write }: ClientEncoding): Uint8Array[] {
  switch (String.fromCharCode(message[0] ?? 0)) {
    case 'T':
      return messageOf(message, 7, fieldParts(message, write))
    case 'E':
    case 'N':
    case 'S':
      return messageOf(message, 5, [write(message.subarray(5), '?')])
    case 'A':
      return messageOf(message, 9, [write(message.subarray(9), '?')])
    default:
      return [message]
  }
}

/** Splits a RowDescription into names and the bytes between them. */
function fieldParts(message: Buffer, write: ClientEncoding['write']): Uint8Array[] {
  const parts: Uint8Array[] = []
  for (let at = 7; at < message.length; ) {
    const zero = message.indexOf(0, at)
    parts.push(write(message.subarray(at, zero)), message.subarray(zero, zero + 19))
    at = zero + 19
  }
  return parts
}

/** Joins the first `headerBytes` of a message with a new rest and updates its length. */
function messageOf(message: Buffer, headerBytes: number, rest: readonly Uint8Array[]): Uint8Array[] {
  const length = rest.reduce((sum, part) => sum + part.length, headerBytes - 1)
  return [message.subarray(0, 1), int32(length), message.subarray(5, headerBytes), ...rest]
}

function int32(value: number): Buffer {
  const bytes = Buffer.allocUnsafe(4)
  bytes.writeInt32BE(value)
  return bytes
}
