// Reconstructs a symbol dictionary (string to id) whose file is lost or damaged, from Parquet files (parts) and log. A
// part contains the strings of its symbols together with their ids in the table's dictionary, and so does the log frame
// (record) that added them. The dictionary is restored if every id is found, always with the same string.
//
// Deliberately not here: a placeholder for missing ids. Rows in the log may refer to them, so inventing strings would
// falsify data.

import { crc32 } from 'node:zlib'
import { CorruptionError, FileError } from '../../base/errors.js'
import type { File } from '../../base/files.js'
import { budgets } from '../../memory/budgets.js'
import { decodeRows } from '../../wal/frame-rows.js'
import { replayWal } from '../../wal/replay.js'
import { frameKinds } from '../../wal/types.js'
import { encodings } from '../part/parquet-types.js'
import { type DecodeTools, damaged, readPage } from '../part/part-decode.js'
import type { PartColumn } from '../part/part-index.js'
import { checkIdentity } from '../part/part-opened.js'
import { Scratch } from '../part/part-scratch.js'
import { indexOfPart, openPartFile } from '../part/remote-file.js'
import { type DetachedPart, localFileOf, type PartDescriptor } from '../schema/schema.js'
import type { WriterOptions } from '../writer/writer-state.js'

/** Id and string. */
type FoundSymbol = readonly [number, Buffer]

/** The symbols of a column in the log. */
export type LoggedSymbols = (tableId: number, columnId: number) => readonly FoundSymbol[]

interface LostSymbols {
  readonly tableId: number
  readonly columnId: number
  /** Number of symbols that the dictionary had. */
  readonly count: number
  readonly parts: readonly (PartDescriptor | DetachedPart)[]
  readonly logged: LoggedSymbols
}

/**
 * The strings of ids 0 to count - 1; undefined if some are neither in parts nor in the log, or these are unreadable.
 */
export function foundSymbols(
  options: WriterOptions,
  { tableId, columnId, count, parts, logged }: LostSymbols,
): Uint8Array[] | undefined {
  const { memory, allocator, kernels } = options
  const scratch = new Scratch(memory, allocator, budgets.cache)
  const found = new Map<number, Buffer>()
  const add = (symbols: readonly FoundSymbol[]): boolean => {
    for (const [id, text] of symbols) if (id < count && !found.has(id)) found.set(id, text)
    // If two sources disagree about an id, none of them is trusted.
    return symbols.every(([id, text]) => id >= count || found.get(id)?.equals(text) === true)
  }
  try {
    const tools = { kernels, kernel: kernels.parquet, scratch }
    for (const part of parts) if (!add(symbolsIn(options, tools, part, columnId))) return undefined
    if (!add(logged(tableId, columnId))) return undefined
  } catch (thrown) {
    if (thrown instanceof CorruptionError || thrown instanceof FileError) return undefined
    throw thrown
  } finally {
    scratch.release()
  }
  const strings = Array.from({ length: count }, (_, id) => found.get(id))
  return strings.every((text) => text !== undefined) ? strings : undefined
}

function symbolsIn(
  { files, directory }: WriterOptions,
  tools: DecodeTools,
  part: PartDescriptor | DetachedPart,
  columnId: number,
): FoundSymbol[] {
  const path = `${directory}/${localFileOf(part)}`
  const index = indexOfPart(files, path)
  checkIdentity(path, index, part)
  const column = index.columns.get(columnId)
  if (column === undefined) return []
  const file = openPartFile(files, path)
  try {
    const strings = stringsOf(tools, file, column)
    return idsOf(file, column).map((id, index) => [id, strings[index] ?? Buffer.alloc(0)] as const)
  } finally {
    file.close()
  }
}

function idsOf(file: File, { symbols }: PartColumn): number[] {
  if (symbols === undefined) return []
  const bytes = Buffer.alloc(symbols.count * 4)
  if (file.read(bytes, symbols.offset) < bytes.length || crc32(bytes) !== symbols.crc)
    throw damaged({ file, offset: symbols.offset }, 'the symbol ids of a part are damaged')
  return Array.from({ length: symbols.count }, (_, index) => bytes.readInt32LE(index * 4))
}

/** Decodes the PLAIN dictionary page: each string is preceded by its length. */
function stringsOf(tools: DecodeTools, file: File, { metadata: { dictionary, codec } }: PartColumn): Buffer[] {
  if (dictionary === null) return []
  const place = { ...dictionary, file, codec, encoding: encodings.plain }
  const { address, bytes } = readPage(tools, place)
  const page = Buffer.from(tools.scratch.memory.u8.slice(address, address + bytes))
  const strings: Buffer[] = []
  for (let at = 0; at + 4 <= bytes; ) {
    const end = at + 4 + page.readUInt32LE(at)
    strings.push(page.subarray(at + 4, end))
    at = end
  }
  if (strings.length !== dictionary.count)
    throw damaged(place, 'the strings of a dictionary do not match their lengths')
  return strings
}

/** Reads the log lazily, at the first call, and only once. */
export function loggedSymbols(options: WriterOptions): LoggedSymbols {
  let read: Map<string, FoundSymbol[]> | undefined
  return (tableId, columnId) => {
    read ??= symbolsOfLog(options)
    return read.get(`${tableId} ${columnId}`) ?? []
  }
}

function symbolsOfLog({ files, directory }: WriterOptions): Map<string, FoundSymbol[]> {
  const found = new Map<string, FoundSymbol[]>()
  if (!files.exists(`${directory}/wal`)) return found
  replayWal(files, `${directory}/wal`, ({ kind, payload }) => {
    if (kind !== frameKinds.rows && kind !== frameKinds.relocation) return
    for (const { tableId, symbols } of decodeRows(payload).tables) {
      for (const { columnId, firstId, count, lengths, bytes } of symbols) {
        const strings = found.get(`${tableId} ${columnId}`) ?? []
        found.set(`${tableId} ${columnId}`, strings)
        const view = new DataView(lengths.buffer, lengths.byteOffset)
        for (let index = 0, at = 0; index < count; index++) {
          const end = at + view.getInt32(index * 4, true)
          strings.push([firstId + index, Buffer.from(bytes.slice(at, end))])
          at = end
        }
      }
    }
  })
  return found
}
