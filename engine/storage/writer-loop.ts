// The writer: performs all work of the engine that must be serial: commits, schema changes, publication, flush
// scheduling. An object with a step() method; its host decides on which thread it runs.
//
//   ring, commands ──> decode ──> memtable (hidden) + log frame ──> group written, sync requested
//                                                                        │
//   rows visible, versions, receipts  <── settleCommits <── report ──────┘   meanwhile the next group is decoded
//
// One group is in progress at a time; while its sync runs, frames of the next one are collected (group commit).
// Commands wait while a request of several blocks is only partly read. Messages that free memory (finished jobs,
// released versions) never wait.

import { type ErrorRecord, errorRecord, FileError, ResourceError, SqlError } from '../base/errors.js'
import { metricOf, writeRefusals } from '../memory/metrics.js'
import { lineFlags, ringKinds, ringPeek, ringUsed } from '../memory/ring.js'
import { isFull } from '../wal/reserve.js'
import { noSourcePosition } from '../wal/source-position.js'
import type { LogReport } from '../wal/types.js'
import type { ToWriter } from './jobs/messages.js'
import { hasUsers, readUsers, type UserRecord, writeUsers } from './manifest/users.js'
import { recoverWriter } from './recovery/recovery.js'
import { requireTable } from './schema/schema.js'
import { applyChange } from './writer/writer-changes.js'
import { type CommitExtra, commitRows } from './writer/writer-commit.js'
import { discardParts, flushesDone, flushTable, scheduleFlushes, trimLog, whenFlushed } from './writer/writer-flush.js'
import { jobDone, jobFailed } from './writer/writer-jobs.js'
import { noteLake } from './writer/writer-lake.js'
import { type LineProgress, newLineProgress, takeLines } from './writer/writer-lines.js'
import { commitManifest } from './writer/writer-manifest.js'
import { enforceTtl } from './writer/writer-partitions.js'
import { pinVersion, releaseExpired, releaseVersion } from './writer/writer-pin.js'
import { registerParts, stageParts } from './writer/writer-register.js'
import { noteUploaded } from './writer/writer-remote.js'
import { applyReplace } from './writer/writer-replace.js'
import { applyRewrite } from './writer/writer-rewrite.js'
import { type StagedRows, stageRows } from './writer/writer-rows.js'
import {
  commitsShown,
  enqueue,
  receiptOf,
  refusal,
  sendReceiptNow,
  settleCommits,
  type WriterOptions,
  type WriterState,
} from './writer/writer-state.js'
import { holdSymbols, retryHolds } from './writer/writer-symbols.js'
import { enterDrafts, type TransactionCommand, waitsForRewrite } from './writer/writer-transaction.js'
import { watch, watchLosses, watchReserve } from './writer/writer-watch.js'

type Command = Exclude<
  ToWriter,
  { kind: 'released' | 'shown' | 'jobDone' | 'jobFailed' | 'discard' | 'holdSymbols' | 'forgetConnection' }
>

type RowsCommand = Extract<Command, { kind: 'rows' }>

interface WaitingRows {
  readonly requestId: number
  readonly staged: StagedRows
  readonly rows: number
  /** Set for a transaction that changes schemas. */
  readonly extra: CommitExtra | undefined
}

const tickMs = 50
/** Frames collected during a sync are written before it ends if they reach this size. */
const groupBytesMax = 4 * 1024 * 1024
const trimMs = 1000

export class WriterLoop {
  private readonly state: WriterState
  private readonly commands: Command[] = []
  private readonly progress: LineProgress
  /** Rows of an INSERT that wait for memory, staged. */
  private waitingRows: WaitingRows | undefined
  private blocked = false
  private lastTickMs = 0
  private lastTrimMs = 0
  private writtenLsn: number
  private closing: number | undefined
  private ended = false

  /** Recovers the directory and sends 'ready'. Throws if durable data is unreadable. */
  constructor(options: WriterOptions) {
    this.state = recoverWriter(options)
    this.writtenLsn = this.state.settledLsn
    this.progress = newLineProgress(this.state)
    const versions = [...this.state.catalog.byId.values()].map((table) => table.nextVersion())
    const users = openUsers(this.state)
    options.post({ kind: 'ready', versions, positions: this.state.sourcePositions.positions, users })
  }

  /** True after the response to 'close': all files are closed. */
  get closed(): boolean {
    return this.ended
  }

  /** Sizes for tests and metrics: bytes of the log that are not trimmed, pending commits, jobs. */
  get metrics(): { readonly walBytes: number; readonly pending: number; readonly jobs: number } {
    const { wal, pending, jobs } = this.state
    return { walBytes: wal.bytes, pending: pending.length, jobs: jobs.size }
  }

  receive(message: ToWriter): void {
    switch (message.kind) {
      case 'released':
        this.released(message)
        return
      case 'shown':
        commitsShown(this.state)
        return
      case 'jobDone':
        jobDone(this.state, message.jobId, message.result)
        return
      case 'jobFailed':
        jobFailed(this.state, message.jobId, message.error)
        return
      case 'discard':
        discardParts(this.state, message.parts)
        return
      case 'holdSymbols':
        holdSymbols(this.state, message)
        return
      case 'forgetConnection':
        this.state.decoders.qwp.forgetConnection(message.connectionId)
        return
      default:
        this.commands.push(message)
    }
  }

  /** Takes a report of the log thread. */
  report(report: LogReport): void {
    this.state.wal.handle(report)
  }

  step(): 'worked' | 'idle' {
    if (this.ended) return 'idle'
    const { state } = this
    this.tick()
    flushesDone(state)
    let worked = settleCommits(state)
    if (this.closing !== undefined) return this.closeWhenQuiet() || worked ? 'worked' : 'idle'
    worked = this.takeInput() || worked
    worked = this.writeGroup() || worked
    worked = settleCommits(state) || worked
    worked = scheduleFlushes(state) || worked
    return worked || state.orphans.step() ? 'worked' : 'idle'
  }

  private tick(): void {
    const now = this.state.options.clock.monotonicMs()
    if (now - this.lastTickMs >= tickMs) {
      this.lastTickMs = now
      this.state.wal.tick()
      watch(this.state)
      retryHolds(this.state)
    }
    if (now - this.lastTrimMs >= trimMs) {
      this.lastTrimMs = now
      watchLosses(this.state)
      enforceTtl(this.state)
      trimLog(this.state)
      watchReserve(this.state)
      releaseExpired(this.state)
      this.state.keyChecks.goIdle()
    }
  }

  /** Processes commands and lines, up to the limit of a step. */
  private takeInput(): boolean {
    const { state } = this
    if (this.pauses()) return false
    if (state.wal.waitingBytes > state.settings.waitingBytesMax) return false
    if (this.blocked) return this.retry()
    let worked = false
    const { memory } = state.options
    const before = state.lastEndLsn
    while (state.lastEndLsn - before < state.settings.stepBytes && !this.blocked) {
      state.catalog.indexes.beginRequest()
      const command = this.progress.open ? undefined : this.commands.shift()
      if (command !== undefined) this.take(command)
      else if (ringUsed(memory) === 0 || this.streamMustWait()) break
      else this.takeFromRing()
      worked = true
      if (this.closing !== undefined || this.pauses()) break
    }
    return worked
  }

  /** Between requests: runs deferred work. True if the writer is paused for a change that needs it exclusively. */
  private pauses(): boolean {
    if (this.progress.open || this.blocked) return false
    for (const work of this.state.later.splice(0)) work()
    const { pause } = this.state
    if (pause === null) return false
    if (!pause.begun) {
      pause.begun = true
      pause.begin()
    }
    return true
  }

  /** Whether lines of a stream must wait for the log. They are not rejected, because no one would send them again. */
  private streamMustWait(): boolean {
    if (this.state.wal.takesRows || this.progress.open) return false
    const message = ringPeek(this.state.options.memory)
    return message?.kind === ringKinds.lines && (message.flags & lineFlags.atomic) === 0
  }

  private takeFromRing(): void {
    this.blocked = takeLines(this.state, this.progress, false) === 'blocked'
  }

  /** Retries a request for which memory was missing, and rejects it if no flush can free any. */
  private retry(): boolean {
    const hopeless = this.state.wal.takesRows && (this.makeMemory() || this.diskRefuses())
    if (this.waitingRows !== undefined) this.blocked = !this.commitWaiting(hopeless)
    else this.blocked = takeLines(this.state, this.progress, hopeless) === 'blocked'
    return !this.blocked
  }

  /** Whether a waiting request is rejected because flushes fail. Streams keep waiting. */
  private diskRefuses(): boolean {
    const { memory } = this.state.options
    if (metricOf(memory, 'refusal') !== writeRefusals.memoryFull) return false
    if (this.waitingRows !== undefined) return true
    const message = ringPeek(memory)
    return message !== null && (message.flags & lineFlags.atomic) !== 0
  }

  /** Starts flushing the largest memtables. True if nothing can be flushed or released. */
  private makeMemory(): boolean {
    const { catalog, jobs, pending, dropped } = this.state
    const tables = [...catalog.byId.values()]
    const waiting = tables.some(
      ({ memtables, retired }) => retired.length > 0 || memtables.some(({ state }) => state !== 'open'),
    )
    if (waiting || jobs.size > 0 || pending.length > 0 || dropped.size > 0) return false
    const open = tables.filter((table) => (table.open?.memtable.rows ?? 0) > 0)
    if (open.length === 0) return true
    open.sort((x, y) => (y.open?.memtable.bytes ?? 0) - (x.open?.memtable.bytes ?? 0))
    for (const table of open.slice(0, 2)) flushTable(this.state, table)
    return false
  }

  private take(command: Command): void {
    switch (command.kind) {
      case 'change':
        applyChange(this.state, command.requestId, command.change)
        return
      case 'rows':
        this.takeRows(command)
        return
      case 'tableIds':
        this.takeTableIds(command)
        return
      case 'transaction':
        this.takeTransaction(command)
        return
      case 'replace':
        applyReplace(this.state, command)
        return
      case 'rewrite':
        applyRewrite(this.state, command.requestId, command.tableId, command.program)
        return
      case 'uploaded':
        noteUploaded(this.state, command)
        return
      case 'lakeCommitted':
        noteLake(this.state, command)
        return
      case 'stage':
        stageParts(this.state, command)
        return
      case 'registerParts':
        registerParts(this.state, command)
        return
      case 'checkpoint':
        this.checkpoint(command.requestId, command.tableId)
        return
      case 'pin':
        pinVersion(this.state, command.requestId)
        return
      case 'unpin':
        releaseVersion(this.state)
        enqueue(this.state, { receipts: [receiptOf(command.requestId, {})] })
        return
      case 'users':
        this.storeUsers(command.requestId, command.bytes)
        return
      default:
        this.closing = command.requestId
    }
  }

  private takeTableIds({ requestId, count }: Extract<Command, { kind: 'tableIds' }>): void {
    const firstTableId = this.state.catalog.takeIds(count)
    sendReceiptNow(this.state, receiptOf(requestId, { firstTableId }))
  }

  private takeTransaction(command: TransactionCommand): void {
    const { state } = this
    if (waitsForRewrite(state, command, () => this.commands.unshift(command))) return
    try {
      const extra = enterDrafts(state, command.drafts)
      this.takeRows(command, extra)
    } catch (thrown) {
      if (!(thrown instanceof SqlError || thrown instanceof ResourceError)) throw thrown
      state.catalog.undo()
      sendReceiptNow(state, refusal(command.requestId, errorRecord(thrown)))
    }
  }

  private takeRows({ requestId, tables }: Pick<RowsCommand, 'requestId' | 'tables'>, extra?: CommitExtra): void {
    const { state } = this
    try {
      const inputs = tables.map((input) => {
        const table = state.catalog.required(input.tableId)
        if (input.refreshes !== true) requireTable(table.schema)
        return { table, input }
      })
      const rows = tables.reduce((sum, input) => sum + input.rows, 0)
      this.waitingRows = { requestId, staged: stageRows(state.options, inputs), rows, extra }
      this.blocked = !this.commitWaiting(false)
    } catch (thrown) {
      if (!(thrown instanceof SqlError || thrown instanceof ResourceError)) throw thrown
      state.catalog.undo()
      sendReceiptNow(state, refusal(requestId, errorRecord(thrown)))
    }
  }

  /** Commits the staged rows of an INSERT; false if memory is missing. */
  private commitWaiting(giveUp: boolean): boolean {
    const { waitingRows, state } = this
    if (waitingRows === undefined) return true
    const { requestId, staged, rows, extra } = waitingRows
    const filled = staged.tables.filter(({ chunks }) => chunks.length > 0)
    const receipts = (lsn: number) => [receiptOf(requestId, { rows, lsn })]
    try {
      if (filled.length === 0 && extra === undefined) enqueue(state, { receipts: receipts(0) })
      else if (!commitRows(state, filled, receipts, noSourcePosition, extra)) {
        if (!giveUp) return false
        throw new ResourceError('out of memory for rows')
      }
    } catch (thrown) {
      if (!(thrown instanceof SqlError || thrown instanceof ResourceError)) throw thrown
      state.catalog.undo()
      sendReceiptNow(state, refusal(requestId, errorRecord(thrown)))
    }
    staged.free()
    this.waitingRows = undefined
    return true
  }

  private storeUsers(requestId: number, bytes: Uint8Array): void {
    const { files, directory } = this.state.options
    try {
      writeUsers(files, directory, bytes)
      noteUsers(this.state)
      sendReceiptNow(this.state, receiptOf(requestId, {}))
    } catch (thrown) {
      if (!(thrown instanceof FileError)) throw thrown
      sendReceiptNow(this.state, refusal(requestId, errorRecord(thrown)))
    }
  }

  /** Flushes all tables. Responds when their parts are in the manifest, or when the disk refuses. */
  private checkpoint(requestId: number, tableId?: number): void {
    const { state } = this
    const refuse = (error: ErrorRecord) => sendReceiptNow(state, refusal(requestId, error))
    if (state.wal.state === 'poisoned') {
      refuse(errorRecord(new ResourceError('the log cannot be written now [state=poisoned]')))
      return
    }
    const tables = [...state.catalog.byId.values()].filter(({ id }) => tableId === undefined || id === tableId)
    const memtables = tables.flatMap((table) => flushTable(state, table))
    const done = () => enqueue(state, { receipts: [receiptOf(requestId, {})] })
    whenFlushed(state, memtables, done, refuse)
  }

  /** Writes the collected frames: when no sync is running, or when they have reached groupBytesMax. */
  private writeGroup(): boolean {
    const { wal, lastEndLsn } = this.state
    if (lastEndLsn <= this.writtenLsn || wal.state !== 'open') return false
    const syncing = wal.acknowledgedLsn < this.writtenLsn
    if (syncing && lastEndLsn - this.writtenLsn < groupBytesMax) return false
    wal.writeGroup()
    this.writtenLsn = lastEndLsn
    return true
  }

  /** Closes the files when everything acknowledged is durable; returns whether it did. */
  private closeWhenQuiet(): boolean {
    const { state } = this
    this.writeGroup()
    if (state.pending.length > 0 || !state.wal.quiet || this.closing === undefined) return false
    const { closing } = this
    try {
      trimLog(state)
      if (!state.wal.quiet) return false
      state.wal.close()
      state.manifest.close()
      state.highWater.close()
    } catch (thrown) {
      if (!(thrown instanceof FileError)) throw thrown
      state.options.log('E', 'writer', `the log was not closed cleanly [error=${thrown.message}]`)
    }
    this.ended = true
    const receipts = [receiptOf(closing, {})]
    state.options.post({ kind: 'published', versions: [], dropped: [], visible: [], receipts })
    return true
  }

  private released({ tableId, below, held }: Extract<ToWriter, { kind: 'released' }>): void {
    const { catalog, dropped } = this.state
    catalog.byId.get(tableId)?.released(below, held)
    dropped.get(tableId)?.released(below, held)
  }
}

/** Reads the users. Throws CorruptionError if they are damaged, or missing although the manifest says they exist. */
function openUsers(state: WriterState): readonly UserRecord[] {
  const { files, directory } = state.options
  const users = readUsers(files, directory, state.manifest.usersExist)
  if (hasUsers(files, directory)) noteUsers(state)
  return users
}

/** Records in the manifest that users exist, so that a start without the file is refused. */
function noteUsers(state: WriterState): void {
  if (state.manifest.usersExist) return
  try {
    commitManifest(state, [{ kind: 'users', exist: true }])
  } catch (thrown) {
    // On a full disk the record is written later, when there is space.
    if (!(thrown instanceof FileError && isFull(thrown))) throw thrown
    state.startRecords.push(() => [{ kind: 'users', exist: true }])
  }
}
