// Implements ObjectStore on a driver, which makes one attempt at each operation: checks keys and retries transient
// errors. If a conditional write has no clear outcome, for example after a lost response, it reads the object back to
// see whether the write succeeded (invariant 2 of object-store.ts).

import { randomUUID } from 'node:crypto'
import { crc32 } from '../base/checksum.js'
import {
  type ByteRange,
  bodyChecksum,
  checkKey,
  type ListPage,
  type ObjectBody,
  type ObjectDriver,
  type ObjectHead,
  type ObjectInfo,
  type ObjectStore,
  type PutCondition,
  type PutRequest,
  type StoreCapabilities,
  StoreError,
} from './object-store.js'
import { probeStore } from './probe.js'
import { Retrier, type RetryOptions } from './retry.js'

export function reliableStore(driver: ObjectDriver, options: RetryOptions): ObjectStore {
  return new ReliableStore(driver, new Retrier(options))
}

class ReliableStore implements ObjectStore {
  readonly url: string
  readonly #driver: ObjectDriver
  readonly #retrier: Retrier
  /** Until the probe says otherwise, large objects are not written conditionally in parts. */
  #multipartIfAbsent = false

  constructor(driver: ObjectDriver, retrier: Retrier) {
    this.url = driver.url
    this.#driver = driver
    this.#retrier = retrier
  }

  async put(key: string, body: ObjectBody): Promise<ObjectInfo> {
    const request = this.#request(key, body, { kind: 'always' }, true)
    return this.#retrier.run(async () => {
      try {
        return await this.#driver.put(request)
      } catch (error) {
        // Without a condition a conflict means that another write is under way.
        throw error instanceof StoreError && error.kind === 'conflict' ? unavailable(error) : error
      }
    })
  }

  async putIfAbsent(key: string, body: ObjectBody): Promise<ObjectInfo | null> {
    return this.#putConditionally(this.#request(key, body, { kind: 'absent' }, this.#multipartIfAbsent))
  }

  async putIfMatch(key: string, body: ObjectBody, etag: string): Promise<ObjectInfo | null> {
    return this.#putConditionally(this.#request(key, body, { kind: 'match', etag }, this.#multipartIfAbsent))
  }

  async get(key: string, range?: ByteRange): Promise<Uint8Array> {
    checkKey(key)
    if (range?.bytes === 0) return new Uint8Array()
    return this.#retrier.run(async () => {
      const { content, checksum } = await this.#driver.get(key, range ?? null)
      if (range === undefined) {
        if (checksum !== null && crc32(content) !== checksum) throw this.#damaged(key, 'its checksum is wrong')
      } else if (content.length !== range.bytes) {
        throw this.#damaged(key, `it ends before byte ${range.offset + range.bytes}`)
      }
      return content
    })
  }

  async head(key: string): Promise<ObjectHead | null> {
    checkKey(key)
    return this.#retrier.run(() => this.#driver.head(key))
  }

  async *list(prefix: string): AsyncIterable<ObjectInfo> {
    let next: string | null = null
    do {
      const from: string | null = next
      const page: ListPage = await this.#retrier.run(() => this.#driver.list(prefix, from))
      yield* page.objects
      next = page.next
    } while (next !== null)
  }

  async delete(key: string): Promise<void> {
    checkKey(key)
    await this.#retrier.run(() => this.#driver.delete(key))
  }

  async probe(): Promise<StoreCapabilities> {
    const found = await probeStore({
      multipartBytes: this.#driver.multipartBytes,
      putIfAbsent: (key, body, multipart) =>
        this.#putConditionally(this.#request(key, body, { kind: 'absent' }, multipart)),
      delete: (key) => this.delete(key),
    })
    this.#multipartIfAbsent = found.multipartIfAbsent
    return found
  }

  close(): Promise<void> {
    return this.#driver.close()
  }

  #request(key: string, body: ObjectBody, condition: PutCondition, multipart: boolean): PutRequest {
    checkKey(key)
    return { key, body, condition, multipart, checksum: bodyChecksum(body), writeId: randomUUID() }
  }

  #putConditionally(request: PutRequest): Promise<ObjectInfo | null> {
    return this.#retrier.run(async () => {
      try {
        return await this.#driver.put(request)
      } catch (error) {
        if (!(error instanceof StoreError) || !isAmbiguous(error, request)) throw error
        return await this.#readBack(request, error)
      }
    })
  }

  /** Null: the condition does not hold. Throws to be called again when the write has not been applied yet. */
  async #readBack({ key, condition, writeId }: PutRequest, error: StoreError): Promise<ObjectInfo | null> {
    const head = await this.#driver.head(key)
    if (head?.writeId === writeId) return head
    const mayStillApply = condition.kind === 'match' ? head?.etag === condition.etag : head === null
    if (!mayStillApply) return null
    // A conflict whose cause is gone: another write was under way, or the object has just been deleted.
    throw unavailable(error)
  }

  #damaged(key: string, reason: string): StoreError {
    return new StoreError('damaged', `an object is damaged: ${reason} [key=${key}, store=${this.url}]`)
  }
}

/** Some services report an object that is to be replaced and is not there as missing. */
function isAmbiguous({ kind }: StoreError, { condition }: PutRequest): boolean {
  return kind === 'conflict' || kind === 'unavailable' || (kind === 'missing' && condition.kind === 'match')
}

/** The error as one that is retried. */
function unavailable(error: StoreError): StoreError {
  return error.kind === 'unavailable' ? error : new StoreError('unavailable', error.message, { cause: error })
}
