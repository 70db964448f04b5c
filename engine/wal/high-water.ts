// The high-water marks: a file that records how far the write-ahead log and the manifest (the log of all tables' files)
// were durable. Each of the two ends at its last valid record, so a file that has lost its end looks like a valid
// shorter one. The marks reveal the loss.
//
// Layout of `high-water.bin` in the database directory, little-endian: three slots, at 0, 4096 and 8192, each
//
//   magic "PHW1" u32 | format version u32 = 1 | sequence u64 | log id 8 bytes | log lsn u64 | manifest number u32 |
//   0 u32 | manifest bytes u64 | crc32 of the preceding bytes u32                                        (52 bytes)
//
// The valid slot with the highest sequence counts.
//
// Invariants:
//   1. A mark never exceeds what a sync has made durable. It is written after that sync, before anything is
//      acknowledged.
//   2. Writing a mark needs no sync of its own: it survives the end of the process in the page cache. Only a power
//      failure may lose marks, back to the last sync of this file (at most a second ago, while there are writes).
//   3. The slots are used in rotation from sync to sync: one is being written, one may be in a sync, and the third is
//      durable. A torn write leaves that one intact.
//   4. The file has a fixed size, so a full disk does not stop the marks. If it cannot be written, the marks only lag.

import { assert } from '../base/assert.js'
import { crc32 } from '../base/checksum.js'
import { CorruptionError, type ErrorRecord, FileError } from '../base/errors.js'
import type { File, Files } from '../base/files.js'
import type { Log } from '../base/log.js'
import { getU64, setU64, viewOf } from './frame.js'
import type { LogMarks, LogRequest, Lsn, Marks } from './types.js'

export const highWaterName = 'high-water.bin'

const magic = 0x31574850 // "PHW1"
const formatVersion = 1
const slotSpan = 4096
const slotCount = 3
const fileBytes = slotCount * slotSpan
const slotBytes = 52
const logIdBytes = 8
/** Interval of the file's syncs while there are new marks. */
const syncMs = 1000

const noMarks: Marks = {
  sequence: 0,
  log: { id: new Uint8Array(logIdBytes), lsn: 0 },
  manifest: { number: 0, bytes: 0 },
}

export interface HighWaterOptions {
  readonly files: Files
  /** The database directory. */
  readonly directory: string
  readonly log: Log
}

/** Owns the file. There is one per data directory, on the writer thread. */
export class HighWater implements LogMarks {
  #marks: Marks
  #slot: number
  /** Whether marks were written since the last sync of the file. */
  #unsynced = false
  #syncing = false
  #syncedMs = 0
  /** Undefined if the disk refused it; opening is retried. */
  #file: File | undefined
  readonly #options: HighWaterOptions
  #failed = false

  private constructor(file: File | undefined, options: HighWaterOptions, found: FoundMarks) {
    this.#file = file
    this.#options = options
    this.#marks = found.marks ?? noMarks
    this.#slot = found.slot
  }

  /** Reads the marks, and creates the file if it is missing. If the disk refuses, marks are kept in memory only. */
  static open(options: HighWaterOptions): HighWater {
    const { files, directory, log } = options
    const path = `${directory}/${highWaterName}`
    const found = files.exists(path) ? findMarks(files, path) : { marks: undefined, slot: 0 }
    if (found.marks === undefined && files.exists(path)) {
      log('W', 'wal', `no high-water mark can be read: a lost end of the log would not be noticed [file=${path}]`)
    }
    try {
      return new HighWater(openFile(files, directory, path), options, found)
    } catch (thrown) {
      if (!(thrown instanceof FileError)) throw thrown
      log('W', 'wal', `high-water marks cannot be written [error=${thrown.message}]`)
      return new HighWater(undefined, options, found)
    }
  }

  get marks(): Marks {
    return this.#marks
  }

  /** A sync of the file is requested and not yet reported. */
  get syncing(): boolean {
    return this.#syncing
  }

  /** Records that the log is durable up to the position. */
  logReached(id: Uint8Array, lsn: Lsn): void {
    const { log } = this.#marks
    if (log.lsn !== lsn || Buffer.compare(log.id, id) !== 0) this.#write({ log: { id, lsn } })
  }

  /** Records that the manifest of that number is durable up to that many bytes. */
  manifestReached(number: number, bytes: number): void {
    const { manifest } = this.#marks
    if (manifest.number !== number || manifest.bytes !== bytes) this.#write({ manifest: { number, bytes } })
  }

  /** Requests a sync of the file from the log thread when it is due. */
  tick(nowMs: number, send: (request: LogRequest) => void): void {
    if (this.#failed || !this.#unsynced || this.#syncing || nowMs - this.#syncedMs < syncMs) return
    this.#syncedMs = nowMs
    this.#file ??= this.#tryOpen()
    if (this.#file === undefined) return
    this.#syncing = true
    this.#nextSlot()
    send({ kind: 'mark', descriptor: this.#file.descriptor })
  }

  /** Takes the log thread's report of the sync. */
  synced(error: ErrorRecord | undefined): void {
    assert(this.#syncing, 'L1: every sync of the marks is reported once')
    this.#syncing = false
    if (error !== undefined) this.#fail(error.message)
  }

  /** Syncs on this thread; no other sync may be in progress. */
  sync(): void {
    if (!this.#unsynced) return
    this.#attempt((file) => file.sync())
    this.#nextSlot()
  }

  close(): void {
    this.sync()
    this.#file?.close()
  }

  #write(change: Partial<Marks>): void {
    this.#marks = { ...this.#marks, ...change, sequence: this.#marks.sequence + 1 }
    this.#unsynced = true
    this.#attempt((file) => file.write([encodeMarks(this.#marks)], this.#slot * slotSpan))
  }

  /** Marks after a sync go to another slot than those that it covers. */
  #nextSlot(): void {
    this.#slot = (this.#slot + 1) % slotCount
    this.#unsynced = false
  }

  /** Creates the file with the current marks, if there is space for it now. */
  #tryOpen(): File | undefined {
    const { files, directory } = this.#options
    try {
      const file = openFile(files, directory, `${directory}/${highWaterName}`)
      file.write([encodeMarks(this.#marks)], this.#slot * slotSpan)
      return file
    } catch (thrown) {
      if (!(thrown instanceof FileError)) throw thrown
      return undefined
    }
  }

  #fail(message: string): void {
    this.#failed = true
    this.#options.log('W', 'wal', `high-water marks can no longer be written [error=${message}]`)
  }

  #attempt(work: (file: File) => void): void {
    if (this.#file === undefined || this.#failed) return
    try {
      work(this.#file)
    } catch (thrown) {
      if (!(thrown instanceof FileError)) throw thrown
      this.#fail(thrown.message)
    }
  }
}

/** The marks of a database directory; undefined if there are none. Throws CorruptionError if all slots are damaged. */
export function readMarks(files: Files, directory: string): Marks | undefined {
  const path = `${directory}/${highWaterName}`
  if (!files.exists(path)) return undefined
  const { marks, empty } = findMarks(files, path)
  if (marks === undefined && !empty) throw new CorruptionError('the high-water marks are damaged', path, 0)
  return marks
}

/** Durable position of the log with that id; 0 if the marks are those of another log. */
export function markOfLog(marks: Marks | undefined, id: Uint8Array | undefined): Lsn {
  if (marks === undefined || (id !== undefined && Buffer.compare(marks.log.id, id) !== 0)) return 0
  return marks.log.lsn
}

interface FoundMarks {
  readonly marks: Marks | undefined
  /** The slot for the next marks. */
  readonly slot: number
}

function findMarks(files: Files, path: string): FoundMarks & { readonly empty: boolean } {
  const file = files.open(path, 'read')
  try {
    const bytes = new Uint8Array(fileBytes)
    file.read(bytes, 0)
    let [marks, slot]: [Marks | undefined, number] = [undefined, 0]
    for (let index = 0; index < slotCount; index++) {
      const at = index * slotSpan
      const found = decodeMarks(bytes.subarray(at, at + slotBytes), path, at)
      if (found === undefined || found.sequence <= (marks?.sequence ?? -1)) continue
      marks = found
      slot = (index + 1) % slotCount
    }
    return { marks, slot, empty: bytes.every((byte) => byte === 0) }
  } finally {
    file.close()
  }
}

function openFile(files: Files, directory: string, path: string): File {
  if (files.exists(path) && files.size(path) >= fileBytes) return files.open(path, 'write')
  if (files.exists(path)) files.remove(path)
  const file = files.open(path, 'create')
  try {
    file.write([new Uint8Array(fileBytes)], 0)
    file.sync()
    files.syncDirectory(directory)
    return file
  } catch (thrown) {
    file.close()
    throw thrown
  }
}

function encodeMarks({ sequence, log, manifest }: Marks): Uint8Array {
  assert(log.id.length === logIdBytes, 'L2: a log id has 8 bytes')
  const bytes = new Uint8Array(slotBytes)
  const view = viewOf(bytes)
  view.setUint32(0, magic, true)
  view.setUint32(4, formatVersion, true)
  setU64(view, 8, sequence)
  bytes.set(log.id, 16)
  setU64(view, 24, log.lsn)
  view.setUint32(32, manifest.number, true)
  setU64(view, 40, manifest.bytes)
  view.setUint32(slotBytes - 4, crc32(bytes.subarray(0, slotBytes - 4)), true)
  return bytes
}

function decodeMarks(bytes: Uint8Array, path: string, offset: number): Marks | undefined {
  const view = viewOf(bytes)
  if (view.getUint32(0, true) !== magic) return undefined
  if (view.getUint32(slotBytes - 4, true) !== crc32(bytes.subarray(0, slotBytes - 4))) return undefined
  const version = view.getUint32(4, true)
  if (version !== formatVersion) throw CorruptionError.ofFormat(version, formatVersion, path, offset + 4)
  return {
    sequence: getU64(view, 8),
    log: { id: bytes.slice(16, 24), lsn: getU64(view, 24) },
    manifest: { number: view.getUint32(32, true), bytes: getU64(view, 40) },
  }
}
