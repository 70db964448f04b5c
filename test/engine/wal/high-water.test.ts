// Goal: the loss of any part of the write-ahead log is detected, by the high-water marks, a file that records how far
// the log was synced. Method: each way to lose a part is tried on a log that was closed and on one whose process was
// killed; the file of marks is itself torn, lost and damaged; log segments are renamed, copied and exchanged.

import { expect, test } from 'vitest'
import { silentLog } from '../../../engine/base/log.js'
import { HighWater, readMarks } from '../../../engine/wal/high-water.js'
import { createLogLoop } from '../../../engine/wal/log-loop.js'
import { openWal } from '../../../engine/wal/open.js'
import { frameKinds, type LogReport, type LogRequest } from '../../../engine/wal/types.js'
import { createFaultyDisk, type FaultyDisk, type OperationKind } from '../../support/simulator/faulty-files.js'

const directory = '/db/wal'
const segmentBytes = 2048

function openOn(disk: FaultyDisk) {
  const { files } = disk
  files.makeDirectory('/db')
  files.syncDirectory('/')
  const time = { ms: 0 }
  const requests: LogRequest[] = []
  const frames: string[] = []
  const highWater = HighWater.open({ files, directory: '/db', log: silentLog })
  const { wal, replay } = openWal({
    ...{ files, directory, highWater, segmentBytes, log: silentLog },
    clock: { nowMicros: () => time.ms * 1000, monotonicMs: () => time.ms },
    send: (request) => requests.push(request),
    onFrame: ({ payload }) => void frames.push(Buffer.from(payload).toString('latin1', 0, 3)),
  })
  const loop = createLogLoop({
    files,
    take: () => requests.shift(),
    report: (report: LogReport) => wal.handle(report),
  })
  const settle = () => {
    while (loop.step() === 'worked');
  }
  return { wal, replay, frames, time, highWater, settle }
}

/** Nine frames in several segments, each a group of its own. */
function written(how: 'closed' | 'killed') {
  const disk = createFaultyDisk(3)
  const { wal, settle, highWater } = openOn(disk)
  for (let index = 0; index < 9; index++) {
    wal.append(frameKinds.rows, [Buffer.from(`r-${index}`.padEnd(3500, '.'))])
    wal.writeGroup()
    settle()
  }
  if (how === 'closed') {
    wal.close()
    highWater.close()
  } else disk.kill()
  // The last one may be prepared and not begun.
  const segments = disk.files
    .list(directory)
    .filter((name) => name.endsWith('.wal') && disk.peek(`${directory}/${name}`).some((byte) => byte !== 0))
  return { disk, path: (at: number) => `${directory}/${segments.at(at)}` }
}

function rewrite({ files }: FaultyDisk, path: string, change: (bytes: Uint8Array) => Uint8Array | null): void {
  const file = files.open(path, 'write')
  const bytes = new Uint8Array(file.size())
  file.read(bytes, 0)
  const next = change(bytes)
  if (next === null) files.remove(path)
  else {
    file.truncate(0)
    file.write([next], 0)
    file.sync()
  }
  file.close()
  files.syncDirectory(directory)
}

const half = (bytes: Uint8Array): Uint8Array => {
  const used = bytes.findLastIndex((byte) => byte !== 0)
  return bytes.slice(0, 8192 + Math.floor((used - 8192) / 2))
}
const all = ['r-0', 'r-1', 'r-2', 'r-3', 'r-4', 'r-5', 'r-6', 'r-7', 'r-8']

const losses = {
  'the newest segment cut in half': { at: -1, change: half },
  'the newest segment emptied': { at: -1, change: () => new Uint8Array(0) },
  'the newest segment gone': { at: -1, change: () => null },
  'the end of the newest segment zeroed': {
    at: -1,
    change: (bytes: Uint8Array) => bytes.fill(0, half(bytes).length),
  },
  'a segment in the middle cut in half': { at: 1, change: half },
  'a segment in the middle gone': { at: 1, change: () => null },
  'the last frame changed': {
    at: -1,
    change: (bytes: Uint8Array) => {
      const at = Buffer.from(bytes.buffer).lastIndexOf('r-')
      bytes[at] = 0
      return bytes
    },
  },
} as const

test.each(Object.entries(losses))('%s is reported, and only its rows are missing', (_name, { at, change }) => {
  for (const how of ['closed', 'killed'] as const) {
    const { disk, path } = written(how)
    rewrite(disk, path(at), change)
    const { replay, frames } = openOn(disk)
    expect(replay.setAside.some(({ reason }) => reason !== 'tail')).toBe(true)
    expect(replay.clean).toBe(false)
    expect(frames.length).toBeLessThan(all.length)
    expect(all.filter((frame) => frames.includes(frame))).toEqual(frames)
    expect(disk.files.list(`${directory}/aside`).some((name) => /damage|missing/.test(name))).toBe(true)
  }
})

test('a whole log is whole, however it ended', () => {
  for (const how of ['closed', 'killed'] as const) {
    const { disk } = written(how)
    const { replay, frames } = openOn(disk)
    expect(replay.setAside).toEqual([])
    expect(frames).toEqual(all)
  }
})

test('segments whose names were exchanged are read in their order', () => {
  const { disk, path } = written('killed')
  const { files } = disk
  files.rename(path(0), `${directory}/x`)
  files.rename(path(-1), path(0))
  files.rename(`${directory}/x`, path(-1))
  const { replay, frames } = openOn(disk)
  expect(frames).toEqual(all)
  expect(replay.setAside).toEqual([])
})

test('a segment of another log, and a copy of one that is there, are set aside', () => {
  const foreign = createFaultyDisk(4)
  openOn(foreign)
  const { disk, path } = written('killed')
  const bytes = foreign.peek(`${directory}/0000000001.wal`)
  for (const [name, content] of [
    ['0000000077.wal', bytes],
    ['0000000078.wal', disk.peek(path(0))],
  ] as const) {
    const file = disk.files.open(`${directory}/${name}`, 'create')
    file.write([content], 0)
    file.sync()
  }
  disk.files.syncDirectory(directory)
  const { replay, frames } = openOn(disk)
  expect(frames).toEqual(all)
  expect(replay.setAside.map(({ content }) => content)).toEqual(['a segment of another log', 'a copy of segment 1'])
  expect(disk.files.list(directory)).not.toContain('0000000077.wal')
})

test('all segments gone: the log begins anew, and the loss is reported', () => {
  const { disk } = written('killed')
  for (const name of disk.files.list(directory)) {
    if (name.endsWith('.wal')) disk.files.remove(`${directory}/${name}`)
  }
  const { replay, wal, settle } = openOn(disk)
  expect(replay.setAside).toMatchObject([{ reason: 'missing', file: directory }])
  wal.append(frameKinds.rows, [Buffer.from('new')])
  wal.writeGroup()
  settle()
  disk.kill()
  expect(openOn(disk)).toMatchObject({ frames: ['new'], replay: { setAside: [] } })
})

test('marks of a torn write leave those of the last sync', () => {
  const disk = createFaultyDisk(5)
  const { wal, settle, time } = openOn(disk)
  const add = () => {
    wal.append(frameKinds.rows, [Buffer.from('x')])
    wal.writeGroup()
    settle()
  }
  let synced = 0
  for (let index = 0; index < 20; index++) {
    add()
    const before = wal.durableLsn
    time.ms += 600
    wal.tick()
    settle()
    // Every second tick syncs the marks.
    if (index % 2 === 1) synced = before
  }
  disk.crash(9)
  expect(readMarks(disk.files, '/db')?.log.lsn).toBeGreaterThanOrEqual(synced)
})

test('marks whose file is lost or damaged are begun anew', () => {
  for (const change of [() => null, (bytes: Uint8Array) => bytes.fill(7), () => new Uint8Array(0)]) {
    const { disk } = written('killed')
    rewrite(disk, '/db/high-water.bin', change)
    const { frames, wal } = openOn(disk)
    expect(frames).toEqual(all)
    expect(readMarks(disk.files, '/db')?.log.lsn).toBe(wal.headLsn)
  }
})

test.each<OperationKind>(['size', 'write'])('a segment whose creation failed at %s is not missing', (failing) => {
  const disk = createFaultyDisk(7)
  const { wal, settle, time } = openOn(disk)
  const add = () => {
    wal.append(frameKinds.rows, [Buffer.from('x'.padEnd(3500, '.'))])
    wal.writeGroup()
    settle()
  }
  add()
  const first = disk.files.list(directory).filter((name) => name.endsWith('.wal'))
  let failed: string | undefined
  disk.inject(({ kind, path }) => {
    if (failed !== undefined || kind !== failing || !path.endsWith('.wal') || path.endsWith(first[0] ?? '')) return
    failed = path
    return { kind: 'error', code: 'EIO' }
  })
  for (let index = 0; index < 6; index++) {
    add()
    time.ms += 2000
    wal.tick()
    settle()
  }
  expect(failed).toBeDefined()
  // The segment that took its place is trimmed: only the failed one could claim its positions.
  expect(wal.trim(wal.durableLsn)).toBeGreaterThan(1)
  settle()
  disk.kill()
  expect(openOn(disk).replay.setAside).toEqual([])
})
