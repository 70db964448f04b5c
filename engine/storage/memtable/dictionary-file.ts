// The file of a symbol dictionary: stores the strings of one SYMBOL column in the order of their ids, append-only. The
// strings are in the log first, but old segments of the log are removed, so they must be stored here before.
//
// Layout, little-endian:
//
//   header   magic "PSD1" u32 | table id u32 | column id u32 | crc32 u32 of the twelve bytes before
//   record   first id u32 | count u32 | string bytes u32 | crc32 u32 | lengths i32[count] | strings
//
// The crc covers the twelve bytes before it, then lengths and strings. The first record follows the header. Every later
// one begins at a multiple of 4096, because a torn write may damage the whole block that it touches, so no write
// touches a block with durable bytes.
//
// Invariants:
//   1. Records are contiguous by id.
//   2. The log is trimmed past a frame (log record) only when its new symbols are in synced records and the manifest
//      has their count.
//   3. Records beyond that count are ignored: if only the process ended, they may be in the page cache only, and no
//      later sync would write them. The log contains them too, and the next append overwrites them.

import { assert } from '../../base/assert.js'
import { crc32 } from '../../base/checksum.js'
import { CorruptionError } from '../../base/errors.js'
import type { File, Files } from '../../base/files.js'
import { nonZeroAt } from '../../base/padding.js'
import type { SyncGroup } from '../part/sync-group.js'

const magic = 0x31445350
const headerBytes = 16
const recordHeaderBytes = 16
const blockBytes = 4096

export interface DictionaryFileId {
  readonly tableId: number
  readonly columnId: number
}

export function dictionaryFilePath(directory: string, { tableId, columnId }: DictionaryFileId): string {
  return `${directory}/${tableId}-${columnId}.symbols`
}

/** The entries of the file in the order of their ids, as views of one buffer. */
export interface LoadedSymbols {
  readonly strings: readonly Uint8Array[]
  /** Offset of the end of the last record. */
  readonly end: number
  /** Offset of a byte between records that is not zero. */
  readonly changedPadding?: number | undefined
}

/** Reads the first `count` entries. Throws CorruptionError if there are fewer. */
export function readDictionaryFile(files: Files, path: string, id: DictionaryFileId, count: number): LoadedSymbols {
  const strings: Uint8Array[] = []
  if (count === 0) return { strings, end: 0 }
  if (!files.exists(path)) throw new CorruptionError('the symbol dictionary is missing', path, 0)
  const content = readAll(files, path)
  requireFormat(content, path)
  const view = new DataView(content.buffer)
  let end = headerMatches(content, view, id) ? readRecord(content, view, headerBytes, strings) : 0
  let changed: number | undefined
  for (let next = end; next > 0 && strings.length < count; ) {
    changed ??= nonZeroAt(content, end, alignUp(end))
    next = readRecord(content, view, alignUp(end), strings)
    if (next > 0) end = next
  }
  if (strings.length < count) throw new CorruptionError('the symbol dictionary is damaged', path, end)
  return { strings, end, changedPadding: changed }
}

/**
 * Appends entries, which the group's commit makes durable. `end`: end of the last valid record, or 0 for a new file.
 */
export function appendDictionaryFile(
  files: Files,
  group: SyncGroup,
  path: string,
  id: DictionaryFileId,
  end: number,
  record: {
    readonly firstId: number
    readonly count: number
    readonly lengths: Uint8Array
    readonly bytes: Uint8Array
  },
): number {
  assert(record.count > 0, 'S3: a record adds symbols')
  const exists = files.exists(path)
  const file: File = files.open(path, exists ? 'write' : 'create')
  let given = false
  try {
    const chunks = [...(end === 0 ? [encodeHeader(id)] : []), encodeRecordHeader(record), record.lengths, record.bytes]
    const position = alignUp(end)
    assert(position >= end, 'F3: no write touches a block with durable bytes')
    assert(record.lengths.length === record.count * 4, 'R1: every symbol of a record has a length')
    if (exists && file.size() > position) file.truncate(position)
    file.write(
      chunks.filter((chunk) => chunk.length > 0),
      position,
    )
    given = true
    // The name is synced even if the file exists, because a failed attempt may have created it.
    group.add(file, end === 0 ? [path.slice(0, path.lastIndexOf('/'))] : [])
    return position + chunks.reduce((sum, chunk) => sum + chunk.length, 0)
  } finally {
    if (!given) file.close()
  }
}

function alignUp(position: number): number {
  return Math.ceil(position / blockBytes) * blockBytes
}

function readAll(files: Files, path: string): Uint8Array<ArrayBuffer> {
  const file = files.open(path, 'read')
  try {
    const content = new Uint8Array(file.size())
    return content.subarray(0, file.read(content, 0)).slice()
  } finally {
    file.close()
  }
}

/** The last character of the magic is the format version. */
function requireFormat(content: Uint8Array, path: string): void {
  const text = Buffer.from(content.buffer, content.byteOffset, Math.min(4, content.length)).toString('latin1')
  const format = /^PSD([2-9])$/.exec(text)?.[1]
  if (format !== undefined) throw CorruptionError.ofFormat(Number(format), 1, path, 0)
}

function headerMatches(content: Uint8Array, view: DataView, { tableId, columnId }: DictionaryFileId): boolean {
  if (content.length < headerBytes) return false
  if (view.getUint32(0, true) !== magic || view.getUint32(12, true) !== crc32(content.subarray(0, 12))) return false
  return view.getUint32(4, true) === tableId && view.getUint32(8, true) === columnId
}

/** Reads a record into `strings`. Returns its end, or 0 if it is invalid. */
function readRecord(content: Uint8Array, view: DataView, at: number, strings: Uint8Array[]): number {
  const body = at + recordHeaderBytes
  if (body > content.length) return 0
  const count = view.getUint32(at + 4, true)
  const end = body + count * 4 + view.getUint32(at + 8, true)
  if (view.getUint32(at, true) !== strings.length || count === 0 || end > content.length) return 0
  const crc = crc32(content.subarray(body, end), crc32(content.subarray(at, at + 12)))
  if (crc !== view.getUint32(at + 12, true)) return 0
  for (let index = 0, text = body + count * 4; index < count; index++) {
    const bytes = view.getInt32(body + index * 4, true)
    strings.push(content.subarray(text, text + bytes))
    text += bytes
  }
  return end
}

function encodeHeader({ tableId, columnId }: DictionaryFileId): Uint8Array {
  const bytes = new Uint8Array(headerBytes)
  const view = new DataView(bytes.buffer)
  view.setUint32(0, magic, true)
  view.setUint32(4, tableId, true)
  view.setUint32(8, columnId, true)
  view.setUint32(12, crc32(bytes.subarray(0, 12)), true)
  return bytes
}

function encodeRecordHeader(record: {
  readonly firstId: number
  readonly count: number
  readonly lengths: Uint8Array
  readonly bytes: Uint8Array
}): Uint8Array {
  const bytes = new Uint8Array(recordHeaderBytes)
  const view = new DataView(bytes.buffer)
  view.setUint32(0, record.firstId, true)
  view.setUint32(4, record.count, true)
  view.setUint32(8, record.bytes.length, true)
  view.setUint32(12, crc32(record.bytes, crc32(record.lengths, crc32(bytes.subarray(0, 12)))), true)
  return bytes
}
