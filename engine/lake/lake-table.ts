// One Iceberg table in the object store: reads its newest metadata and the data files of its current snapshot, and
// commits new snapshots.
//
//   <prefix>/metadata/v<N>.metadata.json   versions of the metadata, from 1 on without gaps
//   <prefix>/metadata/snap-<id>-<random>.avro, <random>.avro   manifest lists and manifests
//   <prefix>/data/<partition>/<unit>-<random>.parquet          data files (lake-units.ts)
//
// Invariants:
//   1. An object is written before any object that refers to it: data files, manifests, the manifest list, the
//      metadata. So a commit that is interrupted at any time leaves no snapshot that refers to a missing object.
//   2. A version of the metadata is written only if no object has its key. So of two concurrent writers one wins, and
//      the commit of the other one fails with a conflict.
//   3. The name of a data file tells which rows it contains. That is trusted only if the metadata version that this
//      server's own manifest records refers to the file. Files of later versions are replaced: their commit was
//      interrupted, or the root folder is an older copy, in which the same ids may denote other parts.

import { randomInt, randomUUID } from 'node:crypto'
import type { CatalogTable } from '../api/lake.js'
import { bodyOf, type ObjectStore, StoreError } from '../object-store/object-store.js'
import type { PartDescriptor, TableSchema } from '../storage/schema/schema.js'
import { type CommittedTable, countsOf, decoded, type LakeChange, operationOf } from './committed-table.js'
import { type LakeColumn, lakeColumns } from './lake-columns.js'
import {
  type DataFile,
  decodeManifest,
  decodeManifestList,
  encodeManifest,
  encodeManifestList,
  entryStatus,
  inherited,
  type ManifestEntry,
  type ManifestFile,
  withRowIds,
} from './manifest-files.js'
import { partitionFieldOf, partitionOfParts } from './partition-spec.js'
import {
  asNext,
  currentSchema,
  currentSnapshot,
  firstMetadata,
  partitionOf,
  type Snapshot,
  type TableMetadata,
  withSchema,
  withSnapshot,
} from './table-metadata.js'

type LakeStore = Pick<ObjectStore, 'url' | 'get' | 'list' | 'putIfAbsent'>

export interface LakeTableOptions {
  readonly store: LakeStore
  /** Key below which the table's objects are. */
  readonly prefix: string
  readonly uuid: string
  /** The table that readers get until this one has metadata. */
  readonly replaced?: LakeTable
  readonly nowMs: () => number
  /** A random positive id below 2^48. */
  readonly randomId?: () => number
  readonly randomName?: () => string
}

interface Manifest {
  readonly listed: ManifestFile
  /** Without those of deleted files. */
  readonly live: readonly ManifestEntry[]
}

/** More manifests than this are joined into one. */
const manifestsMax = 24
/** Those with more files are left as they are. */
const joinedFilesMax = 4000

export class LakeTable implements CommittedTable {
  readonly name = null
  readonly sources = null
  /** Of the newest metadata; 0: there is none. */
  version = 0
  metadata: TableMetadata | null = null
  /** Files by path. */
  readonly files = new Map<string, DataFile>()
  readonly #options: LakeTableOptions
  #manifests: readonly Manifest[] = []
  /** Paths of files of which invariant 3 holds. */
  #known: ReadonlySet<string> = new Set()

  private constructor(options: LakeTableOptions) {
    this.#options = options
  }

  /** `recorded`: the version that our manifest records; 0: none. Rejects with StoreError. */
  static async open(options: LakeTableOptions, recorded: number): Promise<LakeTable> {
    const table = new LakeTable(options)
    await table.#load(recorded)
    return table
  }

  get location(): string | null {
    return this.metadata?.location ?? this.#options.replaced?.location ?? null
  }

  get handedOut(): CatalogTable | null {
    if (this.metadata === null) return this.#options.replaced?.handedOut ?? null
    return { metadataLocation: this.#metadataUri, metadata: this.metadata }
  }

  get snapshotId(): bigint | null {
    const id = this.metadata?.['current-snapshot-id'] ?? -1
    return id < 0 ? null : BigInt(id)
  }

  /** The columns follow from the schema, and change with the next commit. */
  async prepare(): Promise<void> {}

  columns(schema: TableSchema): LakeColumn[] {
    return lakeColumns(schema)
  }

  placeOf(schema: TableSchema, parts: readonly PartDescriptor[]): Pick<DataFile, 'partition' | 'isSorted'> {
    return { partition: partitionOfParts(schema, partitionFieldOf(schema), parts), isSorted: schema.timestampId >= 0 }
  }

  isKnown(path: string): boolean {
    return this.#known.has(path)
  }

  /** URI of an object of the table. */
  uri(name: string): string {
    const { store, prefix } = this.#options
    return `${store.url.replace(/\/+$/, '')}/${prefix}/${name}`
  }

  /** Key of an object of the table, as the store knows it. */
  key(name: string): string {
    return `${this.#options.prefix}/${name}`
  }

  /** The key of an object with this URI. */
  keyOf(uri: string): string {
    return this.key(this.#nameOf(uri))
  }

  /** Keys of all objects that the newest metadata names, and of those that they name. Rejects with StoreError. */
  async namedKeys(): Promise<Set<string>> {
    const { metadata } = this
    if (metadata === null) return (await this.#options.replaced?.namedKeys()) ?? new Set()
    const keys = new Set<string>()
    const versions = [this.#metadataUri, ...metadata['metadata-log'].map((entry) => entry['metadata-file'])]
    for (const uri of versions) keys.add(this.keyOf(uri))
    for (const snapshot of metadata.snapshots) {
      keys.add(this.keyOf(snapshot['manifest-list']))
      for (const listed of await this.#listOf(snapshot)) {
        if (keys.has(this.keyOf(listed.path))) continue
        keys.add(this.keyOf(listed.path))
        for (const { file } of await this.#liveEntries(metadata, listed)) keys.add(this.keyOf(file.path))
      }
    }
    return keys
  }

  get #metadataUri(): string {
    return this.uri(metadataName(this.version))
  }

  /** Writes the next version; returns whether there was anything to change. Rejects with StoreError. */
  async commit(change: LakeChange): Promise<boolean> {
    const { nowMs, uuid } = this.#options
    const before = this.metadata
    const base =
      before ?? firstMetadata(change.schema, { uuid, location: this.uri('').replace(/\/$/, ''), nowMs: nowMs() })
    const shaped = withSchema(base, change.schema)
    const isSame = change.added.length === 0 && change.removed.size === 0
    if (isSame && shaped === before) return false
    const made = isSame ? null : await this.#snapshot(shaped, change)
    const whole = made === null ? shaped : withSnapshot(shaped, made.snapshot)
    const next = before === null ? whole : asNext(whole, this.#metadataUri, nowMs())
    const version = this.version + 1
    const written = await this.#put(metadataName(version), Buffer.from(JSON.stringify(next)))
    if (!written)
      throw new StoreError('conflict', `another server has committed to the table [location=${base.location}]`)
    this.version = version
    this.metadata = next
    if (made !== null) this.#take(made.manifests, new Set([...this.#known, ...change.added.map(({ path }) => path)]))
    return true
  }

  // Reading -----------------------------------------------------------------------------------------------------------

  async #load(recorded: number): Promise<void> {
    const { store, uuid } = this.#options
    for await (const { key } of store.list(this.key('metadata/'))) {
      const version = Number(/\/v(\d+)\.metadata\.json$/.exec(key)?.[1] ?? 0)
      if (version > this.version) this.version = version
    }
    if (this.version === 0) return
    const metadata = await this.#metadata(this.version)
    if (metadata['table-uuid'] !== uuid)
      throw new StoreError('damaged', `the metadata is of another table [location=${metadata.location}]`)
    this.metadata = metadata
    const manifests = await this.#manifestsOf(metadata)
    const known = recorded === this.version ? manifests : await this.#knownManifests(recorded)
    this.#take(manifests, pathsOf(known))
  }

  async #metadata(version: number): Promise<TableMetadata> {
    const text = Buffer.from(await this.#get(metadataName(version))).toString('utf8')
    try {
      const metadata: TableMetadata = JSON.parse(text)
      return metadata
    } catch (error) {
      throw new StoreError('damaged', `the metadata is damaged [version=${version}]`, { cause: error })
    }
  }

  async #knownManifests(recorded: number): Promise<readonly Manifest[]> {
    if (recorded === 0 || recorded > this.version) return []
    try {
      return await this.#manifestsOf(await this.#metadata(recorded))
    } catch (error) {
      if (error instanceof StoreError && error.kind === 'missing') return []
      throw error
    }
  }

  async #manifestsOf(metadata: TableMetadata): Promise<Manifest[]> {
    const snapshot = currentSnapshot(metadata)
    if (snapshot === null) return []
    const manifests: Manifest[] = []
    for (const listed of await this.#listOf(snapshot)) {
      manifests.push({ listed, live: await this.#liveEntries(metadata, listed) })
    }
    return manifests
  }

  async #listOf(snapshot: Snapshot): Promise<ManifestFile[]> {
    const uri = snapshot['manifest-list']
    const bytes = await this.#get(this.#nameOf(uri))
    return decoded(uri, () => decodeManifestList(bytes))
  }

  async #liveEntries(metadata: TableMetadata, listed: ManifestFile): Promise<ManifestEntry[]> {
    const bytes = await this.#get(this.#nameOf(listed.path))
    const entries = decoded(listed.path, () => decodeManifest(partitionOf(metadata), listed, bytes))
    return entries.filter(({ status }) => status !== entryStatus.deleted)
  }

  #take(manifests: readonly Manifest[], known: ReadonlySet<string>): void {
    this.#manifests = manifests
    this.files.clear()
    for (const { live } of manifests) for (const { file } of live) this.files.set(file.path, file)
    this.#known = new Set([...known].filter((path) => this.files.has(path)))
  }

  // Writing -----------------------------------------------------------------------------------------------------------

  async #snapshot(
    metadata: TableMetadata,
    change: LakeChange,
  ): Promise<{ readonly snapshot: Snapshot; readonly manifests: readonly Manifest[] }> {
    const { nowMs, randomId = () => randomInt(1, 2 ** 48 - 1), randomName = randomUUID } = this.#options
    const { added, removed } = change
    const parent = currentSnapshot(metadata)
    const id = randomId()
    const sequenceNumber = metadata['last-sequence-number'] + 1
    const own: ManifestEntry[] = added.map((file) => ({
      ...{ status: entryStatus.added, snapshotId: id, sequenceNumber: null, file },
    }))
    const kept = await this.#keptManifests(metadata, { id, sequenceNumber }, removed)
    const manifests = [...kept]
    if (own.length > 0) manifests.push(await this.#writeManifest(metadata, { id, sequenceNumber }, own))
    const firstRowId = metadata['next-row-id']
    const listed = manifests.map((manifest) => manifest.listed)
    const given = firstRowId === undefined ? null : withRowIds(listed, firstRowId)
    const list = encodeManifestList(
      {
        ...{ id, parentId: parent?.['snapshot-id'] ?? null, sequenceNumber },
        ...(firstRowId === undefined ? {} : { firstRowId }),
      },
      given?.manifests ?? listed,
    )
    const name = `metadata/snap-${id}-${randomName()}.avro`
    await this.#putNew(name, list)
    const snapshot: Snapshot = {
      'snapshot-id': id,
      ...(parent === null ? {} : { 'parent-snapshot-id': parent['snapshot-id'] }),
      'sequence-number': sequenceNumber,
      'timestamp-ms': Math.max(nowMs(), metadata['last-updated-ms']),
      'manifest-list': this.uri(name),
      summary: this.#summary(change),
      'schema-id': currentSchema(metadata)['schema-id'],
      ...(firstRowId === undefined || given === null
        ? {}
        : { 'first-row-id': firstRowId, 'added-rows': given.nextRowId - firstRowId }),
    }
    const numbered = given?.manifests.map((one, index) => ({
      listed: one,
      live: inherited(manifests[index]?.live ?? [], one),
    }))
    return { snapshot, manifests: numbered ?? manifests }
  }

  /** The manifests without the removed files; many small ones are joined. */
  async #keptManifests(
    metadata: TableMetadata,
    snapshot: NewSnapshot,
    removed: ReadonlySet<string>,
  ): Promise<Manifest[]> {
    const touched = ({ live }: Manifest): boolean => live.some(({ file }) => removed.has(file.path))
    const present = this.#manifests.filter(({ live }) => live.length > 0)
    const isMany = present.length >= manifestsMax
    const rewritten = present.filter((one) => touched(one) || (isMany && one.live.length < joinedFilesMax))
    const kept = present.filter((one) => !rewritten.includes(one))
    if (rewritten.length === 0) return kept
    const entries = rewritten
      .flatMap(({ live }) => live)
      .map((entry): ManifestEntry => {
        const isRemoved = removed.has(entry.file.path)
        if (!isRemoved) return { ...entry, status: entryStatus.existing }
        return { ...entry, status: entryStatus.deleted, snapshotId: snapshot.id }
      })
    return [...kept, await this.#writeManifest(metadata, snapshot, entries)]
  }

  async #writeManifest(
    metadata: TableMetadata,
    { id, sequenceNumber }: NewSnapshot,
    entries: readonly ManifestEntry[],
  ): Promise<Manifest> {
    const { randomName = randomUUID } = this.#options
    const { fields, 'schema-id': schemaId } = currentSchema(metadata)
    const formatVersion = metadata['format-version']
    const bytes = encodeManifest({ schemaId, fields, partitionField: partitionOf(metadata), formatVersion }, entries)
    const name = `metadata/${randomName()}.avro`
    await this.#putNew(name, bytes)
    const count = (value: (entry: ManifestEntry) => number): [number, number, number] => {
      const sums: [number, number, number] = [0, 0, 0]
      for (const entry of entries) sums[entry.status] += value(entry)
      return sums
    }
    const partitions = entries.flatMap(({ file }) => file.partition ?? [])
    const live = entries.filter(({ status }) => status !== entryStatus.deleted)
    const listed: ManifestFile = {
      path: this.uri(name),
      bytes: bytes.length,
      sequenceNumber,
      minSequenceNumber: live.reduce(
        (least, entry) => Math.min(least, entry.sequenceNumber ?? sequenceNumber),
        sequenceNumber,
      ),
      snapshotId: id,
      files: count(() => 1),
      rows: count(({ file }) => file.rows),
      partitions: partitions.length === 0 ? null : [minimum(partitions), -minimum(partitions.map((value) => -value))],
    }
    return { listed, live: inherited(live, listed) }
  }

  #summary(change: LakeChange): Snapshot['summary'] {
    const { added, removed } = change
    const gone = [...this.files.values()].filter(({ path }) => removed.has(path))
    const kept = [...this.files.values()].filter(({ path }) => !removed.has(path))
    return {
      operation: operationOf(change),
      ...countsOf('added', 'added-files-size', added),
      ...countsOf('deleted', 'removed-files-size', gone),
      ...countsOf('total', 'total-files-size', [...kept, ...added]),
      'total-delete-files': '0',
      'total-position-deletes': '0',
      'total-equality-deletes': '0',
    }
  }

  // Objects -----------------------------------------------------------------------------------------------------------

  #nameOf(uri: string): string {
    const root = this.uri('')
    if (!uri.startsWith(root)) throw new StoreError('damaged', `an object of another place is named [uri=${uri}]`)
    return uri.slice(root.length)
  }

  #get(name: string): Promise<Uint8Array> {
    return this.#options.store.get(this.key(name))
  }

  async #put(name: string, bytes: Buffer): Promise<boolean> {
    return (await this.#options.store.putIfAbsent(this.key(name), bodyOf(bytes))) !== null
  }

  async #putNew(name: string, bytes: Buffer): Promise<void> {
    if (!(await this.#put(name, bytes))) throw new StoreError('conflict', `another object has the key [key=${name}]`)
  }
}

interface NewSnapshot {
  readonly id: number
  readonly sequenceNumber: number
}

function metadataName(version: number): string {
  return `metadata/v${version}.metadata.json`
}

function pathsOf(manifests: readonly Manifest[]): Set<string> {
  return new Set(manifests.flatMap(({ live }) => live.map(({ file }) => file.path)))
}

function minimum(values: readonly number[]): number {
  return values.reduce((least, value) => Math.min(least, value), Number.POSITIVE_INFINITY)
}
