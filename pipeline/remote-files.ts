// Fetches objects from object storage for read_parquet('s3://bucket/key or pattern') and iceberg(). Data files become
// local files; other files of an Iceberg table are returned as bytes. The planner needs the columns of the data files
// but cannot wait for the network. So the first attempt to plan a read_parquet() starts the download and throws
// NotReadyError, and the engine plans the statement again when the files are local.
//
// Objects are downloaded whole into one folder, under names that are hashes of key and version. Before a download would
// make the folder exceed its size, the least recently used files are deleted. Files that were used within the last ten
// minutes stay, because a query may be about to open them, until the folder would exceed twice its size. If even files
// that were used within the last seconds would have to go, the statement fails.

import { createHash } from 'node:crypto'
import { mkdirSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { NotReadyError, ResourceError, SqlError } from '../engine/base/errors.js'
import { matchesGlob } from '../engine/base/glob.js'
import { type StoreClient, StoreError } from '../engine/engine.js'

export interface RemoteFilesOptions {
  /** Null: none is configured. */
  readonly client: StoreClient | null
  /** Names of readable buckets; `*`: all. */
  readonly buckets: readonly string[]
  /** Emptied when it is opened. */
  readonly directory: string
  readonly bytesMax: number
  readonly clock: { monotonicMs(): number }
}

export interface RemoteFile {
  readonly name: string
  readonly path: string
}

interface RemoteObject {
  readonly key: string
  readonly bytes: number
  /** Empty: the object never changes. */
  readonly etag: string
}

interface CachedFile {
  readonly bytes: number
  usedMs: number
}

interface Looked {
  /** Null: they are being fetched. */
  files: readonly RemoteFile[] | null
  error: Error | null
  readonly pending: Promise<void>
  readyMs: number
}

/** How long what was found counts: a statement is planned again, and described and executed. */
const freshMs = 3000
/** How long a file that was used stays within twice the size: queries open their files one after another. */
const keptMs = 600_000
/** How long a file that was used stays in any case: its statement is being planned, or begins to run. */
const plannedMs = 10_000
/** How far the folder may exceed its size. */
const excessFactor = 2
/** Limit of objects that one statement reads. */
const filesMax = 10_000
const fetchesAtOnce = 4

export class RemoteFiles {
  readonly #options: RemoteFilesOptions
  /** By path, least recently used first. */
  readonly #cached = new Map<string, CachedFile>()
  /** By path: objects are fetched once for all who wait for them. */
  readonly #fetching = new Map<string, Promise<void>>()
  /** Of the files in #cached, and of those that are being fetched. */
  #bytes = 0
  /** Requests that fetch further files, by path of the files that they need. */
  readonly #awaited = new Map<string, number>()
  /** By URL. */
  readonly #looked = new Map<string, Looked>()

  constructor(options: RemoteFilesOptions) {
    this.#options = options
    rmSync(options.directory, { recursive: true, force: true })
  }

  static isRemote(file: string): boolean {
    return /^s3:\/\//i.test(file)
  }

  /** The local files of the objects. Throws NotReadyError, SqlError, or ResourceError while the store is away. */
  named(url: string, position: number): readonly RemoteFile[] {
    const { clock } = this.#options
    const { bucket, key } = this.#placeOf(url, position)
    const now = clock.monotonicMs()
    for (const [known, { readyMs }] of this.#looked) if (readyMs + freshMs < now) this.#looked.delete(known)
    let looked = this.#looked.get(url)
    if (looked === undefined) {
      looked = this.#look(url, bucket, key)
      this.#looked.set(url, looked)
    }
    if (looked.files === null && looked.error === null) throw new NotReadyError(looked.pending)
    if (looked.error !== null) {
      this.#looked.delete(url)
      throw statementError(looked.error, url, position)
    }
    for (const { path } of looked.files ?? []) this.#use(path)
    return looked.files ?? []
  }

  /** The content of an object. Rejects with SqlError or ResourceError. */
  async content(url: string, position: number): Promise<Uint8Array> {
    const { bucket, key } = this.#placeOf(url, position)
    try {
      return (await this.#options.client?.bucket(bucket).get(key)) ?? new Uint8Array(0)
    } catch (error) {
      throw statementError(error, url, position)
    }
  }

  /** Names of the objects whose keys begin with that of the URL, as URLs. Rejects with SqlError or ResourceError. */
  async listed(url: string, position: number): Promise<string[]> {
    const { bucket, key } = this.#placeOf(url, position)
    const found: string[] = []
    try {
      for await (const object of this.#options.client?.bucket(bucket).list(key) ?? []) {
        found.push(`s3://${bucket}/${object.key}`)
      }
      return found
    } catch (error) {
      throw statementError(error, url, position)
    }
  }

  /**
   * Local files with the content of objects that never change, in their order. Rejects with SqlError or ResourceError.
   */
  async constants(
    objects: readonly { readonly url: string; readonly bytes: number }[],
    position: number,
  ): Promise<RemoteFile[]> {
    const places = objects.map(({ url, bytes }) => ({ ...this.#placeOf(url, position), bytes, etag: '' }))
    const found: RemoteFile[] = []
    // A table's files are in one bucket, mostly.
    for (const bucket of new Set(places.map((place) => place.bucket))) {
      try {
        found.push(
          ...(await this.#fetchObjects(
            bucket,
            places.filter((place) => place.bucket === bucket),
          )),
        )
      } catch (error) {
        throw statementError(error, `s3://${bucket}`, position)
      }
    }
    const byName = new Map(found.map((file) => [file.name, file]))
    return places.flatMap(({ bucket, key }) => byName.get(`s3://${bucket}/${key}`) ?? [])
  }

  /** The files are used now, so they stay for a while. */
  used(paths: Iterable<string>): void {
    for (const path of paths) this.#use(path)
  }

  #placeOf(url: string, position: number): { readonly bucket: string; readonly key: string } {
    const { client, buckets } = this.#options
    const [, bucket = '', key = ''] = /^s3:\/\/([^/]*)\/(.+)$/i.exec(url) ?? []
    if (bucket === '' || key === '') throw new SqlError(`expected s3://bucket/key [file=${url}]`, position)
    if (client === null) {
      throw new SqlError('no object storage is configured [setting=object.store.url]', position)
    }
    if (!buckets.includes('*') && !buckets.includes(bucket)) {
      throw new SqlError(
        `reading the bucket is not allowed [bucket=${bucket}, setting=object.store.read.buckets]`,
        position,
      )
    }
    return { bucket, key }
  }

  #look(url: string, bucket: string, key: string): Looked {
    const looked: Looked = {
      files: null,
      error: null,
      readyMs: Number.POSITIVE_INFINITY,
      pending: this.#fetchAll(url, bucket, key)
        .then(
          (files) => {
            looked.files = files
          },
          (error: unknown) => {
            looked.error = error instanceof Error ? error : new Error(String(error))
          },
        )
        .finally(() => {
          looked.readyMs = this.#options.clock.monotonicMs()
        }),
    }
    return looked
  }

  async #fetchAll(url: string, bucket: string, key: string): Promise<RemoteFile[]> {
    const { client } = this.#options
    if (client === null) return []
    const objects = await objectsNamed(client.bucket(bucket), key)
    if (objects.length === 0) throw new SqlError(`no object matches the name [file=${url}]`, 0)
    return this.#fetchObjects(bucket, objects)
  }

  async #fetchObjects(bucket: string, objects: readonly RemoteObject[]): Promise<RemoteFile[]> {
    const { client, directory, bytesMax } = this.#options
    if (client === null) return []
    const store = client.bucket(bucket)
    const bytes = objects.reduce((sum, object) => sum + object.bytes, 0)
    if (bytes > bytesMax) {
      throw new ResourceError(
        `the objects are larger than their cache [bytes=${bytes}, setting=object.store.cache.size]`,
      )
    }
    mkdirSync(directory, { recursive: true })
    const files = objects.map((object) => {
      const id = createHash('sha256').update(`${bucket}/${object.key}\0${object.etag}\0${object.bytes}`).digest('hex')
      return { ...object, name: `s3://${bucket}/${object.key}`, path: join(directory, `${id}.parquet`) }
    })
    let next = 0
    const fetchSome = async (): Promise<void> => {
      for (let file = files[next++]; file !== undefined; file = files[next++]) await this.#fetch(store, file)
    }
    for (const { path } of files) this.#awaited.set(path, (this.#awaited.get(path) ?? 0) + 1)
    try {
      const settled = await Promise.allSettled(Array.from({ length: fetchesAtOnce }, fetchSome))
      for (const outcome of settled) if (outcome.status === 'rejected') throw outcome.reason
      for (const { path } of files) this.#use(path)
    } finally {
      for (const { path } of files) this.#release(path)
    }
    return files.map(({ name, path }) => ({ name, path }))
  }

  #release(path: string): void {
    const requests = (this.#awaited.get(path) ?? 1) - 1
    if (requests === 0) this.#awaited.delete(path)
    else this.#awaited.set(path, requests)
  }

  async #fetch(store: StoreClient, file: { readonly key: string; readonly path: string; readonly bytes: number }) {
    const { key, path, bytes } = file
    if (this.#cached.has(path)) return this.#use(path)
    const running = this.#fetching.get(path)
    if (running !== undefined) return running
    this.#makeRoom(bytes)
    this.#bytes += bytes
    const fetching = store
      .fetch(key, `${path}.part`)
      .then(() => {
        renameSync(`${path}.part`, path)
        this.#cached.set(path, { bytes, usedMs: this.#options.clock.monotonicMs() })
      })
      .catch((error: unknown) => {
        this.#bytes -= bytes
        rmSync(`${path}.part`, { force: true })
        throw error
      })
      .finally(() => this.#fetching.delete(path))
    this.#fetching.set(path, fetching)
    return fetching
  }

  #use(path: string): void {
    const cached = this.#cached.get(path)
    if (cached === undefined) return
    cached.usedMs = this.#options.clock.monotonicMs()
    this.#cached.delete(path)
    this.#cached.set(path, cached)
  }

  /** Deletes files until there is room for so many bytes more. Throws ResourceError. */
  #makeRoom(more: number): void {
    const { bytesMax, clock } = this.#options
    const largest = bytesMax * excessFactor
    const now = clock.monotonicMs()
    for (const [path, { bytes, usedMs }] of this.#cached) {
      const isOver = this.#bytes + more > (now - usedMs < keptMs ? largest : bytesMax)
      if (!isOver || now - usedMs < plannedMs) break
      if (this.#awaited.has(path)) continue
      rmSync(path, { force: true })
      this.#cached.delete(path)
      this.#bytes -= bytes
    }
    if (this.#bytes + more > largest) {
      throw new ResourceError(
        `the cache of objects is full of what other statements read [bytes=${this.#bytes}, setting=object.store.cache.size]`,
      )
    }
  }
}

/** In the order of their keys. */
async function objectsNamed(store: StoreClient, key: string): Promise<RemoteObject[]> {
  const exact = await store.head(key)
  if (exact !== null || !/[*?[]/.test(key)) return exact === null ? [] : [exact]
  const prefix = key.slice(0, key.search(/[*?[]/))
  const found: RemoteObject[] = []
  for await (const object of store.list(prefix)) {
    if (matchesGlob(object.key, key)) found.push(object)
    if (found.length > filesMax) throw new SqlError(`more than ${filesMax} objects match the name [key=${key}]`, 0)
  }
  return found
}

function statementError(error: unknown, url: string, position: number): Error {
  if (error instanceof SqlError) return new SqlError(error.message, position)
  if (!(error instanceof StoreError)) return error instanceof Error ? error : new Error(String(error))
  const message = `object storage: ${error.message} [file=${url}]`
  return error.kind === 'unavailable' ? new ResourceError(message) : new SqlError(message, position)
}
