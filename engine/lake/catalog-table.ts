// One Iceberg table in an external REST catalog, to which other servers and programs may commit, too. Data files,
// manifests and manifest lists of this server are in its own folder of the object store; the catalog stores the table's
// metadata.
//
//   iceberg/<root id>/<table id>-<uuid>/data/..., metadata/...     objects of this server
//   property penstock.<root id>                                    what this server has in the table, as JSON
//
// Invariants:
//   1. An object is written before any object that refers to it, and the manifest list before the commit.
//   2. A commit requires that snapshot and schema are still those on which it builds. If two writers commit at once,
//      one of them gets a conflict; it reads what the other has committed, and builds on that. Manifests of others are
//      kept.
//   3. If the response to a commit is lost or unclear, the snapshot's id is looked up in the table; the id is the same
//      in all attempts.
//   4. The numbers of this server's files and rows in the property change in the same commit as the snapshot. So if
//      they differ from the snapshot, another program has replaced files. Then nothing is committed, since the rows
//      might be in that program's files, and adding files again would duplicate them.
//   5. Rows of sources that several servers read, such as Kafka topics, are committed only if they begin where those
//      in the current snapshot end (source-offsets.ts). This is checked after each look at the table.
//   6. The name of a data file tells which rows it contains. That is trusted only if the file is in the snapshot of the
//      commit that this server's own manifest records, as in lake-table.ts.

import { randomInt, randomUUID } from 'node:crypto'
import { bodyOf, StoreError } from '../object-store/object-store.js'
import type { PartDescriptor, TableSchema } from '../storage/schema/schema.js'
import { type MatchedColumns, matchColumns } from './catalog-columns.js'
import { creationOf, isSortedIn, partitionIn, requireVersion2 } from './catalog-layout.js'
import { keptManifests, type ManifestPlaces } from './catalog-manifests.js'
import { type CatalogMetadata, type CatalogSnapshot, currentSchemaOf, snapshotOf } from './catalog-metadata.js'
import { CatalogReader, type CatalogStore, type ReadSnapshot } from './catalog-reader.js'
import { hasSources, noShare, type OwnShare, sharedFields, shareIn, shareProperty } from './catalog-share.js'
import {
  addedManifest,
  commitMember,
  expiredSnapshots,
  numbersOf,
  rootMember,
  totalsOf,
  unchanged,
} from './catalog-snapshot.js'
import { type CommittedTable, countsOf, type LakeChange, operationOf, type SharedSources } from './committed-table.js'
import type { LakeColumn } from './lake-columns.js'
import { type DataFile, encodeManifest, entryStatus } from './manifest-files.js'
import { encodeList, type ListedFile, type ListedManifest, type NewSnapshot } from './manifest-lists.js'
import { partitionOfParts } from './partition-spec.js'
import type { CommitResult, RestCatalog } from './rest-catalog.js'
import {
  advancedSources,
  type NextOffsets,
  nestedStreams,
  offsetsIn,
  type SourceBegin,
  sourcesMember,
  type TableSources,
} from './source-offsets.js'

export interface CatalogTableOptions {
  readonly store: CatalogStore
  readonly catalog: Pick<RestCatalog, 'load' | 'create' | 'commit' | 'rename' | 'describe'>
  readonly rootId: string
  /** Id and uuid of the table. */
  readonly identity: string
  readonly schema: TableSchema
  readonly nowMs: () => number
  readonly sleep: (ms: number) => Promise<void>
  /** Called when a commit begins again because of another writer. */
  readonly onConflict: () => void
  /** A random positive id below 2^48. */
  readonly randomId?: () => number
  readonly randomName?: () => string
}

/** What our manifest records. */
export interface RecordedCommit {
  readonly version: number
  /** Of the table in the catalog. */
  readonly name?: string
}

const attemptsMax = 12
const firstDelayMs = 100
const delayMsMax = 3000

export class CatalogTable implements CommittedTable {
  readonly name: string
  readonly handedOut = null
  readonly files = new Map<string, ListedFile>()
  readonly sources: SharedSources
  readonly #options: CatalogTableOptions
  readonly #reader: CatalogReader
  readonly #recorded: RecordedCommit
  readonly #places: ManifestPlaces
  #metadata: CatalogMetadata | null = null
  #share: OwnShare = noShare
  #current: ReadSnapshot = { manifests: [], listed: [] }
  #offsets: NextOffsets = new Map()
  #known: ReadonlySet<string> = new Set()
  #matched: MatchedColumns | null = null

  private constructor(options: CatalogTableOptions, recorded: RecordedCommit) {
    this.#options = options
    this.#recorded = recorded
    this.name = options.schema.name
    this.#reader = new CatalogReader(options.store, this.#ownRoot())
    this.#places = {
      isOwn: (uri) => this.#isOwn(uri),
      newName: () => `metadata/${this.#randomName()}.avro`,
      uri: (name) => this.uri(name),
      put: (name, bytes) => this.#putNew(name, bytes),
    }
    const state = (): TableSources => this.#sourcesNow()
    this.sources = {
      get state() {
        return state()
      },
      claim: (decide) => this.#claim(decide),
    }
  }

  /** Creates the table if this server has never committed to it. Rejects with StoreError. */
  static async open(options: CatalogTableOptions, recorded: RecordedCommit): Promise<CatalogTable> {
    requireVersion2(options.schema)
    const table = new CatalogTable(options, recorded)
    await table.#open()
    return table
  }

  get version(): number {
    return this.#share.commit
  }

  get location(): string | null {
    return this.#metadata?.location ?? null
  }

  get snapshotId(): bigint | null {
    const snapshot = this.#metadata === null ? null : snapshotOf(this.#metadata)
    return snapshot === null ? null : BigInt(snapshot['snapshot-id'])
  }

  isKnown(path: string): boolean {
    return this.#known.has(path)
  }

  uri(name: string): string {
    return `${this.#ownRoot()}${this.#options.identity}/${name}`
  }

  key(name: string): string {
    const { rootId, identity } = this.#options
    return `iceberg/${rootId}/${identity}/${name}`
  }

  keyOf(uri: string): string {
    const { store } = this.#options
    return uri.slice(store.url.replace(/\/+$/, '').length + 1)
  }

  async namedKeys(): Promise<Set<string>> {
    await this.#reload()
    const keys = new Set<string>()
    const name = (uri: string): boolean => {
      if (!uri.startsWith(this.#ownRoot())) return false
      const isNew = !keys.has(this.keyOf(uri))
      keys.add(this.keyOf(uri))
      return isNew
    }
    for (const snapshot of this.#metadata?.snapshots ?? []) {
      name(snapshot['manifest-list'])
      const { listed, manifests } = await this.#reader.read(snapshot)
      for (const manifest of listed) name(manifest.manifest_path)
      for (const { files } of manifests) for (const { path } of files) name(path)
    }
    return keys
  }

  columns(schema: TableSchema): readonly LakeColumn[] {
    return this.#match(schema, this.#loaded()).columns
  }

  placeOf(schema: TableSchema, parts: readonly PartDescriptor[]): Pick<DataFile, 'partition' | 'isSorted'> {
    const metadata = this.#loaded()
    const columns = this.columns(schema)
    const partition = partitionOfParts(schema, partitionIn(schema, metadata, columns), parts)
    return { partition, isSorted: isSortedIn(schema, metadata, columns) }
  }

  /** Makes the columns in the catalog those that the schema needs. */
  async prepare(schema: TableSchema): Promise<void> {
    requireVersion2(schema)
    await this.#attempt(async () => {
      const metadata = this.#loaded()
      const matched = this.#match(schema, metadata)
      partitionIn(schema, metadata, matched.columns)
      if (matched.fields === null) return true
      const before = currentSchemaOf(metadata)
      const id = Math.max(...metadata.schemas.map((one) => one['schema-id'])) + 1
      const ids = { type: 'assert-last-assigned-field-id', 'last-assigned-field-id': metadata['last-column-id'] }
      const result = await this.#commit(
        [...unchanged(metadata), ids],
        [
          {
            action: 'add-schema',
            schema: { ...before, 'schema-id': id, fields: matched.fields },
            'last-column-id': matched.lastColumnId,
          },
          { action: 'set-current-schema', 'schema-id': -1 },
          this.#sharing({ ...this.#share, table: this.#options.identity, columns: matched.map }),
        ],
      )
      return this.#settle(result, () => false)
    })
  }

  async commit(change: LakeChange): Promise<boolean> {
    if (change.added.length === 0 && change.removed.size === 0) return false
    const { randomId = () => randomInt(1, 2 ** 48 - 1) } = this.#options
    const id = BigInt(randomId())
    const gone = [...this.files.values()].filter(({ path }) => change.removed.has(path))
    const files = [...this.files.values(), ...change.added].filter(({ path }) => !change.removed.has(path))
    const next: Omit<OwnShare, 'columns' | 'sources'> = {
      ...{ table: this.#options.identity, commit: this.#share.commit + 1, files: files.length },
      rows: files.reduce((sum, { rows }) => sum + rows, 0),
    }
    const known = new Set([...this.#known, ...change.added.map(({ path }) => path)])
    let own: ListedManifest | null = null
    await this.#attempt(async () => {
      // Another server may have dropped a field since.
      if (this.#match(change.schema, this.#loaded()).fields !== null) await this.prepare(change.schema)
      const metadata = this.#loaded()
      if (this.#share.commit !== next.commit - 1) throw this.#overtaken()
      const sources = advancedSources(this.sources.state, change.advances ?? [], this.name)
      own ??= await this.#writeAdded(metadata, id, change)
      const made = await this.#snapshot(metadata, { id, change, gone, own, commit: next.commit, offsets: sources.lake })
      const { map } = this.#match(change.schema, metadata)
      const result = await this.#commit(unchanged(metadata), [
        { action: 'add-snapshot', snapshot: made },
        { action: 'set-snapshot-ref', 'ref-name': 'main', type: 'branch', 'snapshot-id': `${id}` },
        this.#sharing({ ...next, columns: map, sources: sources.own }),
        ...expiredSnapshots(metadata, this.#options.rootId).map((old) => ({
          action: 'remove-snapshots',
          'snapshot-ids': [old],
        })),
      ])
      const isThere = ({ snapshots = [] }: CatalogMetadata): boolean =>
        snapshots.some((snapshot) => snapshot['snapshot-id'] === `${id}`)
      return this.#settle(result, isThere)
    })
    this.#known = new Set([...known].filter((path) => this.files.has(path)))
    return true
  }

  #sourcesNow(): TableSources {
    return { lake: this.#offsets, own: this.#share.sources }
  }

  async #claim(decide: (sources: TableSources) => ReadonlyMap<string, SourceBegin>): Promise<void> {
    await this.#reload()
    await this.#attempt(async () => {
      const changes = decide(this.#sourcesNow())
      if (changes.size === 0) return true
      const sources = new Map([...this.#share.sources, ...changes])
      const result = await this.#commit(unchanged(this.#loaded()), [this.#sharing({ ...this.#share, sources })])
      return this.#settle(result, () => false)
    })
  }

  // Loading -----------------------------------------------------------------------------------------------------------

  async #open(): Promise<void> {
    const { catalog } = this.#options
    const { name, version } = this.#recorded
    if (name !== undefined && name !== this.name) await this.#rename(name)
    const loaded = await catalog.load(this.name)
    if (loaded === null && version > 0) throw this.#lost()
    const metadata = loaded ?? (await catalog.create(this.name, creationOf(this.#options.schema)))
    // Null: another server has created it in between.
    if (metadata === null) await this.#reload()
    else await this.#take(metadata)
    await this.#trust()
  }

  /** As the table was renamed here, if no other server has rows in it. */
  async #rename(from: string): Promise<void> {
    const { catalog, rootId } = this.#options
    const metadata = await catalog.load(from)
    if (metadata === null || shareIn(metadata, rootId) === null) return
    if (sharedFields(metadata, rootId).size > 0) {
      throw new StoreError(
        'rejected',
        `other servers commit to the table, so it is not renamed in the catalog [table=${catalog.describe(from)}]`,
      )
    }
    await catalog.rename(from, this.name)
  }

  async #reload(): Promise<void> {
    const metadata = await this.#options.catalog.load(this.name)
    if (metadata === null) throw this.#lost()
    await this.#take(metadata)
  }

  #lost(): StoreError {
    const table = this.#options.catalog.describe(this.name)
    return new StoreError(
      'rejected',
      `the catalog does not have the table any more: SET LAKE OFF, then ON creates it again [table=${table}]`,
    )
  }

  async #take(metadata: CatalogMetadata): Promise<void> {
    const uuid = this.#metadata?.['table-uuid'] ?? metadata['table-uuid']
    if (uuid !== metadata['table-uuid']) {
      const table = this.#options.catalog.describe(this.name)
      throw new StoreError('conflict', `another table has the name in the catalog now [table=${table}]`)
    }
    const share = shareIn(metadata, this.#options.rootId) ?? noShare
    const snapshot = snapshotOf(metadata)
    const current = snapshot === null ? { manifests: [], listed: [] } : await this.#reader.read(snapshot)
    const files = current.manifests.flatMap((manifest) => manifest.files).filter(({ path }) => this.#isOwn(path))
    const rows = files.reduce((sum, file) => sum + file.rows, 0)
    if (files.length !== share.files || rows !== share.rows) throw this.#tampered(share, files.length)
    this.#offsets = offsetsIn(metadata, hasSources(metadata))
    this.#metadata = metadata
    this.#share = share
    this.#current = current
    this.files.clear()
    for (const file of files) this.files.set(file.path, file)
  }

  #tampered(share: OwnShare, files: number): StoreError {
    return new StoreError(
      'conflict',
      `another program has replaced files of this server, whose rows would be in the table twice: ` +
        `roll the table back [table=${this.#options.catalog.describe(this.name)}, files=${files}, expected=${share.files}]`,
    )
  }

  /** By an earlier commit of this server, whose response was lost, or by a server with the same root id. */
  #overtaken(): StoreError {
    const table = this.#options.catalog.describe(this.name)
    return new StoreError('conflict', `another commit of this server was applied meanwhile [table=${table}]`)
  }

  /** Finds the files of which invariant 6 holds. */
  async #trust(): Promise<void> {
    const { identity } = this.#options
    const { table, commit } = this.#share
    this.#known = new Set()
    if (table !== identity) return
    const start = this.uri('')
    const own = [...this.files.keys()].filter((path) => path.startsWith(start))
    const recorded = this.#recorded.version
    if (commit === recorded) {
      this.#known = new Set(own)
      return
    }
    const snapshot = this.#loaded().snapshots?.find((one) => this.#isOwnCommit(one, recorded))
    if (snapshot === undefined) return
    const { manifests } = await this.#reader.read(snapshot)
    const then = new Set(manifests.flatMap(({ files }) => files.map(({ path }) => path)))
    this.#known = new Set(own.filter((path) => then.has(path)))
  }

  #isOwnCommit({ summary }: CatalogSnapshot, commit: number): boolean {
    return summary[commitMember] === `${commit}` && summary[rootMember] === this.#options.rootId
  }

  #isOwn(uri: string): boolean {
    return uri.startsWith(this.#ownRoot())
  }

  #ownRoot(): string {
    const { store, rootId } = this.#options
    return `${store.url.replace(/\/+$/, '')}/iceberg/${rootId}/`
  }

  #loaded(): CatalogMetadata {
    if (this.#metadata === null) throw new Error('an Iceberg table is used before it is loaded')
    return this.#metadata
  }

  #match(schema: TableSchema, metadata: CatalogMetadata): MatchedColumns {
    const { rootId, identity } = this.#options
    const known = this.#share.table === identity ? this.#share.columns : (this.#matched?.map ?? {})
    const matched = matchColumns(schema, metadata, known, sharedFields(metadata, rootId))
    this.#matched = matched
    return matched
  }

  // Committing --------------------------------------------------------------------------------------------------------

  /** Repeats the work until it returns true. */
  async #attempt(work: () => Promise<boolean>): Promise<void> {
    const { sleep, onConflict, catalog } = this.#options
    for (let attempt = 0; attempt < attemptsMax; attempt++) {
      if (await work()) return
      onConflict()
      await sleep(Math.min(delayMsMax, firstDelayMs * 2 ** attempt) * (0.5 + Math.random() / 2))
    }
    throw new StoreError('conflict', `others commit all the time [table=${catalog.describe(this.name)}]`)
  }

  #commit(requirements: readonly object[], updates: readonly object[]): Promise<CommitResult> {
    const uuid = { type: 'assert-table-uuid', uuid: this.#loaded()['table-uuid'] }
    return this.#options.catalog.commit(this.name, [uuid, ...requirements], updates)
  }

  /** Reads what the table is now. Whether the commit is in it; `isThere` says so when its response does not. */
  async #settle(result: CommitResult, isThere: (metadata: CatalogMetadata) => boolean): Promise<boolean> {
    if (result.kind === 'committed') await this.#take(result.metadata)
    else await this.#reload()
    return result.kind === 'committed' || isThere(this.#loaded())
  }

  #sharing(share: OwnShare): object {
    return { action: 'set-properties', updates: shareProperty(this.#options.rootId, share) }
  }

  async #snapshot(
    metadata: CatalogMetadata,
    {
      id,
      change,
      gone,
      own,
      commit,
      offsets,
    }: {
      readonly id: bigint
      readonly change: LakeChange
      readonly gone: readonly ListedFile[]
      readonly own: ListedManifest | null
      readonly commit: number
      readonly offsets: NextOffsets
    },
  ): Promise<CatalogSnapshot> {
    const parent = snapshotOf(metadata)
    const parentId = parent?.['snapshot-id'] ?? null
    const number = (metadata['last-sequence-number'] ?? 0) + 1
    const snapshot: NewSnapshot = {
      ...{ id, parentId: parentId === null ? null : BigInt(parentId), sequenceNumber: BigInt(number) },
    }
    const added = own === null ? [] : [{ ...own, ...numbersOf(snapshot) }]
    const manifests = [...(await keptManifests(this.#current, snapshot, change.removed, this.#places)), ...added]
    const name = `metadata/snap-${id}-${this.#randomName()}.avro`
    await this.#putNew(name, encodeList(snapshot, manifests))
    return {
      'snapshot-id': `${id}`,
      ...(parentId === null ? {} : { 'parent-snapshot-id': parentId }),
      'sequence-number': number,
      'timestamp-ms': Math.max(this.#options.nowMs(), metadata['last-updated-ms'] ?? 0),
      'manifest-list': this.uri(name),
      summary: {
        ...{ operation: operationOf(change), [rootMember]: this.#options.rootId, [commitMember]: `${commit}` },
        ...countsOf('added', 'added-files-size', change.added),
        ...countsOf('deleted', 'removed-files-size', gone),
        ...totalsOf(parent, change.added, gone),
        ...(offsets.size === 0 ? {} : { [sourcesMember]: JSON.stringify(nestedStreams(offsets)) }),
      },
      'schema-id': metadata['current-schema-id'],
    }
  }

  /** The manifest of the added files; its numbers are those of the snapshot that lists it. */
  async #writeAdded(
    metadata: CatalogMetadata,
    id: bigint,
    { added, schema }: LakeChange,
  ): Promise<ListedManifest | null> {
    if (added.length === 0) return null
    const { columns } = this.#match(schema, metadata)
    const { fields, 'schema-id': schemaId } = currentSchemaOf(metadata)
    const specId = metadata['default-spec-id']
    const header = { schemaId, fields, partitionField: partitionIn(schema, metadata, columns), specId }
    const entries = added.map((file) => ({
      ...{ status: entryStatus.added, snapshotId: Number(id), sequenceNumber: null, file },
    }))
    const bytes = encodeManifest(header, entries)
    const name = `metadata/${this.#randomName()}.avro`
    await this.#putNew(name, bytes)
    return addedManifest(this.uri(name), bytes.length, specId, added)
  }

  #randomName(): string {
    return (this.#options.randomName ?? randomUUID)()
  }

  async #putNew(name: string, bytes: Buffer): Promise<void> {
    if ((await this.#options.store.putIfAbsent(this.key(name), bodyOf(bytes))) !== null) return
    throw new StoreError('conflict', `another object has the key [key=${name}]`)
  }
}
