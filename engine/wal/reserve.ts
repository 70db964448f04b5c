// The space reserve: files of zeros, created while there is space, so that statements that free space work even on a
// file system without a free byte or inode. DROP TABLE needs a log frame (record), and DROP PARTITION a record of the
// manifest (the log of all tables' files). If the file for it cannot be created, a file of the reserve is renamed
// instead, which needs neither blocks nor inodes.
//
//   reserve/log-<n>.zeros        becomes a segment of the log
//   reserve/manifest-<n>.zeros   becomes a file of the manifest
//
// Both readers treat zeros after the last record as the end of the file.
//
// Invariants:
//   1. A file gets its name when its zeros are durable (`prepare` of the log thread).
//   2. Only statements that free space, or need almost none (writer/free-space.ts), use it. From then on the log
//      accepts no rows until every file exists again. So rows cannot use the space that those statements need, and the
//      restored files prove that there is space again.
//
// Copy-on-write file systems (btrfs, ZFS) may need space to write a file of the reserve as well. Statements are then
// refused, as without a reserve.

import { assert } from '../base/assert.js'
import { FileError } from '../base/errors.js'
import type { Files } from '../base/files.js'
import { unfinishedSuffix } from './segment.js'
import type { LogReport, LogRequest } from './types.js'

export type ReserveKind = 'log' | 'manifest'

/** Files of each kind. The second one serves the next start if the disk is still full then. */
const filesPerKind = 2
/** Room for frames of some hundred statements, and for rows that waited for the log when the disk became full. */
const logBytes = 2 * 1024 * 1024
const manifestBytesMin = 512 * 1024
/** It is first created when this multiple of its size is free. */
const roomFactor = 4
const suffix = '.zeros'

export interface ReserveOptions {
  readonly files: Files
  /** The database directory. */
  readonly directory: string
  readonly send: (request: LogRequest) => void
  /** Size of every file; tests set it. */
  readonly fileBytes?: number | undefined
}

export class Reserve {
  readonly #options: ReserveOptions
  readonly #folder: string
  #preparing: string | undefined
  /** Whether a file was taken and not yet replaced. */
  #isDrawn = false

  constructor(options: ReserveOptions) {
    this.#options = options
    this.#folder = `${options.directory}/reserve`
    const { files } = options
    attempt(() => {
      if (!files.exists(this.#folder)) return
      for (const name of files.list(this.#folder))
        if (name.endsWith(unfinishedSuffix)) files.remove(`${this.#folder}/${name}`)
    })
  }

  /** Whether files that were taken have not all been replaced yet. */
  get isDrawn(): boolean {
    return this.#isDrawn
  }

  /** Renames a file of at least that size to the path; not yet durable. False if there is none. Throws FileError. */
  take(kind: ReserveKind, path: string, bytes: number): boolean {
    const { files } = this.#options
    const found = this.#paths(kind).find((candidate) => files.exists(candidate) && files.size(candidate) >= bytes)
    if (found === undefined) return false
    this.#isDrawn = true
    files.rename(found, path)
    return true
  }

  /** Requests missing files one after the other, while there is space. `manifestBytes`: size of a checkpoint. */
  tick(freeBytes: number, leastBytes: number, manifestBytes: number): void {
    if (this.#preparing !== undefined) return
    const { fileBytes } = this.#options
    const grown = 2 ** Math.ceil(Math.log2(2 * manifestBytes))
    const bytesOf = { log: fileBytes ?? logBytes, manifest: Math.max(fileBytes ?? manifestBytesMin, grown) }
    attempt(() => {
      for (const kind of ['manifest', 'log'] as const) {
        const missing = this.#paths(kind).find((path) => this.#isMissing(path, bytesOf[kind]))
        if (missing === undefined) continue
        // A file that was taken is replaced as soon as there is space for it.
        const needed = this.#isDrawn ? bytesOf[kind] : roomFactor * filesPerKind * (bytesOf.log + bytesOf.manifest)
        if (freeBytes - needed >= leastBytes) this.#prepare(missing, bytesOf[kind])
        return
      }
      this.#isDrawn = false
    })
  }

  /** Takes a report of the log thread; false if it is not about the reserve. */
  handle(report: LogReport): boolean {
    const isOurs = (report.kind === 'prepared' || report.kind === 'prepareFailed') && report.path === this.#preparing
    if (isOurs) this.#preparing = undefined
    return isOurs
  }

  #paths(kind: ReserveKind): readonly string[] {
    return Array.from({ length: filesPerKind }, (_, index) => `${this.#folder}/${kind}-${index + 1}${suffix}`)
  }

  /** Whether the file is missing, or too small for a manifest that has grown; removes it in that case. */
  #isMissing(path: string, bytes: number): boolean {
    const { files } = this.#options
    if (!files.exists(path)) return true
    if (files.size(path) >= bytes) return false
    files.remove(path)
    return true
  }

  #prepare(path: string, bytes: number): void {
    assert(this.#preparing === undefined, 'L5: one file of the reserve is prepared at a time')
    const { files, directory, send } = this.#options
    if (!files.exists(this.#folder)) {
      files.makeDirectory(this.#folder)
      files.syncDirectory(directory)
    }
    this.#preparing = path
    send({ kind: 'prepare', path, directory: this.#folder, bytes })
  }
}

/** Whether an error says that the disk is full, which may change when data is removed. */
export function isFull(error: { readonly name: string; readonly code?: string; readonly detail?: string }): boolean {
  return error.name === 'FileError' && ['ENOSPC', 'EDQUOT'].includes(error.code ?? error.detail ?? '')
}

function attempt(work: () => void): void {
  try {
    work()
  } catch (thrown) {
    if (!(thrown instanceof FileError)) throw thrown
  }
}
