// Generates docs/settings.md and the sample conf/server.conf of a new root folder from the table of settings.

import type { SettingRow, SettingsTable } from './setting-row.js'
import { environmentName, type FamilyName, families } from './settings.js'
import { settingsTable } from './settings-table.js'
import { expectation } from './settings-values.js'

const introduction = `# Settings

Settings are read from \`<root>/conf/server.conf\`, one \`key = value\` per line; \`#\` begins a comment line. Sizes are bytes or
\`512k\`, \`2m\`, \`1g\`; durations are milliseconds or \`300ms\`, \`30s\`, \`5m\`, \`2h\`, \`1d\`. The environment overrides the
file: \`${environmentName('http.net.bind.to')}\` is \`http.net.bind.to\`. \`--set key=value\` on the command line overrides
both. For a secret, \`<key>.file\` names a file that contains the value. The server does not start with an unknown key or a bad
value, and names its place. Settings with a * can change while the server runs: edit the file, then send the process
SIGHUP or run \`select reload_config()\`.

This page is generated from the table in deploy/settings/settings-table.ts by \`npm run docs\`.
`

const familyIntroductions = {
  kafka: `## Kafka connectors

Settings of the connector \`<name>\`, any number of them; docs/kafka.md explains them. The environment has
\`PENSTOCK_KAFKA_<NAME>_BOOTSTRAP_SERVERS\` and so on.
`,
} as const satisfies Record<FamilyName, string>

/** Content of docs/settings.md. */
export function settingsDocument(): string {
  const ofFamilies = Object.entries<SettingsTable>(families).map(
    ([family, table]) => `\n${familyIntroductions[family as FamilyName]}\n${rowsText(table, `${family}.<name>.`)}`,
  )
  return `${introduction}\n${rowsText(settingsTable, '')}${ofFamilies.join('')}`
}

function rowsText(table: SettingsTable, prefix: string): string {
  const rows = Object.entries<SettingRow>(table).map(([key, row]) => {
    const initial = row.initial === '' ? '' : `\`${row.initial}\``
    const reload = row.reload === true ? ' *' : ''
    return `| \`${prefix}${key}\`${reload} | ${typeText(row)} | ${initial} | ${row.description} |`
  })
  return `| setting | type | default | |\n|---|---|---|---|\n${rows.join('\n')}\n`
}

/** A server.conf with every setting as a comment with its default. */
export function sampleConfiguration(table: SettingsTable = settingsTable): string {
  const entries = Object.entries(table).map(([key, row]) => `# ${row.description}\n#${key} = ${row.initial}\n`)
  return `# Settings of this server. What is commented out shows the default.\n\n${entries.join('\n')}`
}

function typeText(row: SettingRow): string {
  if (row.type === 'choice') return expectation(row).replace('one of ', '')
  if (row.type === 'words') return 'text'
  return row.type === 'address' ? 'host:port' : row.type
}
