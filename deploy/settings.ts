// Where settings come from, weakest first: the table's defaults, conf/server.conf, the environment, `--set key=value`.
//
//   file          key = value, one a line; # or ! begins a comment line; blanks around the value are dropped
//   environment   PENSTOCK_HTTP_NET_BIND_TO for http.net.bind.to
//   secrets       <key>.file names a file whose text (without its last line end) is the value
//
// An unknown key or a bad value ends the start with its place. Only unknown PENSTOCK_ variables are mere warnings:
// orchestrators put variables of such names (PENSTOCK_PORT, PENSTOCK_SERVICE_HOST) into every container.

import { readFileSync } from 'node:fs'
import { type SettingRow, type SettingsTable, settingsTable } from './settings-table.js'
import { expectation, parseSetting, type SettingsOf, type SettingValue } from './settings-values.js'

export type Settings = SettingsOf<typeof settingsTable>

export class SettingsError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options)
    this.name = 'SettingsError'
  }
}

export interface SettingsSources {
  /** Path of server.conf and its text; null when there is none. */
  readonly file: { readonly path: string; readonly text: string } | null
  readonly environment: Readonly<Record<string, string | undefined>>
  /** `key=value`, as given on the command line. */
  readonly assignments: readonly string[]
}

/** Where a value comes from, weakest first. */
export type SettingOrigin = 'default' | 'file' | 'environment' | 'command line'

export interface LoadedSettings<Table extends SettingsTable> {
  readonly values: SettingsOf<Table>
  readonly texts: Readonly<Record<keyof Table, { readonly text: string; readonly origin: SettingOrigin }>>
  readonly warnings: readonly string[]
}

interface Entry {
  readonly key: string
  readonly value: string
  readonly origin: SettingOrigin
  /** For messages: `[file=.., line=3]`. */
  readonly place: string
}

export function loadSettings(sources: SettingsSources): LoadedSettings<typeof settingsTable> {
  return loadTable(settingsTable, sources)
}

/** The same for any table: tests have their own. */
export function loadTable<Table extends SettingsTable>(table: Table, sources: SettingsSources): LoadedSettings<Table> {
  const values: Record<string, SettingValue> = {}
  const texts: Record<string, { text: string; origin: SettingOrigin }> = {}
  for (const [key, row] of Object.entries(table)) {
    values[key] = settingValue(row, { key, value: row.initial, origin: 'default', place: '' })
    texts[key] = { text: row.initial, origin: 'default' }
  }
  const { entries: fromEnvironment, warnings } = environmentEntries(table, sources.environment)
  const entries = [
    ...(sources.file === null ? [] : fileEntries(sources.file.path, sources.file.text)),
    ...fromEnvironment,
    ...sources.assignments.map(assignmentEntry),
  ]
  for (const entry of entries) {
    const { key, row, value } = resolve(table, entry)
    values[key] = settingValue(row, { ...entry, value })
    texts[key] = { text: value, origin: entry.origin }
  }
  return {
    values: values as SettingsOf<Table>,
    texts: texts as LoadedSettings<Table>['texts'],
    warnings,
  }
}

/** Name of the environment variable that overrides a setting. */
export function environmentName(key: string): string {
  return `PENSTOCK_${key.toUpperCase().replaceAll('.', '_')}`
}

function settingValue(row: SettingRow, { key, value, place }: Entry): SettingValue {
  const parsed = parseSetting(row, value)
  if (parsed !== null) return parsed
  const shown = row.type === 'secret' ? '...' : value
  throw new SettingsError(`bad value of ${key}: '${shown}', expected ${expectation(row)}${place}`)
}

function resolve(table: SettingsTable, { key, value, place }: Entry): { key: string; row: SettingRow; value: string } {
  const row = Object.hasOwn(table, key) ? table[key] : undefined
  if (row !== undefined) return { key, row, value }
  const secretKey = key.endsWith('.file') ? key.slice(0, -'.file'.length) : ''
  const secret = Object.hasOwn(table, secretKey) ? table[secretKey] : undefined
  if (secret?.type === 'secret') return { key: secretKey, row: secret, value: readSecret(key, value, place) }
  throw new SettingsError(`unknown setting: ${key}${place}`)
}

function readSecret(key: string, path: string, place: string): string {
  try {
    return readFileSync(path, 'utf8').replace(/\r?\n$/, '')
  } catch (error) {
    throw new SettingsError(`the file of ${key} cannot be read: ${path}${place}`, { cause: error })
  }
}

function fileEntries(path: string, text: string): Entry[] {
  return text.split(/\r?\n/).flatMap((raw, index) => {
    const line = raw.trim()
    if (line === '' || line.startsWith('#') || line.startsWith('!')) return []
    return [splitAssignment(line, 'file', ` [file=${path}, line=${index + 1}]`)]
  })
}

function assignmentEntry(text: string): Entry {
  return splitAssignment(text, 'command line', ` [--set ${text.split('=')[0]}]`)
}

function splitAssignment(text: string, origin: SettingOrigin, place: string): Entry {
  const equals = text.indexOf('=')
  if (equals < 1) throw new SettingsError(`expected key=value: ${text}${place}`)
  return { key: text.slice(0, equals).trim(), value: text.slice(equals + 1).trim(), origin, place }
}

function environmentEntries(
  table: SettingsTable,
  environment: SettingsSources['environment'],
): { entries: Entry[]; warnings: string[] } {
  const keys = new Map<string, string>()
  for (const [key, row] of Object.entries(table)) {
    keys.set(environmentName(key), key)
    if (row.type === 'secret') keys.set(environmentName(`${key}.file`), `${key}.file`)
  }
  const entries: Entry[] = []
  const warnings: string[] = []
  for (const [name, value] of Object.entries(environment)) {
    if (!name.startsWith('PENSTOCK_') || value === undefined) continue
    const key = keys.get(name)
    if (key === undefined) warnings.push(`no setting has the environment variable ${name}`)
    else entries.push({ key, value: value.trim(), origin: 'environment', place: ` [environment=${name}]` })
  }
  return { entries, warnings }
}
