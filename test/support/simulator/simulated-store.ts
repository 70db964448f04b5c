// A simulated object store: a driver over a map that injects faults drawn from a seeded generator: requests fail
// before or after they were applied, are delayed, or are applied twice, so that a conditional write gets a 412
// although it succeeded.

import {
  type ByteRange,
  type ListPage,
  type ObjectDriver,
  type ObjectHead,
  type ObjectInfo,
  type PutRequest,
  StoreError,
} from '../../../engine/object-store/object-store.js'
import type { RetryOptions } from '../../../engine/object-store/retry.js'
import type { Random } from '../random.js'

interface StoredObject {
  readonly content: Uint8Array
  readonly etag: string
  readonly checksum: number
  readonly writeId: string
}

export interface StoreFaults {
  /** Probability of each fault, for each request. */
  readonly chance: number
  readonly random: Random
  /** Awaited before a request has an effect, and before its response. */
  readonly pass?: () => Promise<void>
}

export interface SimulatedStore extends ObjectDriver {
  /** What is stored, by key. Shared by all drivers over the same objects. */
  readonly objects: Map<string, StoredObject>
  /** The service cannot be reached until this is false again. */
  isAway: boolean
  /** Services that ignore If-None-Match overwrite. */
  ignoresConditions: boolean
  /** Requests so far. */
  readonly requests: { readonly operation: string; readonly key: string }[]
}

const pageObjects = 3

export function simulatedStore(faults: StoreFaults | null = null): SimulatedStore {
  return new Simulated(faults)
}

/** Retries that take no time. */
export function simulatedRetries(random: Random): RetryOptions {
  let nowMs = 0
  return {
    ...{ totalMs: 60_000, firstDelayMs: 10, delayMsMax: 100, random: () => random.next() },
    clock: { monotonicMs: () => nowMs },
    sleep: async (ms) => {
      nowMs += ms
    },
  }
}

class Simulated implements SimulatedStore {
  readonly url = 's3://simulated'
  readonly multipartBytes = Number.POSITIVE_INFINITY
  readonly objects = new Map<string, StoredObject>()
  readonly requests: { readonly operation: string; readonly key: string }[] = []
  isAway = false
  ignoresConditions = false
  readonly #faults: StoreFaults | null
  /** Requests that were given up and are applied later. */
  readonly #late: (() => void)[] = []
  #version = 0

  constructor(faults: StoreFaults | null) {
    this.#faults = faults
  }

  put(request: PutRequest): Promise<ObjectInfo> {
    return this.#attempt('put', request.key, () => this.#put(request))
  }

  get(key: string, range: ByteRange | null): Promise<{ content: Uint8Array; checksum: number | null }> {
    return this.#attempt('get', key, () => {
      const found = this.objects.get(key)
      if (found === undefined) throw new StoreError('missing', `no such object [key=${key}]`)
      if (range === null) return { content: found.content, checksum: found.checksum }
      return { content: found.content.slice(range.offset, range.offset + range.bytes), checksum: found.checksum }
    })
  }

  head(key: string): Promise<ObjectHead | null> {
    return this.#attempt('head', key, () => {
      const found = this.objects.get(key)
      if (found === undefined) return null
      const { etag, checksum, writeId, content } = found
      return { key, bytes: content.length, etag, checksum, writeId }
    })
  }

  list(prefix: string, from: string | null): Promise<ListPage> {
    return this.#attempt('list', prefix, () => {
      const keys = [...this.objects.keys()]
        .filter((key) => key.startsWith(prefix) && (from === null || key > from))
        .sort()
      const objects = keys.slice(0, pageObjects).map((key): ObjectInfo => {
        const found = this.objects.get(key)
        return { key, bytes: found?.content.length ?? 0, etag: found?.etag ?? '' }
      })
      return { objects, next: keys.length > pageObjects ? (objects.at(-1)?.key ?? null) : null }
    })
  }

  delete(key: string): Promise<void> {
    return this.#attempt('delete', key, () => {
      this.objects.delete(key)
    })
  }

  async close(): Promise<void> {}

  #put({ key, body, condition, checksum, writeId }: PutRequest): ObjectInfo {
    const found = this.objects.get(key)
    const holds =
      this.ignoresConditions ||
      condition.kind === 'always' ||
      (condition.kind === 'absent' ? found === undefined : found?.etag === condition.etag)
    if (!holds) throw new StoreError('conflict', `412 [key=${key}]`)
    const etag = `"${++this.#version}"`
    this.objects.set(key, { content: body.read(0, body.bytes).slice(), etag, checksum, writeId })
    return { key, bytes: body.bytes, etag }
  }

  async #attempt<T>(operation: string, key: string, apply: () => T): Promise<T> {
    this.requests.push({ operation, key })
    await Promise.resolve()
    const faults = this.#faults
    await faults?.pass?.()
    if (this.isAway) throw new StoreError('unavailable', 'the simulated store is away')
    if (faults === null) return apply()
    const { random, chance } = faults
    for (const late of this.#late.splice(0)) late()
    if (random.chance(chance)) throw new StoreError('unavailable', '503 before it was applied')
    if (operation === 'put' && random.chance(chance)) {
      this.#late.push(() => quietly(apply))
      throw new StoreError('unavailable', 'timed out, and is applied later')
    }
    if (operation === 'put' && random.chance(chance))
      throw new StoreError('conflict', '409: another write is under way')
    const result = apply()
    await faults.pass?.()
    if (random.chance(chance)) throw new StoreError('unavailable', 'applied, but the response was lost')
    // A proxy repeats the request: the second one meets the object that the first one wrote.
    return random.chance(chance) ? apply() : result
  }
}

function quietly(apply: () => unknown): void {
  try {
    apply()
  } catch (error) {
    if (!(error instanceof StoreError)) throw error
  }
}
