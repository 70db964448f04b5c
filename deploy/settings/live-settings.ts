// Holds the settings in force and reloads them: reloadable settings take their new values, others keep theirs and are
// reported in the log. An error anywhere changes nothing.

import type { Log } from '../../engine/base/log.js'
import { checkSecurity } from './security.js'
import type { SettingRow } from './setting-row.js'
import { type LoadedSettings, loadSettings, type SettingsSources } from './settings.js'
import { settingsTable } from './settings-table.js'

export type Loaded = LoadedSettings<typeof settingsTable>

export class LiveSettings {
  #current: Loaded
  readonly #sources: () => SettingsSources
  readonly #log: Log
  readonly #listeners: ((loaded: Loaded) => void)[] = []

  constructor(loaded: Loaded, sources: () => SettingsSources, log: Log) {
    this.#current = loaded
    this.#sources = sources
    this.#log = log
  }

  get current(): Loaded {
    return this.#current
  }

  /** The listener is called after each reload that changed something. */
  onChange(listener: (loaded: Loaded) => void): void {
    this.#listeners.push(listener)
  }

  /** Returns whether the sources could be read; reloadable settings are then in force. */
  reload(): boolean {
    try {
      const read = loadSettings(this.#sources())
      checkSecurity(read.values)
      this.#take(read)
      return true
    } catch (thrown) {
      this.#log(
        'E',
        'settings',
        `the settings were not reloaded: ${thrown instanceof Error ? thrown.message : String(thrown)}`,
      )
      return false
    }
  }

  #take(read: Loaded): void {
    const before = this.#current
    const values: Record<string, unknown> = { ...before.values }
    const texts: Record<string, Loaded['texts'][keyof Loaded['texts']]> = { ...before.texts }
    const changed: string[] = []
    for (const key of Object.keys(settingsTable) as (keyof Loaded['texts'])[]) {
      const row: SettingRow = settingsTable[key]
      if (read.texts[key].text === before.texts[key].text) continue
      if (row.reload !== true) {
        this.#log('W', 'settings', `${key} requires a restart to change`)
        continue
      }
      values[key] = read.values[key]
      texts[key] = read.texts[key]
      changed.push(key)
    }
    for (const key of familyChanges(before, read)) this.#log('W', 'settings', `${key} requires a restart to change`)
    this.#log('I', 'settings', `reloaded [changed=${changed.join(', ') || 'nothing'}]`)
    if (changed.length === 0) return
    const { families } = before
    this.#current = { values: values as Loaded['values'], texts: texts as Loaded['texts'], warnings: [], families }
    for (const listener of this.#listeners) listener(this.#current)
  }
}

/** Settings of families that differ now. */
function familyChanges(before: Loaded, read: Loaded): string[] {
  const old: Readonly<Record<string, { readonly text: string }>> = before.texts
  const now: Readonly<Record<string, { readonly text: string }>> = read.texts
  const keys = new Set([...Object.keys(old), ...Object.keys(now)].filter((key) => !(key in settingsTable)))
  return [...keys].filter((key) => old[key]?.text !== now[key]?.text)
}
