// A temporary file that is first written and then read, for data that does not fit into memory. The file is unlinked
// as soon as it is open, so nothing is left behind after a crash.

import { createReadStream } from 'node:fs'
import { type FileHandle, open, unlink } from 'node:fs/promises'
import { join } from 'node:path'
import { makeDirectories } from '../engine/base/files.js'

const readBytes = 256 * 1024
/** Small chunks are collected into writes of this size. */
const writeBytes = 1024 * 1024

let nextNumber = 1

/** Returns a path for a temporary file; creates its directory. */
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

  /** Keeps the chunk until it is written, so the caller must not change it. Rejects with a disk error. */
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

  /** Takes back the chunks that were not written; the caller owns them. */
  takeWaiting(): Buffer[] {
    this.#waitingBytes = 0
    return this.#waiting.splice(0).map((chunk) => Buffer.from(chunk))
  }

  /** Returns all flushed bytes from the beginning. */
  read(): AsyncIterable<Uint8Array> {
    return createReadStream('', {
      ...{ fd: this.#file.fd, autoClose: false, highWaterMark: readBytes },
      ...{ start: 0, end: this.#written - 1 },
    })
  }

  /** Releases all resources; call once, after all reads. */
  async close(): Promise<void> {
    await this.#file.close()
  }

  #forget(written: number): void {
    let rest = written
    while (this.#waiting[0] !== undefined && this.#waiting[0].length <= rest) rest -= this.#waiting.shift()?.length ?? 0
    if (rest > 0 && this.#waiting[0] !== undefined) this.#waiting[0] = this.#waiting[0].subarray(rest)
  }
}
