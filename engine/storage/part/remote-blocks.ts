// A thread's access to the local copies of remote parts (Parquet files whose rows are only in the object store). A part
// is copied in blocks, each of them a file in one folder: <part id>-<block>.block. The object store's thread fetches
// and removes blocks (object-store/block-cache.ts); this thread looks whether a block is there, and requests those that
// are missing.
//
// No call waits. A scan calls ready() before it reads a morsel, and pauses while the result is false; the reply to the
// request resumes it. A read fails with a ResourceError for 'remote' if its block is missing nevertheless, because the
// operator did not call ready(), or because the block was removed after it. If the query has returned nothing yet, it
// is then run again when the block is there.
//
// Blocks stay open until the thread is idle, because a scan reads several pages of each. An open block can be read even
// if the object store's thread has removed it.
//
// Invariant: a block is read only if it has the checksum that the sidecar of its part (sidecar.ts) lists.

import { assert } from '../../base/assert.js'
import { crc32 } from '../../base/checksum.js'
import { FileError, ResourceError } from '../../base/errors.js'
import type { File, Files } from '../../base/files.js'
import type { BlocksRequest } from '../../object-store/block-cache.js'
import type { Sidecar } from './sidecar.js'

export type FromBlockReader =
  | { readonly kind: 'fetchBlocks'; readonly requestId: number; readonly request: BlocksRequest }
  /** Blocks that were read, so that others are removed first. */
  | { readonly kind: 'blocksUsed'; readonly names: readonly string[] }

export interface RemoteBlocksOptions {
  readonly files: Files
  /** The folder of the blocks. */
  readonly directory: string
  readonly post: (message: FromBlockReader) => void
  readonly nowMs: () => number
}

export interface RemotePart {
  readonly id: number
  readonly sidecar: Sidecar
}

/** How long a failed request fails all that wait for its blocks, before they are requested again. */
const failureMs = 1000
const verifiedMax = 100_000
/** A scan reads a few blocks of each column alternately. */
const openMax = 64
/** Blocks that were read are reported at most this often. */
const reportMs = 1000

function blockName(partId: number, block: number): string {
  return `${partId}-${block}.block`
}

export class RemoteBlocks {
  readonly #options: RemoteBlocksOptions
  /** Requested blocks by name. */
  readonly #pending = new Set<string>()
  readonly #requests = new Map<number, readonly string[]>()
  readonly #failures = new Map<string, { readonly message: string; readonly untilMs: number }>()
  readonly #used = new Set<string>()
  /** Blocks whose checksum was right. One that is removed and fetched again was verified when it arrived. */
  readonly #verified = new Set<string>()
  /** By name, the most recently used last. */
  readonly #open = new Map<string, File>()
  /** Blocks that were there since the thread was last idle. */
  readonly #seen = new Set<string>()
  /** For the content of a block that is verified. */
  #content: Uint8Array | null = null
  #reportedMs = 0
  #lastId = 0

  constructor(options: RemoteBlocksOptions) {
    this.#options = options
  }

  /**
   * Whether all `wanted` blocks can be read. Requests those that are missing, and then missing ones of `ahead`, which
   * are needed soon. Throws ResourceError if a wanted block could not be fetched.
   */
  ready(part: RemotePart, wanted: Iterable<number>, ahead: Iterable<number> = []): boolean {
    const [missing, missingAhead]: [number[], number[]] = [[], []]
    let isReady = true
    for (const block of wanted) {
      const name = blockName(part.id, block)
      if (this.#opened(part, block) !== undefined) continue
      this.#refuseFailed(name)
      isReady = false
      if (!this.#pending.has(name)) missing.push(block)
    }
    for (const block of ahead) {
      const name = blockName(part.id, block)
      if (missing.includes(block)) continue
      if (!this.#pending.has(name) && !this.#failures.has(name) && !this.#isSeen(name)) missingAhead.push(block)
    }
    // Two requests: the query goes on when it has the wanted blocks.
    for (const blocks of [missing, missingAhead]) if (blocks.length > 0) this.#request(part, blocks)
    this.#report()
    return isReady
  }

  /** Reads bytes of one block. Throws ResourceError if it is not there. */
  read(part: RemotePart, block: number, target: Uint8Array, at: number): void {
    const name = blockName(part.id, block)
    const file = this.#opened(part, block)
    if (file === undefined || file.read(target, at) < target.length) {
      this.#refuseFailed(name)
      if (!this.#pending.has(name)) this.#request(part, [block])
      throw new ResourceError(
        'rows in the object store are not cached on this disk any more [setting=object.store.part.cache.size]',
        'remote',
      )
    }
    this.#used.add(name)
  }

  /** The reply to a request. */
  fetched(requestId: number, error: string | null): void {
    const names = this.#requests.get(requestId) ?? []
    this.#requests.delete(requestId)
    for (const name of names) {
      this.#pending.delete(name)
      if (error !== null) this.#failures.set(name, { message: error, untilMs: this.#options.nowMs() + failureMs })
    }
  }

  /** Closes the blocks: removed ones take space on the disk as long as they are open. */
  closeAll(): void {
    for (const [name, file] of this.#open) this.#close(name, file)
    this.#seen.clear()
    this.#content = null
  }

  #refuseFailed(name: string): void {
    const failure = this.#failures.get(name)
    if (failure === undefined) return
    if (failure.untilMs > this.#options.nowMs()) throw new ResourceError(failure.message)
    this.#failures.delete(name)
  }

  #isSeen(name: string): boolean {
    if (this.#seen.has(name)) return true
    const isThere = this.#options.files.exists(this.#pathOf(name))
    if (isThere) this.#seen.add(name)
    return isThere
  }

  #pathOf(name: string): string {
    return `${this.#options.directory}/${name}`
  }

  /** The file of a block; undefined if it is not there, or is damaged and was removed. */
  #opened({ id, sidecar }: RemotePart, block: number): File | undefined {
    const name = blockName(id, block)
    const known = this.#open.get(name)
    if (known !== undefined) {
      this.#open.delete(name)
      this.#open.set(name, known)
      return known
    }
    if (this.#pending.has(name)) return undefined
    const { files } = this.#options
    const path = this.#pathOf(name)
    const file = this.#whileThere(() => files.open(path, 'read'))
    if (file === undefined || !this.#isRight(name, file, sidecar, block)) {
      file?.close()
      if (file !== undefined) this.#whileThere(() => files.remove(path))
      return undefined
    }
    const [oldest] = this.#open
    if (oldest !== undefined && this.#open.size >= openMax) this.#close(...oldest)
    assert(this.#open.size < openMax, 'F4: a thread keeps few files open')
    this.#open.set(name, file)
    return file
  }

  #close(name: string, file: File): void {
    this.#open.delete(name)
    file.close()
  }

  /** Verifies a block when this thread meets it first. */
  #isRight(name: string, file: File, sidecar: Sidecar, block: number): boolean {
    if (this.#verified.has(name)) return true
    if (this.#content?.length !== sidecar.blockBytes) this.#content = new Uint8Array(sidecar.blockBytes)
    if (!isIntact(sidecar, block, file, this.#content)) return false
    if (this.#verified.size >= verifiedMax) this.#verified.clear()
    this.#verified.add(name)
    return true
  }

  /** undefined if the block is not there: the object store's thread may remove it at any time. */
  #whileThere<T>(work: () => T): T | undefined {
    try {
      return work()
    } catch (error) {
      if (error instanceof FileError && error.code === 'ENOENT') return undefined
      throw error
    }
  }

  #request({ id, sidecar }: RemotePart, blocks: readonly number[]): void {
    const requestId = ++this.#lastId
    const names = blocks.map((block) => blockName(id, block))
    for (const name of names) this.#pending.add(name)
    this.#requests.set(requestId, names)
    this.#options.post({
      kind: 'fetchBlocks',
      requestId,
      request: {
        ...{ key: sidecar.key, bytes: sidecar.bytes, blockBytes: sidecar.blockBytes },
        blocks: blocks.map((number) => ({ name: blockName(id, number), number, crc: sidecar.blocks[number] ?? 0 })),
      },
    })
  }

  #report(): void {
    const now = this.#options.nowMs()
    if (this.#used.size === 0 || now - this.#reportedMs < reportMs) return
    this.#reportedMs = now
    this.#options.post({ kind: 'blocksUsed', names: [...this.#used] })
    this.#used.clear()
  }
}

/** Whether a block's file has the size and checksum that the sidecar names. */
function isIntact({ blocks, blockBytes, bytes }: Sidecar, block: number, file: File, buffer: Uint8Array): boolean {
  const content = buffer.subarray(0, bytes - block * blockBytes)
  const size = content.length
  if (file.size() !== size) return false
  return file.read(content, 0) === size && crc32(content) === blocks[block]
}
