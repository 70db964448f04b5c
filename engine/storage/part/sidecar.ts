// The sidecar of a part (Parquet file) that is only in the object store: a local file with those ranges of the part
// that queries need before they read rows, so that pruning, statistics and dictionaries need no request. It is written
// durably before the local file of the part is removed, in the same folder, as <part id>.sidecar. Little-endian:
//
//   head     magic "PSC1" | format u32 = 1 | header bytes u32 | crc32 of the header u32
//   header   JSON text (SidecarHeader)
//   ranges   the bytes of each range of the header, one after the other
//
// The ranges are the dictionary page of each column, with its page header, and everything after the last page: Bloom
// filters, symbol ids, column and offset indexes, the part index (position, size, checksum and statistics of every
// page) and the footer. Each range has a CRC-32.
//
// All other bytes are read from the object in blocks of blockBytes, whose checksums are in the header, so they are
// verified when they arrive. When a sidecar is written, the checksum of the local file is compared with that of the
// uploaded object, so a sidecar never belongs to another object.

import { assert } from '../../base/assert.js'
import { combineCrc32, crc32 } from '../../base/checksum.js'
import { CorruptionError } from '../../base/errors.js'
import type { File, Files } from '../../base/files.js'
import type { RemoteCopy } from '../schema/schema.js'
import type { PagePlace } from './part-column.js'
import { type PartIndex, pageAt, readPartIndex } from './part-index.js'

interface SidecarRange {
  readonly offset: number
  readonly bytes: number
  readonly crc: number
}

interface SidecarHeader {
  readonly key: string
  /** Of the whole part. */
  readonly bytes: number
  readonly checksum: number
  readonly blockBytes: number
  /** CRC-32 of each block; the last one may be shorter. */
  readonly blocks: readonly number[]
  /** Ascending, without overlap; the last one ends with the part. */
  readonly ranges: readonly SidecarRange[]
}

export interface Sidecar extends SidecarHeader {
  /** Where the bytes of the ranges begin in the sidecar. */
  readonly rangesAt: number
}

const magic = 'PSC1'
const format = 1
const headBytes = 16
const headerBytesMax = 256 * 1024 * 1024
const blockBytes = 1024 * 1024

/**
 * Writes the sidecar of a local part, durably. Throws CorruptionError if the file is not the one that was uploaded, and
 * FileError.
 */
export function writeSidecar(files: Files, path: string, target: string, { key, checksum }: RemoteCopy): void {
  const index = readPartIndex(files, path)
  const part = files.open(path, 'read')
  try {
    const blocks = checkedBlocks(part, checksum)
    const ranges = rangesOf(index, part.size()).map(({ offset, bytes }) => {
      const content = readWhole(part, offset, bytes)
      return { offset, bytes, crc: crc32(content), content }
    })
    const header: SidecarHeader = {
      ...{ key, bytes: part.size(), checksum, blockBytes, blocks },
      ranges: ranges.map(({ offset, bytes, crc }) => ({ offset, bytes, crc })),
    }
    writeDurably(files, target, [...encodeHeader(header), ...ranges.map(({ content }) => content)])
  } finally {
    part.close()
  }
}

/** The checksums of the blocks. Throws CorruptionError if the whole file has another checksum than expected. */
function checkedBlocks(part: File, expected: number): number[] {
  const blocks: number[] = []
  let whole = 0
  const size = part.size()
  const buffer = new Uint8Array(Math.min(blockBytes, size))
  for (let offset = 0; offset < size; offset += blockBytes) {
    const content = readInto(part, offset, buffer.subarray(0, size - offset))
    const block = crc32(content)
    blocks.push(block)
    whole = combineCrc32(whole, block, content.length)
  }
  if (whole !== expected) throw new CorruptionError('a part is another than the uploaded one', part.path, 0)
  return blocks
}

/** The dictionary pages, and what follows the last page. */
function rangesOf({ columns, firstRows }: PartIndex, size: number): { offset: number; bytes: number }[] {
  const ranges: { offset: number; bytes: number }[] = []
  let end = 0
  const passed = ({ offset, headerBytes, bytes }: PagePlace): void => {
    end = Math.max(end, offset + headerBytes + bytes)
  }
  for (const column of columns.values()) {
    for (let page = 0; page < firstRows.length - 1; page++) passed(pageAt(column, page))
    const { dictionary } = column.metadata
    if (dictionary === null) continue
    passed(dictionary)
    ranges.push({ offset: dictionary.offset, bytes: dictionary.headerBytes + dictionary.bytes })
  }
  assert(end < size, 'F2: a part has a footer after its pages')
  return [...ranges.sort((a, b) => a.offset - b.offset), { offset: end, bytes: size - end }]
}

function encodeHeader(header: SidecarHeader): Uint8Array[] {
  const text = Buffer.from(JSON.stringify(header))
  const head = Buffer.alloc(headBytes)
  head.write(magic, 0, 'latin1')
  head.writeUInt32LE(format, 4)
  head.writeUInt32LE(text.length, 8)
  head.writeUInt32LE(crc32(text), 12)
  return [head, text]
}

/** Writes a new file under another name first: a file with the target's name is always whole. */
function writeDurably(files: Files, target: string, chunks: readonly Uint8Array[]): void {
  const aside = `${target}.new`
  if (files.exists(aside)) files.remove(aside)
  const file = files.open(aside, 'create')
  try {
    file.write(chunks, 0)
    file.sync()
  } finally {
    file.close()
  }
  files.rename(aside, target)
  files.syncDirectory(target.slice(0, target.lastIndexOf('/')))
}

/** Throws CorruptionError if the file is no sidecar. The ranges are not verified: their contents have checksums. */
export function readSidecar(file: File): Sidecar {
  const head = Buffer.alloc(headBytes)
  if (file.read(head, 0) < headBytes || head.toString('latin1', 0, 4) !== magic) {
    throw new CorruptionError('a sidecar does not begin like one', file.path, 0)
  }
  const version = head.readUInt32LE(4)
  if (version !== format) throw CorruptionError.ofFormat(version, format, file.path, 4)
  const bytes = head.readUInt32LE(8)
  if (bytes > Math.min(headerBytesMax, file.size())) {
    throw new CorruptionError('the header of a sidecar is too long', file.path, 8)
  }
  const text = readWhole(file, headBytes, bytes)
  if (crc32(text) !== head.readUInt32LE(12)) {
    throw new CorruptionError('the header of a sidecar is damaged', file.path, headBytes)
  }
  const header: SidecarHeader = JSON.parse(Buffer.from(text).toString('utf8'))
  return { ...header, rangesAt: headBytes + bytes }
}

/** Throws CorruptionError if a range is damaged. */
export function checkSidecar(file: File, { ranges, rangesAt }: Sidecar): void {
  let at = rangesAt
  for (const { bytes, crc } of ranges) {
    if (crc32(readWhole(file, at, bytes)) !== crc) {
      throw new CorruptionError('the checksum of a range of a sidecar is wrong', file.path, at)
    }
    at += bytes
  }
  if (file.size() !== at)
    throw new CorruptionError('a sidecar has the wrong size', file.path, Math.min(at, file.size()))
}

function readWhole(file: File, offset: number, bytes: number): Uint8Array {
  return readInto(file, offset, new Uint8Array(bytes))
}

function readInto(file: File, offset: number, target: Uint8Array): Uint8Array {
  if (file.read(target, offset) < target.length) throw new CorruptionError('the file is cut off', file.path, offset)
  return target
}
