// The main thread's handle of a running backup, which copies files on a thread of its own.

import { deferred } from '../base/deferred.js'
import type { ObjectStoreOptions } from '../object-store/open-store.js'
import { startWorker } from './launch.js'

type BackupPlace =
  /** A database directory, as `penstock backup` writes it. */
  | { readonly kind: 'folder'; readonly folder: string }
  | {
      readonly kind: 'store'
      readonly options: ObjectStoreOptions
      readonly rootId: string
      readonly time: string
      readonly scratch: string
      /** Older backups are removed. */
      readonly retained: number
    }

/** Copies all tables, or those with these ids, to one place. */
export interface BackupTask {
  readonly tables: readonly number[] | null
  readonly place: BackupPlace
}

export interface BackupThreadOptions {
  /** The database directory. */
  readonly source: string
  readonly tasks: readonly BackupTask[]
}

export type FromBackupThread =
  | { readonly kind: 'progress'; readonly percent: number }
  /** The backup is complete; older ones are removed now. */
  | { readonly kind: 'copied' }
  | { readonly kind: 'ended'; readonly removed: number; readonly failure: string | null }
  | { readonly kind: 'failed'; readonly message: string }

export interface RunningBackup {
  /** Resolves when all is copied; rejects with the reason if not. */
  readonly copied: Promise<void>
  /** Resolves after `copied` with the number of older backups that are removed; rejects if that failed. */
  readonly removed: Promise<number>
  /** Terminates the thread; what is not resolved yet rejects with the reason. */
  abort(reason: string): Promise<void>
}

export function startBackup(options: BackupThreadOptions, progress: (percent: number) => void): RunningBackup {
  const copied = deferred<void>()
  const removed = deferred<number>()
  const end = (error: Error): void => {
    copied.reject(error)
    removed.reject(error)
  }
  // Whoever waits for one of them need not wait for the other.
  copied.promise.catch(() => {})
  removed.promise.catch(() => {})
  const worker = startWorker('backup-thread.js', options, [])
  worker.on('message', (message: FromBackupThread) => {
    if (message.kind === 'progress') progress(message.percent)
    else if (message.kind === 'copied') copied.resolve()
    else if (message.kind === 'failed') end(new Error(message.message))
    else if (message.failure !== null) removed.reject(new Error(message.failure))
    else removed.resolve(message.removed)
  })
  worker.on('error', end)
  worker.on('exit', () => end(new Error('the thread of the backup has ended')))
  return {
    copied: copied.promise,
    removed: removed.promise,
    abort: async (reason) => {
      end(new Error(reason))
      await worker.terminate()
    },
  }
}
