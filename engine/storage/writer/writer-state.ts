// What the parts of the writer share: its files, tables, ids, and the commits that wait for the log.
//
// A commit waits until the log says that its frames may be acknowledged. Then, in this order: rows become visible (under
// the publish sequence lock, so that all tables of a transaction appear together), versions are published, receipts are
// sent, and what was to be done afterwards is done. Commits are settled in their order; so are versions without a frame.

import { assert } from '../../base/assert.js'
import type { Clock } from '../../base/clock.js'
import type { ErrorRecord } from '../../base/errors.js'
import type { Files } from '../../base/files.js'
import type { Log } from '../../base/log.js'
import type { Kernels } from '../../kernels/load.js'
import type { LineDecoder } from '../../lines/decode.js'
import type { Allocator } from '../../memory/budgets.js'
import { addFigure, observeCommit } from '../../memory/figures.js'
import { publishSequenceAddress } from '../../memory/layout.js'
import type { SharedMemory } from '../../memory/shared-memory.js'
import type { HighWater } from '../../wal/high-water.js'
import type { Reserve } from '../../wal/reserve.js'
import type { CommitMode, LogRequest, Lsn, Wal } from '../../wal/types.js'
import { type chooseMerge, type MergePolicy, mergePolicy } from '../jobs/merge.js'
import type { FromWriter, Job, JobResult, LineReject, Receipt, RewriteProgram, ToWriter } from '../jobs/messages.js'
import type { Manifest, ManifestOptions, ManifestRecord } from '../manifest/manifest.js'
import type { Origins } from '../manifest/origins.js'
import type { Memtable } from '../memtable/memtable.js'
import type { PartDescriptor, TableSchema, TableVersion } from '../schema/schema.js'
import type { OrphanSweep } from './recovery-orphans.js'
import type { WriterCatalog } from './writer-catalog.js'
import type { Generation, WriterTable } from './writer-table.js'

export interface WriterSettings extends MergePolicy {
  /** A generation is flushed when it holds so many rows or bytes, or is so old. */
  readonly flushRows: number
  readonly flushBytes: number
  readonly flushAgeMs: number
  /** Generations below this are carried to the head of the log instead of being flushed for its size. */
  readonly carryBytesMax: number
  /** A step takes at most so much of the ring. */
  readonly stepBytes: number
  /** The writer takes nothing while so many bytes wait for the disk. */
  readonly waitingBytesMax: number
  readonly createTables: boolean
  readonly createColumns: boolean
  /** Line protocol: for each character that a name cannot have; empty: such lines are refused. */
  readonly nameReplacement: string
}

const MIB = 1024 * 1024

export const writerSettings: WriterSettings = {
  ...mergePolicy,
  flushRows: 1_000_000,
  flushBytes: 256 * MIB,
  flushAgeMs: 600_000,
  carryBytesMax: MIB,
  stepBytes: 4 * MIB,
  waitingBytesMax: 64 * MIB,
  createTables: true,
  createColumns: true,
  nameReplacement: '',
}

export interface WriterOptions {
  readonly memory: SharedMemory
  readonly allocator: Allocator
  readonly kernels: Pick<Kernels, 'ilp' | 'parquet' | 'rows' | 'sort'>
  readonly files: Files
  /** The database directory: wal/, manifest/ and symbols/ in it, and the parts. */
  readonly directory: string
  readonly clock: Clock
  readonly log: Log
  readonly post: (message: FromWriter) => void
  readonly sendLog: (request: LogRequest) => void
  readonly commitMode?: CommitMode
  readonly syncIntervalMs?: number
  readonly walBytesMax?: number
  readonly walSegmentBytes?: number
  /** Tests want the same log bytes for the same seed; default: random when the log is created. */
  readonly walLogId?: Uint8Array
  /** See ManifestOptions.checkpointBytesMin. */
  readonly manifestBytesMin?: number
  /** Size of a file of the reserve: see reserve.ts. */
  readonly reserveFileBytes?: number
  readonly settings?: Partial<WriterSettings>
  /** Chooses parts of the table that are worth joining; default: merge.ts. */
  readonly chooseMerge?: typeof chooseMerge
}

export interface PendingCommit {
  /** Settled when the log acknowledges up to here. */
  readonly endLsn: Lsn
  /** When its rows were taken, on the monotonic clock; absent without rows. */
  readonly taken?: { readonly ms: number; readonly rows: number }
  readonly visible: readonly { readonly memtable: Memtable; readonly rows: number }[]
  readonly versions: readonly TableVersion[]
  readonly dropped: readonly number[]
  readonly receipts: readonly Receipt[]
  readonly after?: () => void
}

/** Somebody needs the writer's attention to be his alone. */
interface Pause {
  readonly owner: WriterTable
  readonly begin: () => void
  begun: boolean
}

/** A job that a query thread does. */
export interface RunningJob {
  readonly job: Job
  readonly table: WriterTable
  /** Of a flush. */
  readonly generation?: Generation
}

/** A job that a query thread has. */
export interface PostedJob extends RunningJob {
  readonly postedMs: number
}

/** A generation that a query thread has written as parts. */
export interface Flushed {
  readonly table: WriterTable
  readonly generation: Generation
  readonly parts: readonly PartDescriptor[]
}

/** A snapshot that is held for a copy. */
interface Pin {
  readonly sinceMs: number
  /** Put off until the release. */
  readonly removals: (() => void)[]
  /** What is flushed before the snapshot; null when that is written. */
  cut: ReadonlySet<Generation> | null
}

/** A rewrite under way. */
export interface Rewriting {
  readonly table: WriterTable
  readonly program: RewriteProgram | null
  /** Schema of the new parts, at the time of the job. */
  readonly schema: () => TableSchema
  /** Parts that the job looks at. */
  readonly parts: () => readonly PartDescriptor[]
  /** The job is done; no new symbols are wanted any more. */
  readonly written: (result: JobResult) => void
  readonly failed: (error: ErrorRecord) => void
  /** Changes of the table that wait. */
  readonly waiting: (() => void)[]
}

export interface WriterState {
  readonly options: WriterOptions
  readonly settings: WriterSettings
  readonly catalog: WriterCatalog
  /** Opened again after a failed write. */
  manifest: Manifest
  readonly highWater: HighWater
  readonly wal: Wal
  readonly reserve: Reserve
  /** What is written now makes room: the manifest may take a file of the reserve. */
  usesReserve: boolean
  readonly decoder: LineDecoder
  /** How far streams are stored. */
  readonly origins: Origins
  readonly pending: PendingCommit[]
  readonly jobs: Map<number, PostedJob>
  /** Flushes whose parts are durable and not named yet. */
  readonly flushed: Flushed[]
  /** Dropped tables that some reader may still hold, by id. */
  readonly dropped: Map<number, WriterTable>
  /** What waits until no job reads or writes a dropped table. */
  readonly leaving: { readonly table: WriterTable; readonly leave: () => void }[]
  /** Work on the catalog that must not come into a half read request: done before the next input is taken. */
  readonly later: (() => void)[]
  /** The writer takes no input between requests: `begin` is called once then. */
  pause: Pause | null
  /** A version whose files stay; null when there is none. */
  pin: Pin | null
  /** Tables whose parts are being rewritten. */
  readonly rewriting: Map<WriterTable, Rewriting>
  readonly waiters: FlushWaiter[]
  /** Readers for whose symbols the memory had no room. */
  readonly askers: { readonly message: Extract<ToWriter, { kind: 'holdSymbols' }>; readonly untilMs: number }[]
  nextJobId: number
  nextPartId: number
  partIdsEnd: number
  nextGenerationId: number
  /** End of the last frame that was appended. */
  lastEndLsn: Lsn
  /** Commits up to here are settled. */
  settledLsn: Lsn
  /** Manifest writes or flushes failed: nothing of the kind is tried before this moment. */
  retryAtMs: number
  /** What was told last of it, and until when it is not told again. */
  putOffTold: { readonly text: string; readonly untilMs: number }
  /** The manifest took no more records and is to be opened again. */
  manifestBroken: boolean
  /** Rows that a frame takes away are needed from `keptLsn` on until the frame is durable: it may be lost. */
  removals: { readonly endLsn: Lsn; readonly keptLsn: Lsn }[]
  /** Records that follow from acknowledged frames, made when they are written. */
  readonly debts: ((manifest: Manifest) => ManifestRecord[])[]
  /** Records of the start that a full disk refused: paid before any debt. */
  readonly startRecords: ((manifest: Manifest) => ManifestRecord[])[]
  /** What waits for the debts to be paid: files go when the manifest does not name them. */
  readonly whenPaid: (() => void)[]
  /** Lost pieces of the log that no side file tells of: the disk refused it. */
  readonly unnotedLosses: number
  /** What the last crash may have left: looked for while there is nothing else to do. */
  readonly orphans: OrphanSweep
}

/** Runs `done` when all its generations are flushed. One with `refuse` does not wait for a disk that refuses. */
export interface FlushWaiter {
  readonly generations: Set<Generation>
  readonly done: () => void
  readonly refuse: ((error: ErrorRecord) => void) | null
  /** Until then it waits all the same. */
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

/** A commit without a frame: settled behind everything that was appended before. */
export function enqueue(state: WriterState, commit: Partial<Omit<PendingCommit, 'endLsn'>>): void {
  assert((state.pending.at(-1)?.endLsn ?? 0) <= state.lastEndLsn, 'L1: commits are settled in their order')
  state.pending.push({ endLsn: state.lastEndLsn, visible: [], versions: [], dropped: [], receipts: [], ...commit })
}

/** Answers a request that has written nothing: it waits for nobody. */
export function answerNow(state: WriterState, receipt: Receipt): void {
  state.options.post({ kind: 'published', versions: [], dropped: [], receipts: [receipt] })
}

/** Settles what the log has acknowledged. Returns whether there was anything. */
export function settleCommits(state: WriterState): boolean {
  const { pending, wal, options } = state
  let due = 0
  while (due < pending.length && (pending[due] as PendingCommit).endLsn <= wal.acknowledgedLsn) due++
  if (due === 0) return false
  const commits = pending.splice(0, due)
  state.settledLsn = Math.max(state.settledLsn, (commits.at(-1) as PendingCommit).endLsn)
  showRows(options.memory, commits)
  countCommits(options, commits)
  const versions = commits.flatMap((commit) => commit.versions)
  for (const { schema } of versions) state.catalog.byId.get(schema.id)?.settle(schema)
  const dropped = commits.flatMap((commit) => commit.dropped)
  const receipts = commits.flatMap((commit) => commit.receipts)
  if (versions.length + dropped.length + receipts.length > 0) {
    options.post({ kind: 'published', versions: newestOnly(versions), dropped, receipts })
  }
  for (const { after } of commits) after?.()
  return true
}

function showRows({ u32 }: SharedMemory, commits: readonly PendingCommit[]): void {
  if (commits.every(({ visible }) => visible.length === 0)) return
  const sequence = Atomics.add(u32, publishSequenceAddress >>> 2, 1)
  assert(sequence % 2 === 0, 'S1: one thread publishes rows')
  for (const { visible } of commits) for (const { memtable, rows } of visible) memtable.publish(rows)
  Atomics.add(u32, publishSequenceAddress >>> 2, 1)
}

function countCommits({ memory, clock }: WriterOptions, commits: readonly PendingCommit[]): void {
  const nowMs = clock.monotonicMs()
  for (const { taken } of commits) {
    if (taken === undefined) continue
    addFigure(memory, 'commits', 1)
    addFigure(memory, 'committedRows', taken.rows)
    observeCommit(memory, (nowMs - taken.ms) / 1000)
  }
}

/** Of several versions of a table only the last one matters to readers. */
function newestOnly(versions: readonly TableVersion[]): TableVersion[] {
  if (versions.length < 2) return [...versions]
  const newest = new Map<number, TableVersion>()
  for (const version of versions) newest.set(version.schema.id, version)
  return [...newest.values()]
}
