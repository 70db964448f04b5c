// Opens a root folder for a server or an embedded database: takes its lock, loads its settings and opens its log.

import { systemClock } from '../engine/base/clock.js'
import { openLog, type ServerLog, type ServerLogOptions } from './log.js'
import { locateRoot, openRootFolder } from './root/root-folder.js'
import { type LockOptions, lockRoot, type RootLock } from './root/root-lock.js'
import { LiveSettings } from './settings/live-settings.js'
import { checkSecurity, exposures, sideEffects } from './settings/security.js'
import { loadSettings, type SettingsSources } from './settings/settings.js'

export interface RootOptions extends LockOptions {
  readonly root: string
  readonly version: string
  /** Settings that override all others: `key=value`. */
  readonly assignments: readonly string[]
  /** Log records are also written there. */
  readonly terminal: ServerLogOptions['terminal']
}

export interface OpenedRoot {
  readonly path: string
  readonly lock: RootLock
  readonly live: LiveSettings
  readonly logging: ServerLog
  /** Warnings about settings for the user; already logged. */
  readonly warnings: readonly string[]
}

/** Throws if another process uses the folder or a setting is invalid; the lock is released then. */
export async function openRoot({
  root,
  version,
  assignments,
  terminal,
  ...lockOptions
}: RootOptions): Promise<OpenedRoot> {
  const lock = await lockRoot(locateRoot(root), lockOptions)
  try {
    const folder = openRootFolder(root)
    const sources = (): SettingsSources => ({
      file: openRootFolder(root).configuration,
      environment: process.env,
      assignments,
    })
    const loaded = loadSettings(sources())
    const { values } = loaded
    checkSecurity(values)
    const logging = openLog({
      folder: folder.logFolder,
      daysKept: values['log.days.kept'],
      format: values['log.format'],
      level: values['log.level'],
      terminal,
      nowMs: () => Math.floor(systemClock.nowMicros() / 1000),
    })
    const { log } = logging
    for (const warning of loaded.warnings) log('W', 'settings', warning)
    for (const warning of lock.warnings) log('W', 'server', warning)
    log('I', 'server', `starting [version=${version}, root=${folder.path}, node=${process.versions.node}]`)
    const notices = [...exposures(values), ...sideEffects(values)]
    for (const notice of notices) log('W', 'security', notice)
    const live = new LiveSettings(loaded, sources, log)
    live.onChange(({ values }) => logging.reconfigure(values['log.level'], values['log.days.kept']))
    return { path: folder.path, lock, live, logging, warnings: [...loaded.warnings, ...notices] }
  } catch (error) {
    lock.release()
    throw error
  }
}
