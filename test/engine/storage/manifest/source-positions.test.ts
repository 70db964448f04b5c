// Goal: the stored position of a stream (such as the offset of a Kafka partition) changes atomically with the rows up
// to it, through crashes, flushes and log trims. Method: random requests, flushes, crashes and repeated old requests;
// each line must be stored exactly once.

import { expect, test } from 'vitest'
import { packSourcePosition } from '../../../../engine/storage/manifest/source-positions.js'
import { createRandom } from '../../../support/random.js'
import { runs } from '../../../support/runs.js'
import { createFaultyDisk } from '../../../support/simulator/faulty-files.js'
import { type PartStore, WriterHost } from '../writer-host.js'

const connector = 'plant'

function newHost() {
  const disk = createFaultyDisk(1)
  disk.files.makeDirectory('/db')
  disk.files.syncDirectory('/')
  const parts: PartStore = new Map()
  return { disk, open: () => new WriterHost({ files: disk.files, parts, walSegmentBytes: 64 * 1024 }) }
}

function lines(partition: number, from: number, to: number): string {
  let text = ''
  for (let offset = from; offset < to; offset++) text += `t v=${partition * 1_000_000 + offset}i ${offset + 1}000\n`
  return text
}

function send(host: WriterHost, partition: number, previous: number, text: string, offset: number): number {
  const sourcePosition = packSourcePosition({ connector, topic: 'ticks', partition, offset }, previous)
  return host.lines(text, { skipBadLines: true, sourcePosition })
}

function offsets(host: WriterHost): Map<number, number> {
  return new Map(host.positions.map(({ partition, offset }) => [partition, offset]))
}

test('a request that does not follow what is stored is not stored', () => {
  const host = newHost().open()
  const store = (previous: number, from: number, to: number) =>
    host.await(send(host, 0, previous, lines(0, from, to), to - 1))
  expect(store(-1, 0, 3)).toMatchObject({ rows: 3, existed: false })
  expect(store(-1, 0, 3)).toMatchObject({ rows: 0, existed: true, error: null })
  expect(store(9, 10, 12)).toMatchObject({ rows: 0, existed: true })
  expect(store(2, 3, 5)).toMatchObject({ rows: 2, existed: false })
  expect(host.rows('t').length).toBe(5)
})

test('bad lines are all named, and nothing is stored, the offset neither', () => {
  const { disk, open } = newHost()
  const host = open()
  const receipt = host.await(send(host, 0, -1, `${lines(0, 0, 2)}t v=\nbad\n${lines(0, 2, 3)}t v=x 1\n`, 5))
  expect(receipt.rows).toBe(0)
  expect(receipt.error?.name).toBe('RowError')
  expect(receipt.rejects.map(({ line }) => line)).toEqual([4, 6])
  disk.kill()
  expect(open().positions).toEqual([])
})

test('a request without rows moves the offset', () => {
  const { disk, open } = newHost()
  const host = open()
  expect(host.await(send(host, 3, -1, '\n\n', 7))).toMatchObject({ rows: 0, error: null, existed: false })
  disk.crash(5)
  expect(open().positions).toEqual([{ connector, topic: 'ticks', partition: 3, offset: 7 }])
})

test('the log may forget the frames', () => {
  const { disk, open } = newHost()
  let host = open()
  for (let from = 0; from < 30_000; from += 1000) {
    host.await(send(host, 0, from - 1, lines(0, from, from + 1000), from + 999))
  }
  host.await(send(host, 1, -1, lines(1, 0, 1), 0))
  host.checkpoint()
  for (let turn = 0; turn < 3000; turn++) host.turn()
  expect(host.writer.metrics.walBytes).toBeLessThan(200_000)
  for (let restart = 0; restart < 2; restart++) {
    disk.crash(restart)
    host = open()
    expect(offsets(host)).toEqual(new Map([[0, 29_999], [1, 0]])) // biome-ignore format: short
    expect(host.rows('t').length).toBe(30_001)
  }
})

test.each([1, 2, 3, 4, 5, 6].slice(0, runs(6, 2)))('each line once, seed %i', (seed) => {
  const random = createRandom(seed)
  const { disk, open } = newHost()
  let host = open()
  const sent = [0, 0]
  for (let step = 0; step < 60; step++) {
    const partition = random.below(1 + 1)
    const next = sent[partition] as number
    const count = random.below(300 + 1)
    const id = send(host, partition, next - 1, lines(partition, next, next + count), next + count - 1)
    const stale = random.chance(0.2) ? send(host, partition, next - 1, lines(partition, next, next + 1), next) : 0
    if (random.chance(0.2)) {
      for (let turn = random.below(6 + 1); turn > 0; turn--) host.turn()
      if (random.chance(0.5)) disk.crash(step)
      else disk.kill()
      host = open()
      for (const known of [0, 1]) sent[known] = (offsets(host).get(known) ?? -1) + 1
    } else {
      expect(host.await(id).existed).toBe(false)
      sent[partition] = next + count
      if (stale > 0 && count > 0) expect(host.await(stale).existed).toBe(true)
      else if (stale > 0) sent[partition] = next + 1
    }
    if (random.chance(0.1)) host.checkpoint()
    for (let turn = random.below(1500 + 1); turn > 0; turn--) host.turn()
  }
  host.settle()
  const values = host.rows('t').map(({ v }) => Number(v))
  const wanted = sent.flatMap((count, partition) => Array.from({ length: count }, (_, n) => partition * 1_000_000 + n))
  expect(values.sort((x, y) => x - y)).toEqual(wanted)
})
