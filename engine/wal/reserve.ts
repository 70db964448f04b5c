// The reserve: files of zeros, made while there is room, so that a file system without a free byte or inode still takes
// what makes room. Dropping a table needs a frame of the log, dropping a partition a record of the manifest; where the
// file for it cannot be created, one of the reserve is renamed to its place, which takes neither blocks nor inodes.
//
//   reserve/log-<n>.zeros        becomes a segment of the log
//   reserve/manifest-<n>.zeros   becomes a file of the manifest
//
// Both readers take zeros behind the last record for the end of the file.
//
// Invariants:
//   1. A file has its name when its zeros are durable (the log role's `prepare`).
//   2. Only statements that make room draw on it. From then on the log takes no rows until every file is there again: so
//      the room that they use is theirs, and that there is room again is known by the files that could be made.
//
// A file system that never writes in place (btrfs, ZFS) may lack room for a file of the reserve as well: then statements
// are refused as they are without a reserve.

import { assert } from '../base/assert.js'
import { FileError } from '../base/errors.js'
import type { Files } from '../base/files.js'
import { unfinishedSuffix } from './segment.js'
import type { LogReport, LogRequest } from './types.js'

export type ReserveKind = 'log' | 'manifest'

/** Of each kind: a second one serves the next start on a disk that is still full. */
const filesPerKind = 2
/** Frames of some hundred statements, and of rows that waited for the log when the disk was full. */
const logBytes = 2 * 1024 * 1024
const manifestBytesMin = 512 * 1024
/** It is made at first where so many times its size is free. */
const roomFactor = 4
const suffix = '.zeros'

export interface ReserveOptions {
  readonly files: Files
  /** The database directory. */
  readonly directory: string
  readonly send: (request: LogRequest) => void
  /** Of every file, other than by default. */
  readonly fileBytes?: number | undefined
}

export class Reserve {
  readonly #options: ReserveOptions
  readonly #folder: string
  #preparing: string | undefined
  /** Something was taken, and is not made again. */
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

  /** Since a file was taken, not all of them could be made again. */
  get isDrawn(): boolean {
    return this.#isDrawn
  }

  /** Renames a file of at least so many bytes to the path, not durably yet. False when there is none. Throws FileError. */
  take(kind: ReserveKind, path: string, bytes: number): boolean {
    const { files } = this.#options
    const found = this.#paths(kind).find((candidate) => files.exists(candidate) && files.size(candidate) >= bytes)
    if (found === undefined) return false
    this.#isDrawn = true
    files.rename(found, path)
    return true
  }

  /** Has the log role make what is missing, one file after the other, where there is room. `manifestBytes`: of a checkpoint. */
  tick(freeBytes: number, leastBytes: number, manifestBytes: number): void {
    if (this.#preparing !== undefined) return
    const { fileBytes } = this.#options
    const grown = 2 ** Math.ceil(Math.log2(2 * manifestBytes))
    const bytesOf = { log: fileBytes ?? logBytes, manifest: Math.max(fileBytes ?? manifestBytesMin, grown) }
    attempt(() => {
      for (const kind of ['manifest', 'log'] as const) {
        const missing = this.#paths(kind).find((path) => this.#isMissing(path, bytesOf[kind]))
        if (missing === undefined) continue
        // What was drawn is made again as soon as it fits.
        const needed = this.#isDrawn ? bytesOf[kind] : roomFactor * filesPerKind * (bytesOf.log + bytesOf.manifest)
        if (freeBytes - needed >= leastBytes) this.#prepare(missing, bytesOf[kind])
        return
      }
      this.#isDrawn = false
    })
  }

  /** Takes what the log role reports of it; false: the report is about something else. */
  handle(report: LogReport): boolean {
    const isOurs = (report.kind === 'prepared' || report.kind === 'prepareFailed') && report.path === this.#preparing
    if (isOurs) this.#preparing = undefined
    return isOurs
  }

  #paths(kind: ReserveKind): readonly string[] {
    return Array.from({ length: filesPerKind }, (_, index) => `${this.#folder}/${kind}-${index + 1}${suffix}`)
  }

  /** A manifest that has grown takes a larger one. */
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

/** Whether the file system has no room: there may be some again, by what somebody removes. */
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
