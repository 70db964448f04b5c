// Group sync: collects written files and their directories, and syncs them together. One sync of a directory serves all
// files created in it. No file may be referenced before commit() has returned.
//
// The group owns the files that are added to it; commit() or close() closes them.
//
// Invariant: after a failed sync no file of the group counts as durable, and nothing is retried until close().

import { assert } from '../../base/assert.js'
import type { File, Files } from '../../base/files.js'

/** Maximum number of open files; further ones cause a sync at once. */
const openMax = 64

export class SyncGroup {
  private readonly files: Files
  private readonly open: File[] = []
  private readonly directories = new Set<string>()
  private failure: { readonly error: unknown } | null = null

  constructor(files: Files) {
    this.files = files
  }

  /** Adds a file and its directories, in the order in which to sync them, the innermost first. Throws FileError. */
  add(file: File, directories: readonly string[]): void {
    this.open.push(file)
    for (const directory of directories) {
      // A directory may be the innermost of one file and an outer one of another: the last order counts.
      this.directories.delete(directory)
      this.directories.add(directory)
    }
    if (this.open.length > openMax) this.guarded(() => this.syncFiles())
  }

  /** Makes everything durable: contents, then names. After a FileError the state of the files is unknown. */
  commit(): void {
    this.guarded(() => {
      this.syncFiles()
      assert(this.open.length === 0, 'F3: contents are durable before names')
      for (const directory of this.directories) this.files.syncDirectory(directory)
      this.directories.clear()
    })
  }

  /** Closes all files without a sync. */
  close(): void {
    for (const file of this.open.splice(0)) file.close()
    this.directories.clear()
    this.failure = null
  }

  private guarded(operation: () => void): void {
    if (this.failure !== null) throw this.failure.error
    try {
      operation()
    } catch (error) {
      this.failure = { error }
      throw error
    }
  }

  private syncFiles(): void {
    for (let file = this.open[0]; file !== undefined; file = this.open[0]) {
      file.sync()
      this.open.shift()
      file.close()
    }
  }
}
