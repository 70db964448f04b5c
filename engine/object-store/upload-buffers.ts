// Memory for contents on their way to the object store, in the thread that sends them. Buffers are used again, because
// the first use of fresh memory costs more than the copy into it; they are released when nothing was sent for a while.
//
// A spooled file is one that is written from its start to its end and then uploaded, such as a data file of the lake. It
// stays in memory, and only a large one becomes a file on the disk.

import { dirname } from 'node:path'
import type { File, Files } from '../base/files.js'
import { type ObjectBody, StoreError } from './object-store.js'

const MIB = 1024 * 1024
const bufferBytesMin = 4 * MIB
/** Of buffers that wait for their next use. */
const spareBytesMax = 64 * MIB
const spooledBytesMax = 64 * MIB
const releaseMs = 10_000

export class UploadBuffers {
  #spare: ArrayBufferLike[] = []
  #timer: NodeJS.Timeout | null = null

  take(bytes: number): Uint8Array {
    const fits = this.#spare.find(({ byteLength }) => byteLength >= bytes)
    if (fits === undefined) return new Uint8Array(new ArrayBuffer(roomFor(bytes)), 0, bytes)
    this.#spare = this.#spare.filter((other) => other !== fits)
    return new Uint8Array(fits, 0, bytes)
  }

  /** The content is not used any more. */
  give({ buffer }: Uint8Array): void {
    const kept = this.#spare.reduce((sum, { byteLength }) => sum + byteLength, buffer.byteLength)
    if (kept <= spareBytesMax) this.#spare.push(buffer)
    this.#timer ??= setTimeout(() => this.#release(), releaseMs).unref()
    this.#timer.refresh()
  }

  #release(): void {
    this.#spare = []
    this.#timer = null
  }
}

/** The content of an open file. */
export function fileBody(file: File, buffers: UploadBuffers): ObjectBody {
  return {
    bytes: file.size(),
    read: (offset, bytes) => {
      const content = buffers.take(bytes)
      if (file.read(content, offset) === bytes) return content
      throw new StoreError('damaged', `the file ends early [path=${file.path}]`)
    },
    sent: (content) => buffers.give(content),
  }
}

function roomFor(bytes: number): number {
  return Math.max(bufferBytesMin, 2 ** Math.ceil(Math.log2(Math.max(1, bytes))))
}

function wholeOf({ buffer }: Uint8Array): Buffer {
  return Buffer.from(buffer)
}

interface Spooled {
  /** Null: it is a file. */
  content: Buffer | null
  bytes: number
}

/** Spooled files by their paths, at which those on the disk are. */
export class UploadSpool {
  readonly #files: Files
  readonly #buffers: UploadBuffers
  readonly #spooled = new Map<string, Spooled>()

  readonly #bytesMax: number

  /** `bytesMax`: of all spooled files in memory. */
  constructor(files: Files, buffers: UploadBuffers, bytesMax = spooledBytesMax) {
    this.#files = files
    this.#buffers = buffers
    this.#bytesMax = bytesMax
  }

  /** Throws FileError. */
  append(path: string, content: Uint8Array): void {
    const file = this.#spooled.get(path) ?? { content: wholeOf(this.#buffers.take(bufferBytesMin)), bytes: 0 }
    this.#spooled.set(path, file)
    if (content.length === 0) return
    const end = file.bytes + content.length
    if (file.content !== null && this.#inMemory + content.length > this.#bytesMax) this.#toDisk(path, file)
    if (file.content === null) this.#write(path, 'write', content, file.bytes)
    else {
      file.content = this.#grown(file.content, file.bytes, end)
      // V8 copies from shared memory byte by byte otherwise.
      file.content.fill(content, file.bytes, end)
    }
    file.bytes = end
  }

  /** Calls `use` with the content. Throws StoreError if nothing was appended. */
  async with<T>(path: string, use: (body: ObjectBody) => Promise<T> | T): Promise<T> {
    const file = this.#spooled.get(path)
    if (file === undefined) throw new StoreError('rejected', `there is no such upload [path=${path}]`)
    const { content, bytes } = file
    if (content !== null)
      return use({ bytes, read: (offset, length) => new Uint8Array(content.buffer, offset, length) })
    const opened = this.#files.open(path, 'read')
    try {
      return await use(fileBody(opened, this.#buffers))
    } finally {
      opened.close()
    }
  }

  /** Removes also what a move to a full disk has left there. */
  discard(path: string): void {
    const content = this.#spooled.get(path)?.content ?? null
    this.#spooled.delete(path)
    if (content !== null) this.#buffers.give(content)
    if (this.#files.exists(path)) this.#files.remove(path)
  }

  get #inMemory(): number {
    let bytes = 0
    for (const file of this.#spooled.values()) if (file.content !== null) bytes += file.bytes
    return bytes
  }

  #grown(content: Buffer, used: number, bytes: number): Buffer {
    if (bytes <= content.length) return content
    const larger = wholeOf(this.#buffers.take(bytes))
    larger.set(content.subarray(0, used))
    this.#buffers.give(content)
    return larger
  }

  #toDisk(path: string, file: Spooled): void {
    this.#files.makeDirectory(dirname(path))
    if (file.content === null) return
    this.#write(path, 'create', file.content.subarray(0, file.bytes), 0)
    this.#buffers.give(file.content)
    file.content = null
  }

  #write(path: string, mode: 'create' | 'write', content: Uint8Array, offset: number): void {
    const file = this.#files.open(path, mode)
    try {
      file.write([content], offset)
    } finally {
      file.close()
    }
  }
}
