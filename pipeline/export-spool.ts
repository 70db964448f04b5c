// A result that must be complete before its first byte leaves: kept in memory while it is small, else in a file of the
// directory for temporary files. The file has no name any more once it is open, so that nothing is left behind.

import { createReadStream } from 'node:fs'
import { type FileHandle, mkdir, open, unlink } from 'node:fs/promises'
import { join } from 'node:path'

/** Results up to this size stay in memory. */
const memoryBytesMax = 1024 * 1024
const readBytes = 256 * 1024

export interface SpooledFile {
  readonly bytes: number
  /** Call once. */
  readonly read: () => AsyncIterable<Uint8Array>
  /** Gives everything back; call when the reading has ended, or instead of it. */
  readonly close: () => Promise<void>
}

let nextNumber = 1

/** Takes all blocks; rejects with what ends them, or with the error of the disk. */
export async function spoolBlocks(
  blocks: AsyncIterable<Uint8Array>,
  directory: string,
  signal: AbortSignal,
): Promise<SpooledFile> {
  const kept: Buffer[] = []
  let bytes = 0
  let file: FileHandle | null = null
  try {
    for await (const block of blocks) {
      signal.throwIfAborted()
      if (file === null && bytes + block.length > memoryBytesMax) {
        file = await unnamedFile(directory)
        await writeAll(file, Buffer.concat(kept.splice(0)), 0)
      }
      if (file === null) kept.push(Buffer.from(block))
      else await writeAll(file, block, bytes)
      bytes += block.length
    }
  } catch (error) {
    await file?.close()
    throw error
  }
  if (file === null) return { bytes, read: () => inMemory(kept), close: async () => {} }
  const opened = file
  return { bytes, read: () => fromFile(opened), close: () => opened.close() }
}

async function unnamedFile(directory: string): Promise<FileHandle> {
  await mkdir(directory, { recursive: true })
  const path = join(directory, `export-${process.pid}-${nextNumber++}.tmp`)
  const file = await open(path, 'wx+')
  await unlink(path)
  return file
}

async function writeAll(file: FileHandle, bytes: Uint8Array, position: number): Promise<void> {
  for (let at = 0; at < bytes.length; ) {
    const { bytesWritten } = await file.write(bytes, at, bytes.length - at, position + at)
    at += bytesWritten
  }
}

async function* inMemory(kept: readonly Buffer[]): AsyncGenerator<Uint8Array> {
  yield* kept
}

function fromFile(file: FileHandle): AsyncIterable<Uint8Array> {
  return createReadStream('', { fd: file.fd, autoClose: false, start: 0, highWaterMark: readBytes })
}
