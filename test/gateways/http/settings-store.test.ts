// Goal: an unreadable file of preferences (of the console and of clients) does not fail requests, and is used again
// when it is readable. A change of preferences keeps a damaged file under another name.

import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { SettingsStore } from '../../../gateways/http/settings-store.js'

let folder: string
let records: string[]
let path: string

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'penstock-preferences-'))
  path = join(folder, 'preferences.json')
  records = []
})
afterEach(() => rmSync(folder, { recursive: true }))

function open(): SettingsStore {
  return new SettingsStore(path, (level, _logger, message) => void records.push(`${level} ${message}`))
}

const none = { version: 0, values: {} }
const damages = ['', '{"version":1,"val', '[]', 'null', '{"version":"1","values":{}}', '{"version":1,"values":[]}']

test.each(damages)('damaged: %j', async (content) => {
  writeFileSync(path, content)
  const store = open()
  expect(await store.read()).toEqual(none)
  expect(await store.read()).toEqual(none)
  expect(records).toHaveLength(1)
  expect(records[0]).toMatch(/^E preferences cannot be read.*preferences\.json/)
  await store.change(0, { theme: 'dark' }, true)
  expect(await open().read()).toEqual({ version: 1, values: { theme: 'dark' } })
  expect(readFileSync(`${path}.damaged`, 'utf8')).toBe(content)
})

test('what could not be read is read when it can be', async () => {
  mkdirSync(path)
  const store = open()
  expect(await store.read()).toEqual(none)
  rmSync(path, { recursive: true })
  writeFileSync(path, JSON.stringify({ version: 3, values: { a: 1 } }))
  expect(await store.read()).toEqual({ version: 3, values: { a: 1 } })
  await store.change(3, { b: 2 }, true)
  expect(await store.read()).toEqual({ version: 4, values: { a: 1, b: 2 } })
  expect(readdirSync(folder)).toEqual(['preferences.json'])
})
