// Goal: log records have the specified format, text or JSON, each day has its own log file, old files are removed, and
// records that cannot be written because the disk fails are counted.

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

test('records that the disk refuses are counted and reported later', () => {
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

test('records may be JSON, and have a least level that changes', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'penstock-log-'))
  const logging = openLog({ folder, daysKept: 0, format: 'json', level: 'W', terminal: null, nowMs: () => 0 })
  logging.log('I', 'a', 'too small')
  logging.log('E', 'wal', 'line\nbreak "quoted"')
  logging.reconfigure('I', 0)
  logging.log('I', 'a', 'now')
  logging.flush()
  const lines = readFileSync(join(folder, 'stdout-1970-01-01.txt'), 'utf8').trimEnd().split('\n')
  expect(lines.map((line) => JSON.parse(line))).toEqual([
    { time: '1970-01-01T00:00:00.000Z', level: 'E', logger: 'wal', message: 'line\nbreak "quoted"' },
    { time: '1970-01-01T00:00:00.000Z', level: 'I', logger: 'a', message: 'now' },
  ])
})

test('records that a full disk refuses are counted, and reported when there is room again', async () => {
  const folder = join(mkdtempSync(join(tmpdir(), 'penstock-log-')), 'log')
  const logging = openLog({ folder, daysKept: 0, terminal: null, nowMs: () => 0 })
  // A folder that is not there refuses as a full disk does.
  logging.log('I', 'a', 'lost')
  logging.log('I', 'a', 'lost as well')
  logging.flush()
  expect(logging.dropped).toBe(2)
  mkdirSync(folder)
  logging.log('I', 'a', 'kept')
  logging.flush()
  const text = readFileSync(join(folder, 'stdout-1970-01-01.txt'), 'utf8')
  expect(text.trimStart().split('\n').slice(0, 2)).toEqual([
    '1970-01-01T00:00:00.000Z E log records could not be written and are lost [count=2]',
    '1970-01-01T00:00:00.000Z I a kept',
  ])
})
