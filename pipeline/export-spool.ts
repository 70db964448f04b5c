// A result that must be complete before its first byte leaves: kept in memory while it is small, else in a file.

import { SpoolFile } from './spool-file.js'

/** Results up to this size stay in memory. */
const memoryBytesMax = 1024 * 1024

export interface SpooledFile {
  readonly bytes: number
  /** Call once. */
  readonly read: () => AsyncIterable<Uint8Array>
  /** Gives everything back; call when the reading has ended, or instead of it. */
  readonly close: () => Promise<void>
}

/** Takes all blocks; rejects with what ends them, or with the error of the disk. */
export async function spoolBlocks(
  blocks: AsyncIterable<Uint8Array>,
  directory: string,
  signal: AbortSignal,
): Promise<SpooledFile> {
  const kept: Buffer[] = []
  let bytes = 0
  let file: SpoolFile | null = null
  try {
    for await (const block of blocks) {
      signal.throwIfAborted()
      if (file === null && bytes + block.length > memoryBytesMax) {
        file = await SpoolFile.open(directory)
        for (const part of kept.splice(0)) await file.append(part)
      }
      if (file === null) kept.push(Buffer.from(block))
      else {
        await file.append(block)
        // The block is the next one's when this turn ends.
        await file.flush()
      }
      bytes += block.length
    }
  } catch (error) {
    await file?.close()
    throw error
  }
  if (file === null) return { bytes, read: () => inMemory(kept), close: async () => {} }
  const opened = file
  return { bytes, read: () => opened.read(), close: () => opened.close() }
}

async function* inMemory(kept: readonly Buffer[]): AsyncGenerator<Uint8Array> {
  yield* kept
}
