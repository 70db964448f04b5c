// Goal: the rules of the write-ahead log between the writer and the log thread, one rule per test: when frames (log
// records) are acknowledged, what a failed sync does, how segment files are started, prepared, trimmed and counted, and
// what is logged about damage.

import { expect, test } from 'vitest'
import { ResourceError } from '../../../engine/base/errors.js'
import { encodeRows } from '../../../engine/wal/frame-rows.js'
import { createLogLoop } from '../../../engine/wal/log-loop.js'
import { openWal } from '../../../engine/wal/open.js'
import { noSourcePosition } from '../../../engine/wal/source-position.js'
import { type CommitMode, frameKinds, type LogReport, type LogRequest } from '../../../engine/wal/types.js'
import { atNth, createFaultyDisk, type FaultyDisk } from '../../support/simulator/faulty-files.js'

const directory = '/db/wal'

function openOn(disk: FaultyDisk, options: { mode?: CommitMode; segmentBytes?: number; bytesMax?: number } = {}) {
  disk.files.makeDirectory('/db')
  disk.files.syncDirectory('/')
  const time = { ms: 0 }
  const requests: LogRequest[] = []
  const sent: LogRequest[] = []
  const frames: string[] = []
  const records: string[] = []
  const { wal, replay } = openWal({
    files: disk.files,
    directory,
    clock: { nowMicros: () => time.ms * 1000, monotonicMs: () => time.ms },
    log: (level, _logger, message) => void records.push(`${level} ${message}`),
    send: (request) => {
      requests.push(request)
      sent.push(request)
    },
    onFrame: ({ payload }) => void frames.push(Buffer.from(payload).toString('latin1')),
    ...options,
  })
  const report = (message: LogReport) => wal.handle(message)
  const loop = createLogLoop({ files: disk.files, take: () => requests.shift(), report })
  const settle = () => {
    while (loop.step() === 'worked');
  }
  const add = (text: string) => wal.append(frameKinds.rows, [new Uint8Array(Buffer.from(text, 'latin1'))])
  return { wal, replay, loop, settle, add, time, sent, frames, records }
}

test('mode sync acknowledges when durable, async and nosync when written', () => {
  for (const mode of ['sync', 'async', 'nosync'] as const) {
    const { wal, add, settle } = openOn(createFaultyDisk(), { mode })
    const end = add('a')
    expect(wal.acknowledgedLsn).toBeLessThan(end)
    wal.writeGroup()
    expect(wal.acknowledgedLsn >= end).toBe(mode !== 'sync')
    settle()
    expect(wal.acknowledgedLsn).toBeGreaterThanOrEqual(end)
    expect(wal.durableLsn >= end).toBe(mode === 'sync')
  }
})

test('groups that were written while a sync ran are one sync', () => {
  const { wal, add, loop } = openOn(createFaultyDisk())
  const ends = ['a', 'b', 'c'].map((text) => {
    const end = add(text)
    wal.writeGroup()
    return end
  })
  expect(loop.step()).toBe('worked')
  expect(loop.step()).toBe('idle')
  expect(wal.durableLsn).toBeGreaterThanOrEqual(ends[2] ?? 0)
})

test('after a failed sync nothing is acknowledged, and then everything, from a fresh segment', () => {
  const disk = createFaultyDisk()
  const { wal, add, settle, loop, records } = openOn(disk)
  add('before')
  wal.writeGroup()
  settle()
  const durable = wal.durableLsn
  const end = add('waiting')
  wal.writeGroup()
  disk.inject(atNth('sync', disk.counts.sync + 1, { kind: 'error', code: 'EIO' }))
  loop.step()
  expect([wal.state, wal.acknowledgedLsn]).toEqual(['poisoned', durable])
  expect(() => add('refused')).toThrow(ResourceError)
  settle()
  expect(wal.state).toBe('open')
  expect(wal.acknowledgedLsn).toBeGreaterThanOrEqual(end)
  expect(records.map((record) => record.slice(0, 30))).toEqual(
    ['C writing the log failed, its s', 'W the log is writable again'].map((text) => text.slice(0, 30)),
  )
  disk.crash(1)
  expect(openOn(disk).frames).toEqual(['before', 'waiting'])
})

test('a full disk is tried again after a while', () => {
  const disk = createFaultyDisk()
  const { wal, add, settle, time } = openOn(disk)
  disk.inject(({ kind }) => (kind === 'write' ? { kind: 'short', code: 'ENOSPC' } : undefined))
  add('patient')
  wal.writeGroup()
  for (let second = 0; second < 5; second++) {
    time.ms += 1001
    wal.tick()
    settle()
  }
  expect(wal.state).toBe('poisoned')
  expect(disk.files.list(directory).length).toBeLessThan(3)
  disk.inject(undefined)
  time.ms += 1001
  wal.tick()
  settle()
  expect([wal.state, wal.waitingBytes]).toEqual(['open', 0])
  disk.crash(1)
  expect(openOn(disk).frames).toEqual(['patient'])
})

test('segments roll into prepared ones, filled with zeros unless the log grows fast', () => {
  for (const [msPerGroup, bytes] of [
    [600, 8192 + 65536],
    [1, 0],
  ] as const) {
    const { wal, add, settle, time, sent } = openOn(createFaultyDisk(), { segmentBytes: 65536 })
    for (let group = 0; group < 10; group++) {
      add('x'.repeat(4000))
      wal.writeGroup()
      settle()
      time.ms += msPerGroup
    }
    const prepared = sent.filter((request) => request.kind === 'prepare')
    expect(prepared.map((request) => request.bytes)).toEqual([bytes])
    expect(sent.filter((request) => request.kind === 'sync').at(-1)?.descriptor).not.toBe(
      sent.find((request) => request.kind === 'sync')?.descriptor,
    )
  }
})

test('trimming removes whole segments behind the flushed position; flushLsn says how far to flush', () => {
  const disk = createFaultyDisk()
  const { wal, add, settle } = openOn(disk, { segmentBytes: 8192, bytesMax: 20_000 })
  expect(wal.flushLsn).toBe(0)
  const ends: number[] = []
  for (let group = 0; group < 10; group++) {
    ends.push(add('y'.repeat(4000)))
    wal.writeGroup()
    settle()
  }
  expect(wal.bytes).toBe(wal.headLsn)
  const flushLsn = wal.flushLsn
  expect(flushLsn).toBeGreaterThanOrEqual(wal.headLsn - 20_000)
  expect(wal.trim(1)).toBe(0)
  expect(wal.trim(flushLsn)).toBeGreaterThan(0)
  settle()
  expect([wal.bytes <= 20_000, wal.flushLsn]).toEqual([true, 0])
  disk.crash(3)
  expect(openOn(disk).frames.length).toBe(ends.filter((end) => end > flushLsn).length)
})

test('idleness is recorded once, so that damage of the last group is known for damage', () => {
  const disk = createFaultyDisk()
  const { wal, add, settle, time } = openOn(disk)
  add('a group')
  wal.writeGroup()
  settle()
  for (const ms of [50, 100, 200, 200]) {
    time.ms += ms
    wal.tick()
    settle()
  }
  expect(wal.headLsn).toBe(2 * 4096)
  disk.damage(`${directory}/0000000001.wal`, 8192 + 48 + 32, new Uint8Array([0]))
  disk.kill()
  const { replay, frames } = openOn(disk)
  expect(frames).toEqual([])
  expect(replay.setAside.map(({ reason, lsn }) => [reason, lsn])).toEqual([['damage', 48]])
})

test('an orderly shutdown is known as such, and the log goes on', () => {
  const disk = createFaultyDisk()
  for (const [round, mode] of (['sync', 'async', 'nosync', 'sync'] as const).entries()) {
    const { wal, add, settle, replay, frames } = openOn(disk, { mode })
    expect([replay.clean, frames.length]).toEqual([round > 0, round])
    add(`round ${round}`)
    wal.writeGroup()
    settle()
    wal.close()
    disk.crash(round)
  }
  expect(openOn(disk).frames).toEqual(['round 0', 'round 1', 'round 2', 'round 3'])
})

test('damage is reported with its table and transaction, and kept in a side file', () => {
  const disk = createFaultyDisk()
  const { wal, settle, time } = openOn(disk)
  const numbers = { tableId: 3, structureVersion: 1, transaction: 17, rowCount: 0, minTimestamp: 0n, maxTimestamp: 0n }
  const tables = [{ ...numbers, symbols: [], columns: [] }]
  wal.append(frameKinds.rows, encodeRows({ sourcePosition: noSourcePosition, ddl: [], tables }))
  wal.writeGroup()
  settle()
  time.ms += 200
  wal.tick()
  settle()
  disk.kill()
  disk.damage(`${directory}/0000000001.wal`, 8192 + 48 + 32 + 16 + 24, new Uint8Array([9]))
  const { replay, records } = openOn(disk)
  const sideFile = `${directory}/aside/0000000001-8240-damage.bin`
  expect(replay.setAside).toMatchObject([
    { reason: 'damage', sideFile, content: 'rows, table 3 transaction 17 (0 rows)' },
  ])
  expect(records[0]).toMatch(/^C damaged log frame was skipped \[file=.*offset=8240.*table 3 transaction 17/)
  expect(disk.files.exists(sideFile)).toBe(true)
})

test('a value that looks like a frame is not taken for one when its frame is damaged', () => {
  const disk = createFaultyDisk()
  const { wal, add, settle, time } = openOn(disk)
  add('first')
  wal.writeGroup()
  settle()
  const inner = Buffer.from(disk.peek(`${directory}/0000000001.wal`).subarray(8192 + 48, 8192 + 48 + 40)).toString(
    'latin1',
  )
  add(`------------${inner}${'-'.repeat(100)}`.slice(4))
  add('last')
  wal.writeGroup()
  settle()
  time.ms += 200
  wal.tick()
  settle()
  disk.damage(`${directory}/0000000001.wal`, 8192 + 4096 + 48, new Uint8Array(32))
  disk.kill()
  expect(openOn(disk).frames).toEqual(['first', 'last'])
})
