// The file of a symbol dictionary: what its entries survive the log by. One file per SYMBOL column, append-only.
//
// Layout, little-endian:
//
//   header   magic "PSD1" u32 | table id u32 | column id u32 | crc32 u32 of the twelve bytes before
//   record   first id u32 | count u32 | text bytes u32 | crc32 u32 | lengths i32[count] | texts
//
// The crc covers the twelve bytes before it, then lengths and texts. The first record follows the header; every later
// one begins at a multiple of 4096: a write that a crash cuts short may garble the whole block that it touches, so no
// write touches a block that holds durable bytes.
//
// Invariants:
//   1. Records follow each other by id.
//   2. The log is trimmed past a frame only when its new symbols are in synced records and the manifest names the count.
//   3. What lies behind that count is never relied upon: after the end of the process alone it may be in the page cache
//      only, and no later sync would write it. The log holds it, and the next append overwrites it.

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

/** Entries of the file, in order of their ids. Views of one buffer. */
export interface LoadedSymbols {
  readonly texts: readonly Uint8Array[]
  /** Where the next record goes. */
  readonly end: number
  /** Offset of a byte between records that is not zero. */
  readonly changedPadding?: number | undefined
}

/** Reads the first `count` entries; throws CorruptionError when there are fewer. */
export function readDictionaryFile(files: Files, path: string, id: DictionaryFileId, count: number): LoadedSymbols {
  const texts: Uint8Array[] = []
  if (count === 0) return { texts, end: 0 }
  if (!files.exists(path)) throw new CorruptionError('the symbol dictionary is missing', path, 0)
  const content = readAll(files, path)
  demandFormat(content, path)
  const view = new DataView(content.buffer)
  let end = headerMatches(content, view, id) ? readRecord(content, view, headerBytes, texts) : 0
  let changed: number | undefined
  for (let next = end; next > 0 && texts.length < count; ) {
    changed ??= nonZeroAt(content, end, alignUp(end))
    next = readRecord(content, view, alignUp(end), texts)
    if (next > 0) end = next
  }
  if (texts.length < count) throw new CorruptionError('the symbol dictionary is damaged', path, end)
  return { texts, end, changedPadding: changed }
}

/** Appends entries; the group's commit makes them durable. `end` is where the last good record ends; 0: a new file. */
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
    // Also when the file exists: an attempt that failed may have made it, and nobody has synced its name.
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

/** The last character of the magic is the number of the format. */
function demandFormat(content: Uint8Array, path: string): void {
  const text = Buffer.from(content.buffer, content.byteOffset, Math.min(4, content.length)).toString('latin1')
  const format = /^PSD([2-9])$/.exec(text)?.[1]
  if (format !== undefined) throw CorruptionError.ofFormat(Number(format), 1, path, 0)
}

function headerMatches(content: Uint8Array, view: DataView, { tableId, columnId }: DictionaryFileId): boolean {
  if (content.length < headerBytes) return false
  if (view.getUint32(0, true) !== magic || view.getUint32(12, true) !== crc32(content.subarray(0, 12))) return false
  return view.getUint32(4, true) === tableId && view.getUint32(8, true) === columnId
}

/** Adds the record's texts; returns its end, or 0 when it is not good. */
function readRecord(content: Uint8Array, view: DataView, at: number, texts: Uint8Array[]): number {
  const body = at + recordHeaderBytes
  if (body > content.length) return 0
  const count = view.getUint32(at + 4, true)
  const end = body + count * 4 + view.getUint32(at + 8, true)
  if (view.getUint32(at, true) !== texts.length || count === 0 || end > content.length) return 0
  const crc = crc32(content.subarray(body, end), crc32(content.subarray(at, at + 12)))
  if (crc !== view.getUint32(at + 12, true)) return 0
  for (let index = 0, text = body + count * 4; index < count; index++) {
    const bytes = view.getInt32(body + index * 4, true)
    texts.push(content.subarray(text, text + bytes))
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
