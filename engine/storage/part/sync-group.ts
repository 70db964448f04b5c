// Files that are written and not synced yet, and the directories that hold their names: one sync of a directory serves all
// files that came into it meanwhile. Nobody may name a file before commit() has returned.
//
// Owner of the open files: whoever adds one gives it away; commit() or close() closes it.
//
// Invariant: after a failed sync nothing of the group counts as durable, and nothing is tried again, until close().

import { assert } from '../../base/assert.js'
import type { File, Files } from '../../base/files.js'

/** Open descriptors: what comes on top is synced at once. */
const openMax = 64

export class SyncGroup {
  private readonly files: Files
  private readonly open: File[] = []
  private readonly directories = new Set<string>()
  private failure: { readonly error: unknown } | null = null

  constructor(files: Files) {
    this.files = files
  }

  /** The directories in the order in which they are to be synced, the innermost first. Throws FileError. */
  add(file: File, directories: readonly string[]): void {
    this.open.push(file)
    for (const directory of directories) {
      // The innermost of one file may be an outer one of another: last wish, last place.
      this.directories.delete(directory)
      this.directories.add(directory)
    }
    if (this.open.length > openMax) this.guarded(() => this.syncFiles())
  }

  /** Makes everything durable: contents, then names. Throws FileError; nothing is known of the files then. */
  commit(): void {
    this.guarded(() => {
      this.syncFiles()
      assert(this.open.length === 0, 'F3: contents are durable before names')
      for (const directory of this.directories) this.files.syncDirectory(directory)
      this.directories.clear()
    })
  }

  /** Forgets everything without a sync. */
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
