// The files of parts that a thread reads just now, open from one page to the next: a scan reads hundreds of pages of a part,
// and opening and closing its file costs a tenth of reading a page from the file system's memory.
//
// They stay open until the thread has nothing to do (closeAll): a file that was removed keeps its space on the disk as long
// as it is open. Whoever reads a part has pinned a version that names it, so no path means another file meanwhile.

import { assert } from '../../base/assert.js'
import type { File, Files } from '../../base/files.js'

/** A thread reads few parts by turns: those of the columns of a page, and of runs that are merged. */
const openMax = 8

export class PartFiles {
  readonly #files: Files
  /** By path; the one that was asked for last stands last. */
  readonly #open = new Map<string, File>()

  constructor(files: Files) {
    this.#files = files
  }

  /** Calls with the opened file. One that failed is not used again. */
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
    const file = this.#files.open(path, 'read')
    assert(this.#open.size < openMax, 'F4: a thread keeps few files open')
    this.#open.set(path, file)
    return file
  }

  #close(path: string, file: File): void {
    this.#open.delete(path)
    file.close()
  }
}
