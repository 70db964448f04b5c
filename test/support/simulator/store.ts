// Simulates the object store's thread of a server from its start to its crash (a life), over a simulated disk and a
// simulated store, which both survive the crash. After the crash, requests that the thread has sent get no reply, and
// its file operations fail.

import { FileError } from '../../../engine/base/errors.js'
import type { File, Files } from '../../../engine/base/files.js'
import { BlockCache } from '../../../engine/object-store/block-cache.js'
import { StoreError } from '../../../engine/object-store/object-store.js'
import { reliableStore } from '../../../engine/object-store/reliable-store.js'
import { UploadBuffers, UploadSpool } from '../../../engine/object-store/upload-buffers.js'
import { type StoreClient, storeClient } from '../../../engine/threads/store-client.js'
import type { StoreReply, StoreRequest } from '../../../engine/threads/store-messages.js'
import { replyTo } from '../../../engine/threads/store-replies.js'
import type { Random } from '../random.js'
import { SimulatedCrash } from './faulty-files.js'
import type { SimulatedStore, StoreFaults } from './simulated-store.js'

const blocksBytesMax = 256 * 1024

/** What strikes the requests of a life, and whether it has ended. */
export class StoreLife implements StoreFaults {
  readonly random: Random
  chance = 0
  /** The machine stops at this step of a request; 0: never. */
  crashAt = 0
  /** Probability that a step takes time. */
  delays = 0
  struck = false
  ended = false
  #steps = 0

  constructor(random: Random) {
    this.random = random
  }

  async pass(): Promise<void> {
    this.#steps++
    if (this.#steps === this.crashAt) this.struck = true
    if (this.random.chance(this.delays)) await pause(this.random.between(1, 300))
    if (this.struck || this.ended) await never()
  }

  /** The files as this life sees them: when the machine has stopped, each operation fails. */
  filesOf(files: Files): Files {
    const live = <T>(work: () => T): T => {
      if (this.struck || this.ended) throw stopped()
      try {
        return work()
      } catch (error) {
        throw error instanceof SimulatedCrash ? stopped() : error
      }
    }
    return {
      open: (path, mode): File => {
        const file = live(() => files.open(path, mode))
        return {
          ...{ path, descriptor: file.descriptor, close: () => file.close() },
          read: (target, position) => live(() => file.read(target, position)),
          write: (chunks, position) => live(() => file.write(chunks, position)),
          sync: () => live(() => file.sync()),
          truncate: (size) => live(() => file.truncate(size)),
          size: () => live(() => file.size()),
        }
      },
      syncDescriptor: (descriptor) => live(() => files.syncDescriptor(descriptor)),
      makeDirectory: (path) => live(() => files.makeDirectory(path)),
      list: (directory) => live(() => files.list(directory)),
      remove: (path) => live(() => files.remove(path)),
      removeDirectory: (path) => live(() => files.removeDirectory(path)),
      rename: (source, target) => live(() => files.rename(source, target)),
      exists: (path) => live(() => files.exists(path)),
      size: (path) => live(() => files.size(path)),
      syncDirectory: (path) => live(() => files.syncDirectory(path)),
      freeBytes: (directory) => live(() => files.freeBytes(directory)),
    }
  }
}

/** The faults of whichever life is current. */
export class CurrentFaults implements StoreFaults {
  life: StoreLife

  constructor(life: StoreLife) {
    this.life = life
  }

  get chance(): number {
    return this.life.chance
  }

  get random(): Random {
    return this.life.random
  }

  pass(): Promise<void> {
    return this.life.pass()
  }
}

export interface SimulatedClientOptions {
  readonly life: StoreLife
  readonly files: Files
  /** Folder of the cached blocks of remote parts. */
  readonly blocks: string
  readonly nowMs: () => number
}

export function simulatedClient(
  driver: SimulatedStore,
  { life, files, blocks, nowMs }: SimulatedClientOptions,
): StoreClient {
  const { random } = life
  let waitedMs = 0
  const store = reliableStore(driver, {
    ...{ totalMs: 300, firstDelayMs: 10, delayMsMax: 100, random: () => random.next() },
    clock: { monotonicMs: () => waitedMs },
    sleep: async (ms) => {
      waitedMs += ms
    },
  })
  const cache = new BlockCache({ directory: blocks, bytesMax: blocksBytesMax, freeBytesMin: 0 }, files, {
    monotonicMs: nowMs,
  })
  const buffers = new UploadBuffers()
  const places = { store, files, blocks: cache, buffers, spool: new UploadSpool(files, buffers) }
  return storeClient(driver.url, {
    send: (_bucket, request) => reply(life, request, () => replyTo(places, requestOf(request))),
    close: async () => {},
  })
}

function requestOf(request: StoreRequest): Exclude<StoreRequest, { kind: 'close' }> {
  if (request.kind === 'close') throw new Error('the simulated store stays open')
  return request
}

async function reply(life: StoreLife, request: StoreRequest, carryOut: () => Promise<StoreReply>): Promise<StoreReply> {
  // A message to another thread and back.
  await Promise.resolve()
  if (life.ended) return never()
  try {
    const done = structuredClone(await carryOut())
    return life.ended || life.struck ? await never() : done
  } catch (error) {
    if (life.ended || life.struck) return never()
    if (error instanceof StoreError) throw error
    const message = error instanceof Error ? error.message : String(error)
    throw new StoreError('unavailable', `${message} [request=${request.kind}]`)
  }
}

function stopped(): FileError {
  return new FileError('the machine has stopped', 'EIO')
}

function never<T>(): Promise<T> {
  return new Promise(() => {})
}

function pause(ms: number): Promise<void> {
  return new Promise((later) => setTimeout(later, ms))
}
