// What the rest of the engine sees of the write-ahead log: positions, frames, the messages between the writer and the
// log role, and the owner object `Wal`. How it lies on disk: frame.ts, segment.ts, frame-rows.ts.
//
//   writer role                                     log role (log-role.ts)
//   append() append() writeGroup() ── LogRequest ─> syncs what was written, prepares segments, removes trimmed ones
//   handle(report)               <── LogReport ──   in the order of the requests
//
// Both sides are plain step-wise code over `Files`; threads are their hosts' business.

import type { Clock } from '../base/clock.js'
import type { ErrorRecord } from '../base/errors.js'
import type { Files } from '../base/files.js'
import type { Log } from '../base/log.js'

/** Byte position in the endless log; exact below 2^53. Segment headers do not count. */
export type Lsn = number

/** Kinds of frames, on disk: never renumber. Below 16: the log's own, never handed to a reader. */
export const frameKinds = {
  /** Begins a group: what one gathered write puts into the log. */
  group: 1,
  /** A group of its own after idleness: says how far the log is durable. */
  idle: 2,
  /** The last record of an orderly shutdown. */
  close: 3,
  /** Zeros up to the next block, so that a later write never touches a block that holds acknowledged bytes. */
  pad: 4,
  /** A transaction's schema changes and rows: frame-rows.ts. */
  rows: 16,
  /** A schema change without rows; the payload is the JSON text of a plain object. */
  ddl: 17,
  /** Rows of small tables, appended again with their original transaction numbers: as rows. */
  carry: 18,
  /** Publishes staged parts of a transaction that outgrew memory; the payload is JSON. */
  commit: 19,
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
 * nosync: acknowledge when written, sync only when a segment is full; a failed sync loses what it covered.
 */
export type CommitMode = 'sync' | 'async' | 'nosync'

export type LogRequest =
  /** Sync the descriptor. Reports arrive in the order of `sequence`; one may stand for those before it. */
  | { readonly kind: 'sync'; readonly sequence: number; readonly descriptor: number }
  /** Create the segment file, durable by name, with so many zero bytes. */
  | { readonly kind: 'prepare'; readonly path: string; readonly directory: string; readonly bytes: number }
  /** Sync the file of the high-water marks: nobody waits for it. */
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
  /** `paths`: those that are left. */
  | { readonly kind: 'removeFailed'; readonly paths: readonly string[]; readonly error: ErrorRecord }

/** How far log and manifest were durable: high-water.ts. */
export interface Marks {
  readonly sequence: number
  readonly log: { readonly id: Uint8Array; readonly lsn: Lsn }
  readonly manifest: { readonly number: number; readonly bytes: number }
}

/** What the log needs of their keeper. */
export interface LogMarks {
  readonly marks: Marks
  /** A sync of their file is asked for, and not reported. */
  readonly syncing: boolean
  /** The log of that id is durable up to the position. */
  logReached(id: Uint8Array, lsn: Lsn): void
  /** Has the log role sync the file when that is due. */
  tick(nowMs: number, send: (request: LogRequest) => void): void
  /** What the log role reports of its sync. */
  synced(error: ErrorRecord | undefined): void
}

/** What the log needs of the reserve (reserve.ts). */
interface LogReserve {
  readonly isDrawn: boolean
  take(kind: 'log', path: string, bytes: number): boolean
  handle(report: LogReport): boolean
}

export interface WalOptions {
  readonly files: Files
  /** Created when it does not exist. Belongs to this log alone. */
  readonly directory: string
  /** There are tables, so there was a log: that it is gone is worth a warning. */
  readonly expected?: boolean
  readonly clock: Clock
  readonly log: Log
  /** Hands a request to the log role. */
  readonly send: (request: LogRequest) => void
  /** Gets every frame of the log at open, once, in order. What it throws ends the open. */
  readonly onFrame: (frame: WalFrame) => void
  readonly mode?: CommitMode
  /** Default 64 MiB. A segment may grow beyond it while the next one is being prepared. */
  readonly segmentBytes?: number
  /** Default 512 MiB: see Wal.flushLsn. */
  readonly bytesMax?: number
  /** Mode async; default 1000. */
  readonly syncIntervalMs?: number
  /** Knows how far the log was durable. Without it a lost end of the log is not noticed. */
  readonly highWater?: LogMarks
  /** Where the log begins, when something knows it: what is missing before its first segment is reported. */
  readonly trimmedLsn?: Lsn
  /** What it goes on in on a full disk. */
  readonly reserve?: LogReserve
  /** 8 bytes that tell this log from any other; random when it is created, unless a test wants to know them. */
  readonly logId?: Uint8Array
}

/** Something that the replay did not hand on. The bytes lie in the side file (undefined when it could not be written). */
export interface SetAside {
  /**
   * 'damage': durable once, unreadable now; the replay went on. 'missing': durable once, and not in any file now.
   * 'tail': behind the end of the log, never acknowledged.
   */
  readonly reason: 'damage' | 'missing' | 'tail'
  readonly file: string
  readonly offset: number
  readonly bytes: number
  readonly lsn: Lsn
  readonly sideFile: string | undefined
  /** Tables, transactions and origin as far as they can still be read, for people. */
  readonly content: string
}

export interface ReplayReport {
  readonly frames: number
  readonly bytes: number
  readonly startLsn: Lsn
  /** Where the log ends and new frames begin. */
  readonly endLsn: Lsn
  /** The highest durable position that a frame names. */
  readonly durableLsn: Lsn
  /** The log ended with a close record. */
  readonly clean: boolean
  readonly setAside: readonly SetAside[]
}

/**
 * 'open': takes frames. 'poisoned': a write or sync failed; the waiting frames are on their way to a fresh segment,
 * nothing is acknowledged and append() throws ResourceError until they are durable. 'closed': after close().
 */
export type WalState = 'open' | 'poisoned' | 'closed'

export interface Wal {
  readonly state: WalState
  /** Why it was poisoned last; null: it never was. */
  readonly failure: ErrorRecord | null
  /** Where the next frame will begin, group header not counted. */
  readonly headLsn: Lsn
  /** Everything before it survives a power loss. */
  readonly durableLsn: Lsn
  /** Frames that end at or before it may be acknowledged, by the commit mode. */
  readonly acknowledgedLsn: Lsn
  /** Bytes of log from the oldest segment to the head. */
  readonly bytes: number
  /** Segments that the log has begun since it was made. */
  readonly segments: number
  /** Bytes that wait for durability in memory: flow control of the writer. */
  readonly waitingBytes: number
  /** Frames before it should be flushed or carried so that the log keeps below `bytesMax`; 0 when it does. */
  readonly flushLsn: Lsn

  /**
   * Adds a frame to the current group and returns the end of it: compare with acknowledgedLsn. Copies the payload.
   * Throws ResourceError while poisoned, when the payload exceeds walFrameBytesMax, and for other frames than schema
   * changes while the log lives on its reserve. `isOwed`: it follows from what is in the log, and is taken in any case.
   */
  append(kind: number, payload: readonly Uint8Array[], isOwed?: boolean): Lsn
  /** Writes the current group and asks for its sync. Does nothing without frames. A failed write poisons; no throw. */
  writeGroup(): void
  /** Open, and not on the reserve. */
  readonly takesRows: boolean
  /**
   * A statement that makes room comes. A log that a full disk has poisoned goes on in a file of the reserve, and all that
   * waited is durable. False when it takes no frames all the same.
   */
  makeRoom(): boolean
  /** Takes what the log role reports. */
  handle(report: LogReport): void
  /** Call it at least every 100 ms: idle record, interval syncs, and another attempt when poisoned. */
  tick(): void
  /**
   * Frames before the position are flushed: segments that end there are removed. Returns how many. `note` is told first
   * where the log will begin; when it throws, nothing is removed.
   */
  trim(lsn: Lsn, note?: (startLsn: Lsn) => void): number
  /** No request is on its way. */
  readonly quiet: boolean
  /** Syncs and writes the close record. Only when quiet and without an unwritten group; throws FileError when it fails. */
  close(): void
}
