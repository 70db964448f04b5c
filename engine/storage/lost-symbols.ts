// A symbol dictionary that is lost or damaged, read out of the parts: beside the texts of its symbols a part has the table's
// ids of them. That gives the whole dictionary back when every id is in a part.
//
// Deliberately not here: ids that no part has. Rows in the log may mean them, so nobody may make their texts up.

import { crc32 } from 'node:zlib'
import { CorruptionError, FileError } from '../base/errors.js'
import type { File } from '../base/files.js'
import { budgets } from '../memory/budgets.js'
import { encodings } from './parquet-types.js'
import { type DecodeTools, damaged, readPage } from './part-decode.js'
import { type PartColumn, readPartIndex } from './part-index.js'
import { Scratch } from './part-scratch.js'
import type { DetachedPart, PartDescriptor } from './schema.js'
import type { WriterOptions } from './writer-state.js'

/** The texts of ids 0 to count - 1; undefined when the parts do not tell all of them, or cannot be read. */
export function symbolsOfParts(
  options: WriterOptions,
  parts: readonly (PartDescriptor | DetachedPart)[],
  columnId: number,
  count: number,
): Uint8Array[] | undefined {
  const { memory, allocator, kernels } = options
  const scratch = new Scratch(memory, allocator, budgets.cache)
  const found = new Map<number, Buffer>()
  try {
    for (const { file } of parts) {
      const read = symbolsIn(options, { kernel: kernels.parquet, scratch }, file, columnId)
      for (const [id, text] of read) {
        // Parts that contradict each other prove nothing.
        if (found.get(id)?.equals(text) === false) return undefined
        if (id < count) found.set(id, text)
      }
    }
  } catch (thrown) {
    if (thrown instanceof CorruptionError || thrown instanceof FileError) return undefined
    throw thrown
  } finally {
    scratch.release()
  }
  const texts = Array.from({ length: count }, (_, id) => found.get(id))
  return texts.every((text) => text !== undefined) ? texts : undefined
}

function symbolsIn(
  { files, directory }: WriterOptions,
  tools: DecodeTools,
  part: string,
  columnId: number,
): (readonly [number, Buffer])[] {
  const path = `${directory}/${part}`
  const column = readPartIndex(files, path).columns.get(columnId)
  if (column === undefined) return []
  const file = files.open(path, 'read')
  try {
    const texts = textsOf(tools, file, column)
    return idsOf(file, column).map((id, index) => [id, texts[index] ?? Buffer.alloc(0)] as const)
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

/** PLAIN: the length of each text before it. */
function textsOf(tools: DecodeTools, file: File, { metadata: { dictionary, codec } }: PartColumn): Buffer[] {
  if (dictionary === null) return []
  const place = { ...dictionary, file, codec, encoding: encodings.plain }
  const { address, bytes } = readPage(tools, place)
  const page = Buffer.from(tools.scratch.memory.u8.slice(address, address + bytes))
  const texts: Buffer[] = []
  for (let at = 0; at + 4 <= bytes; ) {
    const end = at + 4 + page.readUInt32LE(at)
    texts.push(page.subarray(at + 4, end))
    at = end
  }
  if (texts.length !== dictionary.count) throw damaged(place, 'a dictionary has texts of other lengths')
  return texts
}
