// Verifies a database directory for `penstock check`: reads all data on this disk and verifies every checksum.
//
//   manifest   the list of tables and parts (Parquet files), read as at a start
//   parts      index, pages, dictionary pages, Bloom filters and symbol ids of each part that the manifest names, and
//              all other bytes. Of parts that are only in the object store the sidecars (local files with the metadata)
//              are verified; the objects are not read
//   symbols    the files of symbol dictionaries, up to the number of strings that the manifest has
//   log        every frame. A torn tail is no damage, but a log that ends before the high-water marks has lost its end.
//              Ranges that a start has set aside (wal/side-files.ts) are reported until their files are removed
//   users      the file of users
//   padding    bytes between records, which the server does not read: a disk that has changed them may have changed
//              others, too
//
// Nothing is written. Findings may be transient if a server is running on the directory; the caller reports that.

import { crc32 } from '../../base/checksum.js'
import { CorruptionError, FileError } from '../../base/errors.js'
import type { File, Files } from '../../base/files.js'
import { highWaterName, readMarks } from '../../wal/high-water.js'
import { changedPadding } from '../../wal/padding.js'
import { type KnownOfLog, replayWal } from '../../wal/replay.js'
import { listLosses } from '../../wal/side-files.js'
import type { Marks, WalFrame } from '../../wal/types.js'
import { type ReadManifest, readManifest } from '../manifest/manifest.js'
import type { ManifestTable } from '../manifest/manifest-format.js'
import { readUsers } from '../manifest/users.js'
import { dictionaryFilePath, readDictionaryFile } from '../memtable/dictionary-file.js'
import type { PagePlace } from '../part/part-column.js'
import { type PartIndex, pageAt, readPartIndex } from '../part/part-index.js'
import { checkIdentity } from '../part/part-opened.js'
import { readRemoteIndex } from '../part/remote-file.js'
import { checkSidecar } from '../part/sidecar.js'
import { type DetachedPart, isRemoteOnly, localFileOf, type PartDescriptor } from '../schema/schema.js'
import { readOnly } from './read-only.js'

export interface CheckFinding {
  /** Path below the database directory. */
  readonly file: string
  readonly offset: number
  readonly message: string
}

export interface CheckResult {
  readonly tables: number
  readonly parts: number
  readonly rows: number
  /** Null if there is no log, as in a backup; rows that were not yet in parts are not included then. */
  readonly logFrames: number | null
  readonly bytes: number
  readonly findings: readonly CheckFinding[]
}

export interface CheckOptions {
  readonly files: Files
  readonly directory: string
  /** Called after each part, with the bytes of all parts. */
  readonly progress?: (doneBytes: number, totalBytes: number) => void
}

/** Verifies one part. */
export function checkPart(
  files: Files,
  directory: string,
  tableId: number,
  part: PartDescriptor | DetachedPart,
): readonly CheckFinding[] {
  const check = new Check(files, directory)
  check.part(tableId, part)
  return check.findings
}

/** Returns problems as findings and does not throw them. */
export function checkDatabase({ files, directory, progress }: CheckOptions): CheckResult {
  const check = new Check(files, directory)
  const marks = check.attempt(highWaterName, () => readMarks(files, directory))
  const manifest = check.manifest(marks)
  const tables: ReadonlyMap<number, ManifestTable> = manifest?.tables ?? new Map()
  const totalBytes = [...tables.values()].flatMap(partsOf).reduce((sum, part) => sum + localBytes(part), 0)
  let doneBytes = 0
  for (const [tableId, table] of tables) {
    for (const part of partsOf(table)) {
      check.part(tableId, part)
      doneBytes += localBytes(part)
      progress?.(doneBytes, totalBytes)
    }
    for (const [columnId, count] of table.dictionaries) check.dictionary(tableId, columnId, count)
  }
  check.attempt('users.pus', () => readUsers(files, directory, manifest?.usersExist === true))
  check.log({ marks, trimmedLsn: manifest?.trimmedLsn })
  return { tables: tables.size, ...check.totals, findings: check.findings }
}

/** All parts of a table, also of detached partitions. */
export function partsOf(table: ManifestTable): (PartDescriptor | DetachedPart)[] {
  return [...table.parts, ...(table.schema.detached ?? [])]
}

/** Of a part that is only in the object store little is on the disk. */
export function localBytes(part: PartDescriptor | DetachedPart): number {
  return isRemoteOnly(part) ? 0 : part.bytes
}

class Check {
  readonly findings: CheckFinding[] = []
  readonly totals = { parts: 0, rows: 0, logFrames: null as number | null, bytes: 0 }
  private readonly files: Files
  private readonly directory: string

  constructor(files: Files, directory: string) {
    this.files = files
    this.directory = directory
  }

  /** Turns a thrown CorruptionError or FileError into a finding. */
  attempt<T>(file: string, work: () => T): T | undefined {
    try {
      return work()
    } catch (error) {
      if (error instanceof CorruptionError) this.find(this.below(error.file), error.offset, error.message)
      else if (error instanceof FileError) this.find(file, 0, error.message)
      else throw error
      return undefined
    }
  }

  part(tableId: number, part: PartDescriptor | DetachedPart): void {
    const path = `${this.directory}/${localFileOf(part)}`
    this.totals.parts++
    this.totals.rows += part.rows
    this.attempt(localFileOf(part), () => {
      if (!this.files.exists(path)) throw new CorruptionError('a part is missing', path, 0)
      if (isRemoteOnly(part)) {
        this.sidecar(tableId, part, path)
        return
      }
      const index = readPartIndex(this.files, path)
      this.identity(tableId, part, index, path)
      const file = this.files.open(path, 'read')
      try {
        this.totals.bytes += file.size()
        if (file.size() !== part.bytes)
          throw new CorruptionError('a part has the wrong size', path, Math.min(file.size(), part.bytes))
        const areas = areasOf(index)
        for (const area of areas) checkArea(file, path, area)
        if (index.metadata.outsideCrc !== undefined) checkOutside(file, path, index, areas)
      } finally {
        file.close()
      }
    })
  }

  /** Verifies what this disk has of a part that is only in the object store; the object is not read. */
  private sidecar(tableId: number, part: PartDescriptor | DetachedPart, path: string): void {
    const { index, sidecar } = readRemoteIndex(this.files, path)
    this.identity(tableId, part, index, path)
    const { key, checksum, bytes } = sidecar
    if (key !== part.remote?.key || checksum !== part.remote.checksum || bytes !== part.bytes) {
      throw new CorruptionError('a sidecar is that of another object than the manifest names', path, 0)
    }
    const file = this.files.open(path, 'read')
    try {
      checkSidecar(file, sidecar)
      this.totals.bytes += file.size()
    } finally {
      file.close()
    }
  }

  private identity(tableId: number, part: PartDescriptor | DetachedPart, index: PartIndex, path: string): void {
    checkIdentity(path, index, part)
    if (index.metadata.tableId !== tableId)
      throw new CorruptionError('a part is not the one that the manifest names', path, 0)
  }

  dictionary(tableId: number, columnId: number, count: number): void {
    const id = { tableId, columnId }
    const path = dictionaryFilePath(`${this.directory}/symbols`, id)
    this.attempt(this.below(path), () => {
      const { end, changedPadding } = readDictionaryFile(this.files, path, id, count)
      this.totals.bytes += end
      if (changedPadding !== undefined) this.padding(path, changedPadding)
    })
  }

  log(known: KnownOfLog): void {
    const directory = `${this.directory}/wal`
    this.attempt('wal', () => {
      const exists = this.files.exists(directory)
      if (!exists || !this.files.list(directory).some((name) => name.endsWith('.wal'))) {
        const lost = (known.marks?.log.lsn ?? 0) > 0
        if (lost) this.find('wal', 0, `the log is missing [bytes=${known.marks?.log.lsn}]`)
        return
      }
      for (const name of listLosses(this.files, directory)) {
        this.find(`wal/aside/${name}`, 0, 'a start has set this range of the log aside: rows may be missing')
      }
      const countBytes = ({ lsn, endLsn }: WalFrame): void => {
        this.totals.bytes += endLsn - lsn
      }
      const report = replayWal(readOnly(this.files), directory, countBytes, known)
      this.totals.logFrames = report.frames
      for (const path of report.inventory.misnamed) {
        this.find(this.below(path), 0, 'a segment of the log has the wrong name, nothing is lost')
      }
      for (const { file, offset } of changedPadding(this.files, report.inventory, report.durableLsn)) {
        this.padding(file, offset)
      }
      for (const { reason, file, offset, bytes, content } of report.setAside) {
        if (reason === 'tail') continue
        const what = reason === 'damage' ? 'a log frame is damaged' : 'a range of the log is missing'
        this.find(this.below(file), offset, `${what} [bytes=${bytes}, content=${content}]`)
      }
    })
  }

  manifest(marks: Marks | undefined): ReadManifest | undefined {
    return this.attempt('manifest', () => {
      const manifest = readManifest(this.files, `${this.directory}/manifest`, marks)
      const { changedPadding } = manifest
      if (changedPadding !== undefined) this.padding(changedPadding.file, changedPadding.offset)
      return manifest
    })
  }

  /** Reports a changed padding byte, which affects no record. */
  private padding(path: string, offset: number): void {
    this.find(this.below(path), offset, 'a byte between records was changed, no record is affected')
  }

  private find(file: string, offset: number, message: string): void {
    this.findings.push({ file, offset, message })
  }

  private below(path: string): string {
    return path.startsWith(`${this.directory}/`) ? path.slice(this.directory.length + 1) : path
  }
}

/** A range of a part that has its own checksum. */
interface CheckedArea {
  readonly offset: number
  readonly bytes: number
  readonly crc: number
  readonly what: string
}

function areasOf({ columns, firstRows }: PartIndex): CheckedArea[] {
  const areas: CheckedArea[] = []
  const add = ({ offset, headerBytes, bytes, crc }: PagePlace, what: string): void => {
    areas.push({ offset: offset + headerBytes, bytes, crc, what })
  }
  for (const column of columns.values()) {
    for (let page = 0; page < firstRows.length - 1; page++) add(pageAt(column, page), 'a page')
    if (column.metadata.dictionary !== null) add(column.metadata.dictionary, 'a dictionary page')
    const { symbols, bloom } = column
    if (bloom !== undefined) areas.push({ ...bloom, what: 'a Bloom filter' })
    if (symbols === undefined) continue
    areas.push({ offset: symbols.offset, bytes: symbols.count * 4, crc: symbols.crc, what: 'symbol ids' })
  }
  return areas
}

function checkArea(file: File, path: string, { offset, bytes, crc, what }: CheckedArea): void {
  if (crc32(readArea(file, path, offset, bytes)) === crc >>> 0) return
  throw new CorruptionError(`the checksum of ${what} is wrong`, path, offset)
}

/** Verifies all bytes outside of these ranges and the part index. */
function checkOutside(file: File, path: string, { place, metadata }: PartIndex, areas: readonly CheckedArea[]): void {
  const covered = [...areas, place].sort((a, b) => a.offset - b.offset)
  let [at, crc] = [0, 0]
  for (const { offset, bytes } of [...covered, { offset: file.size(), bytes: 0 }]) {
    if (offset > at) crc = crc32(readArea(file, path, at, offset - at), crc)
    at = offset + bytes
  }
  if (crc === metadata.outsideCrc) return
  throw new CorruptionError('the checksum of the bytes between the pages, or of the footer, is wrong', path, 0)
}

function readArea(file: File, path: string, offset: number, bytes: number): Uint8Array {
  const content = new Uint8Array(bytes)
  if (file.read(content, offset) < bytes) throw new CorruptionError('a part is cut off', path, offset)
  return content
}
