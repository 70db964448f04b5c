// Temporary copy of all bytes of an import, for the rare case that they must be decoded again.
//
//   append ──> block ──┬──> direct I/O, at most `directMax` blocks at a time
//                      └──> page cache: while that many are in flight, and where direct I/O is not supported
//
// Writing gigabytes through the page cache costs more than decoding them and delays all other writers, including those
// of Parquet files. Direct I/O costs almost no CPU; if the disk cannot keep up, the page cache absorbs the rest.
//
// Invariants:
//   1. Blocks start at multiples of their size, in the file and in memory, as direct I/O requires.
//   2. A partial block is written only by flush(), and again when it is complete.
//
// The file is unlinked once it is open, so nothing is left behind after a crash.

import { createReadStream } from 'node:fs'
import { constants, type FileHandle, open, unlink } from 'node:fs/promises'
import { spoolPath } from './spool-file.js'

const blockBytes = 1024 * 1024
/** One being filled, the others in flight. */
const blockCount = 4
const directMax = 2
const readBytes = 256 * 1024

export class ReplayFile {
  readonly #file: FileHandle
  /** The same file opened for direct I/O; null when that is not supported. */
  #direct: FileHandle | null
  readonly #idle: Buffer[]
  #filling: Buffer
  #filled = 0
  /** Bytes of complete blocks. */
  #whole = 0
  readonly #inProgress = new Set<Promise<void>>()
  #directCount = 0
  #failure: { readonly error: unknown } | null = null

  private constructor(file: FileHandle, direct: FileHandle | null) {
    this.#file = file
    this.#direct = direct
    // WebAssembly memory is page-aligned, which no other constructor guarantees.
    const pages = (blockBytes * blockCount) / 65_536
    const { buffer } = new WebAssembly.Memory({ initial: pages, maximum: pages, shared: true })
    this.#idle = Array.from({ length: blockCount }, (_, index) =>
      Buffer.from(buffer as ArrayBufferLike as ArrayBuffer, index * blockBytes, blockBytes),
    )
    this.#filling = this.#idle.pop() as Buffer
  }

  static async open(directory: string): Promise<ReplayFile> {
    const path = await spoolPath(directory)
    const file = await open(path, 'wx+')
    try {
      const flags = constants.O_WRONLY | constants.O_DIRECT
      const direct = constants.O_DIRECT === undefined ? null : await open(path, flags).catch(() => null)
      return new ReplayFile(file, direct)
    } finally {
      await unlink(path)
    }
  }

  /**
   * Copies the chunk; `fill` works like SharedMemory.put. Rejects with a disk error, possibly of an earlier chunk.
   */
  async append(chunk: Uint8Array): Promise<void> {
    for (let from = 0; from < chunk.length; ) {
      const part = chunk.subarray(from, from + blockBytes - this.#filled)
      this.#filling.fill(part, this.#filled, this.#filled + part.length)
      this.#filled += part.length
      from += part.length
      if (this.#filled === blockBytes) await this.#next()
    }
  }

  /** Afterwards read() returns all appended bytes. */
  async flush(): Promise<void> {
    await Promise.all(this.#inProgress)
    this.#check()
    await writeAll(this.#file, this.#filling.subarray(0, this.#filled), this.#whole)
  }

  read(): AsyncIterable<Uint8Array> {
    return createReadStream('', {
      ...{ fd: this.#file.fd, autoClose: false, highWaterMark: readBytes },
      ...{ start: 0, end: this.#whole + this.#filled - 1 },
    })
  }

  /** Releases all resources; call once, after all reads. */
  async close(): Promise<void> {
    await Promise.all(this.#inProgress)
    await this.#direct?.close()
    await this.#file.close()
  }

  /** Writes the full block and provides a free one. */
  async #next(): Promise<void> {
    this.#check()
    const writing = this.#write(this.#filling, this.#whole)
    this.#inProgress.add(writing)
    writing.then(() => this.#inProgress.delete(writing))
    this.#whole += blockBytes
    this.#filled = 0
    while (this.#idle.length === 0) await Promise.race(this.#inProgress)
    this.#filling = this.#idle.pop() as Buffer
  }

  async #write(block: Buffer, position: number): Promise<void> {
    try {
      if (
        this.#direct === null ||
        this.#directCount === directMax ||
        !(await this.#writeDirect(this.#direct, block, position))
      ) {
        await writeAll(this.#file, block, position)
      }
    } catch (error) {
      this.#failure ??= { error }
    } finally {
      this.#idle.push(block)
    }
  }

  /**
   * Returns false if the block was not written: some file systems open such a file and then reject its first write.
   */
  async #writeDirect(direct: FileHandle, block: Uint8Array, position: number): Promise<boolean> {
    this.#directCount++
    try {
      const { bytesWritten } = await direct.write(block, 0, blockBytes, position)
      return bytesWritten === blockBytes
    } catch {
      return false
    } finally {
      this.#directCount--
    }
  }

  #check(): void {
    if (this.#failure !== null) throw this.#failure.error
  }
}

async function writeAll(file: FileHandle, bytes: Uint8Array, position: number): Promise<void> {
  for (let from = 0; from < bytes.length; ) {
    from += (await file.write(bytes, from, bytes.length - from, position + from)).bytesWritten
  }
}
