// Buffers a result that must be complete before its first byte is sent: in memory while it is small, otherwise in a
// temporary file. On a full disk it continues in memory, up to a limit.

import { FileError } from '../engine/base/errors.js'
import { SpoolFile } from './spool-file.js'

/** Results up to this size stay in memory. */
const memoryBytesMax = 1024 * 1024
/** Limit of memory that all results together may use on a full disk. */
const heldBytesMax = 64 * 1024 * 1024

export interface SpooledFile {
  readonly bytes: number
  /** Call once. */
  readonly read: () => AsyncIterable<Uint8Array>
  /** Releases all resources; call after reading, or instead of it. */
  readonly close: () => Promise<void>
}

/** Consumes all blocks; rejects with the error that ends them, or with an error of the disk. */
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

/** Memory used by all results because of a full disk. */
let heldBytes = 0

/** The first bytes of the result are in the file, if there is one; the rest is in memory. */
class Spool {
  bytes = 0
  readonly #directory: string
  #file: SpoolFile | null = null
  #isFull = false
  #held: Buffer[] = []
  #heldBytes = 0
  /** This result's share of `heldBytes`. */
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
      // The block's memory is reused after this turn of the event loop.
      await this.#file.flush()
    } catch (error) {
      const left = this.#file.takeWaiting()
      const bytes = left.reduce((sum, { length }) => sum + length, 0)
      // append() may have failed before the last chunks.
      const written = this.#file.bytes
      this.#goOnInMemory(error, [...left, ...after(chunks, this.bytes - written - bytes)])
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

  /** Continues in memory when the disk is full, within the limit. */
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
        `the disk is full: no space for the file of this result [folder=${this.#directory}]`,
        'ENOSPC',
      )
    }
    heldBytes += bytes
    this.#countedBytes += bytes
  }
}

/** Returns the last `bytes` bytes of the chunks. */
function after(chunks: readonly Uint8Array[], bytes: number): Buffer[] {
  const whole = Buffer.concat(chunks)
  return bytes <= 0 ? [] : [whole.subarray(whole.length - bytes)]
}
