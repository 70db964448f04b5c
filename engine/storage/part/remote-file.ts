// RemotePartFile: presents a part (Parquet file) whose rows are only in the object store as a local file, so that the
// code that reads parts needs no second implementation. It has the offsets of the original file; their bytes come from
// the part's sidecar (sidecar.ts) or from the blocks of the object that are cached on this disk (remote-blocks.ts).

import { FileError } from '../../base/errors.js'
import type { File, Files } from '../../base/files.js'
import { type PartIndex, readIndex, readPartIndex } from './part-index.js'
import type { RemoteBlocks, RemotePart } from './remote-blocks.js'
import { readSidecar, type Sidecar } from './sidecar.js'

const suffix = '.sidecar'

export function isSidecar(path: string): boolean {
  return path.endsWith(suffix)
}

/** What this disk has of a part: its file, or as much as its sidecar has. Throws FileError and CorruptionError. */
export function openPartFile(files: Files, path: string): File {
  return isSidecar(path) ? new RemotePartFile(files, path, null) : files.open(path, 'read')
}

/** The index of a part, from its file or its sidecar. Throws FileError and CorruptionError. */
export function indexOfPart(files: Files, path: string): PartIndex {
  return isSidecar(path) ? readRemoteIndex(files, path).index : readPartIndex(files, path)
}

/** The index of a part that is only in the object store, from its sidecar. Throws CorruptionError and FileError. */
export function readRemoteIndex(files: Files, path: string): { readonly index: PartIndex; readonly sidecar: Sidecar } {
  const file = new RemotePartFile(files, path, null)
  try {
    return { index: readIndex(file, path, file.tailBytes), sidecar: file.sidecar }
  } finally {
    file.close()
  }
}

/** Sidecars are named by their part ids. */
function partIdOf(path: string): number {
  return Number.parseInt(path.slice(path.lastIndexOf('/') + 1), 10)
}

export class RemotePartFile implements File {
  readonly path: string
  readonly sidecar: Sidecar
  readonly #file: File
  readonly #part: RemotePart
  readonly #blocks: RemoteBlocks | null

  /** `blocks`: null where only the sidecar is read. */
  constructor(files: Files, path: string, blocks: RemoteBlocks | null) {
    this.path = path
    this.#file = files.open(path, 'read')
    this.#blocks = blocks
    try {
      this.sidecar = readSidecar(this.#file)
    } catch (error) {
      this.#file.close()
      throw error
    }
    this.#part = { id: partIdOf(path), sidecar: this.sidecar }
  }

  get descriptor(): number {
    return this.#file.descriptor
  }

  /** Throws ResourceError if a block is not cached. */
  read(target: Uint8Array, position: number): number {
    const { ranges, rangesAt, blockBytes, bytes } = this.sidecar
    let at = rangesAt
    for (const range of ranges) {
      const from = position - range.offset
      if (from >= 0 && from + target.length <= range.bytes) return this.#file.read(target, at + from)
      at += range.bytes
    }
    const length = Math.max(0, Math.min(target.length, bytes - position))
    for (let done = 0; done < length; ) {
      const block = Math.floor((position + done) / blockBytes)
      const within = position + done - block * blockBytes
      const count = Math.min(length - done, blockBytes - within)
      this.#readBlock(block, target.subarray(done, done + count), within)
      done += count
    }
    return length
  }

  #readBlock(block: number, target: Uint8Array, at: number): void {
    if (this.#blocks === null)
      throw new FileError(`the rows of a part are in object storage [path=${this.path}]`, 'EREMOTE')
    this.#blocks.read(this.#part, block, target, at)
  }

  /** Of the whole part. */
  size(): number {
    return this.sidecar.bytes
  }

  /** Bytes at the end of the part that the sidecar has. */
  get tailBytes(): number {
    return this.sidecar.ranges.at(-1)?.bytes ?? 0
  }

  close(): void {
    this.#file.close()
  }

  write(): void {
    throw new FileError(`a part is immutable [path=${this.path}]`, 'EROFS')
  }

  sync(): void {
    this.write()
  }

  truncate(): void {
    this.write()
  }
}
