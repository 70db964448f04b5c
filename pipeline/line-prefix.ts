// Adds a prefix to the table name of each line of line protocol. Comments and empty lines stay unchanged.

import { lineBytesMax } from '../engine/base/limits.js'
import { lineEnd } from '../engine/engine.js'

const newline = 0x0a
const carriageReturn = 0x0d
const hash = 0x23

/** The prefix as line protocol writes it within a name. */
export function escapedPrefix(prefix: string): Buffer {
  return Buffer.from(prefix.replace(/[\\, =]/g, '\\$&'))
}

/**
 * The lines with the prefix, as new blocks of at most `blockBytesMax`, unless a line is longer. `grown` is called with
 * the bytes of each block, and may throw.
 */
export function prefixLines(
  blocks: readonly Uint8Array[],
  prefix: Buffer,
  blockBytesMax: number,
  grown: (bytes: number) => void,
): Buffer[] {
  const prefixed: Buffer[] = []
  let pieces: Uint8Array[] = []
  let bytes = 0
  const close = (): void => {
    grown(bytes)
    if (bytes > 0) prefixed.push(Buffer.concat(pieces, bytes))
    pieces = []
    bytes = 0
  }
  for (const block of blocks) {
    for (let at = 0; at < block.length; ) {
      const end = lineEnd(block, at, block.length, lineBytesMax)
      const first = block[at]
      const isRow = first !== hash && first !== newline && first !== carriageReturn
      const line = isRow ? [prefix, block.subarray(at, end)] : [block.subarray(at, end)]
      const size = line.reduce((sum, { length }) => sum + length, 0)
      if (bytes + size > blockBytesMax) close()
      pieces.push(...line)
      bytes += size
      at = end
    }
  }
  close()
  return prefixed
}
