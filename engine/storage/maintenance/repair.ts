// `penstock repair`: makes the manifest (the list of all files) and the files of a database directory consistent again,
// when the manifest is older than the data, damaged or lost. The server must be stopped.
//
//   planRepair    reads everything and returns what has to be done; writes nothing
//   applyRepair   moves files that cannot be used to `<root>/orphans`, then writes a manifest that names the others
//
// A part (Parquet file) that the manifest does not know is added to its table if all its checksums are right and its
// rows are not stored elsewhere. They are stored elsewhere if the log still contains them, because the next start
// replays it, or if another part covers the same transactions of the partition (after an unfinished compaction or
// rewrite). The schema of an unknown table comes from the log, or else from the columns of its parts. A part is not
// added if the log contains the DROP of its table, or a later TRUNCATE.
//
// Nothing is deleted: parts, symbol files and manifests that are not used are kept in `orphans` under their old paths.

import { dirname } from 'node:path/posix'
import { crc32 } from 'node:zlib'
import { CorruptionError } from '../../base/errors.js'
import type { Files } from '../../base/files.js'
import { dataType } from '../../types/column-types.js'
import { decodeJson, decodeRows } from '../../wal/frame-rows.js'
import { readMarks } from '../../wal/high-water.js'
import { listSegments, replayWal } from '../../wal/replay.js'
import { frameKinds, type Marks } from '../../wal/types.js'
import { replaceManifest, salvageManifest } from '../manifest/manifest.js'
import { partIdOf, partsIn, tableFolders } from '../manifest/manifest-age.js'
import { manifestPath } from '../manifest/manifest-checkpoint.js'
import { formats, type ManifestState, type ManifestTable } from '../manifest/manifest-format.js'
import { formatOfPart, formatOfSchema } from '../manifest/needed-format.js'
import { hasUsers } from '../manifest/users.js'
import { hasColumnStorage, type PartIndex, readPartIndex } from '../part/part-index.js'
import { descriptorOf } from '../part/part-opened.js'
import { indexOfPart, isSidecar, openPartFile, readRemoteIndex } from '../part/remote-file.js'
import type { LoggedChange } from '../schema/logged-change.js'
import {
  type ColumnSchema,
  finishedSchema,
  localFileOf,
  type PartDescriptor,
  type PartitionUnit,
  sidecarFileOf,
  type TableSchema,
} from '../schema/schema.js'
import { checkPart } from './check.js'
import { readOnly } from './read-only.js'

export interface RepairOptions {
  readonly files: Files
  /** The database directory. */
  readonly directory: string
}

export interface RepairItem {
  /** Path below the database directory. */
  readonly file: string
  readonly table: string
  readonly rows: number
  readonly reason: string
}

export interface RepairPlan {
  /** Parts that are registered with their tables again. */
  readonly adopted: readonly RepairItem[]
  /** Part and symbol files that are moved to `orphans`. */
  readonly orphans: readonly RepairItem[]
  /** Parts that the manifest names but that do not exist; they are removed from the manifest. */
  readonly missing: readonly RepairItem[]
  /** The problem of the manifest; null if there is none. */
  readonly manifest: string | null
  readonly state: ManifestState
  readonly manifestNumber: number
}

/** Upper bound of the memtable ids that lost manifests may have reserved. */
const memtableIdsLost = 1_000_000_000_000

interface Candidate {
  readonly part: PartDescriptor
  readonly tableId: number
}

/** Writes nothing. Throws CorruptionError if a newer version has written the manifest. */
export function planRepair({ files, directory }: RepairOptions): RepairPlan {
  const { state, numbers, trouble } = salvageManifest(files, `${directory}/manifest`)
  const marks = attempt(() => readMarks(files, directory))
  const logged = readLoggedTables(files, directory, marks)
  const [adopted, orphans, missing]: [RepairItem[], RepairItem[], RepairItem[]] = [[], [], []]
  const candidates: Candidate[] = []
  let highestPart = state.ids.part - 1
  for (const folder of tableFolders(files, directory)) {
    const tableId = Number(folder)
    const known = state.tables.get(tableId)
    const named = new Set(
      [...(known?.parts ?? []), ...(known?.schema.detached ?? [])].flatMap((part) => [part.file, sidecarFileOf(part)]),
    )
    for (const file of partsIn(files, directory, folder)) {
      highestPart = Math.max(highestPart, partIdOf(file) || 0)
      if (named.has(file)) continue
      const found = verify(files, directory, tableId, file)
      const reason = typeof found === 'string' ? found : whyNot(found, tableId, known, logged)
      if (typeof found === 'string' || reason !== null) {
        const rows = typeof found === 'string' ? 0 : found.rows
        orphans.push({ file, table: nameOf(state, logged, tableId), rows, reason: reason ?? '' })
      } else candidates.push({ part: found, tableId })
    }
  }
  strikeMissing({ files, directory }, state, missing)
  const retained = withoutOverlaps(state, candidates, orphans, logged)
  for (const { part, tableId } of retained) {
    const table = state.tables.get(tableId) ?? newTable(files, directory, tableId, candidates, state, logged)
    state.tables.set(tableId, adopt(files, directory, table, part))
    adopted.push({ file: part.file, table: table.schema.name, rows: part.rows, reason: 'its checksums are right' })
  }
  for (const file of strangerSymbols(files, directory, state, logged)) {
    orphans.push({ file, table: '', rows: 0, reason: 'symbols of no table' })
  }
  const [first] = files.exists(`${directory}/wal`) ? listSegments(files, `${directory}/wal`, marks?.log.id).extents : []
  state.trimmedLsn = first?.startLsn ?? 0
  state.usersExist = hasUsers(files, directory)
  state.format = Math.max(state.format, formatOfTables({ files, directory }, state, logged, retained))
  const highestTable = Math.max(
    0,
    ...state.tables.keys(),
    ...logged.schemas.keys(),
    ...tableFolders(files, directory).map(Number),
  )
  const { ids } = state
  const known = marks?.manifest ?? { number: 0, bytes: 0 }
  const manifestNumber = Math.max(known.number, ...numbers, 1) + 1
  const end = numbers.at(-1) ?? 0
  const isOlder = end < known.number || (end === known.number && salvagedBytes(files, directory, end) < known.bytes)
  const manifest = trouble ?? (isOlder ? 'it is older than the data' : null)
  if (manifest !== null) {
    state.ids = {
      table: Math.max(ids.table, highestTable + 1),
      part: Math.max(ids.part, highestPart + 1),
      generation: ids.generation + memtableIdsLost,
    }
  }
  return { adopted, orphans, missing, manifest, state, manifestNumber }
}

/** Whether the plan contains anything to do. */
export function needsRepair({ adopted, orphans, missing, manifest }: RepairPlan): boolean {
  return manifest !== null || adopted.length + orphans.length + missing.length > 0
}

/** Moves the orphans, then replaces the manifest. Throws FileError; it can be called again to continue. */
export function applyRepair({ files, directory }: RepairOptions, plan: RepairPlan): void {
  const orphanage = `${dirname(directory)}/orphans`
  for (const { file } of plan.orphans) moveAside(files, `${directory}/${file}`, `${orphanage}/${file}`)
  const folder = `${directory}/manifest`
  const before = files.exists(folder) ? files.list(folder) : []
  const own = manifestPath(folder, plan.manifestNumber)
  for (const name of before) {
    if (`${folder}/${name}` !== own) copyAside(files, `${folder}/${name}`, `${orphanage}/manifest/${name}`)
  }
  replaceManifest(files, folder, plan.state, plan.manifestNumber)
}

function attempt<T>(read: () => T): T | undefined {
  try {
    return read()
  } catch (thrown) {
    if (thrown instanceof CorruptionError && !thrown.isOtherFormat) return undefined
    throw thrown
  }
}

function salvagedBytes(files: Files, directory: string, number: number): number {
  const path = manifestPath(`${directory}/manifest`, number)
  return files.exists(path) ? files.size(path) : 0
}

/** The descriptor of a valid part file, or the reason why it is invalid. */
function verify(files: Files, directory: string, tableId: number, file: string): PartDescriptor | string {
  try {
    const path = `${directory}/${file}`
    const { index, sidecar } = isSidecar(path)
      ? readRemoteIndex(files, path)
      : { index: readPartIndex(files, path), sidecar: null }
    if (index.metadata.partId !== partIdOf(file) || index.metadata.tableId !== tableId) {
      return `it is part ${index.metadata.partId} of table ${index.metadata.tableId}`
    }
    const part =
      sidecar === null
        ? descriptorOf(index, file, files.size(path))
        : {
            ...descriptorOf(index, file.replace(/\.sidecar$/, '.parquet'), sidecar.bytes),
            remote: { key: sidecar.key, checksum: sidecar.checksum, only: true as const },
          }
    return checkPart(files, directory, tableId, part)[0]?.message ?? part
  } catch (thrown) {
    if (thrown instanceof CorruptionError) return thrown.message
    throw thrown
  }
}

/** Why a valid part is not registered; null if it is. */
function whyNot(
  { minTxn, maxTxn }: PartDescriptor,
  tableId: number,
  known: ManifestTable | undefined,
  logged: LoggedTables,
): string | null {
  if (logged.dropped.has(tableId)) return 'its table was dropped'
  const rows = logged.rows.get(tableId)
  if (rows === undefined) return null
  if (maxTxn <= rows.truncatedTxn) return 'its table was truncated'
  const relocated = rows.relocated.some((txn) => txn >= minTxn && txn <= maxTxn)
  if (minTxn > (known?.flushedTxn ?? 0) && (rows.firstTxn <= minTxn || relocated)) return 'its rows are in the log'
  return null
}

/** Removes duplicates, parts with the same transactions of a partition: named parts are kept, else the larger span. */
function withoutOverlaps(
  state: ManifestState,
  candidates: readonly Candidate[],
  orphans: RepairItem[],
  logged: LoggedTables,
): Candidate[] {
  const span = ({ part }: Candidate): number => part.maxTxn - part.minTxn
  const retained: Candidate[] = []
  for (const candidate of [...candidates].sort((x, y) => span(y) - span(x) || y.part.id - x.part.id)) {
    const { part, tableId } = candidate
    const others = retained.filter((other) => other.tableId === tableId).map((other) => other.part)
    const rival = [...(state.tables.get(tableId)?.parts ?? []), ...others].find(
      (other) =>
        other.partition === part.partition &&
        other.minTxn <= part.maxTxn &&
        other.maxTxn >= part.minTxn &&
        memtableOf(other.id) !== memtableOf(part.id),
    )
    if (rival === undefined) retained.push(candidate)
    else {
      const reason = `its transactions are those of ${rival.file}`
      orphans.push({ file: part.file, table: nameOf(state, logged, tableId), rows: part.rows, reason })
    }
  }
  return retained.sort((x, y) => x.part.id - y.part.id)
}

/**
 * The run of part ids that the part's flush reserved. Parts of one flush may share a partition without being
 * duplicates.
 */
function memtableOf(partId: number): number {
  return Math.floor((partId - 1) / partIdsPerRun)
}

const partIdsPerRun = 1_048_576

function strikeMissing({ files, directory }: RepairOptions, state: ManifestState, missing: RepairItem[]): void {
  for (const [tableId, table] of state.tables) {
    const parts = table.parts.map((part) => asOnDisk(files, directory, tableId, part))
    const gone = parts.filter((part) => !files.exists(`${directory}/${localFileOf(part)}`))
    state.tables.set(tableId, { ...table, parts })
    if (gone.length === 0) continue
    for (const { file, rows } of gone) {
      missing.push({ file, table: table.schema.name, rows, reason: 'the manifest names it, the file is gone' })
    }
    state.tables.set(tableId, { ...table, parts: parts.filter((part) => !gone.includes(part)) })
  }
}

/** A part whose local file was dropped after an older manifest was written is still in the object store. */
function asOnDisk(files: Files, directory: string, tableId: number, part: PartDescriptor): PartDescriptor {
  const sidecar = sidecarFileOf(part)
  if (files.exists(`${directory}/${part.file}`) || !files.exists(`${directory}/${sidecar}`)) return part
  const found = verify(files, directory, tableId, sidecar)
  return typeof found === 'string' || found.rows !== part.rows ? part : found
}

function newTable(
  files: Files,
  directory: string,
  tableId: number,
  candidates: readonly Candidate[],
  state: ManifestState,
  logged: LoggedTables,
): ManifestTable {
  const taken = new Set([...state.tables.values()].map(({ schema }) => schema.name.toLowerCase()))
  const own = candidates.filter((candidate) => candidate.tableId === tableId)
  const indexes = own.map(({ part }) => indexOfPart(files, `${directory}/${localFileOf(part)}`))
  const schema = logged.schemas.get(tableId) ?? schemaOfParts(indexes)
  const name = taken.has(schema.name.toLowerCase()) ? `${schema.name}_recovered_${tableId}` : schema.name
  return { schema: { ...schema, name }, parts: [], flushedTxn: 0, dictionaries: [] }
}

function adopt(files: Files, directory: string, table: ManifestTable, part: PartDescriptor): ManifestTable {
  const counts = symbolCountsOf(files, `${directory}/${localFileOf(part)}`)
  const dictionaries = new Map(table.dictionaries)
  for (const [columnId, count] of counts) dictionaries.set(columnId, Math.max(count, dictionaries.get(columnId) ?? 0))
  return {
    schema: table.schema,
    parts: [...table.parts, part].sort((x, y) => x.minTxn - y.minTxn || x.id - y.id),
    flushedTxn: Math.max(table.flushedTxn, part.maxTxn),
    dictionaries: [...dictionaries],
  }
}

/** The format of the manifest that the tables need, those that a start finds in the log included. */
function formatOfTables(
  { files, directory }: RepairOptions,
  { tables }: ManifestState,
  logged: LoggedTables,
  adopted: readonly Candidate[],
): number {
  const known = [...tables.values()]
  const inLog = [...logged.schemas.values()].filter(({ id }) => !logged.dropped.has(id))
  const schemas = [...inLog, ...known.map(({ schema }) => schema)]
  const views = new Set(schemas.flatMap(({ id, materialized }) => (materialized === undefined ? [] : [id])))
  const parts = known.flatMap((table) => [...table.parts, ...(table.schema.detached ?? [])])
  const isDeclared = adopted.some(({ part }) =>
    hasColumnStorage(indexOfPart(files, `${directory}/${localFileOf(part)}`).metadata),
  )
  return Math.max(
    logged.removes ? formats.removedRows : formats.plain,
    isDeclared ? formats.columnStorage : formats.plain,
    ...schemas.map((schema) => formatOfSchema(schema, (id) => views.has(id))),
    ...parts.map(formatOfPart),
  )
}

/** Symbol files of unknown tables, which a start would remove. */
function strangerSymbols(files: Files, directory: string, state: ManifestState, logged: LoggedTables): string[] {
  const folder = `${directory}/symbols`
  if (!files.exists(folder)) return []
  const isKnown = (name: string): boolean => {
    const tableId = Number.parseInt(name, 10)
    return state.tables.has(tableId) || (logged.schemas.has(tableId) && !logged.dropped.has(tableId))
  }
  return files
    .list(folder)
    .filter((name) => !isKnown(name))
    .map((name) => `symbols/${name}`)
}

function nameOf({ tables }: ManifestState, { schemas }: LoggedTables, tableId: number): string {
  return tables.get(tableId)?.schema.name ?? schemas.get(tableId)?.name ?? `table ${tableId}`
}

function moveAside(files: Files, from: string, to: string): void {
  if (!files.exists(from)) return
  files.makeDirectory(dirname(to))
  files.rename(from, to)
  files.syncDirectory(dirname(to))
  files.syncDirectory(dirname(from))
}

function copyAside(files: Files, from: string, to: string): void {
  files.makeDirectory(dirname(to))
  if (files.exists(to)) files.remove(to)
  const [source, copy] = [files.open(from, 'read'), files.open(to, 'create')]
  try {
    const bytes = new Uint8Array(source.size())
    copy.write([bytes.subarray(0, source.read(bytes, 0))], 0)
    copy.sync()
  } finally {
    source.close()
    copy.close()
  }
  files.syncDirectory(dirname(to))
}

// The log as a repair needs it: newest schemas, dropped and truncated tables, and the transactions that a start will
// replay.

interface LoggedRows {
  /** The first transaction whose rows are in the log. */
  firstTxn: number
  /** Transactions at which relocation frames repeated all rows that were not in parts. */
  readonly relocated: number[]
  truncatedTxn: number
}

interface LoggedTables {
  readonly schemas: ReadonlyMap<number, TableSchema>
  readonly dropped: ReadonlySet<number>
  readonly rows: ReadonlyMap<number, LoggedRows>
  /** Whether it contains rows that upserts have removed. */
  readonly removes: boolean
}

function readLoggedTables(files: Files, directory: string, marks: Marks | undefined): LoggedTables {
  const schemas = new Map<number, TableSchema>()
  const dropped = new Set<number>()
  const rows = new Map<number, LoggedRows>()
  const wal = `${directory}/wal`
  let removes = false
  if (!files.exists(wal)) return { schemas, dropped, rows, removes }
  const rowsOf = (tableId: number): LoggedRows => {
    const known = rows.get(tableId) ?? { firstTxn: Number.POSITIVE_INFINITY, relocated: [], truncatedTxn: -1 }
    rows.set(tableId, known)
    return known
  }
  const note = (change: LoggedChange): void => {
    if (change.kind === 'schema') {
      const known = schemas.get(change.schema.id)
      if (known === undefined || known.version < change.schema.version) schemas.set(change.schema.id, change.schema)
    } else if (change.kind === 'drop') dropped.add(change.tableId)
    else if (change.kind === 'truncate') rowsOf(change.tableId).truncatedTxn = change.transaction
    else if (change.kind === 'remove') removes = true
    else {
      const known = schemas.get(change.tableId)
      if (known !== undefined) schemas.set(change.tableId, finishedSchema(known))
    }
  }
  replayWal(
    readOnly(files),
    wal,
    ({ kind, payload }) => {
      if (kind === frameKinds.ddl) note(decodeJson(payload) as LoggedChange)
      if (kind !== frameKinds.rows && kind !== frameKinds.relocation) return
      const { ddl, tables } = decodeRows(payload)
      for (const change of ddl) note(change as LoggedChange)
      for (const { tableId, transaction } of tables) {
        const known = rowsOf(tableId)
        if (kind === frameKinds.relocation) known.relocated.push(transaction)
        else known.firstTxn = Math.min(known.firstTxn, transaction)
      }
    },
    { marks },
  )
  return { schemas, dropped, rows, removes }
}

// Reconstruction of a schema from the columns of parts, for tables that neither manifest nor log knows. DEDUP keys, TTL
// and declarations are lost, and so are columns without values.

const partitionForms: readonly (readonly [PartitionUnit, RegExp])[] = [
  ['HOUR', /^-?\d{4,}-\d\d-\d\dT\d\d$/],
  ['DAY', /^-?\d{4,}-\d\d-\d\d$/],
  ['WEEK', /^-?\d{4,}-W\d\d$/],
  ['MONTH', /^-?\d{4,}-\d\d$/],
  ['YEAR', /^-?\d{4,}$/],
]

/** Based on the newest part; columns that it lacks come from earlier parts. */
function schemaOfParts(parts: readonly PartIndex[]): TableSchema {
  const newest = [...parts].sort((x, y) => y.metadata.schemaVersion - x.metadata.schemaVersion)
  const [first] = newest
  if (first === undefined) throw new CorruptionError('a table without parts has no schema', '', 0)
  const { tableId, table, partition, timestampId, schemaVersion } = first.metadata
  const known = new Map<number, ColumnSchema>()
  for (const { metadata } of newest) {
    for (const { id, name, type } of metadata.columns) {
      if (!known.has(id)) known.set(id, { id, name, type, dropped: false })
    }
  }
  const columns = Array.from(
    { length: Math.max(...known.keys()) + 1 },
    (_, id): ColumnSchema => known.get(id) ?? { id, name: `dropped_${id}`, type: dataType('INT'), dropped: true },
  )
  return {
    ...{ id: tableId, name: table, version: schemaVersion, columns, timestampId },
    partitionBy: partitionForms.find(([, form]) => form.test(partition))?.[0] ?? 'NONE',
    ...{ bypassWal: false, dedupKeys: [], ttl: null, maxUncommittedRows: 500_000, o3MaxLagMicros: 600_000_000 },
    createdMicros: 0,
  }
}

/** Number of symbols of each column that the part depends on. */
function symbolCountsOf(files: Files, path: string): ReadonlyMap<number, number> {
  const counts = new Map<number, number>()
  const file = openPartFile(files, path)
  try {
    for (const { columnId, offset, count, crc } of indexOfPart(files, path).metadata.symbols) {
      const bytes = Buffer.alloc(count * 4)
      if (file.read(bytes, offset) < bytes.length || crc32(bytes) !== crc) {
        throw new CorruptionError('the symbol ids of a part are damaged', path, offset)
      }
      let highest = -1
      for (let at = 0; at < bytes.length; at += 4) highest = Math.max(highest, bytes.readInt32LE(at))
      counts.set(columnId, highest + 1)
    }
  } finally {
    file.close()
  }
  return counts
}
