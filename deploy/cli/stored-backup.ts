// Reads a backup in object storage for `penstock restore s3://bucket/prefix`. The address of the service and its access
// keys come from the settings: `--set`, environment variables, or `conf/server.conf` of the root.

import { nodeFiles } from '../../engine/base/files.js'
import {
  type CopyResult,
  downloadDatabase,
  listBackups,
  openStore,
  type StoredBackup,
  StoreError,
} from '../../engine/engine.js'
import { loadSettings } from '../settings/settings.js'
import { storeOptions } from '../settings/store-options.js'
import { settingSources } from './cli-config.js'
import { exitCodes, ToolError } from './http-client.js'
import { openProgress } from './progress.js'

export interface RestoreFlags {
  readonly dir: string
  readonly json?: boolean
  readonly set: readonly string[]
  /** Time of the backup; undefined: the last one. */
  readonly at?: string
  /** Id of the root, if several have backups there. */
  readonly rootId?: string
}

export interface OpenBackup {
  fetch(target: string): Promise<CopyResult>
  close(): Promise<void>
}

/** Throws ToolError, StoreError and SettingsError. */
export async function openBackup(url: string, flags: RestoreFlags): Promise<OpenBackup> {
  const { values } = loadSettings(settingSources(flags.dir, flags.set))
  const store = openStore(storeOptions(values, url.replace(/\/+$/, '')))
  try {
    const backup = chosen(await listBackups(store), url, flags)
    return {
      fetch: async (target) => {
        const progress = openProgress('restore')
        try {
          return await downloadDatabase({ files: nodeFiles(), store, target, progress: progress.set }, backup)
        } finally {
          progress.end()
        }
      },
      close: () => store.close(),
    }
  } catch (error) {
    await store.close()
    throw error instanceof StoreError ? new ToolError(error.message) : error
  }
}

function chosen(all: readonly StoredBackup[], url: string, { at, rootId }: RestoreFlags): StoredBackup {
  const [first] = all
  if (first === undefined) throw new ToolError(`there is no backup [url=${url}]`, exitCodes.usage)
  const roots = [...new Set(all.map((backup) => backup.rootId))]
  if (rootId === undefined && roots.length > 1)
    throw new ToolError(
      `several roots have backups there: choose one with --root-id [ids=${roots.join(', ')}]`,
      exitCodes.usage,
    )
  const own = all.filter((backup) => backup.rootId === (rootId ?? first.rootId))
  const found = at === undefined ? own.at(-1) : own.findLast(({ time }) => time.startsWith(at))
  if (found !== undefined) return found
  const times = own.map(({ time }) => time).join(', ')
  throw new ToolError(`there is no such backup [url=${url}, times=${times}]`, exitCodes.usage)
}
