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
import { creationOf, formatVersionIn, isSortedIn, needsUpgrade, partitionIn, versionRefused } from './catalog-layout.js'
import { keptManifests, type ManifestPlaces } from './catalog-manifests.js'
import { type CatalogMetadata, type CatalogSnapshot, currentSchemaOf, snapshotOf } from './catalog-metadata.js'
import { CatalogReader, type CatalogStore, type ReadSnapshot } from './catalog-reader.js'
import {
  hasSources,
  noShare,
  type OwnShare,
  requireOwnFiles,
  sharedFields,
  shareIn,
  shareProperty,
} from './catalog-share.js'
import {
  addedManifest,
  describedSnapshot,
  expirations,
  isCommit,
  nextSnapshot,
  numbersOf,
  type PlannedSnapshot,
  summaryOf,
  unchanged,
} from './catalog-snapshot.js'
import type { CommittedTable, LakeChange, SharedSources } from './committed-table.js'
import { formatVersionOf, type LakeColumn } from './lake-columns.js'
import { type DataFile, encodeManifest, entryStatus } from './manifest-files.js'
import { encodeList, type ListedFile, type ListedManifest } from './manifest-lists.js'
import { partitionOfParts } from './partition-spec.js'
import type { CommitResult, RestCatalog } from './rest-catalog.js'
import { advancedSources, type NextOffsets, offsetsIn, type SourceBegin, type TableSources } from './source-offsets.js'

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

  /** Makes format version and columns in the catalog those that the schema needs. */
  async prepare(schema: TableSchema): Promise<void> {
    await this.#upgrade(schema)
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
      const made = await this.#snapshot(metadata, own, { id, change, gone, commit: next.commit, offsets: sources.lake })
      const { map } = this.#match(change.schema, metadata)
      const result = await this.#commit(unchanged(metadata), [
        { action: 'add-snapshot', snapshot: made },
        { action: 'set-snapshot-ref', 'ref-name': 'main', type: 'branch', 'snapshot-id': `${id}` },
        this.#sharing({ ...next, columns: map, sources: sources.own }),
        ...expirations(metadata, this.#options.rootId),
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
    const metadata = loaded ?? (await this.#create(this.#options.schema))
    // Null: another server has created it in between.
    if (metadata === null) await this.#reload()
    else await this.#take(metadata)
    await this.#trust()
  }

  /** Null: there is such a table. */
  async #create(schema: TableSchema): Promise<CatalogMetadata | null> {
    try {
      return await this.#options.catalog.create(this.name, creationOf(schema))
    } catch (error) {
      throw formatVersionOf(schema) === 2 ? error : this.#refused(schema, error)
    }
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

  #refused(schema: TableSchema, reason: unknown): unknown {
    return versionRefused(schema, reason, this.#label)
  }

  /** For messages. */
  get #label(): string {
    return this.#options.catalog.describe(this.name)
  }

  #lost(): StoreError {
    const table = this.#label
    return new StoreError(
      'rejected',
      `the catalog does not have the table any more: SET LAKE OFF, then ON creates it again [table=${table}]`,
    )
  }

  async #take(metadata: CatalogMetadata): Promise<void> {
    const uuid = this.#metadata?.['table-uuid'] ?? metadata['table-uuid']
    if (uuid !== metadata['table-uuid']) {
      const table = this.#label
      throw new StoreError('conflict', `another table has the name in the catalog now [table=${table}]`)
    }
    const share = shareIn(metadata, this.#options.rootId) ?? noShare
    const snapshot = snapshotOf(metadata)
    const current = snapshot === null ? { manifests: [], listed: [] } : await this.#reader.read(snapshot)
    const files = current.manifests.flatMap((manifest) => manifest.files).filter(({ path }) => this.#isOwn(path))
    const rows = files.reduce((sum, file) => sum + file.rows, 0)
    requireOwnFiles(share, { files: files.length, rows }, this.#label)
    this.#offsets = offsetsIn(metadata, hasSources(metadata))
    this.#metadata = metadata
    this.#share = share
    this.#current = current
    this.files.clear()
    for (const file of files) this.files.set(file.path, file)
  }

  /** By an earlier commit of this server, whose response was lost, or by a server with the same root id. */
  #overtaken(): StoreError {
    const table = this.#label
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
    const snapshot = this.#loaded().snapshots?.find((one) => isCommit(one, this.#options.rootId, recorded))
    if (snapshot === undefined) return
    const { manifests } = await this.#reader.read(snapshot)
    const then = new Set(manifests.flatMap(({ files }) => files.map(({ path }) => path)))
    this.#known = new Set(own.filter((path) => then.has(path)))
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
    const { sleep, onConflict } = this.#options
    for (let attempt = 0; attempt < attemptsMax; attempt++) {
      if (await work()) return
      onConflict()
      await sleep(Math.min(delayMsMax, firstDelayMs * 2 ** attempt) * (0.5 + Math.random() / 2))
    }
    const table = this.#label
    throw new StoreError('conflict', `others commit all the time [table=${table}]`)
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

  async #upgrade(schema: TableSchema): Promise<void> {
    await this.#attempt(async () => {
      const metadata = this.#loaded()
      if (!needsUpgrade(schema, metadata)) return true
      // Throws for columns that do not fit, of which the table would gain nothing.
      this.#match(schema, metadata)
      const update = { action: 'upgrade-format-version', 'format-version': formatVersionOf(schema) }
      const result = await this.#commit(unchanged(metadata), [update]).catch((error: unknown) => {
        throw this.#refused(schema, error)
      })
      await this.#settle(result, () => false)
      if (!needsUpgrade(schema, this.#loaded())) return true
      if (result.kind === 'conflict') return false
      throw this.#refused(schema, result.kind === 'unknown' ? result.error : null)
    })
  }

  #sharing(share: OwnShare): object {
    return { action: 'set-properties', updates: shareProperty(this.#options.rootId, share) }
  }

  async #snapshot(
    metadata: CatalogMetadata,
    own: ListedManifest | null,
    planned: PlannedSnapshot,
  ): Promise<CatalogSnapshot> {
    const snapshot = nextSnapshot(metadata, planned.id)
    const added = own === null ? [] : [{ ...own, ...numbersOf(snapshot) }]
    const manifests = [
      ...(await keptManifests(this.#current, snapshot, planned.change.removed, this.#places)),
      ...added,
    ]
    const name = `metadata/snap-${planned.id}-${this.#randomName()}.avro`
    const { bytes, nextRowId } = encodeList(snapshot, manifests)
    await this.#putNew(name, bytes)
    return describedSnapshot(metadata, snapshot, nextRowId, {
      ...{ 'manifest-list': this.uri(name), 'timestamp-ms': this.#options.nowMs() },
      summary: summaryOf(metadata, this.#options.rootId, planned),
    })
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
    const partitionField = partitionIn(schema, metadata, columns)
    const header = { schemaId, fields, partitionField, specId, formatVersion: formatVersionIn(metadata) }
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
