// Loads the settings from their sources, in order of increasing precedence: the table's defaults, conf/server.conf,
// the environment, `--set key=value`.
//
//   file          key = value, one per line; # or ! starts a comment line; values are trimmed
//   environment   PENSTOCK_HTTP_NET_BIND_TO for http.net.bind.to
//   secrets       <key>.file names a file whose content (without its last line end) is the value
//   families      kafka.<name>.<key>: settings of one of several connectors; in the environment
//                 PENSTOCK_KAFKA_<NAME>_<KEY>, whose name is written in lower case elsewhere
//
// An unknown key or an invalid value prevents the start; the error states its place and the nearest known name.
// An unknown PENSTOCK_ variable only causes a warning, since other programs may use such names. There is no warning
// about variables of the command-line tool, nor about those that Kubernetes and Docker set for a service called
// penstock (PENSTOCK_PORT, PENSTOCK_SERVICE_HOST).

import { readFileSync } from 'node:fs'
import { nearest } from '../../engine/base/nearest.js'
import type { SettingRow, SettingsTable } from './setting-row.js'
import { kafkaSettings } from './settings-kafka.js'
import { settingsTable } from './settings-table.js'
import { expectation, parseSetting, type SettingsOf, type SettingValue } from './settings-values.js'

export type Settings = SettingsOf<typeof settingsTable>

/** Settings of earlier builds: a configuration that still has them starts, with a warning. */
const removedSettings: ReadonlySet<string> = new Set(['http.net.busy.poll.enabled'])

/** Tables of settings that a configuration may contain repeatedly, by name. */
export const families = { kafka: kafkaSettings } as const satisfies Readonly<Record<string, SettingsTable>>

export type FamilyName = keyof typeof families
type FamilySettings<Family extends FamilyName> = SettingsOf<(typeof families)[Family]>
export type KafkaSettings = FamilySettings<'kafka'>

export class SettingsError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options)
    this.name = 'SettingsError'
  }
}

export interface SettingsSources {
  /** Path and content of server.conf; null when there is none. */
  readonly file: { readonly path: string; readonly text: string } | null
  readonly environment: Readonly<Record<string, string | undefined>>
  /** `key=value`, as given on the command line. */
  readonly assignments: readonly string[]
}

/** Source of a value, in order of increasing precedence. */
export type SettingOrigin = 'default' | 'file' | 'environment' | 'command line'

interface SettingText {
  readonly text: string
  readonly origin: SettingOrigin
  /** ` [file=.., line=3]`; empty for a default. */
  readonly place: string
}

export interface LoadedSettings<Table extends SettingsTable> {
  readonly values: SettingsOf<Table>
  /** Settings of families appear under their full names if they are set. */
  readonly texts: Readonly<Record<keyof Table, SettingText>>
  readonly warnings: readonly string[]
  /** Members of the families, by name. */
  readonly families: { readonly [Family in FamilyName]: ReadonlyMap<string, FamilySettings<Family>> }
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

/** Loads any table of settings; tests use their own. */
export function loadTable<Table extends SettingsTable>(table: Table, sources: SettingsSources): LoadedSettings<Table> {
  const values: Record<string, SettingValue> = {}
  const texts: Record<string, SettingText> = {}
  const members = new Map<string, { readonly member: Member; readonly values: Record<string, SettingValue> }>()
  for (const [key, row] of Object.entries(table)) texts[key] = { text: row.initial, origin: 'default', place: '' }
  Object.assign(values, defaultsOf(table))
  const { entries: fromEnvironment, warnings } = environmentEntries(table, sources.environment)
  const entries = [
    ...(sources.file === null ? [] : fileEntries(sources.file.path, sources.file.text)),
    ...fromEnvironment,
    ...sources.assignments.map(assignmentEntry),
  ]
  for (const entry of entries) {
    if (removedSettings.has(entry.key)) {
      warnings.push(`${entry.key} is no longer a setting and has no effect${entry.place}`)
      continue
    }
    const { key, row, value } = resolve(table, entry)
    const parsed = settingValue(row, { ...entry, value })
    texts[key] = { text: value, origin: entry.origin, place: entry.place }
    const member = memberOf(key)
    if (member === null) values[key] = parsed
    else {
      const id = `${member.family} ${member.name}`
      const known = members.get(id) ?? { member, values: defaultsOf(families[member.family]) }
      members.set(id, known)
      known.values[member.key] = parsed
    }
  }
  const ofFamily = (family: FamilyName) =>
    new Map(
      [...members.values()].flatMap((known) =>
        known.member.family === family ? [[known.member.name, known.values]] : [],
      ),
    )
  return {
    values: values as SettingsOf<Table>,
    texts: texts as LoadedSettings<Table>['texts'],
    warnings,
    families: { kafka: ofFamily('kafka') as unknown as ReadonlyMap<string, KafkaSettings> },
  }
}

function defaultsOf(table: SettingsTable): Record<string, SettingValue> {
  const values: Record<string, SettingValue> = {}
  for (const [key, row] of Object.entries(table)) {
    values[key] = settingValue(row, { key, value: row.initial, origin: 'default', place: '' })
  }
  return values
}

/** A setting of a family: `kafka.<name>.<key>`. */
interface Member {
  readonly family: FamilyName
  readonly name: string
  readonly key: string
}

function memberOf(wholeKey: string): Member | null {
  const match = /^(\w+)\.([A-Za-z0-9_-]+)\.(.+)$/.exec(wholeKey)
  const [, family = '', name = '', key = ''] = match ?? []
  return Object.hasOwn(families, family) ? { family: family as FamilyName, name, key } : null
}

/** The row of a setting, including those of families; undefined for an unknown name. */
export function settingRow(table: SettingsTable, key: string): SettingRow | undefined {
  if (Object.hasOwn(table, key)) return table[key]
  const member = memberOf(key)
  if (member === null) return undefined
  const rows: SettingsTable = families[member.family]
  return Object.hasOwn(rows, member.key) ? rows[member.key] : undefined
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
  const row = settingRow(table, key)
  if (row !== undefined) return { key, row, value }
  const secretKey = key.endsWith('.file') ? key.slice(0, -'.file'.length) : ''
  const secret = settingRow(table, secretKey)
  if (secret?.type === 'secret') return { key: secretKey, row: secret, value: readSecret(key, value, place) }
  throw new SettingsError(`unknown setting: ${key}${meantText(nearest(key, knownKeys(table, key)))}${place}`)
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
    if (!variableText.test(name) || value === undefined) continue
    const key = name.startsWith('PENSTOCK_') ? (keys.get(name) ?? familyKey(name)) : undefined
    if (key === undefined) warnings.push(...unknownVariable(name, keys))
    else entries.push({ key, value: value.trim(), origin: 'environment', place: ` [environment=${name}]` })
  }
  return { entries, warnings }
}

/** Matches misspelt prefixes such as `PENSTOK_` and `penstock_`. */
const variableText = /^PEN[A-Z]{2,7}_/i
const ofOrchestrators = /^PENSTOCK_(SERVICE_(HOST|PORT(_\w+)?)|PORT(_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)?)$/
/** Variables that the command line tool reads. */
const ofTool: ReadonlySet<string> = new Set(
  ['URL', 'USER', 'PASSWORD', 'TOKEN', 'CA', 'HISTORY', 'PAGER', 'EDITOR'].map((word) => `PENSTOCK_${word}`),
)

/** Returns a warning, or none for another program's variable. */
function unknownVariable(name: string, keys: ReadonlyMap<string, string>): string[] {
  if (ofTool.has(name) || ofOrchestrators.test(name)) return []
  const meant = nearest(name, [...keys.keys(), ...familyVariables(name)])
  if (meant === null && !name.startsWith('PENSTOCK_')) return []
  return [`no setting has the environment variable ${name}${meantText(meant)}`]
}

function meantText(meant: string | null): string {
  return meant === null ? '' : `, perhaps ${meant} is meant`
}

/** Known keys, with the connector name of the given key. */
function knownKeys(table: SettingsTable, key: string): string[] {
  const member = memberOf(key)
  const ofFamily = member === null ? [] : Object.keys(families[member.family])
  return [...Object.keys(table), ...ofFamily.map((own) => `${member?.family}.${member?.name}.${own}`)]
}

/** All connector variables whose name part the variable may contain. */
function familyVariables(variable: string): string[] {
  return Object.entries<SettingsTable>(families).flatMap(([family, table]) => {
    const prefix = environmentName(`${family}.`)
    if (!variable.startsWith(prefix)) return []
    const words = variable.slice(prefix.length).split('_')
    const names = words.slice(0, -1).map((_, index) => words.slice(0, index + 1).join('_'))
    return names.flatMap((name) =>
      Object.keys(table).map((key) => `${prefix}${name}_${environmentName(key).slice('PENSTOCK_'.length)}`),
    )
  })
}

/** PENSTOCK_KAFKA_PLANT_GROUP_ID is kafka.plant.group.id. The longest matching key wins. */
function familyKey(variable: string): string | undefined {
  for (const [family, table] of Object.entries<SettingsTable>(families)) {
    const prefix = environmentName(`${family}.`)
    if (!variable.startsWith(prefix)) continue
    const rest = variable.slice(prefix.length)
    const keys = Object.entries(table).flatMap(([key, row]) => (row.type === 'secret' ? [key, `${key}.file`] : [key]))
    const ending = (key: string): string => `_${key.toUpperCase().replaceAll('.', '_')}`
    const fitting = keys.filter((key) => rest.endsWith(ending(key))).sort((x, y) => y.length - x.length)
    const [key] = fitting
    if (key === undefined) continue
    const name = rest.slice(0, -ending(key).length).toLowerCase()
    if (/^[a-z0-9_]+$/.test(name)) return `${family}.${name}.${key}`
  }
  return undefined
}
