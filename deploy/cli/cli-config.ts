// Implements `penstock config`: lists the settings with which a server would start on a root folder, each with the
// source that sets it. Reads the same sources as a start and changes nothing.

import { existsSync, readFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { join, resolve } from 'node:path'
import { machineBytes, memoryBytes } from '../settings/machine.js'
import { type LoadedSettings, loadSettings, type SettingsSources, settingRow } from '../settings/settings.js'
import { settingsTable } from '../settings/settings-table.js'
import { exitCodes, ToolError } from './http-client.js'

export interface ConfigFlags {
  readonly dir: string
  readonly set: readonly string[]
  readonly changed?: boolean
  readonly json?: boolean
}

interface Shown {
  readonly name: string
  readonly value: string
  readonly source: string
  /** What a default that depends on the machine amounts to here. */
  readonly effective?: string
}

/** `pattern` is a part of the names that are shown; undefined: all. */
export function runConfig(pattern: string | undefined, { dir, set, changed, json }: ConfigFlags): void {
  const loaded = loadSettings(settingSources(dir, set))
  const all = Object.entries(loaded.texts)
    .filter(([name]) => pattern === undefined || name.includes(pattern.toLowerCase()))
    .filter(([, { origin }]) => changed !== true || origin !== 'default')
    .map(([name, text]) => shown(name, text, loaded))
    .toSorted((a, b) => (a.name < b.name ? -1 : 1))
  if (pattern !== undefined && all.length === 0 && changed !== true)
    throw new ToolError(`no setting has '${pattern}' in its name`, exitCodes.usage)
  if (json === true) process.stdout.write(`${JSON.stringify(all, null, 2)}\n`)
  else process.stdout.write(all.map(lineOf).join(''))
  for (const warning of loaded.warnings) process.stderr.write(`penstock: ${warning}\n`)
}

/** What a start on this root would read. The root need not exist. */
export function settingSources(dir: string, assignments: readonly string[]): SettingsSources {
  const path = join(resolve(dir), 'conf', 'server.conf')
  const file = existsSync(path) ? { path, text: readFileSync(path, 'utf8') } : null
  return { file, environment: process.env, assignments }
}

type Loaded = LoadedSettings<typeof settingsTable>
type Text = Loaded['texts'][keyof Loaded['texts']]

function shown(name: string, { text, origin, place }: Text, { values }: Loaded): Shown {
  const isSecret = settingRow(settingsTable, name)?.type === 'secret'
  const value = isSecret && text !== '' ? '****' : text
  const source =
    origin === 'default'
      ? 'default'
      : place
          .trim()
          .replace(/^\[(.*)\]$/, '$1')
          .replace('file=', '')
          .replace('environment=', 'environment ')
          .replace(', line=', ', line ')
  if (name === 'memory.bytes') {
    const bytes = memoryBytes(values['memory.bytes'], machineBytes())
    return { name, value, source, effective: `${Math.round(bytes / 1024 ** 2)}m` }
  }
  if (name === 'query.threads' && values['query.threads'] === 0)
    return { name, value, source, effective: String(availableParallelism()) }
  return { name, value, source }
}

/** As in server.conf, so that the output can be pasted there. */
function lineOf({ name, value, source, effective }: Shown): string {
  return `${`${name} = ${value}`.padEnd(50)} # ${source}${effective === undefined ? '' : `; here ${effective}`}\n`
}
