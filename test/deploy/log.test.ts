// Goal: records have the specified form, files turn over with the day, old ones go, and a disk that refuses costs only
// records, which are counted.

import { mkdirSync, mkdtempSync, readdirSync, readFileSync, readlinkSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { beforeEach, expect, test } from 'vitest'
import { openLog } from '../../deploy/log.js'
import { until } from '../support/gateway.js'

let folder: string
let nowMs: number
let terminal: string[]

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'penstock-log-'))
  nowMs = Date.parse('2024-02-28T23:59:59.999Z')
  terminal = []
})

function open(daysKept = 0) {
  const write = (text: string) => terminal.push(text)
  return openLog({ folder, daysKept, terminal: { write }, nowMs: () => nowMs })
}

test('a record is one line of text', () => {
  const { log, flush } = open()
  log('I', 'wal', 'replayed [rows=3]')
  log('C', 'exec', '100% of\nit')
  flush()
  const text = readFileSync(join(folder, 'stdout-2024-02-28.txt'), 'utf8')
  expect(text).toBe('2024-02-28T23:59:59.999Z I wal replayed [rows=3]\n2024-02-28T23:59:59.999Z C exec 100% of\\nit\n')
  expect(terminal.join('')).toBe(text)
})

test('a new day has a new file, the link follows, old files go', async () => {
  for (const day of ['2024-02-01', '2024-02-27']) writeFileSync(join(folder, `stdout-${day}.txt`), 'old\n')
  writeFileSync(join(folder, 'mine.txt'), 'kept\n')
  const { log, flush } = open(3)
  log('W', 'a', 'today')
  expect(readlinkSync(join(folder, 'penstock-latest.log'))).toBe('stdout-2024-02-28.txt')
  nowMs += 1
  log('E', 'a', 'tomorrow')
  flush()
  expect(readFileSync(join(folder, 'penstock-latest.log'), 'utf8')).toBe('2024-02-29T00:00:00.000Z E a tomorrow\n')
  expect(readFileSync(join(folder, 'stdout-2024-02-28.txt'), 'utf8')).toContain('today')
  await until(() => !readdirSync(folder).includes('stdout-2024-02-01.txt'))
  expect(readdirSync(folder)).toContain('stdout-2024-02-27.txt')
  expect(readdirSync(folder)).toContain('mine.txt')
})

test('what the disk refuses is counted and told later', () => {
  const { log, flush } = open()
  const path = join(folder, 'stdout-2024-02-28.txt')
  mkdirSync(path)
  log('I', 'a', 'lost')
  flush()
  rmSync(path, { recursive: true })
  log('I', 'a', 'stored')
  flush()
  const text = readFileSync(path, 'utf8')
  expect(text).toContain('records could not be written and are lost [count=1]')
  expect(text).toContain('I a stored')
  expect(text).not.toContain('I a lost')
})

test('records are written without being asked', async () => {
  const { log } = open()
  for (let count = 0; count < 1000; count++) log('I', 'a', `record ${count}`)
  const path = join(folder, 'stdout-2024-02-28.txt')
  const lines = () => (readdirSync(folder).includes('stdout-2024-02-28.txt') ? readFileSync(path, 'utf8') : '')
  await until(() => lines().endsWith('record 999\n'))
  expect(lines().split('\n').length).toBe(1001)
})
