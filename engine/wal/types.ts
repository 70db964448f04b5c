// The interface of the write-ahead log to the rest of the engine: positions, frames (log records), the messages between
// the writer and the log thread, and the owner object `Wal`. The disk format is in frame.ts, segment.ts and
// frame-rows.ts.
//
//   writer thread                                   log thread (log-loop.ts)
//   append() append() writeGroup() ── LogRequest ─> syncs what was written, prepares segments, removes trimmed ones
//   handle(report)               <── LogReport ──   in the order of the requests
//
// Both sides are state machines over `Files`; their hosts run them on threads.

import type { Clock } from '../base/clock.js'
import type { ErrorRecord } from '../base/errors.js'
import type { Files } from '../base/files.js'
import type { Log } from '../base/log.js'

/** Log sequence number: byte position in the endless log, exact below 2^53. Segment headers are not counted. */
export type Lsn = number

/**
 * Kinds of frames, stored on disk: never renumber. Those below 16 belong to the log itself; readers do not get them.
 */
export const frameKinds = {
  /** Begins a group, which is one gathered write. */
  group: 1,
  /** A group of its own after an idle period, which records how far the log is durable. */
  idle: 2,
  /** The last record, written by a clean shutdown. */
  close: 3,
  /** Zeros up to the next block, so that a later write never touches a block with acknowledged bytes. */
  pad: 4,
  /** Schema changes and rows of a transaction: frame-rows.ts. */
  rows: 16,
  /** A schema change without rows; the payload is a JSON object. */
  ddl: 17,
  /** A relocation frame: rows of small tables, appended again with their transaction numbers; encoded like rows. */
  relocation: 18,
  // 19 was reserved, and never written.
} as const

/** One replayed frame. The payload is a view, valid during the callback only; it starts at a multiple of 8 bytes. */
export interface WalFrame {
  readonly lsn: Lsn
  readonly endLsn: Lsn
  readonly kind: number
  readonly payload: Uint8Array
}

/**
 * sync: acknowledge when durable. async: acknowledge when written, sync every `syncIntervalMs`.
 * nosync: acknowledge when written, sync only when a segment is full; a failed sync loses the rows that it covers.
 */
export type CommitMode = 'sync' | 'async' | 'nosync'

export type LogRequest =
  /** Sync the descriptor. Reports arrive in the order of `sequence`; one may cover earlier requests. */
  | { readonly kind: 'sync'; readonly sequence: number; readonly descriptor: number }
  /** Create the segment file with that many zero bytes; content and name are durable. */
  | { readonly kind: 'prepare'; readonly path: string; readonly directory: string; readonly bytes: number }
  /** Sync the file of the high-water marks; nothing waits for it. */
  | { readonly kind: 'mark'; readonly descriptor: number }
  /** Remove the files one after the other, each durably, oldest first. */
  | { readonly kind: 'remove'; readonly paths: readonly string[]; readonly directory: string }

export type LogReport =
  | { readonly kind: 'synced'; readonly sequence: number }
  | { readonly kind: 'syncFailed'; readonly sequence: number; readonly error: ErrorRecord }
  | { readonly kind: 'prepared'; readonly path: string }
  | { readonly kind: 'prepareFailed'; readonly path: string; readonly error: ErrorRecord }
  | { readonly kind: 'marked'; readonly error: ErrorRecord | undefined }
  | { readonly kind: 'removed' }
  /** `paths`: files that were not removed. */
  | { readonly kind: 'removeFailed'; readonly paths: readonly string[]; readonly error: ErrorRecord }

/** How far log and manifest were durable: high-water.ts. */
export interface Marks {
  readonly sequence: number
  readonly log: { readonly id: Uint8Array; readonly lsn: Lsn }
  readonly manifest: { readonly number: number; readonly bytes: number }
}

/** The part of HighWater that the log uses. */
export interface LogMarks {
  readonly marks: Marks
  /** A sync of the file is requested and not yet reported. */
  readonly syncing: boolean
  /** Records that the log with that id is durable up to the position. */
  logReached(id: Uint8Array, lsn: Lsn): void
  /** Requests a sync of the file from the log thread when it is due. */
  tick(nowMs: number, send: (request: LogRequest) => void): void
  /** Takes the log thread's report of the sync. */
  synced(error: ErrorRecord | undefined): void
}

/** The part of the space reserve (reserve.ts) that the log uses. */
interface LogReserve {
  readonly isDrawn: boolean
  take(kind: 'log', path: string, bytes: number): boolean
  handle(report: LogReport): boolean
}

export interface WalOptions {
  readonly files: Files
  /** Created if it does not exist. The log is its only user. */
  readonly directory: string
  /** There are tables, so a log existed; warn if it is missing. */
  readonly expected?: boolean
  readonly clock: Clock
  readonly log: Log
  /** Sends a request to the log thread. */
  readonly send: (request: LogRequest) => void
  /** Called for every frame of the log when it is opened, once and in order. If it throws, opening fails. */
  readonly onFrame: (frame: WalFrame) => void
  readonly mode?: CommitMode
  /** Default 64 MiB. A segment may become larger while the next one is being prepared. */
  readonly segmentBytes?: number
  /** Default 512 MiB: see Wal.flushLsn. */
  readonly bytesMax?: number
  /** For mode async; default 1000. */
  readonly syncIntervalMs?: number
  /** Records how far the log was durable. Without it a lost end of the log is not detected. */
  readonly highWater?: LogMarks
  /** Start of the log, if it is recorded: a gap before its first segment is reported. */
  readonly trimmedLsn?: Lsn
  /** Space reserve that the log uses on a full disk. */
  readonly reserve?: LogReserve
  /** 8 bytes that identify the log. Random when it is created; tests pass a constant. */
  readonly logId?: Uint8Array
}

/** A range that was not replayed. `sideFile` has its bytes; undefined if it could not be written. */
export interface QuarantinedRange {
  /**
   * 'damage': durable once, unreadable now; the replay continued after it. 'missing': durable once, in no file now.
   * 'tail': after the end of the log, never acknowledged.
   */
  readonly reason: 'damage' | 'missing' | 'tail'
  readonly file: string
  readonly offset: number
  readonly bytes: number
  readonly lsn: Lsn
  readonly sideFile: string | undefined
  /** Readable tables, transactions and source position of the range, for people. */
  readonly content: string
}

export interface ReplayReport {
  readonly frames: number
  readonly bytes: number
  readonly startLsn: Lsn
  /** End of the log, where new frames begin. */
  readonly endLsn: Lsn
  /** The highest durable position that a frame contains. */
  readonly durableLsn: Lsn
  /** Whether the log ended with a close record. */
  readonly clean: boolean
  readonly setAside: readonly QuarantinedRange[]
}

/**
 * 'open': accepts frames. 'poisoned': a write or sync failed; the waiting frames are being written to a new segment.
 * Until they are durable, nothing is acknowledged and append() throws ResourceError. 'closed': after close().
 */
export type WalState = 'open' | 'poisoned' | 'closed'

export interface Wal {
  readonly state: WalState
  /** The error that poisoned it last; null if there was none. */
  readonly failure: ErrorRecord | null
  /** Position of the next frame, without the group header. */
  readonly headLsn: Lsn
  /** Everything before this position survives a power failure. */
  readonly durableLsn: Lsn
  /** Frames that end at or before this position may be acknowledged, according to the commit mode. */
  readonly acknowledgedLsn: Lsn
  /** Bytes of the log from the oldest segment to the head. */
  readonly bytes: number
  /** Number of segments since the log was created. */
  readonly segments: number
  /** Bytes in memory that are not yet durable, for the writer's flow control. */
  readonly waitingBytes: number
  /** Frames before this position should be flushed or relocated, so that the log stays below `bytesMax`; 0 if it is. */
  readonly flushLsn: Lsn

  /**
   * Adds a frame to the current group and returns its end, to compare with acknowledgedLsn. Copies the payload. Throws
   * ResourceError while the log is poisoned, if the payload exceeds walFrameBytesMax, and, while the log uses its
   * reserve, for frames other than schema changes. `isOwed`: the frame completes work that is in the log, and is
   * accepted in any case.
   */
  append(kind: number, payload: readonly Uint8Array[], isOwed?: boolean): Lsn
  /** Writes the current group and requests its sync. Does nothing without frames. A failed write poisons the log. */
  writeGroup(): void
  /** Whether the log is open and does not use the reserve. */
  readonly takesRows: boolean
  /**
   * Called before a statement that frees space. If a full disk has poisoned the log, it continues in a file of the
   * reserve, and all waiting frames become durable. Returns false if the log still accepts no frames.
   */
  makeRoom(): boolean
  /** Takes a report of the log thread. */
  handle(report: LogReport): void
  /** Call it at least every 100 ms: writes idle records, requests periodic syncs, and retries when poisoned. */
  tick(): void
  /**
   * Removes segments that end at or before the position, whose frames are no longer needed; returns their number.
   * `note` is first called with the new start of the log; if it throws, nothing is removed.
   */
  trim(lsn: Lsn, note?: (startLsn: Lsn) => void): number
  /** Whether no request is in progress. */
  readonly quiet: boolean
  /** Syncs and writes the close record. Only when quiet and without an unwritten group. Throws FileError. */
  close(): void
}
