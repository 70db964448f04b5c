// Derives the options of the engine from the settings and the machine.

import { availableParallelism } from 'node:os'
import { join, resolve } from 'node:path'
import type { SharedClock } from '../engine/base/clock.js'
import type { Log } from '../engine/base/log.js'
import type { EngineHooks, EngineOptions } from '../engine/engine.js'
import type { CopyDirectories } from '../pipeline/ingest.js'
import { machineBytes, memoryBytes } from './settings/machine.js'
import { configuredNames } from './settings/security.js'
import {
  environmentName,
  type LoadedSettings,
  type SettingOrigin,
  type Settings,
  settingRow,
} from './settings/settings.js'
import { settingsTable } from './settings/settings-table.js'

export interface EngineEnvironment {
  readonly root: string
  readonly loaded: LoadedSettings<typeof settingsTable>
  /** The current settings, which may have been reloaded since. */
  readonly current: () => LoadedSettings<typeof settingsTable>
  readonly hooks: EngineHooks
  readonly log: Log
  readonly clock: SharedClock
  readonly fatal: (error: Error) => void
}

export function copyDirectories(settings: Settings, root: string): CopyDirectories {
  return {
    importRoot: resolve(root, settings['copy.import.root']),
    exportRoot: resolve(root, settings['copy.export.root']),
    spool: resolve(root, settings['http.export.parquet.tmp.dir']),
  }
}

export function engineOptions({ root, loaded, current, hooks, log, clock, fatal }: EngineEnvironment): EngineOptions {
  const settings: Settings = loaded.values
  return {
    directory: join(root, 'db'),
    temporary: join(root, 'tmp'),
    spillBytesMax: settings['query.spill.bytes.max'],
    memoryBytes: memoryBytes(settings['memory.bytes'], machineBytes()),
    queryThreads: settings['query.threads'] === 0 ? availableParallelism() : settings['query.threads'],
    commitMode: settings['wal.commit.mode'],
    syncIntervalMs: settings['wal.commit.interval'],
    walBytesMax: settings['wal.bytes.max'],
    writer: writerOptions(settings),
    jit: settings['query.jit.mode'] === 'on',
    viewRewrite: settings['query.view.rewrite'],
    viewRead: settings['query.view.read'],
    log,
    clock,
    configuredUsers: configuredNames(settings),
    parameters: () => parameters(current()),
    fatal,
    ...hooks,
  }
}

function writerOptions(settings: Settings): EngineOptions['writer'] {
  return {
    flushRows: settings['storage.flush.rows'],
    flushBytes: settings['storage.flush.bytes'],
    flushAgeMs: settings['storage.flush.age'],
    relocatedBytesMax: settings['storage.carry.bytes.max'],
    compactionPartsMin: settings['storage.merge.parts.min'],
    compactionRowsMax: settings['storage.merge.rows.max'],
    nameReplacement: settings['line.name.replacement'],
    rowsPerTableMax: settings['qwp.max.rows.per.table'],
    tablesPerConnectionMax: settings['qwp.max.tables.per.connection'],
    uncommittedRowsMax: settings['qwp.max.uncommitted.rows'],
    symbolBytesMax: settings['qwp.symbols.bytes.max'],
  }
}

const origins: Record<SettingOrigin, 'default' | 'conf' | 'env'> = {
  default: 'default',
  file: 'conf',
  environment: 'env',
  'command line': 'conf',
}

function parameters({ texts }: LoadedSettings<typeof settingsTable>): ReturnType<EngineOptions['parameters']> {
  return Object.entries(texts).map(([name, { text, origin }]) => {
    const sensitive = isSecret(name)
    return {
      name,
      environmentName: environmentName(name),
      value: sensitive ? '****' : text,
      source: origins[origin],
      sensitive,
      reloadable: settingRow(settingsTable, name)?.reload === true,
    }
  })
}

function isSecret(name: string): boolean {
  return settingRow(settingsTable, name)?.type === 'secret'
}
