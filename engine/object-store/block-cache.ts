// The local copies of remote parts (Parquet files of tables whose rows are only in the object store): a folder of
// blocks, each a file with a fixed range of one object. Runs on the object store's thread, the only one that adds and
// removes blocks; other threads look whether a block is there, and read it (storage/part/remote-blocks.ts).
//
// Adjacent blocks are fetched by one request. If the folder exceeds its limit, the least recently used blocks are
// removed, first those that an earlier process has left. Blocks that were requested or read in the last ten seconds are
// kept, because a query is about to read them, unless the folder would exceed twice its limit.
//
// Invariants:
//   1. A block appears under its name with all its bytes, by renaming.
//   2. A block that arrives has the checksum that the request names.

import { crc32 } from '../base/checksum.js'
import type { Clock } from '../base/clock.js'
import { FileError } from '../base/errors.js'
import type { Files } from '../base/files.js'
import { type ObjectStore, StoreError } from './object-store.js'

export interface BlockCacheOptions {
  /** Created when the first block is fetched. */
  readonly directory: string
  readonly bytesMax: number
  /** With fewer free bytes on the disk, blocks are removed, and none are added. */
  readonly freeBytesMin: number
}

/** Blocks of one object. */
export interface BlocksRequest {
  readonly key: string
  /** Of the whole object. */
  readonly bytes: number
  readonly blockBytes: number
  readonly blocks: readonly WantedBlock[]
}

export interface WantedBlock {
  readonly name: string
  readonly number: number
  readonly crc: number
}

interface Known {
  readonly bytes: number
  usedMs: number
}

/** Adjacent blocks up to this size are fetched by one request. */
const runBytesMax = 8 * 1024 * 1024
const runsAtOnce = 8
/** How long a block that was requested or read stays. */
const keptMs = 10_000
/** How far such blocks may exceed the limit of the folder. */
const excessFactor = 2

export class BlockCache {
  readonly #options: BlockCacheOptions
  readonly #files: Files
  readonly #clock: Pick<Clock, 'monotonicMs'>
  /** By name, the least recently used first; null until the folder was read. */
  #known: Map<string, Known> | null = null
  #bytes = 0
  readonly #fetching = new Map<string, Promise<void>>()
  #running = 0
  readonly #waiting: (() => void)[] = []

  constructor(options: BlockCacheOptions, files: Files, clock: Pick<Clock, 'monotonicMs'>) {
    this.#options = options
    this.#files = files
    this.#clock = clock
  }

  get bytes(): number {
    return this.#bytes
  }

  /** Resolves when all blocks are there. Rejects with StoreError, or FileError when the disk is full. */
  async fetch(store: ObjectStore, request: BlocksRequest): Promise<void> {
    const known = this.#opened()
    const pending: Promise<void>[] = []
    const missing: WantedBlock[] = []
    for (const block of request.blocks) {
      const running = this.#fetching.get(block.name)
      if (running !== undefined) pending.push(running)
      else if (known.has(block.name) && this.#isThere(block.name)) this.used([block.name])
      else missing.push(block)
    }
    for (const run of runsOf(missing, request.blockBytes)) {
      const fetching = this.#inTurn(() => this.#fetchRun(store, request, run)).finally(() => {
        for (const { name } of run) this.#fetching.delete(name)
      })
      for (const { name } of run) this.#fetching.set(name, fetching)
      pending.push(fetching)
    }
    const outcomes = await Promise.allSettled(pending)
    for (const outcome of outcomes) if (outcome.status === 'rejected') throw outcome.reason
  }

  /** Queries have read these blocks. */
  used(names: readonly string[]): void {
    const known = this.#opened()
    const now = this.#clock.monotonicMs()
    for (const name of names) {
      const block = known.get(name)
      if (block === undefined) continue
      known.delete(name)
      known.set(name, { ...block, usedMs: now })
    }
  }

  async #inTurn(work: () => Promise<void>): Promise<void> {
    if (this.#running >= runsAtOnce) await new Promise<void>((resolve) => this.#waiting.push(resolve))
    this.#running++
    try {
      await work()
    } finally {
      this.#running--
      this.#waiting.shift()?.()
    }
  }

  async #fetchRun(store: ObjectStore, request: BlocksRequest, run: readonly WantedBlock[]): Promise<void> {
    for (const { name, content } of await contentOf(store, request, run)) this.#add(name, content)
  }

  #add(name: string, content: Uint8Array): void {
    const known = this.#opened()
    const { directory } = this.#options
    this.#makeRoom(content.length)
    const path = `${directory}/${name}`
    const aside = `${path}.new`
    if (this.#files.exists(aside)) this.#files.remove(aside)
    const file = this.#files.open(aside, 'create')
    try {
      file.write([content], 0)
    } catch (error) {
      file.close()
      this.#files.remove(aside)
      throw error
    }
    file.close()
    this.#files.rename(aside, path)
    const before = known.get(name)
    this.#bytes += content.length - (before?.bytes ?? 0)
    known.delete(name)
    known.set(name, { bytes: content.length, usedMs: this.#clock.monotonicMs() })
  }

  /** Removes blocks until there is room below the limit of the folder and on the disk. */
  #makeRoom(bytes: number): void {
    const { bytesMax, directory, freeBytesMin } = this.#options
    const known = this.#opened()
    const keptFromMs = this.#clock.monotonicMs() - keptMs
    let free = this.#files.freeBytes(directory) - bytes
    for (const [name, block] of known) {
      if (this.#bytes + bytes <= bytesMax && free >= freeBytesMin) return
      if (block.usedMs > keptFromMs && this.#bytes + bytes <= bytesMax * excessFactor) break
      this.#remove(name, block)
      free += block.bytes
    }
    if (free < freeBytesMin) {
      throw new FileError(`the disk is too full to cache rows of the object store [path=${directory}]`, 'ENOSPC')
    }
  }

  #remove(name: string, { bytes }: Known): void {
    const path = `${this.#options.directory}/${name}`
    if (this.#files.exists(path)) this.#files.remove(path)
    this.#known?.delete(name)
    this.#bytes -= bytes
  }

  /** A reader removes a block that is damaged. */
  #isThere(name: string): boolean {
    if (this.#files.exists(`${this.#options.directory}/${name}`)) return true
    const block = this.#known?.get(name)
    if (block !== undefined) this.#remove(name, block)
    return false
  }

  #opened(): Map<string, Known> {
    if (this.#known !== null) return this.#known
    const { directory } = this.#options
    const known = new Map<string, Known>()
    this.#known = known
    this.#files.makeDirectory(directory)
    for (const name of this.#files.list(directory)) {
      const path = `${directory}/${name}`
      if (!name.endsWith('.block')) {
        this.#files.remove(path)
        continue
      }
      const bytes = this.#files.size(path)
      this.#bytes += bytes
      known.set(name, { bytes, usedMs: Number.NEGATIVE_INFINITY })
    }
    return known
  }
}

/** The blocks in runs of adjacent ones. */
function runsOf(blocks: readonly WantedBlock[], blockBytes: number): WantedBlock[][] {
  const runs: WantedBlock[][] = []
  for (const block of [...blocks].sort((a, b) => a.number - b.number)) {
    const run = runs.at(-1)
    const follows = run?.at(-1)?.number === block.number - 1
    if (run !== undefined && follows && (run.length + 1) * blockBytes <= runBytesMax) run.push(block)
    else runs.push([block])
  }
  return runs
}

/** The content of each block. Fetches it once more if a checksum is wrong. */
async function contentOf(
  store: ObjectStore,
  { key, bytes, blockBytes }: BlocksRequest,
  run: readonly WantedBlock[],
): Promise<{ readonly name: string; readonly content: Uint8Array }[]> {
  const offset = (run[0]?.number ?? 0) * blockBytes
  const end = Math.min(bytes, offset + run.length * blockBytes)
  for (let attempt = 0; attempt < 2; attempt++) {
    const whole = await store.get(key, { offset, bytes: end - offset })
    const blocks = run.map(({ name, crc }, index) => {
      const content = whole.subarray(index * blockBytes, (index + 1) * blockBytes)
      return { name, content, isRight: crc32(content) === crc }
    })
    if (blocks.every(({ isRight }) => isRight)) return blocks
  }
  throw new StoreError(
    'damaged',
    `an object is damaged: the checksum of a block is wrong [key=${key}, offset=${offset}]`,
  )
}
