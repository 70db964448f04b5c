// An LRU cache of a thread's open Parquet files (parts). A scan reads hundreds of pages of a part. Opening the file for
// each page would take a tenth of the time of reading a page that the operating system has cached.
//
// The files are closed when the thread becomes idle (closeAll), because a removed file keeps its disk space while it is
// open. Readers pin a version that references the part, so its path cannot be reused while it is open.

import { assert } from '../../base/assert.js'
import type { File } from '../../base/files.js'

/** A thread reads only a few parts alternately: those of the runs that it merges. */
const openMax = 8

export class PartFiles {
  readonly #openFile: (path: string) => File
  /** By path, the most recently used last. */
  readonly #open = new Map<string, File>()

  constructor(openFile: (path: string) => File) {
    this.#openFile = openFile
  }

  /** Calls `read` with the open file. A file whose read failed is closed. */
  with<T>(path: string, read: (file: File) => T): T {
    const file = this.#opened(path)
    try {
      return read(file)
    } catch (error) {
      this.#close(path, file)
      throw error
    }
  }

  closeAll(): void {
    for (const [path, file] of this.#open) this.#close(path, file)
  }

  #opened(path: string): File {
    const known = this.#open.get(path)
    if (known !== undefined) {
      this.#open.delete(path)
      this.#open.set(path, known)
      return known
    }
    const [oldest] = this.#open
    if (oldest !== undefined && this.#open.size >= openMax) this.#close(...oldest)
    const file = this.#openFile(path)
    assert(this.#open.size < openMax, 'F4: a thread keeps few files open')
    this.#open.set(path, file)
    return file
  }

  #close(path: string, file: File): void {
    this.#open.delete(path)
    file.close()
  }
}
