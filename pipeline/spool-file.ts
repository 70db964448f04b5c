// Bytes that are read later, in a file of the directory for temporary files. The file has no name any more
// once it is open, so that nothing is left behind.

import { createReadStream } from 'node:fs'
import { type FileHandle, open, unlink } from 'node:fs/promises'
import { join } from 'node:path'
import { makeDirectories } from '../engine/base/files.js'

const readBytes = 256 * 1024
/** Small chunks are gathered: a write costs something, however short it is. */
const writeBytes = 1024 * 1024

let nextNumber = 1

/** Where a temporary file may be made; makes its directory. */
export async function spoolPath(directory: string): Promise<string> {
  makeDirectories(directory)
  return join(directory, `spool-${process.pid}-${nextNumber++}.tmp`)
}

export class SpoolFile {
  readonly #file: FileHandle
  #waiting: Uint8Array[] = []
  #waitingBytes = 0
  #written = 0

  private constructor(file: FileHandle) {
    this.#file = file
  }

  static async open(directory: string): Promise<SpoolFile> {
    const path = await spoolPath(directory)
    const file = await open(path, 'wx+')
    await unlink(path)
    return new SpoolFile(file)
  }

  get bytes(): number {
    return this.#written + this.#waitingBytes
  }

  /** Keeps the chunk until it is written: nobody may change it. Rejects with the error of the disk. */
  async append(chunk: Uint8Array): Promise<void> {
    this.#waiting.push(chunk)
    this.#waitingBytes += chunk.length
    if (this.#waitingBytes >= writeBytes) await this.flush()
  }

  async flush(): Promise<void> {
    while (this.#waiting.length > 0) {
      const { bytesWritten } = await this.#file.writev(this.#waiting, this.#written)
      this.#written += bytesWritten
      this.#waitingBytes -= bytesWritten
      this.#forget(bytesWritten)
    }
  }

  /** What the disk has not taken: it is the caller's from now on. */
  takeWaiting(): Buffer[] {
    this.#waitingBytes = 0
    return this.#waiting.splice(0).map((chunk) => Buffer.from(chunk))
  }

  /** All bytes that were flushed, from the first one on. */
  read(): AsyncIterable<Uint8Array> {
    return createReadStream('', {
      ...{ fd: this.#file.fd, autoClose: false, highWaterMark: readBytes },
      ...{ start: 0, end: this.#written - 1 },
    })
  }

  /** Gives everything back; call once, when nobody reads any more. */
  async close(): Promise<void> {
    await this.#file.close()
  }

  #forget(written: number): void {
    let rest = written
    while (this.#waiting[0] !== undefined && this.#waiting[0].length <= rest) rest -= this.#waiting.shift()?.length ?? 0
    if (rest > 0 && this.#waiting[0] !== undefined) this.#waiting[0] = this.#waiting[0].subarray(rest)
  }
}
