// Copies whole files from disk to an object store and back. After each transfer it compares size and CRC-32 of the copy
// with those of the original.

import { crc32 } from '../base/checksum.js'
import type { Files } from '../base/files.js'
import { bodyChecksum, bodyOf, type ObjectBody, type ObjectHead, type ObjectStore, StoreError } from './object-store.js'
import { fileBody, UploadBuffers } from './upload-buffers.js'

/** What a file's copy in the store is compared with. */
export interface TransferredFile {
  readonly bytes: number
  readonly checksum: number
}

/** Larger files are not read into memory at once. */
const wholeBytesMax = 16 * 1024 * 1024
const rangeBytes = 8 * 1024 * 1024
const rangesAtOnce = 4

/**
 * Writes a file under a key that no object has, and reads its size and checksum back. Rejects with StoreError,
 * 'conflict' when another object has the key.
 */
export async function uploadFile(
  store: ObjectStore,
  files: Files,
  path: string,
  key: string,
  buffers = new UploadBuffers(),
): Promise<TransferredFile> {
  const file = files.open(path, 'read')
  try {
    const body = fileBody(file, buffers)
    if (body.bytes > wholeBytesMax) return await uploadBody(store, body, key)
    const whole = body.read(0, body.bytes)
    const uploaded = await uploadBody(store, bodyOf(whole), key)
    buffers.give(whole)
    return uploaded
  } finally {
    file.close()
  }
}

/** The same for other contents. */
export async function uploadBody(store: ObjectStore, body: ObjectBody, key: string): Promise<TransferredFile> {
  const checksum = bodyChecksum(body)
  const written = await store.putIfAbsent(key, { ...body, checksum })
  if (written === null) throw new StoreError('conflict', `another object has the key [key=${key}]`)
  await verifyObject(store, body.bytes, { key, checksum })
  return { bytes: body.bytes, checksum }
}

/** Rejects with StoreError unless the store has the object with this size and checksum. */
export async function verifyObject(
  store: ObjectStore,
  bytes: number,
  { key, checksum }: { readonly key: string; readonly checksum: number },
): Promise<void> {
  const head = await store.head(key)
  if (head?.bytes === bytes && head.checksum === checksum) return
  throw new StoreError('damaged', `the uploaded object is not the file [key=${key}, ${differenceText(head)}]`)
}

/** Writes an object to a new file and syncs it. The file is removed again when that fails. */
export async function fetchFile(store: ObjectStore, files: Files, key: string, path: string): Promise<TransferredFile> {
  const head = await store.head(key)
  if (head === null) throw new StoreError('missing', `there is no such object [key=${key}, store=${store.url}]`)
  const file = files.open(path, 'create')
  try {
    let next = 0
    const fetchSome = async (): Promise<void> => {
      while (next < head.bytes) {
        const offset = next
        const bytes = Math.min(rangeBytes, head.bytes - offset)
        next += bytes
        file.write([await store.get(key, { offset, bytes })], offset)
      }
    }
    const fetchers = await Promise.allSettled(Array.from({ length: rangesAtOnce }, fetchSome))
    for (const outcome of fetchers) if (outcome.status === 'rejected') throw outcome.reason
    const checksum = checksumOf(files, path)
    if (head.checksum !== null && head.checksum !== checksum) {
      throw new StoreError('damaged', `an object is damaged: its checksum is wrong [key=${key}, store=${store.url}]`)
    }
    file.sync()
    file.close()
    return { bytes: head.bytes, checksum }
  } catch (error) {
    file.close()
    files.remove(path)
    throw error
  }
}

function checksumOf(files: Files, path: string): number {
  const file = files.open(path, 'read')
  try {
    const block = new Uint8Array(rangeBytes)
    let checksum = 0
    for (let offset = 0, read = file.read(block, 0); read > 0; read = file.read(block, offset)) {
      checksum = crc32(block.subarray(0, read), checksum)
      offset += read
    }
    return checksum
  } finally {
    file.close()
  }
}

function differenceText(head: ObjectHead | null): string {
  return head === null ? 'it is not there' : `bytes=${head.bytes}, crc32=${head.checksum?.toString(16) ?? 'unknown'}`
}
