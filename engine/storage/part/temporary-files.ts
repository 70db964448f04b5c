// Temporary files for queries that spill to disk. The name of a file is removed as soon as it is open, so the operating
// system frees it however the process ends. Only its writer reads it, so it has no documented format and is never
// synced.

import { join } from 'node:path'
import { assert } from '../../base/assert.js'
import { FileError, ResourceError } from '../../base/errors.js'
import type { File, Files } from '../../base/files.js'
import { metricOf } from '../../memory/metrics.js'
import type { SharedMemory } from '../../memory/shared-memory.js'

const MIB = 1024 * 1024
const namePrefix = 'query-'
/** Bytes written between two checks of the free disk space. */
const checkBytes = 16 * MIB
/** Queries leave this multiple of the free space below which the writer refuses rows. */
const roomFactor = 2

export interface TemporaryFile {
  /** Bytes written so far. */
  readonly size: number
  /** Throws FileError, and ResourceError when the disk is nearly full. */
  append(bytes: Uint8Array): void
  /** Fills the target. Throws FileError. */
  read(target: Uint8Array, position: number): void
  close(): void
}

export interface TemporaryFiles {
  /** Throws like append(). */
  create(): TemporaryFile
}

export interface TemporaryFolder {
  readonly files: Files
  readonly directory: string
  readonly memory: SharedMemory
  /** Distinguishes files of several threads of one process. */
  readonly threadId: number
}

export function temporaryFiles(folder: TemporaryFolder): TemporaryFiles {
  let created = 0
  return {
    create: () => {
      const { files, directory, threadId } = folder
      requireRoom(folder)
      const path = join(directory, `${namePrefix}${process.pid}-${threadId}-${created++}`)
      const file = files.open(path, 'create')
      try {
        files.remove(path)
      } catch (error) {
        file.close()
        throw error
      }
      return new UnnamedFile(folder, file)
    },
  }
}

/** The temporary files of one query, which may hold at most `bytesMax` bytes together; 0: no limit. */
export function filesOfQuery(files: TemporaryFiles, bytesMax: number): TemporaryFiles {
  if (bytesMax === 0) return files
  let held = 0
  return {
    create: () => {
      const file = files.create()
      return {
        get size() {
          return file.size
        },
        append: (bytes) => {
          if (held + bytes.length > bytesMax)
            throw new ResourceError(
              `the query needs more than its memory and temporary files [limit=${bytesMax}, setting=query.spill.bytes.max]`,
            )
          file.append(bytes)
          held += bytes.length
        },
        read: (target, position) => file.read(target, position),
        close: () => {
          held -= file.size
          file.close()
        },
      }
    },
  }
}

/** Removes files that a process left behind that was killed between creating a file and removing its name. */
export function removeLeftFiles({ files, directory }: Pick<TemporaryFolder, 'files' | 'directory'>): void {
  for (const name of files.list(directory)) if (name.startsWith(namePrefix)) files.remove(join(directory, name))
}

class UnnamedFile implements TemporaryFile {
  size = 0
  readonly #folder: TemporaryFolder
  readonly #file: File
  #sinceChecked = 0

  constructor(folder: TemporaryFolder, file: File) {
    this.#folder = folder
    this.#file = file
  }

  append(bytes: Uint8Array): void {
    this.#sinceChecked += bytes.length
    if (this.#sinceChecked >= checkBytes) {
      requireRoom(this.#folder)
      this.#sinceChecked = 0
    }
    this.#file.write([bytes], this.size)
    this.size += bytes.length
  }

  read(target: Uint8Array, position: number): void {
    assert(position + target.length <= this.size, 'F3: only what was written is read')
    const read = this.#file.read(target, position)
    if (read < target.length) throw new FileError(`${this.#file.path} is shorter than what was written to it`, 'EIO')
  }

  close(): void {
    this.#file.close()
  }
}

function requireRoom({ files, directory, memory }: TemporaryFolder): void {
  const free = files.freeBytes(directory)
  const least = metricOf(memory, 'freeBytesMin') * roomFactor
  if (free >= least + checkBytes) return
  const context = `freeMiB=${Math.floor(free / MIB)}, leastMiB=${Math.floor(least / MIB)}`
  throw new ResourceError(`the disk is nearly full, and the query needs more than its memory [${context}]`)
}
