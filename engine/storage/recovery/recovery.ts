// Recovery: builds the writer's state when the server starts. The manifest (the list of all files) says which rows are
// in parts (Parquet files), dictionary files contain the strings of their SYMBOL columns, and the log is replayed for
// all other rows. Afterwards every acknowledged row that is not reported as lost is in memory or in parts, and the log
// accepts new frames (log records). On a full disk log and manifest accept nothing yet, but data can be read and
// dropped. The table of a CREATE TABLE AS that the crash has interrupted is removed.

import { CorruptionError, FileError } from '../../base/errors.js'
import { LineDecoder } from '../../lines/decode.js'
import { budgets } from '../../memory/budgets.js'
import { setMetric } from '../../memory/metrics.js'
import { QwpDecoder } from '../../qwp/decode.js'
import { encodeJson } from '../../wal/frame-rows.js'
import { HighWater } from '../../wal/high-water.js'
import { openWal } from '../../wal/open.js'
import { isFull, Reserve } from '../../wal/reserve.js'
import { frameKinds, type Lsn, type ReplayReport, type Wal } from '../../wal/types.js'
import { partIdsPerFlush } from '../jobs/messages.js'
import { Manifest, type ManifestRecord } from '../manifest/manifest.js'
import { SourcePositions } from '../manifest/source-positions.js'
import {
  type DictionaryFileId,
  dictionaryFilePath,
  type LoadedSymbols,
  readDictionaryFile,
} from '../memtable/dictionary-file.js'
import { DictionaryIndexes } from '../memtable/dictionary-indexes.js'
import type { LoggedChange } from '../schema/logged-change.js'
import { sealedTransactions } from '../schema/materialized.js'
import { OrphanSweep } from '../writer/recovery-orphans.js'
import { newTableDefaults, WriterCatalog } from '../writer/writer-catalog.js'
import { KeyChecks } from '../writer/writer-keys.js'
import { symbolsNamed, writeSymbols } from '../writer/writer-records.js'
import { manifestOptions, type WriterOptions, type WriterState, writerSettings } from '../writer/writer-state.js'
import { symbolReader } from '../writer/writer-symbols.js'
import type { WriterTable } from '../writer/writer-table.js'
import { countLosses } from '../writer/writer-watch.js'
import { foundSymbols, type LoggedSymbols, loggedSymbols } from './lost-symbols.js'
import { Replay } from './replay.js'
import { ReplayFlush } from './replay-flush.js'

/** Generation ids reserved for one start; the next start begins after them. */
const memtableIdsPerStart = 1_000_000_000
/** Share of the memtables' memory that symbols may take when they are loaded from files. */
const loadedShare = 0.4

/** Recovers the database directory. Throws CorruptionError if durable data is unreadable. */
export function recoverWriter(given: WriterOptions): WriterState {
  const indexes = new DictionaryIndexes()
  const options = { ...given, allocator: indexes.over(given.allocator) }
  const { files, directory, log, memory, allocator, kernels } = options
  const settings = { ...writerSettings, ...options.settings }
  for (const name of ['symbols', 'manifest']) files.makeDirectory(`${directory}/${name}`)
  files.syncDirectory(directory)
  const highWater = HighWater.open({ files, directory, log })
  const reserve = new Reserve({ files, directory, send: options.sendLog, fileBytes: options.reserveFileBytes })
  const { manifest, failure } = openManifest(options, highWater)
  const catalog = loadCatalog(options, manifest, indexes)
  const sourcePositions = new SourcePositions(manifest.sourcePositions)
  const flush = new ReplayFlush({ options, manifest, catalog, highWater })
  const tools = { options, catalog, flush, sourcePositions, flushRows: settings.flushRows }
  const replay = new Replay(tools, manifest.ids.generation)
  const { wal, replay: report } = openLog(options, { highWater, manifest, reserve }, (frame) => replay.frame(frame))
  replay.finish()
  const unfinished = takeUnfinished(catalog)
  settleTypes(catalog)
  log('I', 'writer', `recovered [tables=${catalog.byId.size}, frames=${report.frames}, rows=${replay.rows}]`)
  const unnotedLosses = reportLosses(options, report)
  const nextPartId = manifest.ids.part
  const reservedEnd = nextPartId + partIdsPerFlush * 16
  const records: readonly ManifestRecord[] = [
    { kind: 'ids', part: reservedEnd, generation: manifest.ids.generation + memtableIdsPerStart },
    { kind: 'trimmed', lsn: report.startLsn },
    ...truncations(manifest, replay),
    ...drops(manifest, catalog),
  ]
  const isCommitted = failure === null && commitUnlessFull(options, manifest, records)
  // On a full disk, part ids are reserved later, when there is space for parts.
  const partIdsEnd = isCommitted ? reservedEnd : nextPartId
  // Parts that were registered by imports have transactions without log frames; rows that precede DEDUP, or those of
  // sealed buckets, may be gone.
  for (const table of catalog.byId.values()) {
    const known = [...table.parts, ...(table.schema.detached ?? [])].map(({ maxTxn }) => maxTxn)
    const sealed = sealedTransactions(table.schema, (viewId) => catalog.byId.get(viewId)?.schema)
    table.transaction = Math.max(table.transaction, table.schema.dedupAfter ?? 0, ...known, ...sealed)
  }
  highWater.sync()
  // Frames that a full disk keeps from being durable were visible to no one, so nothing depends on them.
  const knownLsn = wal.state === 'poisoned' ? wal.durableLsn : report.endLsn
  const lastEndLsn = logUnfinished(options, wal, unfinished) ?? knownLsn
  const newTables = { ...settings, defaults: newTableDefaults }
  return {
    options,
    settings,
    catalog,
    manifest,
    highWater,
    wal,
    decoders: {
      lines: new LineDecoder({ memory, allocator, kernel: kernels.ilp, catalog, settings: newTables }),
      qwp: new QwpDecoder({ memory, allocator, catalog, settings: newTables }),
    },
    keyChecks: new KeyChecks(options),
    sourcePositions,
    ...noWorkInProgress(),
    nextPartId,
    partIdsEnd,
    nextMemtableId: replay.nextMemtableId,
    lastEndLsn,
    settledLsn: report.endLsn,
    manifestBroken: !isCommitted,
    reserve,
    startRecords: isCommitted ? [] : [(known) => stillTrue(known, records)],
    unnotedLosses,
    orphans: new OrphanSweep(options, catalog.byId, manifest.tables, nextPartId),
  }
}

function noWorkInProgress() {
  return {
    ...{
      pending: [],
      handedOver: 0,
      jobs: new Map(),
      flushed: [],
      dropped: new Map(),
      leaving: [],
      later: [],
      waiters: [],
      waitingHolds: [],
    },
    ...{ pause: null, pin: null, rewriting: new Map(), nextJobId: 1, usesReserve: false },
    ...{ retryAtMs: 0, mergeRetryAtMs: 0 },
    ...{ reportedDelay: { text: '', untilMs: 0 }, whenPaid: [], removals: [], pendingRecords: [] },
  }
}

interface OpenedManifest {
  readonly manifest: Manifest
  /** Set if the manifest accepts no records yet, because the disk is full. */
  readonly failure: FileError | null
}

/** On a full disk the manifest is opened read-only, so that clients can read, and drop data to free space. */
function openManifest(options: WriterOptions, highWater: HighWater): OpenedManifest {
  try {
    return { manifest: Manifest.open(manifestOptions(options, highWater)), failure: null }
  } catch (thrown) {
    if (!(thrown instanceof FileError && isFull(thrown))) throw thrown
    const manifest = Manifest.read(manifestOptions(options, highWater))
    if (manifest === undefined) throw thrown
    options.log('E', 'writer', `the disk is full: the manifest accepts no records now [error=${thrown.message}]`)
    return { manifest, failure: thrown }
  }
}

/** Returns false if the disk is full. */
function commitUnlessFull({ log }: WriterOptions, manifest: Manifest, records: readonly ManifestRecord[]): boolean {
  try {
    manifest.commit(records)
    return true
  } catch (thrown) {
    if (!(thrown instanceof FileError && isFull(thrown))) throw thrown
    log('E', 'writer', `the disk is full: the manifest accepts no records now [error=${thrown.message}]`)
    return false
  }
}

/** Removes tables that a statement was filling when the process ended, because CREATE TABLE AS is atomic. */
function takeUnfinished(catalog: WriterCatalog): readonly WriterTable[] {
  const tables = [...catalog.byId.values()].filter(({ schema }) => schema.unfinished === true)
  for (const table of tables) {
    catalog.remove(table)
    table.freeAll()
  }
  catalog.rebuildNames()
  return tables
}

/** Logs that these tables are dropped, before their names are used again. Returns the end of the last frame. */
function logUnfinished({ log }: WriterOptions, wal: Wal, tables: readonly WriterTable[]): Lsn | undefined {
  let endLsn: Lsn | undefined
  for (const { id, schema } of tables) {
    endLsn = wal.append(frameKinds.ddl, [encodeJson({ kind: 'drop', tableId: id } satisfies LoggedChange)], true)
    log('W', 'writer', `a table whose creation was interrupted was removed [table=${schema.name}]`)
  }
  return endLsn
}

/** Counts lost ranges of the log; returns how many of them have no side file. */
function reportLosses({ files, directory, memory }: WriterOptions, { setAside }: ReplayReport): number {
  const unnoted = setAside.filter(({ reason, sideFile }) => reason !== 'tail' && sideFile === undefined).length
  setMetric(memory, 'logLosses', countLosses(files, directory) + unnoted)
  return unnoted
}

/**
 * Applies a pending SET TYPE. Nothing is written: the next start does the same, unless another statement changed it.
 */
function settleTypes(catalog: WriterCatalog): void {
  for (const table of catalog.byId.values()) {
    const { bypassWalNext, ...schema } = table.schema
    if (bypassWalNext === undefined) continue
    catalog.replaceSchema(table, { ...schema, bypassWal: bypassWalNext })
    table.settle(table.schema)
  }
}

type OnFrame = (frame: Parameters<Replay['frame']>[0]) => void

interface KnownFiles {
  readonly highWater: HighWater
  readonly manifest: Manifest
  readonly reserve: Reserve
}

function openLog(options: WriterOptions, { highWater, manifest, reserve }: KnownFiles, onFrame: OnFrame) {
  const { files, directory, clock, log, sendLog, commitMode, syncIntervalMs, walBytesMax, walSegmentBytes, walLogId } =
    options
  return openWal({
    files,
    directory: `${directory}/wal`,
    clock,
    log,
    send: sendLog,
    expected: manifest.tables.size > 0,
    highWater,
    reserve,
    ...(manifest.trimmedLsn === undefined ? {} : { trimmedLsn: manifest.trimmedLsn }),
    onFrame,
    ...(commitMode === undefined ? {} : { mode: commitMode }),
    ...(syncIntervalMs === undefined ? {} : { syncIntervalMs }),
    ...(walBytesMax === undefined ? {} : { bytesMax: walBytesMax }),
    ...(walSegmentBytes === undefined ? {} : { segmentBytes: walSegmentBytes }),
    ...(walLogId === undefined ? {} : { logId: walLogId }),
  }) satisfies { readonly wal: Wal }
}

function loadCatalog(options: WriterOptions, manifest: Manifest, indexes: DictionaryIndexes): WriterCatalog {
  const { memory, allocator, kernels } = options
  const symbols = { symbols: kernels.ilp, indexes, readSymbols: symbolReader(options) }
  const catalog = new WriterCatalog({ memory, allocator, kernels, ...symbols }, manifest.ids.table)
  const logged = loggedSymbols(options)
  for (const { schema, parts, flushedTxn, dictionaries, lake } of manifest.tables.values()) {
    const table = catalog.add(schema)
    table.lake = lake
    table.parts = parts
    table.restoreMarks(parts)
    for (const { maxTs } of parts) if (maxTs > table.newestTs) table.newestTs = maxTs
    table.flushedTxn = flushedTxn
    table.transaction = flushedTxn
    loadDictionaries(options, table, new Map(dictionaries), logged)
  }
  return catalog
}

/**
 * Loads the symbols that the manifest counts. Later entries of the files may not be durable, so they come from the log.
 */
function loadDictionaries(
  options: WriterOptions,
  table: WriterTable,
  counts: ReadonlyMap<number, number>,
  logged: LoggedSymbols,
): void {
  for (const [columnId, dictionary] of table.dictionaries) {
    const id = { tableId: table.id, columnId }
    const path = dictionaryFilePath(`${options.directory}/symbols`, id)
    const { strings, end } = readSymbols(options, table, { path, id, logged, count: counts.get(columnId) ?? 0 })
    if (end > 0 && !fits(options, strings)) dictionary.initEvicted(strings.length)
    else for (const text of strings) dictionary.append(text)
    // Without a valid record the file is written again.
    table.symbolFiles.set(columnId, { count: end === 0 ? 0 : dictionary.count, end })
    table.loggedSymbols.set(columnId, dictionary.count)
  }
  writeSymbols(options, [table])
  symbolsNamed(table)
}

/** Whether the symbols fit into memory beside rows of the log; if not, they stay in the file until they are needed. */
function fits({ allocator }: WriterOptions, strings: readonly Uint8Array[]): boolean {
  const bytes = strings.reduce((sum, { length }) => sum + length, strings.length * 16)
  return allocator.used(budgets.memtables) + bytes < allocator.limit(budgets.memtables) * loadedShare
}

interface SymbolFile {
  readonly path: string
  readonly id: DictionaryFileId
  readonly count: number
  readonly logged: LoggedSymbols
}

/** Reads the file, or reconstructs a lost one from parts and log. Throws CorruptionError if that is incomplete. */
function readSymbols(
  options: WriterOptions,
  { schema, parts }: WriterTable,
  { path, id, count, logged }: SymbolFile,
): LoadedSymbols {
  try {
    return readDictionaryFile(options.files, path, id, count)
  } catch (thrown) {
    if (!(thrown instanceof CorruptionError) || thrown.isOtherFormat) throw thrown
    const strings = foundSymbols(options, { ...id, count, logged, parts: [...parts, ...(schema.detached ?? [])] })
    if (strings === undefined) throw thrown
    const message = `${thrown.message}: its symbols were found in the data files and the log [table=${schema.name}]`
    options.log('W', 'writer', message)
    return { strings, end: 0 }
  }
}

/** Records for tables that the log drops and the manifest still has. */
function drops(manifest: Manifest, catalog: WriterCatalog): ManifestRecord[] {
  return [...manifest.tables.keys()].filter((id) => !catalog.byId.has(id)).map((tableId) => ({ kind: 'drop', tableId }))
}

/** Of the records of a start, those that still apply to the manifest after it was opened again. */
function stillTrue({ tables, ids }: Manifest, records: readonly ManifestRecord[]): ManifestRecord[] {
  return records.flatMap((record): ManifestRecord[] => {
    if (record.kind === 'ids') return [{ ...record, part: Math.max(ids.part, record.part ?? 0) }]
    if (record.kind === 'drop') return tables.has(record.tableId) ? [record] : []
    if (record.kind !== 'parts') return [record]
    const named = new Set(tables.get(record.tableId)?.parts.map(({ id }) => id))
    return tables.has(record.tableId) ? [{ ...record, removed: record.removed.filter((id) => named.has(id)) }] : []
  })
}

/** Records for tables that were truncated in the log while the manifest still has their parts. */
function truncations(manifest: Manifest, { truncated }: Replay): ManifestRecord[] {
  const records: ManifestRecord[] = []
  for (const [{ id, flushedTxn, dropped }, parts] of truncated) {
    const known = manifest.tables.get(id)
    if (known === undefined || dropped) continue
    records.push({ kind: 'parts', tableId: id, added: [], removed: parts.map((part) => part.id), flushedTxn })
  }
  return records
}
