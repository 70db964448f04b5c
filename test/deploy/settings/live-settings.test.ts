// Goal: reloading the configuration applies exactly those settings that are marked reloadable, calls listeners only for
// changed settings, and changes nothing if a value is invalid. Method: every row of the table of settings is tried with
// another value.

import { expect, test } from 'vitest'
import { LiveSettings } from '../../../deploy/settings/live-settings.js'
import type { SettingRow } from '../../../deploy/settings/setting-row.js'
import { loadSettings } from '../../../deploy/settings/settings.js'
import { settingsTable } from '../../../deploy/settings/settings-table.js'
import { parseSetting } from '../../../deploy/settings/settings-values.js'

const rows = Object.entries<SettingRow>(settingsTable)

/** A value that the row takes and that is not its default; null when there is none to be found. */
function otherValue(row: SettingRow): string | null {
  const candidates: Record<SettingRow['type'], readonly string[]> = {
    boolean: ['true', 'false'],
    integer: ['7', '3', '100', '5000', String(row.min ?? 0), String(row.max ?? 1)],
    size: ['256k', '2m', '300m', '700m', '1g', String(row.min ?? 0)],
    duration: ['5s', '123ms', '2h'],
    address: ['127.0.0.1:12345'],
    choice: row.choices ?? [],
    text: ['/other', 'other_', 'other', '/tmp/other', '239.0.0.1'],
    secret: ['other'],
    words: ['other'],
    list: [...(row.choices ?? []), 'other', 'https://a.example'],
  }
  return candidates[row.type].find((text) => text !== row.initial && parseSetting(row, text) !== null) ?? null
}

function live(lines: () => string): { settings: LiveSettings; logged: string[]; heard: unknown[] } {
  const sources = () => ({ file: { path: 'server.conf', text: lines() }, environment: {}, assignments: [] })
  const logged: string[] = []
  const heard: unknown[] = []
  const settings = new LiveSettings(loadSettings(sources()), sources, (level, _logger, text) =>
    logged.push(`${level} ${text}`),
  )
  settings.onChange(({ values }) => heard.push(values))
  return { settings, logged, heard }
}

/** What a setting takes to make sense. */
const companions: Readonly<Record<string, string>> = {
  'http.user': 'http.password = x',
  'http.password': 'http.user = x',
  'http.cors.enabled': 'http.cors.allow.origin = https://a.example',
  'pg.security.required': 'pg.security.enabled = true',
  'security.strict': 'http.enabled = false\npg.enabled = false\nline.tcp.enabled = false\nhttp.min.enabled = false',
}

test.each(rows)('%s', (key, row) => {
  const value = otherValue(row)
  expect(value, 'a test value').not.toBe(null)
  const companion = `${companions[key] ?? ''}\n`
  let text = companion
  const { settings, logged, heard } = live(() => text)
  const before = settings.current.texts[key as keyof typeof settingsTable].text
  text = `${companion}${key} = ${value}`
  expect(settings.reload()).toBe(true)
  const after = settings.current.texts[key as keyof typeof settingsTable]
  if (row.reload === true) {
    expect(after).toMatchObject({ text: value, origin: 'file' })
    expect(heard.length).toBe(1)
  } else {
    expect(after.text).toBe(before)
    expect(heard).toEqual([])
    expect(logged.some((line) => line === `W ${key} requires a restart to change`)).toBe(true)
  }
})

test.each(rows)('%s is documented in a sentence', (_key, { description, initial, ...row }) => {
  expect(description).toMatch(/^[A-Z`].*[.:]/)
  expect(parseSetting({ description, initial, ...row }, initial)).not.toBe(null)
})

/** Of the specification: name and default. */
test.each([
  ['http.net.bind.to', '0.0.0.0:9000'],
  ['http.min.net.bind.to', '0.0.0.0:9003'],
  ['http.context.import', '/imp'],
  ['http.context.execute', '/exec'],
  ['http.context.export', '/exp'],
  ['http.json.query.max.response.rows', '10000'],
  ['http.net.connection.limit', '256'],
  ['http.json.query.connection.limit', '-1'],
  ['http.export.connection.limit', '-1'],
  ['http.ilp.connection.limit', '-1'],
  ['http.net.connection.timeout', '5m'],
  ['http.receive.buffer.size', '1m'],
  ['http.send.buffer.size', '2m'],
  ['http.export.default.timeout', '60s'],
  ['telemetry.queue.capacity', '512'],
  ['telemetry.table.ttl.weeks', '4'],
  ['telemetry.hide.tables', 'false'],
  ['metrics.enabled', 'true'],
  ['http.pessimistic.health.check.enabled', 'false'],
  ['query.tracing.enabled', 'false'],
  ['log.sql.query.progress.exe', 'false'],
])('%s is %s by default', (key, initial) => {
  expect((settingsTable as Record<string, SettingRow>)[key]?.initial).toBe(initial)
})

test('values as other servers write them: 300000 is 5 minutes, 1048576 a mebibyte', () => {
  const { settings } = live(() => 'http.net.connection.timeout=300000\nhttp.receive.buffer.size=1048576\n')
  expect(settings.current.values['http.net.connection.timeout']).toBe(300_000)
  expect(settings.current.values['http.receive.buffer.size']).toBe(1024 ** 2)
})

test('a mistake changes nothing', () => {
  let text = 'query.timeout = 1s'
  const { settings, logged, heard } = live(() => text)
  text = 'query.timeout = 2s\nno.such = 1'
  expect(settings.reload()).toBe(false)
  expect(settings.current.values['query.timeout']).toBe(1000)
  expect(heard).toEqual([])
  expect(logged.at(-1)).toContain('unknown setting: no.such [file=server.conf, line=2]')
})
