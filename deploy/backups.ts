// Runs BACKUP in the server: decides where a backup is stored, tracks the running one, and keeps the list of the last
// backups, which the SQL function backups() returns. The list is stored in the root folder, so it survives a restart.
//
// Invariants:
//   1. At most one backup runs. Its checkpoint, which keeps the files on disk, is released when it ends, also by an
//      error.
//   2. If the list says at a start that a backup is running, the end of the server has interrupted it. The destination
//      then still has the previous backup.

import { readFileSync } from 'node:fs'
import { rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Clock } from '../engine/base/clock.js'
import { ResourceError, SqlError } from '../engine/base/errors.js'
import type { Log } from '../engine/base/log.js'
import {
  type BackupService,
  type Backups,
  type BackupTable,
  type BackupTask,
  type RunningBackup,
  startBackup,
  storePlace,
  type VirtualRelation,
} from '../engine/engine.js'
import { rootIdOf } from './object-store.js'
import type { Settings } from './settings/settings.js'
import { storeOptions } from './settings/store-options.js'

const entriesMax = 100
const formatVersion = 1

type Status =
  | 'backup in progress'
  | 'backup complete'
  | 'backup failed'
  | `cleanup ${'in progress' | 'complete' | 'failed'}`

interface Entry {
  status: Status
  percent: number
  readonly startMicros: number
  endMicros: number | null
  backupError: string | null
  cleanupError: string | null
}

interface Running {
  readonly entry: Entry
  /** Null while the checkpoint is made. */
  copy: RunningBackup | null
  /** Why it has to end. */
  stopped: string | null
  /** Resolves when all is over. */
  ended: Promise<void>
}

interface BackupOptions {
  readonly root: string
  readonly settings: () => Settings
  readonly clock: Clock
  readonly log: Log
}

export class ServerBackups implements BackupService {
  readonly #engine: Backups
  readonly #options: BackupOptions
  readonly #path: string
  readonly #entries: Entry[]
  #running: Running | null = null
  #writing: Promise<void> = Promise.resolve()

  constructor(engine: Backups, options: BackupOptions) {
    this.#engine = engine
    this.#options = options
    this.#path = join(options.root, 'backups.json')
    this.#entries = readEntries(this.#path, options.log)
    for (const entry of this.#entries) {
      if (entry.status === 'backup in progress') end(entry, entry.startMicros, 'the server ended during the backup')
      if (entry.status === 'cleanup in progress') entry.status = 'cleanup failed'
    }
  }

  async start(tables: readonly BackupTable[] | null): Promise<number> {
    const running = this.#running
    if (running !== null) {
      const { startMicros, percent } = running.entry
      const started = new Date(startMicros / 1000).toISOString()
      throw new ResourceError(`a backup is running already [started=${started}, percent=${percent}]`)
    }
    const startMicros = this.#options.clock.nowMicros()
    const tasks = this.#tasks(tables, startMicros)
    const entry: Entry = {
      ...{ status: 'backup in progress', percent: 0, startMicros, endMicros: null },
      ...{ backupError: null, cleanupError: null },
    } as const
    const next: Running = { entry, copy: null, stopped: null, ended: Promise.resolve() }
    this.#running = next
    const pinned = this.#engine.pin()
    next.ended = this.#run(next, pinned, tasks)
    await pinned
    // So that the list knows of a backup that the end of the process interrupts.
    await this.#writing
    return startMicros
  }

  async abort(): Promise<number | null> {
    const running = this.#running
    if (running === null) return null
    await this.#stop(running, 'aborted')
    return running.entry.startMicros
  }

  async close(): Promise<void> {
    if (this.#running !== null) await this.#stop(this.#running, 'the server was stopped')
    await this.#writing
  }

  async #stop(running: Running, reason: string): Promise<void> {
    running.stopped ??= reason
    await running.copy?.abort(reason)
    await running.ended
  }

  /** Rejects never. */
  async #run(running: Running, pinned: Promise<() => Promise<void>>, tasks: readonly BackupTask[]): Promise<void> {
    const { entry } = running
    try {
      const release = await pinned
      this.#entries.push(entry)
      this.#store()
      try {
        await this.#copy(running, tasks)
      } finally {
        await release()
      }
    } catch (error) {
      end(entry, this.#options.clock.nowMicros(), error instanceof Error ? error.message : String(error))
    }
    this.#running = null
    this.#store()
    this.#report(entry)
  }

  async #copy(running: Running, tasks: readonly BackupTask[]): Promise<void> {
    const { entry } = running
    if (running.stopped !== null) throw new Error(running.stopped)
    const source = join(this.#options.root, 'db').replaceAll('\\', '/')
    running.copy = startBackup({ source, tasks }, (percent) => {
      entry.percent = percent
    })
    await running.copy.copied
    entry.percent = 100
    entry.endMicros = this.#options.clock.nowMicros()
    entry.status = 'cleanup in progress'
    try {
      entry.status = (await running.copy.removed) === 0 ? 'backup complete' : 'cleanup complete'
    } catch (error) {
      entry.status = 'cleanup failed'
      entry.cleanupError = error instanceof Error ? error.message : String(error)
    }
  }

  /** Tables that are backed up alone have places of their own, so that they do not replace a backup of all. */
  #tasks(tables: readonly BackupTable[] | null, startMicros: number): BackupTask[] {
    const url = this.#options.settings()['backup.object.store'].replace(/\/+$/, '')
    if (url === '') throw new SqlError('there is no place for backups [setting=backup.object.store]', 0)
    if (tables === null) return [{ tables, place: this.#place(url, startMicros) }]
    return tables.map(({ id, name }) => {
      return { tables: [id], place: this.#place(url, startMicros, `/tables/${fileName(name)}`) }
    })
  }

  /** Throws SqlError. */
  #place(url: string, startMicros: number, below = ''): BackupTask['place'] {
    const { root, settings } = this.#options
    const place = placeOf(url)
    if (place.kind === 'folder') {
      const folder = `${place.folder}${below}/db`
      if (`${folder}/`.startsWith(`${join(root, 'db').replaceAll('\\', '/')}/`))
        throw new SqlError('backups need a folder outside of the data [setting=backup.object.store]', 0)
      return { kind: 'folder', folder }
    }
    return {
      kind: 'store',
      options: storeOptions(settings(), `${url}${below}`),
      rootId: rootIdOf(root),
      time: new Date(startMicros / 1000)
        .toISOString()
        .replace(/\.\d+Z$/, `.${String(startMicros % 1e6).padStart(6, '0')}Z`),
      scratch: join(root, 'tmp', 'backup').replaceAll('\\', '/'),
      retained: settings()['backup.cleanup.keep.latest.n'],
    }
  }

  #report({ status, backupError, cleanupError }: Entry): void {
    if (backupError !== null) this.#options.log('W', 'backup', `the backup failed: ${backupError}`)
    else if (cleanupError !== null) this.#options.log('W', 'backup', `old backups are not removed: ${cleanupError}`)
    else this.#options.log('I', 'backup', status)
  }

  /** Without space on the disk the list is only in memory. */
  #store(): void {
    this.#entries.splice(0, this.#entries.length - entriesMax)
    const text = `${JSON.stringify({ version: formatVersion, backups: this.#entries }, null, 2)}\n`
    this.#writing = this.#writing.then(async () => {
      try {
        await writeFile(`${this.#path}.new`, text, { flush: true })
        await rename(`${this.#path}.new`, this.#path)
      } catch (error) {
        const reason = error instanceof Error ? error.message : String(error)
        this.#options.log('W', 'backup', `the list of backups cannot be stored: ${reason}`)
      }
    })
  }

  get relation(): VirtualRelation {
    return {
      name: 'backups',
      columns: [
        { name: 'status', type: 'VARCHAR' },
        { name: 'progress_percent', type: 'INT' },
        { name: 'start_ts', type: 'TIMESTAMP' },
        { name: 'end_ts', type: 'TIMESTAMP' },
        { name: 'backup_error', type: 'VARCHAR' },
        { name: 'cleanup_error', type: 'VARCHAR' },
      ],
      rows: () =>
        this.#entries.map(({ status, percent, startMicros, endMicros, backupError, cleanupError }) => [
          ...[status, percent, BigInt(startMicros), endMicros === null ? null : BigInt(endMicros)],
          ...[backupError, cleanupError],
        ]),
    }
  }
}

function end(entry: Entry, endMicros: number, error: string): void {
  entry.status = 'backup failed'
  entry.endMicros = endMicros
  entry.backupError = error
}

/** A name for a folder, also for tables such as `sys.alerts`. */
function fileName(table: string): string {
  return encodeURIComponent(table).replaceAll('.', '%2E')
}

/** Throws SqlError. */
function placeOf(url: string): ReturnType<typeof storePlace> {
  try {
    return storePlace(url)
  } catch (error) {
    throw new SqlError(`bad value of backup.object.store: ${error instanceof Error ? error.message : ''}`, 0)
  }
}

function readEntries(path: string, log: Log): Entry[] {
  try {
    const value: unknown = JSON.parse(readFileSync(path, 'utf8'))
    if (!isList(value)) throw new Error('the file is of another version')
    return [...value.backups]
  } catch (thrown) {
    if (thrown instanceof Error && 'code' in thrown && thrown.code === 'ENOENT') return []
    log(
      'W',
      'backup',
      `the list of backups cannot be read: ${thrown instanceof Error ? thrown.message : String(thrown)}`,
    )
    return []
  }
}

function isList(value: unknown): value is { readonly backups: readonly Entry[] } {
  if (typeof value !== 'object' || value === null || !('version' in value) || !('backups' in value)) return false
  return value.version === formatVersion && Array.isArray(value.backups)
}
