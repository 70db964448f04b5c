// Goal: settings are read from their four sources with the right precedence, and every error names its location.

import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { loadSettings, loadTable, type SettingsSources } from '../../../deploy/settings/settings.js'
import { settingsTable } from '../../../deploy/settings/settings-table.js'
import { sampleConfiguration, settingsDocument } from '../../../deploy/settings/settings-text.js'
import { repositoryRoot } from '../../support/docs/source-tree.js'

const nothing: SettingsSources = { file: null, environment: {}, assignments: [] }

function conf(text: string): SettingsSources {
  return { ...nothing, file: { path: 'conf/server.conf', text } }
}

test('every default is a value of its type', () => {
  const { values } = loadSettings(nothing)
  expect(values['http.net.bind.to']).toEqual({ host: '0.0.0.0', port: 9000 })
  expect(values['wal.bytes.max']).toBe(512 * 1024 ** 2)
  expect(values['http.net.connection.timeout']).toBe(300_000)
  expect(values['wal.commit.mode']).toBe('sync')
})

test('the command line beats the environment, which beats the file', () => {
  const file = { path: 'c', text: '# a comment\n\nquery.threads = 2\nquery.timeout=300ms\r\nwal.bytes.max = 1g\n' }
  const environment = {
    PENSTOCK_QUERY_THREADS: '3',
    PENSTOCK_QUERY_TIMEOUT: '2s',
    PENSTOCK_X_Y: '1',
    PENSTOCK_PAGER: 'less',
    PATH: '/',
  }
  const { values, warnings } = loadSettings({ file, environment, assignments: ['query.threads=4'] })
  expect(values['query.threads']).toBe(4)
  expect(values['query.timeout']).toBe(2000)
  expect(values['wal.bytes.max']).toBe(1024 ** 3)
  expect(warnings).toEqual(['no setting has the environment variable PENSTOCK_X_Y'])
})

test.each([
  ['nope = 1', 'unknown setting: nope [file=conf/server.conf, line=1]'],
  ['__proto__ = 1', 'unknown setting: __proto__ [file=conf/server.conf, line=1]'],
  [
    '\n\nhttp.enabled = yes',
    "bad value of http.enabled: 'yes', expected true or false [file=conf/server.conf, line=3]",
  ],
  ['http.net.bind.to = 9000', 'expected an address such as 0.0.0.0:9000 [file=conf/server.conf, line=1]'],
  ['http.net.bind.to = a:70000', 'expected an address'],
  ['query.timeout = 5x', "bad value of query.timeout: '5x', expected a duration such as"],
  ['wal.bytes.max = 1k', 'expected a size such as 512k, 2m or 1g of at least 134217728'],
  ['wal.commit.mode = fast', 'expected one of sync, async, nosync'],
  ['query.threads = -1', 'expected an integer from 0 to 64'],
  ['just words', 'expected key=value: just words [file=conf/server.conf, line=1]'],
  ['http.net.bind.to.file = x', 'unknown setting: http.net.bind.to.file'],
])('%j is refused', (text, message) => {
  expect(() => loadSettings(conf(text))).toThrow(message)
})

test('a setting that was removed is a warning, wherever it is set', () => {
  const file = { path: 'c', text: 'http.net.busy.poll.enabled = false\n' }
  const assignments = ['http.net.busy.poll.enabled=anything']
  const environment = { PENSTOCK_HTTP_NET_BUSY_POLL_ENABLED: 'true' }
  expect(loadSettings({ file, environment, assignments }).warnings).toEqual([
    'no setting has the environment variable PENSTOCK_HTTP_NET_BUSY_POLL_ENABLED',
    'http.net.busy.poll.enabled is no longer a setting and has no effect [file=c, line=1]',
    'http.net.busy.poll.enabled is no longer a setting and has no effect [--set http.net.busy.poll.enabled]',
  ])
})

test('mistakes of the other sources name them', () => {
  expect(() => loadSettings({ ...nothing, assignments: ['a=1'] })).toThrow('unknown setting: a [--set a]')
  expect(() => loadSettings({ ...nothing, environment: { PENSTOCK_HTTP_ENABLED: '1' } })).toThrow(
    '[environment=PENSTOCK_HTTP_ENABLED]',
  )
})

test.each(['metrics.prefix=9x', 'line.name.replacement=a b', 'line.name.replacement=ä', 'http.context.execute=sql'])(
  'a value that does not match the pattern of its setting is refused: %s',
  (assignment) => {
    expect(() => loadSettings({ ...nothing, assignments: [assignment] })).toThrow(/expected a string (such as|that)/)
  },
)

test.each([
  ['PENSTOCK_HTTP_USR', 'PENSTOCK_HTTP_USER'],
  ['PENSTOK_HTTP_USER', 'PENSTOCK_HTTP_USER'],
  ['Penstock_http_user', 'PENSTOCK_HTTP_USER'],
  ['PENSTOCK_PG_PASSWROD_FILE', 'PENSTOCK_PG_PASSWORD_FILE'],
  ['PENSTOCK_KAFKA_MY_PLANT_TOPICZ', 'PENSTOCK_KAFKA_MY_PLANT_TOPICS'],
  ['PENSTOCK_NOTHING_LIKE_IT', null],
])('the variable %s is reported with the nearest name', (name, meant) => {
  const { warnings } = loadSettings({ ...nothing, environment: { [name]: '1' } })
  const hint = meant === null ? '' : `, perhaps ${meant} is meant`
  expect(warnings).toEqual([`no setting has the environment variable ${name}${hint}`])
})

test('variables of orchestrators, of the tool and of other programs are no mistakes', () => {
  const names = [
    ...['PORT', 'SERVICE_HOST', 'SERVICE_PORT', 'SERVICE_PORT_HTTP', 'PORT_9000_TCP', 'PORT_9000_TCP_ADDR'],
    ...['URL', 'USER', 'PASSWORD', 'TOKEN'],
  ].map((word) => `PENSTOCK_${word}`)
  const environment = Object.fromEntries([...names, 'PENGUIN_HOME', 'PENDING_USER'].map((name) => [name, 'x']))
  expect(loadSettings({ ...nothing, environment }).warnings).toEqual([])
})

test('an unknown setting is reported with the nearest one', () => {
  const message = 'unknown setting: http.net.bnd.to, perhaps http.net.bind.to is meant [file=conf/server.conf, line=1]'
  expect(() => loadSettings(conf('http.net.bnd.to = x'))).toThrow(message)
  expect(() => loadSettings({ ...nothing, assignments: ['kafka.plant.topic=x'] })).toThrow(
    'perhaps kafka.plant.topics is meant [--set kafka.plant.topic]',
  )
})

test('a secret comes from a file, and no message shows it', () => {
  const table = { 'a.password': { type: 'secret', initial: '', description: '' } } as const
  const path = join(mkdtempSync(join(tmpdir(), 'penstock-settings-')), 'secret')
  writeFileSync(path, 'hidden\n')
  expect(loadTable(table, conf(`a.password.file = ${path}`)).values['a.password']).toBe('hidden')
  const environment = { PENSTOCK_A_PASSWORD_FILE: path }
  expect(loadTable(table, { ...nothing, environment }).values['a.password']).toBe('hidden')
  expect(() => loadTable(table, conf(`a.password.file = ${path}.not`))).toThrow('cannot be read')
})

test('the sample configuration changes nothing, also when its lines count', () => {
  const lines = sampleConfiguration().replaceAll(/^#(\S+ = )/gm, '$1')
  expect(loadSettings(conf(lines)).values).toEqual(loadSettings(nothing).values)
  expect(lines.match(/^[a-z]/gm)?.length).toBe(Object.keys(settingsTable).length)
})

test('docs/settings.md is current: npm run docs writes it', () => {
  expect(readFileSync(join(repositoryRoot, 'docs/settings.md'), 'utf8')).toBe(settingsDocument())
})
