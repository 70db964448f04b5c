// The shared state of the writer's modules: files, tables, ids, and commits that wait for the log.
//
// A commit waits until the log acknowledges its frame (log record). Then, in this order: its rows become visible (under
// the publish sequence lock, so all tables of a transaction appear together), table versions (immutable lists of files
// and memtables) are published, receipts (outcomes of requests) are sent, and follow-up work runs. Commits are settled
// in order, including those without a frame.
//
// The rows are visible at once, and versions when the main thread receives them. A transaction that needs both at one
// moment (rows of several tables, of which one has a new memtable, or rows beside changes of schemas) is shown by the
// main thread: it receives the numbers of visible rows with the versions, and sets them in one step, which no snapshot
// falls into. Until it has reported that, nothing else is settled.

import { assert } from '../../base/assert.js'
import type { Clock } from '../../base/clock.js'
import type { ErrorRecord } from '../../base/errors.js'
import type { Files } from '../../base/files.js'
import type { Log } from '../../base/log.js'
import type { Kernels } from '../../kernels/load.js'
import type { Allocator } from '../../memory/budgets.js'
import { publishSequenceAddress } from '../../memory/layout.js'
import { addMetric, observeCommit } from '../../memory/metrics.js'
import type { SharedMemory } from '../../memory/shared-memory.js'
import type { HighWater } from '../../wal/high-water.js'
import type { Reserve } from '../../wal/reserve.js'
import type { CommitMode, LogRequest, Lsn, Wal } from '../../wal/types.js'
import { type CompactionPolicy, type chooseCompaction, compactionPolicy } from '../jobs/compaction.js'
import type { FromWriter, Job, JobResult, LineReject, Receipt, RewriteProgram, ToWriter } from '../jobs/messages.js'
import type { Manifest, ManifestOptions, ManifestRecord } from '../manifest/manifest.js'
import type { SourcePositions } from '../manifest/source-positions.js'
import type { Memtable } from '../memtable/memtable.js'
import type { PartAccess } from '../part/part-access.js'
import type { PartDescriptor, TableSchema, TableVersion } from '../schema/schema.js'
import type { OrphanSweep } from './recovery-orphans.js'
import type { RowDecoder } from './row-decoder.js'
import type { WriterCatalog } from './writer-catalog.js'
import type { KeyChecks } from './writer-keys.js'
import type { MemtableEntry, WriterTable } from './writer-table.js'

export interface WriterSettings extends CompactionPolicy {
  /** A memtable is flushed when it has this many rows or bytes, or this age. */
  readonly flushRows: number
  readonly flushBytes: number
  readonly flushAgeMs: number
  /** Smaller memtables are relocated to the head of the log, and not flushed, when the log is too long. */
  readonly relocatedBytesMax: number
  /** Maximum bytes that one step takes from the ring. */
  readonly stepBytes: number
  /** The writer accepts no input while this many bytes of the log wait to be synced. */
  readonly waitingBytesMax: number
  readonly createTables: boolean
  readonly createColumns: boolean
  /** Line protocol: replaces each invalid character of a name; if empty, lines with invalid names are rejected. */
  readonly nameReplacement: string
  /** Limits of QWP messages. */
  readonly rowsPerTableMax: number
  readonly tablesPerConnectionMax: number
  readonly uncommittedRowsMax: number
  readonly symbolBytesMax: number
}

const MIB = 1024 * 1024

export const writerSettings: WriterSettings = {
  ...compactionPolicy,
  flushRows: 1_000_000,
  flushBytes: 256 * MIB,
  flushAgeMs: 600_000,
  relocatedBytesMax: MIB,
  stepBytes: 4 * MIB,
  waitingBytesMax: 64 * MIB,
  createTables: true,
  createColumns: true,
  nameReplacement: '',
  rowsPerTableMax: 1_000_000,
  tablesPerConnectionMax: 10_000,
  uncommittedRowsMax: 1_000_000,
  symbolBytesMax: 256 * MIB,
}

export interface WriterOptions {
  readonly memory: SharedMemory
  readonly allocator: Allocator
  readonly kernels: Pick<Kernels, 'ilp' | 'parquet' | 'rows' | 'sort' | 'foreign'>
  readonly files: Files
  /** The database directory, with wal/, manifest/, symbols/ and the parts. */
  readonly directory: string
  readonly clock: Clock
  readonly log: Log
  readonly post: (message: FromWriter) => void
  readonly sendLog: (request: LogRequest) => void
  readonly commitMode?: CommitMode
  readonly syncIntervalMs?: number
  readonly walBytesMax?: number
  readonly walSegmentBytes?: number
  /** Random by default; tests pass a constant to get the same log bytes for the same seed. */
  readonly walLogId?: Uint8Array
  /** See ManifestOptions.checkpointBytesMin. */
  readonly manifestBytesMin?: number
  /** Size of a file of the space reserve: see wal/reserve.ts. */
  readonly reserveFileBytes?: number
  readonly settings?: Partial<WriterSettings>
  /** Reads parts, to compare rows with stored ones (PRIMARY KEY .. ENFORCED). */
  readonly partAccess?: PartAccess
  /** Chooses parts to compact; default: jobs/merge.ts. */
  readonly chooseCompaction?: typeof chooseCompaction
}

export interface PendingCommit {
  /** Settled when the log has acknowledged this position. */
  readonly endLsn: Lsn
  /** Monotonic time at which the rows were taken, and their number; absent without rows. */
  readonly taken?: { readonly ms: number; readonly rows: number }
  readonly visible: readonly { readonly memtable: Memtable; readonly rows: number }[]
  readonly versions: readonly TableVersion[]
  /** Its rows and versions must become visible at one moment: the main thread shows them. */
  readonly isShownWhole: boolean
  readonly dropped: readonly number[]
  readonly receipts: readonly Receipt[]
  readonly after?: () => void
}

/** A pause of all input, for a change that needs the writer exclusively. */
interface Pause {
  readonly owner: WriterTable
  readonly begin: () => void
  begun: boolean
}

/** A job for a query thread. */
export interface RunningJob {
  readonly job: Job
  readonly table: WriterTable
  /** Set for a flush. */
  readonly entry?: MemtableEntry
}

/** A job that was sent to a query thread. */
export interface PostedJob extends RunningJob {
  readonly postedMs: number
}

/** A memtable whose parts a query thread has written. */
export interface Flushed {
  readonly table: WriterTable
  readonly entry: MemtableEntry
  readonly parts: readonly PartDescriptor[]
}

/** A snapshot that is kept for a backup. */
interface Pin {
  readonly sinceMs: number
  /** Removals of files, deferred until the release. */
  readonly removals: (() => void)[]
  /** Memtables that must be flushed before the snapshot is written; null after that. */
  cut: ReadonlySet<MemtableEntry> | null
}

/** A rewrite in progress. */
export interface Rewriting {
  readonly table: WriterTable
  readonly program: RewriteProgram | null
  /** Schema of the new parts when the job starts. */
  readonly schema: () => TableSchema
  /** Parts that the job reads. */
  readonly parts: () => readonly PartDescriptor[]
  /** Called when the job is done and needs no new symbols. */
  readonly written: (result: JobResult) => void
  readonly failed: (error: ErrorRecord) => void
  /** Changes of the table that wait for the end of the rewrite. */
  readonly waiting: (() => void)[]
}

/** By the format of requests in the ingest ring. */
interface RowDecoders {
  readonly lines: RowDecoder
  readonly qwp: RowDecoder & { forgetConnection(connectionId: number): void }
}

export interface WriterState {
  readonly options: WriterOptions
  readonly settings: WriterSettings
  readonly catalog: WriterCatalog
  /** Replaced when it is opened again after a failed write. */
  manifest: Manifest
  readonly highWater: HighWater
  readonly wal: Wal
  readonly reserve: Reserve
  /** Whether current writes free space, so that the manifest may use a file of the reserve. */
  usesReserve: boolean
  readonly decoders: RowDecoders
  readonly keyChecks: KeyChecks
  /** Stored source positions of streams. */
  readonly sourcePositions: SourcePositions
  readonly pending: PendingCommit[]
  /** Number of the first pending commits that the main thread has been asked to show. */
  handedOver: number
  readonly jobs: Map<number, PostedJob>
  /** Flushes whose parts are durable but not yet in the manifest. */
  readonly flushed: Flushed[]
  /** Dropped tables that may still have readers, by id. */
  readonly dropped: Map<number, WriterTable>
  /** Work to do when no job uses a dropped table any more. */
  readonly leaving: { readonly table: WriterTable; readonly leave: () => void }[]
  /** Work on the catalog that must not run within a partly read request; run before the next input is taken. */
  readonly later: (() => void)[]
  /** While set, the writer takes no input between requests. `begin` is called once. */
  pause: Pause | null
  /** The version that is pinned for a backup; null if none is. */
  pin: Pin | null
  /** Rewrites in progress. */
  readonly rewriting: Map<WriterTable, Rewriting>
  readonly waiters: FlushWaiter[]
  /** Requests to load symbols that wait for memory. */
  readonly waitingHolds: { readonly message: Extract<ToWriter, { kind: 'holdSymbols' }>; readonly untilMs: number }[]
  nextJobId: number
  nextPartId: number
  partIdsEnd: number
  nextMemtableId: number
  /** End of the last appended frame. */
  lastEndLsn: Lsn
  /** Commits up to here are settled. */
  settledLsn: Lsn
  /** After a failed write of the manifest, a failed flush, or a file error of any job: no retry before this time. */
  retryAtMs: number
  /** After a compaction that failed for another reason than its files: none starts before this time. */
  mergeRetryAtMs: number
  /** The last logged error of that kind, and until when it is not logged again. */
  reportedDelay: { readonly text: string; readonly untilMs: number }
  /** Whether a write of the manifest failed, so that it must be opened again. */
  manifestBroken: boolean
  /** Removals of rows by frames. Until such a frame is durable, the log is needed from `retainedLsn` on. */
  removals: { readonly endLsn: Lsn; readonly retainedLsn: Lsn }[]
  /** Debts: records that follow from acknowledged frames, computed when they are written. */
  readonly pendingRecords: ((manifest: Manifest) => ManifestRecord[])[]
  /** Records of the start that a full disk refused; written before any debt. */
  readonly startRecords: ((manifest: Manifest) => ManifestRecord[])[]
  /** Work that waits for the debts to be written: files are removed when the manifest no longer names them. */
  readonly whenPaid: (() => void)[]
  /** Lost ranges of the log without a side file, because the disk refused it. */
  readonly unnotedLosses: number
  /** Leftovers of the last crash, which are removed when the writer is idle. */
  readonly orphans: OrphanSweep
}

/** Calls `done` when all memtables are flushed. One with `refuse` does not wait if flushes are postponed. */
export interface FlushWaiter {
  readonly memtables: Set<MemtableEntry>
  readonly done: () => void
  readonly refuse: ((error: ErrorRecord) => void) | null
  /** Until this time it waits nevertheless. */
  readonly patientUntilMs: number
}

export function manifestOptions(
  { files, directory, log, manifestBytesMin }: WriterOptions,
  highWater: HighWater,
): ManifestOptions {
  const place = { files, directory: `${directory}/manifest`, log, highWater }
  return manifestBytesMin === undefined ? place : { ...place, checkpointBytesMin: manifestBytesMin }
}

export function receiptOf(
  requestId: number,
  outcome: Partial<Omit<Receipt, 'requestId'>> & { readonly rejects?: readonly LineReject[] },
): Receipt {
  return { requestId, rows: 0, rejects: [], rejected: 0, error: null, lsn: 0, existed: false, ...outcome }
}

export function refusal(requestId: number, error: ErrorRecord): Receipt {
  return receiptOf(requestId, { error })
}

/** Adds a commit without a frame: it is settled after everything that was appended before. */
export function enqueue(state: WriterState, commit: Partial<Omit<PendingCommit, 'endLsn'>>): void {
  assert((state.pending.at(-1)?.endLsn ?? 0) <= state.lastEndLsn, 'L1: commits are settled in their order')
  const none = { visible: [], versions: [], isShownWhole: false, dropped: [], receipts: [] }
  state.pending.push({ endLsn: state.lastEndLsn, ...none, ...commit })
}

/** Responds at once to a request that has written nothing. */
export function sendReceiptNow(state: WriterState, receipt: Receipt): void {
  state.options.post({ kind: 'published', versions: [], dropped: [], visible: [], receipts: [receipt] })
}

/** Settles the commits that the log has acknowledged. Returns whether there were any. */
export function settleCommits(state: WriterState): boolean {
  const { pending, wal, options, handedOver } = state
  if (handedOver > 0) return false
  const later = pending.findIndex(({ endLsn }) => endLsn > wal.acknowledgedLsn)
  const due = later < 0 ? pending.length : later
  if (due === 0) return false
  const commits = pending.slice(0, due)
  const isHandedOver = commits.some(({ isShownWhole }) => isShownWhole)
  if (!isHandedOver) showRows(options.memory, commits)
  const versions = newestOnly(commits.flatMap((commit) => commit.versions))
  const dropped = commits.flatMap((commit) => commit.dropped)
  const receipts = commits.flatMap((commit) => commit.receipts)
  const visible = isHandedOver ? [...lastRows(commits)].map(([memtable, rows]) => memtable.visibility(rows)) : []
  if (versions.length + dropped.length + receipts.length + visible.length > 0) {
    options.post({ kind: 'published', versions, dropped, visible, receipts })
  }
  if (isHandedOver) state.handedOver = due
  else settled(state, due)
  return true
}

/** The main thread shows the commits that were handed over. */
export function commitsShown(state: WriterState): void {
  const { handedOver } = state
  assert(handedOver > 0, 'S1: the main thread shows what it has been handed')
  state.handedOver = 0
  showRows(state.options.memory, state.pending.slice(0, handedOver))
  settled(state, handedOver)
}

/** Readers see the first `count` pending commits. */
function settled(state: WriterState, count: number): void {
  const commits = state.pending.splice(0, count)
  state.settledLsn = Math.max(state.settledLsn, (commits.at(-1) as PendingCommit).endLsn)
  countCommits(state.options, commits)
  for (const { versions } of commits)
    for (const { schema } of versions) state.catalog.byId.get(schema.id)?.settle(schema)
  for (const { after } of commits) after?.()
}

/** Makes rows visible that readers may see at once. */
function showRows({ u32 }: SharedMemory, commits: readonly PendingCommit[]): void {
  if (commits.every(({ visible }) => visible.length === 0)) return
  const sequence = Atomics.add(u32, publishSequenceAddress >>> 2, 1)
  assert(sequence % 2 === 0, 'S1: one thread publishes rows')
  for (const [memtable, rows] of lastRows(commits)) memtable.publish(rows)
  Atomics.add(u32, publishSequenceAddress >>> 2, 1)
}

/** The number of visible rows of each memtable after the commits. */
function lastRows(commits: readonly PendingCommit[]): Map<Memtable, number> {
  const last = new Map<Memtable, number>()
  for (const { visible } of commits) for (const { memtable, rows } of visible) last.set(memtable, rows)
  return last
}

function countCommits({ memory, clock }: WriterOptions, commits: readonly PendingCommit[]): void {
  const nowMs = clock.monotonicMs()
  for (const { taken } of commits) {
    if (taken === undefined) continue
    addMetric(memory, 'commits', 1)
    addMetric(memory, 'committedRows', taken.rows)
    observeCommit(memory, (nowMs - taken.ms) / 1000)
  }
}

/** Keeps the last of several versions of a table. */
function newestOnly(versions: readonly TableVersion[]): TableVersion[] {
  if (versions.length < 2) return [...versions]
  const newest = new Map<number, TableVersion>()
  for (const version of versions) newest.set(version.schema.id, version)
  return [...newest.values()]
}
