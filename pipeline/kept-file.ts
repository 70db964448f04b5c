// All bytes of an import, in a file of the directory for temporary files, for the rare case that they must be decoded again.
//
//   append ──> block ──┬──> past the page cache, at most `directMax` at one time
//                      └──> through it: while so many are on their way, and where the file system knows no other way
//
// Two gigabytes in the page cache cost more than their decoding: its pages are touched for the first time, and a machine
// that has many of them to write makes all writers wait, those of the parts too. Past it, a block costs the processor next
// to nothing; a disk that is too slow for that gets what the page cache takes at once.
//
// Invariants:
//   1. Blocks begin at multiples of their size and lie at such addresses, as writing past the page cache demands.
//   2. What is not a whole block yet is written only by flush(), and once more when the block is whole.
//
// The file has no name any more once it is open, so that nothing is left behind.

import { createReadStream } from 'node:fs'
import { constants, type FileHandle, open, unlink } from 'node:fs/promises'
import { spoolPath } from './spool-file.js'

const blockBytes = 1024 * 1024
/** Filled, on their way past the page cache, and through it. */
const blockCount = 4
const directMax = 2
const readBytes = 256 * 1024

export class KeptFile {
  readonly #file: FileHandle
  /** The same file, for whole blocks past the page cache; null when there is no such way. */
  #direct: FileHandle | null
  readonly #idle: Buffer[]
  #filling: Buffer
  #filled = 0
  /** Bytes of whole blocks. */
  #whole = 0
  readonly #underWay = new Set<Promise<void>>()
  #directCount = 0
  #failure: { readonly error: unknown } | null = null

  private constructor(file: FileHandle, direct: FileHandle | null) {
    this.#file = file
    this.#direct = direct
    // Memory of whole pages, which no other constructor promises.
    const pages = (blockBytes * blockCount) / 65_536
    const { buffer } = new WebAssembly.Memory({ initial: pages, maximum: pages, shared: true })
    this.#idle = Array.from({ length: blockCount }, (_, index) =>
      Buffer.from(buffer as ArrayBufferLike as ArrayBuffer, index * blockBytes, blockBytes),
    )
    this.#filling = this.#idle.pop() as Buffer
  }

  static async open(directory: string): Promise<KeptFile> {
    const path = await spoolPath(directory)
    const file = await open(path, 'wx+')
    try {
      const flags = constants.O_WRONLY | constants.O_DIRECT
      const direct = constants.O_DIRECT === undefined ? null : await open(path, flags).catch(() => null)
      return new KeptFile(file, direct)
    } finally {
      await unlink(path)
    }
  }

  /** Copies the chunk, by `fill` as SharedMemory.put does. Rejects with the error of the disk, of an earlier chunk too. */
  async append(chunk: Uint8Array): Promise<void> {
    for (let from = 0; from < chunk.length; ) {
      const part = chunk.subarray(from, from + blockBytes - this.#filled)
      this.#filling.fill(part, this.#filled, this.#filled + part.length)
      this.#filled += part.length
      from += part.length
      if (this.#filled === blockBytes) await this.#next()
    }
  }

  /** Afterwards read() gives all bytes that were appended. */
  async flush(): Promise<void> {
    await Promise.all(this.#underWay)
    this.#check()
    await writeAll(this.#file, this.#filling.subarray(0, this.#filled), this.#whole)
  }

  read(): AsyncIterable<Uint8Array> {
    return createReadStream('', {
      ...{ fd: this.#file.fd, autoClose: false, highWaterMark: readBytes },
      ...{ start: 0, end: this.#whole + this.#filled - 1 },
    })
  }

  /** Gives everything back; call once, when nobody reads any more. */
  async close(): Promise<void> {
    await Promise.all(this.#underWay)
    await this.#direct?.close()
    await this.#file.close()
  }

  /** The block that is full goes out; another one is there to be filled. */
  async #next(): Promise<void> {
    this.#check()
    const writing = this.#write(this.#filling, this.#whole)
    this.#underWay.add(writing)
    writing.then(() => this.#underWay.delete(writing))
    this.#whole += blockBytes
    this.#filled = 0
    while (this.#idle.length === 0) await Promise.race(this.#underWay)
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

  /** False when the block is not written: some file systems open such a file and refuse its first write. */
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
