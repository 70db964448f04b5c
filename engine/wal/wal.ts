// The write-ahead log at run time, with group commit: collects frames (log records) into groups, writes each group with
// one call, and processes the log thread's reports of syncs. The writer owns it. It waits for a sync itself only to
// start a new segment or to close the log.
//
// A failed write or sync poisons the segment: the operating system has dropped the pages, so the file is not touched
// again. Frames that are not durable are still in memory (waiting.ts). They are written, with the same positions, to a
// new segment, whose header says that the poisoned one ends at durableLsn. Until that is durable, nothing is
// acknowledged. A log that could not create a segment when it was opened, on a full disk, is in the same state with the
// replayed frames.
//
// Invariants:
//   1. durableLsn is the end of a group, and everything before it was synced, in the order of the log.
//   2. acknowledgedLsn never exceeds durableLsn in mode sync.
//   3. A group is within one segment. Segments exceed `segmentBytes` only while the next one is being prepared.
//   4. Every sync request is reported once, alone or by a later one. A descriptor is closed after its last report.

import { assert, unreachable } from '../base/assert.js'
import { type ErrorRecord, errorRecord, FileError, ResourceError } from '../base/errors.js'
import type { File } from '../base/files.js'
import { walFrameBytesMax } from '../base/limits.js'
import {
  firstUserKind,
  frameBytes,
  frameHeaderBytes,
  groupFrameBytes,
  padBytes,
  saltOf,
  sealFrame,
  sealGroupFrame,
  sealPadFrame,
} from './frame.js'
import { Removals, SyncRequests } from './pending-requests.js'
import { isFull } from './reserve.js'
import { buildSegment, offsetOf, segmentHeaderBytes, segmentPath, startSegment, unfinishedSuffix } from './segment.js'
import { type CurrentSegment, type OldSegment, type WalStart, zerosAfter } from './segments.js'
import {
  type CommitMode,
  frameKinds,
  type LogReport,
  type Lsn,
  type Wal,
  type WalOptions,
  type WalState,
} from './types.js'
import type { WaitingFrames } from './waiting.js'

const idleMs = 100
/** If the first half of a segment was used up faster, zero-filling the next one would cost more than it saves. */
const fillAboveMs = 1000
const retryMs = 1000
/** Mode async: a sync is requested early when this many bytes wait. */
const waitingBytesSync = 8 * 1024 * 1024

/** Bytes that a segment from the reserve must have left for statements that free space. */
const reserveFreeBytes = 128 * 1024

export class SharedLog implements Wal {
  private readonly options: WalOptions
  private readonly mode: CommitMode
  private readonly segmentBytes: number
  private readonly logId: Uint8Array
  private readonly salt: number
  private readonly waiting: WaitingFrames
  private readonly old: OldSegment[]
  private current: CurrentSegment | undefined
  private readonly syncs = new SyncRequests()
  private sequence = 0
  /** Reports up to this sequence refer to a poisoned segment and are ignored. */
  private ignoredSequence = 0
  private number: number
  private preparing: string | undefined
  private prepared: number | undefined
  private readonly removals: Removals
  private retryAtMs = 0
  private failuresInRow = 0
  /** The waiting frames are also in older segments, which end where the next one begins: write that at once. */
  private isOnlyCopy = false
  failure: ErrorRecord | null = null
  private lastWriteMs: number
  private lastRequestMs: number
  private groupStart: Lsn | undefined
  private group: Uint8Array | undefined
  private written: Lsn
  private requested: Lsn
  private claimed: Lsn
  private durable: Lsn
  private lastFrameEnd: Lsn
  private currentState: WalState = 'open'

  constructor(options: WalOptions, start: WalStart) {
    this.options = options
    this.mode = options.mode ?? 'sync'
    this.segmentBytes = options.segmentBytes ?? 64 * 1024 * 1024
    this.logId = start.logId
    this.salt = saltOf(start.logId)
    this.removals = new Removals(options.directory, options.send)
    this.old = [...start.old]
    const now = options.clock.monotonicMs()
    this.number = start.number
    this.waiting = start.waiting
    const { startLsn, headLsn } = start.waiting
    this.written = this.requested = this.durable = this.claimed = startLsn
    this.lastFrameEnd = headLsn
    this.lastWriteMs = this.lastRequestMs = now
    this.failure = start.failure
    if (start.current === undefined) {
      this.currentState = 'poisoned'
      this.failuresInRow = 1
      this.retryAtMs = now + retryMs
      this.isOnlyCopy = true
      return
    }
    this.current = this.begun(start.current.file, start.current.startLsn, 0)
    this.mark(headLsn)
  }

  get takesRows(): boolean {
    return this.currentState === 'open' && this.options.reserve?.isDrawn !== true
  }

  get state(): WalState {
    return this.currentState
  }

  get headLsn(): Lsn {
    return this.waiting.headLsn
  }

  get durableLsn(): Lsn {
    return this.durable
  }

  get acknowledgedLsn(): Lsn {
    return this.mode === 'sync' || this.currentState === 'poisoned' ? this.durable : this.written
  }

  get bytes(): number {
    return this.waiting.headLsn - (this.old[0]?.startLsn ?? this.current?.startLsn ?? this.durable)
  }

  get segments(): number {
    return this.number
  }

  get waitingBytes(): number {
    return this.waiting.headLsn - (this.mode === 'nosync' ? this.written : this.durable)
  }

  get flushLsn(): Lsn {
    const bytesMax = this.options.bytesMax ?? 512 * 1024 * 1024
    if (this.bytes <= bytesMax) return 0
    const target = this.headLsn - bytesMax
    return (this.old.find(({ endLsn }) => endLsn >= target) ?? this.old.at(-1))?.endLsn ?? 0
  }

  get quiet(): boolean {
    const isBusy = !this.syncs.isEmpty || this.preparing !== undefined || this.removals.removing
    return !isBusy && this.options.highWater?.syncing !== true
  }

  append(kind: number, payload: readonly Uint8Array[], isOwed = false): Lsn {
    assert(kind >= firstUserKind, 'L2: kinds below 16 belong to the log itself')
    assert(this.currentState !== 'closed', 'L4: a closed log takes no frames')
    const length = payload.reduce((sum, chunk) => sum + chunk.length, 0)
    if (length > walFrameBytesMax)
      throw new ResourceError(`transaction is too large for one log frame [bytes=${length}]`)
    if (this.currentState === 'poisoned' && !isOwed) {
      throw new ResourceError('the log cannot be written now [state=poisoned]')
    }
    if (kind !== frameKinds.ddl && !isOwed && !this.takesRows)
      throw new ResourceError('the disk is full, the log takes no rows')
    if (this.group === undefined) this.beginGroup()
    const lsn = this.waiting.headLsn
    const frame = this.waiting.reserve(frameBytes(length))
    let at = frameHeaderBytes
    for (const chunk of payload) {
      frame.set(chunk, at)
      at += chunk.length
    }
    sealFrame(frame, kind, length, lsn, this.salt)
    this.lastFrameEnd = this.waiting.headLsn
    return this.lastFrameEnd
  }

  writeGroup(): void {
    if (this.group === undefined) return
    this.endGroup(frameKinds.group)
    if (this.currentState === 'open') this.writeOut()
  }

  handle(report: LogReport): void {
    if (this.options.reserve?.handle(report) === true) return
    switch (report.kind) {
      case 'synced':
        this.onSynced(report.sequence)
        break
      case 'syncFailed':
        this.onSyncFailed(report.sequence, report.error)
        break
      case 'prepared':
        this.onPrepared(report.path)
        break
      case 'prepareFailed':
        this.preparing = undefined
        this.options.log('W', 'wal', `could not prepare the next segment: ${report.error.message}`)
        break
      case 'marked':
        this.options.highWater?.synced(report.error)
        break
      case 'removed':
        this.removals.reported(report)
        break
      case 'removeFailed':
        this.removals.reported(report)
        this.options.log('E', 'wal', `could not remove trimmed segments: ${report.error.message}`)
        break
      default:
        unreachable(report)
    }
  }

  tick(): void {
    const now = this.options.clock.monotonicMs()
    this.options.highWater?.tick(now, this.options.send)
    if (this.currentState === 'poisoned') {
      if (this.current === undefined && now >= this.retryAtMs) this.startOver()
      return
    }
    if (this.currentState === 'closed' || this.group !== undefined) return
    if (this.mode === 'async' && now - this.lastRequestMs >= (this.options.syncIntervalMs ?? 1000)) this.requestSync()
    if (this.claimed < this.lastFrameEnd && this.durable >= this.lastFrameEnd && now - this.lastWriteMs >= idleMs) {
      this.beginGroup()
      this.endGroup(frameKinds.idle)
      this.writeOut()
    }
  }

  trim(lsn: Lsn, note?: (startLsn: Lsn) => void): number {
    const found = this.old.findIndex(({ endLsn }) => endLsn > Math.min(lsn, this.durable))
    const count = found < 0 ? this.old.length : found
    if (count === 0 || this.isOnlyCopy) return 0
    note?.(this.old[count]?.startLsn ?? this.current?.startLsn ?? this.durable)
    this.removals.remove(this.old.splice(0, count).map(({ path }) => path))
    return count
  }

  close(): void {
    assert(this.quiet, 'L1: the log role has reported everything before the log is closed')
    assert(this.group === undefined, 'L4: the last group is written before the log is closed')
    if (this.currentState === 'closed') return
    const { current } = this
    const wasOpen = this.currentState === 'open'
    this.currentState = 'closed'
    this.syncs.end()
    if (!wasOpen || current === undefined) {
      current?.file.close()
      throw new FileError('the log was closed while it could not be written', 'EIO')
    }
    try {
      this.writeCloseRecord(current)
    } finally {
      current.file.close()
    }
  }

  /** Syncs before and after, because the close record says that everything before it is durable. */
  private writeCloseRecord({ file, startLsn }: CurrentSegment): void {
    assert(this.written === this.headLsn, 'L1: everything is written before the log is closed')
    file.sync()
    this.durable = this.written
    const record = new Uint8Array(groupFrameBytes)
    sealGroupFrame(record, frameKinds.close, this.written, this.durable, this.salt)
    file.write([record], offsetOf(startLsn, this.written))
    file.sync()
    this.mark(this.written + groupFrameBytes)
  }

  private beginGroup(): void {
    assert(this.group === undefined, 'L4: one group is collected at a time')
    this.groupStart = this.waiting.headLsn
    this.group = this.waiting.reserve(groupFrameBytes)
  }

  private endGroup(kind: number): void {
    assert(this.group !== undefined, 'L4: a group is ended once')
    assert(this.groupStart !== undefined, 'L4: a group has a start')
    sealGroupFrame(this.group, kind, this.groupStart, this.durable, this.salt)
    this.group = undefined
    const lsn = this.headLsn
    const pad = this.mode === 'nosync' ? 0 : padBytes(lsn - this.groupStart)
    if (pad > 0) sealPadFrame(this.waiting.reserve(pad), lsn, this.salt)
  }

  /** Writes the frames collected since the last write. */
  private writeOut(): void {
    const written = this.attempt(() => {
      const segment = this.segmentWithRoom()
      const chunks = this.waiting.chunks(this.written, this.headLsn)
      if (this.mode === 'sync') chunks.push(...zerosAfter(segment, this.written, this.headLsn, this.segmentBytes))
      segment.file.write(chunks, offsetOf(segment.startLsn, this.written))
    })
    if (!written) return
    this.written = this.headLsn
    this.claimed = this.durable
    this.lastWriteMs = this.options.clock.monotonicMs()
    this.prepareNext()
    if (this.mode === 'sync' || (this.mode === 'async' && this.waitingBytes >= waitingBytesSync)) this.requestSync()
    if (this.mode === 'nosync') this.waiting.release(this.written)
  }

  /** Runs the work; a FileError poisons the log. */
  private attempt(work: () => void): boolean {
    try {
      work()
      return true
    } catch (error) {
      if (!(error instanceof FileError)) throw error
      this.poison(errorRecord(error))
      return false
    }
  }

  /** Requests a sync of everything written since the last request. */
  private requestSync(): void {
    const { current } = this
    if (current === undefined || this.requested >= this.written) return
    this.sequence++
    this.requested = this.written
    this.lastRequestMs = this.options.clock.monotonicMs()
    current.lastSequence = this.sequence
    this.syncs.requested(this.sequence, this.written)
    this.options.send({ kind: 'sync', sequence: this.sequence, descriptor: current.file.descriptor })
  }

  private segmentWithRoom(): CurrentSegment {
    const { current } = this
    assert(current !== undefined, 'L4: an open log has a segment')
    const used = this.written - current.startLsn
    if (used < this.segmentBytes) return current
    if (this.prepared === undefined && used < 2 * this.segmentBytes) return current
    this.requestSync()
    this.retire(current, this.written)
    this.current = this.nextSegment(this.written)
    return this.current
  }

  private retire(current: CurrentSegment, endLsn: Lsn): void {
    const path = segmentPath(this.options.directory, current.number)
    assert(endLsn <= this.written, 'L1: a segment ends no further than it was written')
    // If the next segment begins where this one does, or before, nothing of this one counts.
    if (endLsn <= current.startLsn) this.removals.remove([path])
    else this.old.push({ path, startLsn: current.startLsn, endLsn })
    this.current = undefined
    this.syncs.close(current.file, current.lastSequence)
  }

  private nextSegment(startLsn: Lsn): CurrentSegment {
    assert(this.current === undefined, 'L4: one segment is written at a time')
    const { files, directory } = this.options
    const prepared = this.prepared
    this.prepared = undefined
    // A number is not reused, even if its segment could not be started.
    this.number = prepared ?? this.number + 1
    const header = { number: this.number, logId: this.logId, startLsn }
    const file = startSegment(files, directory, header, prepared !== undefined)
    const filledBytes = prepared === undefined ? 0 : file.size()
    return this.begun(file, startLsn, filledBytes)
  }

  private begun(file: File, startLsn: Lsn, filledBytes: number): CurrentSegment {
    const startedMs = this.options.clock.monotonicMs()
    return { file, number: this.number, startLsn, startedMs, lastSequence: 0, filledBytes }
  }

  /** Requests the next segment when the current one is half full. */
  private prepareNext(): void {
    const { current, segmentBytes } = this
    if (current === undefined || this.preparing !== undefined || this.prepared !== undefined) return
    if (this.written - current.startLsn < segmentBytes / 2) return
    const slow = this.options.clock.monotonicMs() - current.startedMs >= fillAboveMs
    this.number++
    const { directory } = this.options
    this.preparing = segmentPath(directory, this.number)
    const bytes = slow ? segmentHeaderBytes + segmentBytes : 0
    this.options.send({ kind: 'prepare', path: this.preparing, directory, bytes })
  }

  private onPrepared(path: string): void {
    this.preparing = undefined
    if (path === segmentPath(this.options.directory, this.number)) this.prepared = this.number
    else this.removals.remove([path])
  }

  private onSynced(sequence: number): void {
    const endLsn = this.syncs.reported(sequence)
    if (sequence <= this.ignoredSequence || endLsn === undefined) return
    assert(endLsn >= this.durable, 'L1: durability only grows')
    assert(endLsn <= this.written, 'L1: only what was written becomes durable')
    this.durable = endLsn
    this.mark(endLsn)
    if (this.mode !== 'nosync') this.waiting.release(endLsn)
    this.failuresInRow = 0
    if (this.currentState === 'poisoned' && this.durable >= this.written) this.reopen()
  }

  private mark(lsn: Lsn): void {
    this.options.highWater?.logReached(this.logId, lsn)
  }

  private reopen(): void {
    this.currentState = 'open'
    this.options.log('W', 'wal', 'the log is writable again')
    // Writes a group that was begun before the failure and has ended since.
    if (this.group === undefined && this.written < this.headLsn) this.writeOut()
  }

  private onSyncFailed(sequence: number, error: ErrorRecord): void {
    this.syncs.reported(sequence)
    if (sequence > this.ignoredSequence) this.poison(error)
  }

  private poison(error: ErrorRecord): void {
    // A full disk causes the same error every second.
    const isKnown = this.currentState === 'poisoned' && this.failure?.detail === error.detail
    if (!isKnown) this.options.log('C', 'wal', `writing the log failed, its segment is abandoned: ${error.message}`)
    this.currentState = 'poisoned'
    this.failure = error
    this.ignoredSequence = this.sequence
    if (this.current !== undefined) this.retire(this.current, this.retainedFrom)
    // The segment could not be started. Its header may be durable and would count once its successor is trimmed.
    else this.removals.remove([segmentPath(this.options.directory, this.number)])
    const now = this.options.clock.monotonicMs()
    this.retryAtMs = this.failuresInRow++ === 0 ? now : now + retryMs
    if (now >= this.retryAtMs) this.startOver()
  }

  /** Writes all waiting frames to a new segment. It has succeeded when its sync is reported. */
  private startOver(): void {
    const from = this.retainedFrom
    // A group that is still being collected is written when it is complete.
    const to = this.group === undefined ? this.headLsn : (this.groupStart ?? this.headLsn)
    const written = this.attempt(() => {
      if (this.isOnlyCopy) {
        this.buildSegment(from, to)
        return
      }
      this.current = this.nextSegment(from)
      this.current.file.write(this.waiting.chunks(from, to), segmentHeaderBytes)
    })
    if (!written || this.currentState === 'open') return
    this.written = to
    this.requested = from
    this.requestSync()
    if (from === to || this.mode === 'nosync') this.reopen()
  }

  makeRoom(): boolean {
    if (this.currentState !== 'poisoned') return this.currentState === 'open'
    const { reserve, files, directory } = this.options
    if (reserve === undefined || this.current !== undefined || this.failure === null || !isFull(this.failure))
      return false
    const from = this.retainedFrom
    const to = this.group === undefined ? this.headLsn : (this.groupStart ?? this.headLsn)
    const unfinished = segmentPath(directory, this.number + 1) + unfinishedSuffix
    try {
      if (!reserve.take('log', unfinished, segmentHeaderBytes + (to - from) + reserveFreeBytes)) return false
      this.buildSegment(from, to, files.open(unfinished, 'write'))
      this.options.log('W', 'wal', 'the disk is full: the log continues in its space reserve')
      return true
    } catch (error) {
      if (!(error instanceof FileError)) throw error
      this.options.log('E', 'wal', `the reserve of the log cannot be used: ${error.message}`)
      return false
    }
  }

  /** Creates a segment that contains these frames as soon as it has its name. Throws FileError. */
  private buildSegment(from: Lsn, to: Lsn, reserved?: File): void {
    const { files, directory } = this.options
    this.number++
    const header = { number: this.number, logId: this.logId, startLsn: from }
    const file = buildSegment(files, directory, header, this.waiting.chunks(from, to), reserved)
    this.current = this.begun(file, from, reserved === undefined ? 0 : file.size())
    this.isOnlyCopy = false
    this.written = to
    this.requested = to
    this.durable = to
    this.mark(to)
    this.waiting.release(to)
    this.failuresInRow = 0
    this.reopen()
  }

  /** Start of a new segment. Mode nosync keeps no written frames in memory, so they may be lost, as documented. */
  private get retainedFrom(): Lsn {
    return this.mode === 'nosync' ? this.written : this.durable
  }
}
