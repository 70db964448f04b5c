// Reads the manifest list and the data manifests of a snapshot of an Iceberg table in an external catalog, to which
// other programs may commit as well. Returns the manifests that list files of this server. Manifests never change, so
// those that were read are cached.

import { type ObjectStore, StoreError } from '../object-store/object-store.js'
import type { CatalogSnapshot } from './catalog-metadata.js'
import { decoded } from './committed-table.js'
import {
  decodeEntries,
  decodeList,
  filesOf,
  type ListedFile,
  type ListedManifest,
  type Manifest,
} from './manifest-lists.js'

export interface CatalogStore extends Pick<ObjectStore, 'url' | 'get' | 'putIfAbsent'> {
  /** Another bucket of the same service. */
  bucket(name: string): Pick<ObjectStore, 'get'>
}

export interface ReadManifest {
  readonly manifest: Manifest
  /** All of them, those of others too. */
  readonly files: readonly ListedFile[]
}

export interface ReadSnapshot {
  readonly listed: readonly ListedManifest[]
  /** Those with data files of this server. */
  readonly manifests: readonly ReadManifest[]
}

const manifestsMax = 2000

export class CatalogReader {
  readonly #store: CatalogStore
  readonly #root: string
  /** By URI, the oldest first; null: without files of this server. */
  readonly #read = new Map<string, ReadManifest | null>()

  /** `root`: the URI below which the files of this server are. */
  constructor(store: CatalogStore, root: string) {
    this.#store = store
    this.#root = root
  }

  /** Rejects with StoreError. */
  async read(snapshot: CatalogSnapshot): Promise<ReadSnapshot> {
    const uri = snapshot['manifest-list']
    const bytes = await this.#get(uri)
    const listed = decoded(uri, () => decodeList(bytes))
    const manifests: ReadManifest[] = []
    for (const manifest of listed) {
      // Files of deletes are of others.
      const read = manifest.content === 0 ? await this.#manifest(manifest) : null
      if (read !== null) manifests.push(read)
    }
    return { listed, manifests }
  }

  async #manifest(listed: ListedManifest): Promise<ReadManifest | null> {
    const uri = listed.manifest_path
    const known = this.#read.get(uri)
    // The first snapshot of format version 3 gives ids to the rows of older manifests.
    if (known !== undefined) return known === null ? null : { ...known, manifest: { ...known.manifest, listed } }
    const bytes = await this.#get(uri)
    const manifest = decoded(uri, () => decodeEntries(listed, bytes))
    const files = filesOf(manifest)
    const read = files.some(({ path }) => path.startsWith(this.#root)) ? { manifest, files } : null
    if (this.#read.size >= manifestsMax) for (const [oldest] of this.#read) if (this.#read.delete(oldest)) break
    this.#read.set(uri, read)
    return read
  }

  #get(uri: string): Promise<Uint8Array> {
    const { url } = this.#store
    const base = `${url.replace(/\/+$/, '')}/`
    const plain = uri.replace(/^s3[an]:/, 's3:').replace(/^file:\/+/, 'file:///')
    if (plain.startsWith(base)) return this.#store.get(plain.slice(base.length))
    const [, bucket, key] = /^s3:\/\/([^/]+)\/(.+)$/.exec(plain) ?? []
    if (bucket !== undefined && key !== undefined && url.startsWith('s3:')) return this.#store.bucket(bucket).get(key)
    throw new StoreError('rejected', `the table has objects outside of the object store [uri=${uri}, store=${url}]`)
  }
}
