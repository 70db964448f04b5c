// Entry point of a backup's thread, a worker: copies the files that a checkpoint keeps on disk to folders or object
// stores, posts its progress, removes old backups from object stores, and ends. It lives as long as one backup. It may
// be terminated at any moment: until the copy is complete, the destination still has the previous backup.

import { parentPort } from 'node:worker_threads'
import { nonNull } from '../base/assert.js'
import { messageOf } from '../base/errors.js'
import { nodeFiles } from '../base/files.js'
import { openStore } from '../object-store/open-store.js'
import { copyDatabase } from '../storage/maintenance/backup.js'
import { removeOldBackups, uploadDatabase } from '../storage/maintenance/backup-objects.js'
import type { BackupTask, BackupThreadOptions, FromBackupThread } from './backup-client.js'

const port = nonNull(parentPort)
const files = nodeFiles()

function post(message: FromBackupThread): void {
  port.postMessage(message)
}

async function run({ source, tasks }: BackupThreadOptions): Promise<void> {
  let percent = 0
  for (const [index, task] of tasks.entries()) {
    await copy(source, task, (doneBytes, totalBytes) => {
      // A task may have no bytes. The last step is the end of the whole backup.
      const reached = Math.min(99, Math.floor((100 * (index + doneBytes / Math.max(1, totalBytes))) / tasks.length))
      if (reached > percent) post({ kind: 'progress', percent: reached })
      percent = Math.max(percent, reached)
    })
  }
  post({ kind: 'copied' })
  let removed = 0
  let failure: string | null = null
  try {
    for (const task of tasks) removed += await removeOld(task)
  } catch (error) {
    failure = messageOf(error)
  }
  post({ kind: 'ended', removed, failure })
}

async function copy(source: string, { tables, place }: BackupTask, progress: Progress): Promise<void> {
  const shared = { files, source, manifest: `${source}/backup`, tables, progress }
  if (place.kind === 'folder') {
    copyDatabase({ ...shared, target: place.folder })
    return
  }
  const { rootId, time, scratch } = place
  const store = openStore(place.options)
  try {
    await store.probe()
    await uploadDatabase({ ...shared, store, rootId, time, scratch })
  } finally {
    await store.close()
  }
}

type Progress = (doneBytes: number, totalBytes: number) => void

async function removeOld({ place }: BackupTask): Promise<number> {
  if (place.kind === 'folder') return 0
  const store = openStore(place.options)
  try {
    return await removeOldBackups(store, place.rootId, place.retained)
  } finally {
    await store.close()
  }
}

/** The first message says what to copy. The thread ends when nothing is left to do. */
port.once('message', (options: BackupThreadOptions) => {
  run(options).catch((error: unknown) => post({ kind: 'failed', message: messageOf(error) }))
})
