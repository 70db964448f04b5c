// A result that must be complete before its first byte leaves: kept in memory while it is small, else in a file. What a
// full disk does not take is kept in memory, too, within bounds.

import { FileError } from '../engine/base/errors.js'
import { SpoolFile } from './spool-file.js'

/** Results up to this size stay in memory. */
const memoryBytesMax = 1024 * 1024
/** On a full disk all results together may be so large beyond that. */
const heldBytesMax = 64 * 1024 * 1024

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
  const spool = new Spool(directory)
  try {
    for await (const block of blocks) {
      signal.throwIfAborted()
      await spool.append(block)
    }
  } catch (error) {
    await spool.close()
    throw error
  }
  return { bytes: spool.bytes, read: () => spool.read(), close: () => spool.close() }
}

/** What results hold in memory that a full disk has not taken, all of them together. */
let heldBytes = 0

/** The result's first bytes are in the file, as far as there is one; the others follow in memory. */
class Spool {
  bytes = 0
  readonly #directory: string
  #file: SpoolFile | null = null
  #isFull = false
  #held: Buffer[] = []
  #heldBytes = 0
  /** The part that counts for all results. */
  #countedBytes = 0

  constructor(directory: string) {
    this.#directory = directory
  }

  async append(block: Uint8Array): Promise<void> {
    this.bytes += block.length
    if (this.#isFull || (this.#file === null && this.#heldBytes + block.length <= memoryBytesMax)) {
      this.#hold(Buffer.from(block))
      return
    }
    try {
      this.#file ??= await SpoolFile.open(this.#directory)
    } catch (error) {
      this.#goOnInMemory(error, [Buffer.from(block)])
      return
    }
    const chunks = [...this.#held.splice(0), block]
    this.#heldBytes = 0
    try {
      for (const chunk of chunks) await this.#file.append(chunk)
      // The block is the next one's when this turn ends.
      await this.#file.flush()
    } catch (error) {
      const left = this.#file.takeWaiting()
      const bytes = left.reduce((sum, { length }) => sum + length, 0)
      // append() may have failed before the last ones.
      const written = this.#file.bytes
      this.#goOnInMemory(error, [...left, ...behind(chunks, this.bytes - written - bytes)])
    }
  }

  async *read(): AsyncGenerator<Uint8Array> {
    if (this.#file !== null && this.#file.bytes > 0) yield* this.#file.read()
    yield* this.#held
  }

  async close(): Promise<void> {
    heldBytes -= this.#countedBytes
    this.#countedBytes = 0
    this.#held = []
    await this.#file?.close()
    this.#file = null
  }

  /** A full disk keeps nobody from reading what memory has room for. */
  #goOnInMemory(error: unknown, chunks: readonly Buffer[]): void {
    const code = error instanceof Error && 'code' in error ? String(error.code) : ''
    if (code !== 'ENOSPC' && code !== 'EDQUOT') throw error
    this.#isFull = true
    this.#count(this.#heldBytes)
    for (const chunk of chunks) this.#hold(chunk)
  }

  #hold(block: Buffer): void {
    if (this.#isFull) this.#count(block.length)
    this.#held.push(block)
    this.#heldBytes += block.length
  }

  #count(bytes: number): void {
    if (heldBytes + bytes > heldBytesMax) {
      throw new FileError(
        `the disk is full: there is no room for the file of this result [folder=${this.#directory}]`,
        'ENOSPC',
      )
    }
    heldBytes += bytes
    this.#countedBytes += bytes
  }
}

/** The last so many bytes of the chunks. */
function behind(chunks: readonly Uint8Array[], bytes: number): Buffer[] {
  const whole = Buffer.concat(chunks)
  return bytes <= 0 ? [] : [whole.subarray(whole.length - bytes)]
}
