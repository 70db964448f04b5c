// Finds and fetches the files of Iceberg tables that other programs wrote, for the SQL function iceberg(). Its argument
// is `s3://bucket/table/metadata/x.metadata.json`, such a file in the import or export directory, or the table's
// folder. The metadata lists manifests, which list data files; only files that may have rows for a query's conditions
// are fetched.
//
// Planning does not wait for files (see remote-files.ts): if some are missing, they are requested, NotReadyError is
// thrown, and the engine plans the statement again when they are there.
//
// All names in the metadata are checked like those in a statement: an object must be in a readable bucket, a file
// inside of the directories of COPY or the folder of the store. Metadata in the object store cannot name local files. If the table was copied to
// another folder, names below its former location are taken as names below this folder.

import { readFile } from 'node:fs/promises'
import { basename } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { NotReadyError, SqlError } from '../engine/base/errors.js'
import {
  type ColumnCondition,
  type DeleteSource,
  type ForeignDataFile,
  type ForeignMetadata,
  type ForeignTable,
  ForeignTableError,
  loadForeignTables,
  parseForeignMetadata,
  type TableDeletes,
  type TableFiles,
  type TableReader,
} from '../engine/engine.js'
import { existingFile, fileNamesIn, type ReadDirectories } from './copy-paths.js'
import { RemoteFiles } from './remote-files.js'

export interface IcebergTablesOptions {
  readonly directories: ReadDirectories
  /** Null: no object storage. */
  readonly remote: RemoteFiles | null
  readonly clock: { monotonicMs(): number }
}

interface Opened {
  readonly metadata: ForeignMetadata
  /** URL or name of the folder of the table, without a slash at its end. */
  readonly folder: string
}

/** Something that is fetched once for all statements that wait for it. */
interface Pending<Value> {
  value: Value | null
  error: Error | null
  readonly ready: Promise<void>
  readyMs: number
}

/** For how long what was found counts: a statement is planned again, and described and executed. */
const freshMs = 3000
/** Manifests that are kept decoded; they never change. */
const manifestsMax = 256

export class IcebergTables {
  readonly #options: IcebergTablesOptions
  readonly #opened = new Map<string, Pending<Opened>>()
  readonly #found = new Map<string, Pending<TableFiles>>()
  /** Decoded manifests by URI, least recently used first. */
  readonly #manifests = new Map<string, Promise<readonly ForeignDataFile[]>>()

  constructor(options: IcebergTablesOptions) {
    this.#options = options
  }

  /** Throws NotReadyError, SqlError, or ResourceError while the store is away. */
  named(name: string, position: number): ForeignTable {
    const opened = this.#ready(this.#opened, name, position, () => this.#open(name, position))
    const { fields, leftOut, snapshot } = opened.metadata
    return {
      leftOut,
      columns: fields.map(({ id, name: column, type, initial, paths, shape }) => ({
        ...{ name: column, type },
        field: { id, initial, paths, shape },
      })),
      rows: snapshot?.rows ?? 0,
      find: (conditions) => {
        const key = `${name}\0${snapshot?.id}\0${JSON.stringify(conditions, replacer)}`
        const found = this.#ready(this.#found, key, position, () => this.#find(opened, conditions, position))
        const placed = new PlacedLists(position)
        const sources = found.files.map(({ name: file, path, data }) => {
          const [positions, equality] = [placed.of(data.positions), placed.of(data.equality)]
          return { name: file, path, position, data: { ...data, positions, equality } }
        })
        this.#options.remote?.used([...sources.map(({ path }) => path), ...placed.paths()])
        return { files: sources, rows: found.rows }
      },
    }
  }

  #ready<Value>(known: Map<string, Pending<Value>>, key: string, position: number, start: () => Promise<Value>): Value {
    const { clock } = this.#options
    const now = clock.monotonicMs()
    for (const [old, { readyMs }] of known) if (readyMs + freshMs < now) known.delete(old)
    let pending = known.get(key)
    if (pending === undefined) {
      pending = pendingOf(start(), clock)
      known.set(key, pending)
    }
    if (pending.error !== null) {
      known.delete(key)
      const { error } = pending
      throw error instanceof SqlError ? new SqlError(error.message, position) : error
    }
    if (pending.value === null) throw new NotReadyError(pending.ready)
    return pending.value
  }

  // Metadata ----------------------------------------------------------------------------------------------------------

  async #open(name: string, position: number): Promise<Opened> {
    const given = plainUri(name)
    const uri = /\.json(\.gz)?$/i.test(given) ? given : await this.#newest(given.replace(/\/+$/, ''), position)
    const bytes = await this.#content(uri, position)
    try {
      const text = Buffer.from(/\.gz(\.|$)/i.test(basename(uri)) ? gunzipSync(bytes) : bytes).toString('utf8')
      const metadata = parseForeignMetadata(text)
      const folder = uri.replace(/\/?[^/]*$/, '')
      const isUsual = basename(folder) === 'metadata'
      return { metadata, folder: isUsual ? folder.replace(/\/?metadata$/, '') : plainUri(metadata.location) }
    } catch (error) {
      throw tableError(error, uri, position)
    }
  }

  /** The metadata of a table that its folder names, or else its newest version. */
  async #newest(folder: string, position: number): Promise<string> {
    const metadata = folder === '' ? 'metadata' : `${folder}/metadata`
    const names = await this.#listed(`${metadata}/`, position)
    if (names.includes('version-hint.text')) {
      const hint = Buffer.from(await this.#content(`${metadata}/version-hint.text`, position))
        .toString('utf8')
        .trim()
      const named = [`v${hint}.metadata.json`, `${hint}.metadata.json`, hint].find((one) => names.includes(one))
      if (named !== undefined) return `${metadata}/${named}`
    }
    const versions = names.flatMap((file) => {
      const [, version] = /^v?(\d+)(?:-.*)?(?:\.gz)?\.metadata\.json(?:\.gz)?$/.exec(file) ?? []
      return version === undefined ? [] : [{ file, version: Number(version) }]
    })
    const newest = versions.reduce((best, one) => (one.version >= best.version ? one : best), { file: '', version: -1 })
    if (newest.version >= 0) return `${metadata}/${newest.file}`
    throw new SqlError(`the folder has no metadata of an Iceberg table [table=${folder}]`, position)
  }

  /** Names of the files of a folder, whose name ends in a slash. */
  async #listed(folder: string, position: number): Promise<string[]> {
    if (isRemote(folder)) {
      const urls = await this.#remote(position).listed(folder, position)
      return urls.map((url) => url.slice(folder.length)).filter((name) => !name.includes('/'))
    }
    return fileNamesIn(this.#options.directories, { file: folder, filePosition: position })
  }

  // Files -------------------------------------------------------------------------------------------------------------

  async #find(opened: Opened, conditions: readonly ColumnCondition[], position: number): Promise<TableFiles> {
    const { findTableFiles } = await loadForeignTables()
    try {
      return await findTableFiles(opened.metadata, conditions, this.#reader(opened, position))
    } catch (error) {
      throw tableError(error, opened.metadata.location, position)
    }
  }

  #reader(opened: Opened, position: number): TableReader {
    return {
      content: (uri) => this.#content(resolved(opened, uri), position),
      local: (files) => this.#local(opened, files, position),
      cached: (uri, decode) => {
        const place = resolved(opened, uri)
        // A local folder may be replaced by another table's.
        return isRemote(place) ? this.#cached(place, decode) : decode()
      },
    }
  }

  #cached(uri: string, decode: () => Promise<readonly ForeignDataFile[]>): Promise<readonly ForeignDataFile[]> {
    const known = this.#manifests.get(uri)
    const kept = known ?? decode()
    if (known === undefined) kept.catch(() => this.#manifests.delete(uri))
    this.#manifests.delete(uri)
    this.#manifests.set(uri, kept)
    for (const oldest of this.#manifests.keys()) {
      if (this.#manifests.size <= manifestsMax) break
      this.#manifests.delete(oldest)
    }
    return kept
  }

  /** Local paths of files by their names in the table. */
  async #local(
    opened: Opened,
    files: readonly { readonly path: string; readonly bytes: number }[],
    position: number,
  ): Promise<ReadonlyMap<string, string>> {
    const places = files.map((file) => ({ ...file, uri: resolved(opened, file.path) }))
    const paths = new Map<string, string>()
    for (const { path, uri } of places) if (!isRemote(uri)) paths.set(path, this.#existing(uri, position))
    const remote = places.filter(({ uri }) => isRemote(uri))
    if (remote.length === 0) return paths
    const objects = remote.map(({ uri, bytes }) => ({ url: uri, bytes }))
    const fetched = await this.#remote(position).constants(objects, position)
    for (const [index, { path }] of fetched.entries()) paths.set(remote[index]?.path ?? '', path)
    return paths
  }

  async #content(uri: string, position: number): Promise<Uint8Array> {
    if (isRemote(uri)) return this.#remote(position).content(uri, position)
    return readFile(this.#existing(uri, position))
  }

  #existing(file: string, position: number): string {
    return existingFile(this.#options.directories, { file, filePosition: position })
  }

  #remote(position: number): RemoteFiles {
    if (this.#options.remote !== null) return this.#options.remote
    throw new SqlError('no object storage is configured [setting=object.store.url]', position)
  }
}

/** Lists of files of deletes at a position of the statement; data files share them. */
class PlacedLists {
  readonly #position: number
  readonly #files = new Map<TableDeletes, DeleteSource>()
  readonly #lists = new Map<readonly TableDeletes[], readonly DeleteSource[]>()

  constructor(position: number) {
    this.#position = position
  }

  of(list: readonly TableDeletes[]): readonly DeleteSource[] {
    const known = this.#lists.get(list) ?? list.map((file) => this.#placed(file))
    this.#lists.set(list, known)
    return known
  }

  paths(): string[] {
    return [...this.#files.keys()].map(({ path }) => path)
  }

  #placed(file: TableDeletes): DeleteSource {
    const known = this.#files.get(file) ?? { ...file, position: this.#position }
    this.#files.set(file, known)
    return known
  }
}

function isRemote(uri: string): boolean {
  return RemoteFiles.isRemote(uri)
}

/** Bigints and bytes as texts. */
function replacer(_key: string, value: unknown): unknown {
  return typeof value === 'bigint' ? `${value}n` : value
}

function pendingOf<Value>(started: Promise<Value>, clock: IcebergTablesOptions['clock']): Pending<Value> {
  const pending: Pending<Value> = {
    value: null,
    error: null,
    readyMs: Number.POSITIVE_INFINITY,
    ready: started
      .then(
        (value) => {
          pending.value = value
        },
        (error: unknown) => {
          pending.error = error instanceof Error ? error : new Error(String(error))
        },
      )
      .finally(() => {
        pending.readyMs = clock.monotonicMs()
      }),
  }
  return pending
}

/** One scheme for each kind of place: s3://.., or a path. */
function plainUri(uri: string): string {
  const text = uri.replace(/^s3[an]:\/\//i, 's3://').replace(/^S3:\/\//, 's3://')
  return text.replace(/^file:(\/\/(localhost)?(?=\/))?/i, '')
}

/** Where a file of the table is, whose metadata may have been copied from another place. */
function resolved({ metadata, folder }: Opened, path: string): string {
  const uri = plainUri(path)
  const location = plainUri(metadata.location)
  const moved = uri.startsWith(`${location}/`)
    ? `${folder === '' ? '' : `${folder}/`}${uri.slice(location.length + 1)}`
    : uri
  if (/^[a-z][a-z0-9+.-]*:\/\//i.test(moved) && !isRemote(moved))
    throw new SqlError(`the table names a file that cannot be read here [file=${path}]`, 0)
  if (isRemote(folder) && !isRemote(moved))
    throw new SqlError(`a table in object storage cannot name local files [file=${path}]`, 0)
  return moved
}

/** Other errors say already what failed. */
function tableError(error: unknown, uri: string, position: number): Error {
  if (error instanceof ForeignTableError)
    return new SqlError(`Iceberg table cannot be read: ${error.message} [table=${uri}]`, position)
  return error instanceof Error ? error : new Error(String(error))
}
