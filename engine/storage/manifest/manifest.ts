// The manifest: an append-only, checksummed log of metadata. It names the parts (Parquet files) of all tables and
// contains their schemas, because the write-ahead log that created them is trimmed. One file is current; a checkpoint
// replaces it by a new one.
//
// Layout of `manifest-<number, 10 digits>.log`, little-endian:
//
//   header   magic "PMF1" (4) | format version u32 (manifest-format.ts) | number u32 | reserved u32
//   frame    magic "PMFR" (4) | length u32 | crc32 u32 | kind u32 | durable u64 | payload (length bytes) | zeros to 8
//
//   Frames are padded with zeros to a multiple of 8. A frame that follows a synced one begins at a multiple of 4096
//   (zeros between), because a write that is cut short may damage the whole block that it touches.
//   The checksum covers kind, durable and payload. kind: 1 = part of the checkpoint with which the file begins,
//   2 = last frame of the checkpoint, 3 = change. durable is the end of what was synced when the frame was written.
//   The payload is a JSON array of records (ManifestRecord; 64-bit integers as decimal strings), applied atomically.
//
// Invariants:
//   1. A checkpoint and its name are durable before the files that it replaces are removed. Changes are appended to it
//      only when that removal is durable.
//   2. So a file without a complete checkpoint has a predecessor, contains no change, and is ignored.
//   3. A bad frame at or after the highest `durable` of any valid frame is a torn tail: nothing depended on it.
//      A bad frame before it is damage: open throws CorruptionError.
//   4. Opening writes a checkpoint, because after a failed sync the file that was read may be in the page cache only.
//   5. After a failed write or sync the manifest accepts no more records until its owner opens it again.
//   6. The high-water marks (wal/high-water.ts) record how far the manifest was durable. A manifest that ends earlier
//      is an old copy or has lost its end. Then open throws and changes nothing, because all data that the manifest
//      does not name would look like leftovers of a crash.
//   7. The first checkpoint is durable before anything else is created beside the folder. If there is other data but no
//      complete checkpoint, the manifest was lost, and open throws for the same reason.
//
// Deliberately not here: the choice of what to flush, and the removal of part files that are not referenced.

import { posix } from 'node:path'
import { assert } from '../../base/assert.js'
import { CorruptionError } from '../../base/errors.js'
import type { File, Files } from '../../base/files.js'
import type { Log } from '../../base/log.js'
import type { HighWater } from '../../wal/high-water.js'
import type { Reserve } from '../../wal/reserve.js'
import type { KafkaPosition } from '../../wal/source-position.js'
import type { Marks } from '../../wal/types.js'
import { refuseNewerData } from './manifest-age.js'
import { manifestPath, writeCheckpoint } from './manifest-checkpoint.js'
import {
  applyRecord,
  decodeRecords,
  emptyManifestState,
  encodeFrame,
  fileHeader,
  frameKinds,
  type ManifestFrame,
  type ManifestIds,
  type ManifestRecord,
  type ManifestScan,
  type ManifestState,
  type ManifestTable,
  nextBlock,
  scanFrames,
  sourceKey,
} from './manifest-format.js'

export type { ManifestIds, ManifestRecord, ManifestTable } from './manifest-format.js'

const checkpointBytesMinDefault = 4 * 1024 * 1024

export interface ManifestOptions {
  readonly files: Files
  /** Created if it does not exist. The manifest is its only user. */
  readonly directory: string
  readonly log: Log
  /** Records how far the manifest was durable. */
  readonly highWater?: HighWater
  /** Space reserve that a checkpoint uses on a full disk. */
  readonly reserve?: Reserve
  /** A checkpoint is due when the file exceeds twice its live size and this many bytes. Default 4 MiB. */
  readonly checkpointBytesMin?: number
}

/** Owns the manifest's file. There is one per data directory, on the writer thread. */
export class Manifest {
  readonly files: Files
  readonly directory: string
  private readonly log: Log
  private readonly checkpointBytesMin: number
  private readonly highWater: HighWater | undefined
  private readonly state: ManifestState
  private file: File
  private number: number
  private bytes: number
  private liveBytes: number
  private durableBytes: number
  private failed = false
  /** End offset of each append that is not yet known to be durable. */
  private waiting: { readonly append: number; readonly end: number }[] = []
  private appendCount = 0

  private constructor(options: ManifestOptions, opened: OpenedFile) {
    this.files = options.files
    this.directory = options.directory
    this.log = options.log
    this.checkpointBytesMin = options.checkpointBytesMin ?? checkpointBytesMinDefault
    this.highWater = options.highWater
    this.state = opened.state
    this.file = opened.file
    this.number = opened.number
    this.bytes = opened.bytes
    this.liveBytes = opened.bytes
    this.durableBytes = opened.bytes
    this.highWater?.manifestReached(this.number, this.durableBytes)
  }

  /**
   * Reads the manifest without writing a checkpoint, for a full disk. It accepts no records until it is opened again.
   * Undefined if there is none. Throws CorruptionError as open() does.
   */
  static read(options: ManifestOptions): Manifest | undefined {
    const { files, directory, log } = options
    const numbers = manifestNumbers(files, directory)
    const current = findCurrent(files, directory, numbers, log)
    if (current === undefined) return undefined
    const state = readState(options, numbers, options.highWater?.marks)
    const file = files.open(current.path, 'read')
    const { highWater: _, ...others } = options
    const manifest = new Manifest(others, { file, number: current.number, state, bytes: current.scan.end })
    manifest.failed = true
    return manifest
  }

  /** Reads the current file or creates the first one. Throws CorruptionError if durable data is unreadable. */
  static open(options: ManifestOptions): Manifest {
    options.files.makeDirectory(options.directory)
    return new Manifest(options, openCurrent(options))
  }

  /** By table id, as of the last append, durable or not. Entries are replaced, never modified. */
  get tables(): ReadonlyMap<number, ManifestTable> {
    return this.state.tables
  }

  /** The first unused ids. */
  get ids(): ManifestIds {
    return this.state.ids
  }

  /** Stored source positions of streams; the log may have newer ones. */
  get sourcePositions(): Iterable<KafkaPosition> {
    return this.state.sourcePositions.values()
  }

  /** Position in the last 'log' record; 0 before the first. */
  get lsn(): number {
    return this.state.lsn
  }

  get usersExist(): boolean {
    return this.state.usersExist
  }

  /** Start of the log; undefined if it was never recorded. */
  get trimmedLsn(): number | undefined {
    return this.state.trimmedLsn
  }

  /** The descriptor to sync to make everything appended so far durable. A checkpoint changes it. */
  get descriptor(): number {
    return this.file.descriptor
  }

  /** Number of appends so far. Pass it to synced() when a sync that began after reading it has returned. */
  get appends(): number {
    return this.appendCount
  }

  /** False after a failure, and if the manifest was only read. */
  get takesRecords(): boolean {
    return !this.failed
  }

  /** Size of a checkpoint in bytes. */
  get checkpointBytes(): number {
    return this.liveBytes
  }

  /** Whether the file has grown enough for a checkpoint and no sync is pending. */
  get checkpointDue(): boolean {
    const idle = this.waiting.length === 0
    return idle && this.bytes > this.checkpointBytesMin && this.bytes > 2 * this.liveBytes
  }

  /**
   * Appends the records as one atomic frame, which is durable after a sync. After a FileError the manifest is unusable.
   */
  append(records: readonly ManifestRecord[]): void {
    assert(!this.failed, 'L4: a manifest takes no records after a failure')
    assert(records.length > 0, 'F3: an append to the manifest has records')
    const frame = encodeFrame(frameKinds.change, this.durableBytes, records)
    // A torn write may damage the whole block that it touches, so it must not touch a block with durable bytes.
    const position = this.bytes === this.durableBytes ? nextBlock(this.bytes) : this.bytes
    assert(position >= this.durableBytes, 'F3: no write touches durable bytes')
    this.guarded(() => this.file.write([frame], position))
    this.bytes = position + frame.length
    this.appendCount++
    this.waiting.push({ append: this.appendCount, end: this.bytes })
    const before = this.state.ids
    for (const record of records) applyRecord(this.state, record)
    const { table, part, generation } = this.state.ids
    assert(table >= before.table, 'S3: table ids are used once')
    assert(part >= before.part, 'S3: part ids are used once')
    assert(generation >= before.generation, 'S3: generation ids are used once')
  }

  /** Reports that the first `appends` appends are durable. */
  synced(appends: number): void {
    assert(appends <= this.appendCount, 'F3: only what was appended becomes durable')
    while (this.waiting[0] !== undefined && this.waiting[0].append <= appends) {
      this.durableBytes = this.waiting[0].end
      this.waiting.shift()
    }
    this.highWater?.manifestReached(this.number, this.durableBytes)
  }

  /** Appends and syncs the records, and writes a checkpoint if it is due. */
  commit(records: readonly ManifestRecord[]): void {
    this.append(records)
    this.sync()
    if (this.checkpointDue) this.checkpoint()
  }

  /** Makes everything appended so far durable, on this thread. */
  sync(): void {
    assert(!this.failed, 'L4: a manifest is not synced again after a failure')
    this.guarded(() => this.file.sync())
    this.synced(this.appendCount)
  }

  /** Reports that a sync on another thread failed. The manifest accepts no more records. */
  fail(): void {
    this.failed = true
  }

  /** Durably writes the live state to a new file and removes the old one. No sync may be pending. */
  checkpoint(): void {
    assert(!this.failed, 'L4: no checkpoint after a failure')
    assert(this.waiting.length === 0, 'F3: a checkpoint replaces a durable file')
    this.guarded(() => this.replaceFile())
  }

  /** Durably raises the format to this one, if it is lower. Throws FileError. */
  requireFormat(format: number): void {
    if (this.state.format >= format) return
    assert(!this.failed, 'L4: a manifest raises no format after a failure')
    if (this.waiting.length > 0) this.sync()
    this.state.format = format
    this.checkpoint()
  }

  /** Writes the live state into another folder, for a copy of the files that it names. Throws FileError. */
  snapshot(directory: string, sourcePositions: readonly KafkaPosition[]): void {
    const named = new Map(sourcePositions.map((sourcePosition) => [sourceKey(sourcePosition), sourcePosition]))
    replaceManifest(this.files, directory, { ...this.state, sourcePositions: named })
  }

  close(): void {
    this.file.close()
  }

  private replaceFile(): void {
    const { file, bytes } = writeCheckpoint(this, this.number + 1, this.state)
    const replaced = this.file
    this.file = file
    replaced.close()
    this.files.remove(replaced.path)
    this.files.syncDirectory(this.directory)
    this.number++
    this.log('I', 'manifest', `checkpoint [number=${this.number}, bytes=${bytes}, replaced=${this.bytes}]`)
    this.bytes = bytes
    this.liveBytes = bytes
    this.durableBytes = bytes
    this.highWater?.manifestReached(this.number, bytes)
  }

  private guarded(operation: () => void): void {
    try {
      operation()
    } catch (error) {
      this.failed = true
      throw error
    }
  }
}

interface OpenedFile {
  readonly file: File
  readonly number: number
  readonly state: ManifestState
  readonly bytes: number
}

function openCurrent(options: ManifestOptions): OpenedFile {
  const { files, directory, highWater, log } = options
  const numbers = manifestNumbers(files, directory)
  const state = readState({ files, directory, log }, numbers, highWater?.marks)
  const number = (numbers.at(-1) ?? 0) + 1
  const { file, bytes } = writeCheckpoint(options, number, state)
  files.syncDirectory(posix.dirname(directory))
  for (const old of numbers) files.remove(manifestPath(directory, old))
  files.syncDirectory(directory)
  return { file, number, state, bytes }
}

/**
 * Reads the state that a start would find, without writing. Throws CorruptionError if there is no manifest, if it is
 * damaged, or if it is older than the given marks.
 */
export function readManifest(files: Files, directory: string, marks?: Marks): ReadManifest {
  const numbers = files.exists(directory) ? manifestNumbers(files, directory) : []
  if (numbers.length === 0) throw new CorruptionError('there is no manifest', directory, 0)
  const current = findCurrent(files, directory, numbers, () => {})
  const first = manifestPath(directory, numbers[0] as number)
  if (current === undefined) throw new CorruptionError('the checkpoint of the manifest is unreadable', first, 0)
  refuseOlder(current, marks)
  return { ...replay(current.scan.frames), number: current.number, changedPadding: changedByte(current) }
}

export interface ReadManifest extends ManifestState {
  readonly number: number
  /** The position of a damaged byte that no checksum covers, if any. */
  readonly changedPadding: { readonly file: string; readonly offset: number } | undefined
}

function changedByte({ path, number, scan, content }: CurrentFile): ReadManifest['changedPadding'] {
  const inHeader = fileHeader(number, scan.format).findIndex((byte, at) => byte !== content[at])
  const offset = inHeader >= 0 ? inHeader : scan.changedPadding
  return offset === undefined ? undefined : { file: path, offset }
}

/** Reads as much as possible of the newest manifest; `trouble` says what is unreadable. Throws for a newer format. */
export function salvageManifest(files: Files, directory: string): SalvagedManifest {
  const numbers = files.exists(directory) ? manifestNumbers(files, directory) : []
  let trouble = numbers.length === 0 ? 'there is none' : null
  for (const number of numbers.toReversed()) {
    const path = manifestPath(directory, number)
    const content = readWhole(files, path)
    const { frames } = scanFrames(path, content, true)
    const isWhole = frames.some(({ kind }) => kind === frameKinds.checkpointEnd)
    if (!isWhole) trouble = 'its checkpoint is unreadable'
    else if (trouble === null) {
      try {
        scanFrames(path, content)
      } catch (thrown) {
        if (!(thrown instanceof CorruptionError)) throw thrown
        trouble = thrown.message
      }
    }
    if (isWhole) return { state: replay(frames), numbers, trouble }
  }
  return { state: emptyManifestState(), numbers, trouble }
}

export interface SalvagedManifest {
  readonly state: ManifestState
  /** Numbers of the manifest files, ascending. */
  readonly numbers: readonly number[]
  readonly trouble: string | null
}

/** Durably writes the state as the folder's manifest, then removes older files. Throws FileError. */
export function replaceManifest(files: Files, directory: string, state: ManifestState, asNumber?: number): void {
  files.makeDirectory(directory)
  files.syncDirectory(posix.dirname(directory))
  const numbers = manifestNumbers(files, directory)
  // Number 1 is not used: if that file were lost, the folder would look like a database that was never started.
  const number = asNumber ?? (numbers.at(-1) ?? 1) + 1
  if (numbers.includes(number)) files.remove(manifestPath(directory, number))
  writeCheckpoint({ files, directory }, number, state).file.close()
  for (const old of numbers) if (old !== number) files.remove(manifestPath(directory, old))
  files.syncDirectory(directory)
}

/** The state of the newest file with a whole checkpoint. */
function readState(
  { files, directory, log }: ManifestOptions,
  numbers: readonly number[],
  marks: Marks | undefined,
): ManifestState {
  const current = findCurrent(files, directory, numbers, log)
  if (current !== undefined) {
    refuseOlder(current, marks)
    const state = replay(current.scan.frames)
    refuseNewerData({ files, directory, state, marks, hint: repairHint })
    return state
  }
  const found = dataBeside(files, directory)
  if (found !== undefined) {
    const message = `there is no readable manifest, but there is data that it must name [found=${found}]: ${repairHint}`
    throw new CorruptionError(message, directory, 0)
  }
  return emptyManifestState()
}

const repairHint = 'nothing was changed; `penstock repair` reports what can be recovered, and with --apply recovers it'

/** Throws if the manifest ends before its recorded durable end: it is an old copy, or its end was lost. */
function refuseOlder({ path, number, scan }: CurrentFile, marks: Marks | undefined): void {
  const known = marks?.manifest ?? { number: 0, bytes: 0 }
  if (number > known.number || (number === known.number && scan.end >= known.bytes)) return
  const place = `number=${number}, bytes=${scan.end}, last=${known.number}, lastBytes=${known.bytes}`
  throw new CorruptionError(`the manifest is older than the data [${place}]: ${repairHint}`, path, scan.end)
}

/** The name of a table folder, dictionary or log segment, if there is one. */
function dataBeside(files: Files, directory: string): string | undefined {
  const parent = posix.dirname(directory)
  const within = (name: string) => (files.exists(`${parent}/${name}`) ? files.list(`${parent}/${name}`) : [])
  const [symbols, segment] = [within('symbols')[0], within('wal').find((name) => name.endsWith('.wal'))]
  return files.list(parent).find((name) => /^[0-9]+$/.test(name)) ?? symbols ?? segment
}

interface CurrentFile {
  readonly path: string
  readonly number: number
  readonly content: Uint8Array
  readonly scan: ManifestScan
}

/** Undefined if even the first file was never finished. */
function findCurrent(files: Files, directory: string, numbers: readonly number[], log: Log): CurrentFile | undefined {
  for (const [index, number] of [...numbers.entries()].reverse()) {
    const path = manifestPath(directory, number)
    const content = readWhole(files, path)
    const scan = scanFrames(path, content)
    if (scan.frames.some(({ kind }) => kind === frameKinds.checkpointEnd)) {
      if (content.subarray(scan.end).some((byte) => byte !== 0))
        log('W', 'manifest', `torn tail ignored [file=${path}, offset=${scan.end}]`)
      return { path, number, content, scan }
    }
    // The first file has no predecessor. Without a complete checkpoint it was never finished, unless it contains a
    // change.
    if (scan.frames.some(({ kind }) => kind === frameKinds.change) || (number > 1 && index === 0)) {
      throw new CorruptionError('the checkpoint of the manifest is unreadable', path, scan.end)
    }
    log('W', 'manifest', `unfinished checkpoint ignored [file=${path}]`)
  }
  return undefined
}

function readWhole(files: Files, path: string): Uint8Array {
  const file = files.open(path, 'read')
  try {
    const content = new Uint8Array(file.size())
    return content.subarray(0, file.read(content, 0))
  } finally {
    file.close()
  }
}

function replay(frames: readonly ManifestFrame[]): ManifestState {
  const state = emptyManifestState()
  for (const frame of frames) for (const record of decodeRecords(frame)) applyRecord(state, record)
  return state
}

function manifestNumbers(files: Files, directory: string): number[] {
  const numbers: number[] = []
  for (const name of files.list(directory)) {
    const match = /^manifest-(\d{10})\.log$/.exec(name)
    if (match !== null) numbers.push(Number(match[1]))
  }
  return numbers.sort((a, b) => a - b)
}
