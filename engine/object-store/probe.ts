// Tests whether an S3-compatible service supports writes that must not replace an existing object (put-if-absent), for
// objects sent in one request and in parts. A service that does not know this condition ignores it and overwrites the
// object. So the probe writes an object twice, and the second write must be refused.

import { randomUUID } from 'node:crypto'
import { bodyOf, type ObjectBody, type ObjectInfo, type StoreCapabilities, StoreError } from './object-store.js'

/** What the probe uses of a store. */
export interface ProbedStore {
  /** Infinity: the store has no uploads in parts. */
  readonly multipartBytes: number
  putIfAbsent(key: string, body: ObjectBody, multipart: boolean): Promise<ObjectInfo | null>
  delete(key: string): Promise<void>
}

/** Rejects with StoreError when the service cannot be reached or permits no write. */
export async function probeStore(store: ProbedStore): Promise<StoreCapabilities> {
  const inOneRequest = await probePut(store, 1, false)
  const hasParts = store.multipartBytes !== Number.POSITIVE_INFINITY
  const inParts = hasParts ? await probePut(store, store.multipartBytes + 1, true) : inOneRequest
  const reasons = [
    ...(inOneRequest === '' ? [] : [`PutObject ${inOneRequest}`]),
    ...(inParts === '' || !hasParts ? [] : [`CompleteMultipartUpload ${inParts}`]),
  ]
  return { putIfAbsent: inOneRequest === '', multipartIfAbsent: inParts === '', reason: reasons.join('; ') }
}

/** Returns why the condition is not honoured; empty: it is. */
async function probePut(store: ProbedStore, bytes: number, multipart: boolean): Promise<string> {
  const key = `probe/${randomUUID()}`
  const put = (fill: number) => store.putIfAbsent(key, bodyOf(new Uint8Array(bytes).fill(fill)), multipart)
  try {
    if ((await put(1)) === null) return 'refuses to create an object that does not exist'
    return (await put(2)) === null ? '' : 'ignores If-None-Match: * and overwrites'
  } catch (error) {
    if (error instanceof StoreError && error.kind === 'unsupported')
      return `refuses If-None-Match: * (${error.message})`
    throw error
  } finally {
    await store.delete(key)
  }
}
