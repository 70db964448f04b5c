// Goal: a sync is done by the writer when it is alone and nobody waits, and by the log thread otherwise; reports stay in
// the order of the requests; a slow disk is left to the log thread.

import { expect, test } from 'vitest'
import type { Files } from '../../../engine/base/files.js'
import { NearLog } from '../../../engine/threads/near-log.js'
import type { LogReport, LogRequest } from '../../../engine/wal/types.js'

function host(): { log: NearLog; sent: LogRequest[]; reports: LogReport[]; state: { idle: boolean; slow: boolean } } {
  const sent: LogRequest[] = []
  const reports: LogReport[] = []
  const state = { idle: true, slow: false }
  let now = 0
  const syncDescriptor = (): void => {
    if (state.slow) now += 5
  }
  const log = new NearLog({
    files: { syncDescriptor } as unknown as Files,
    send: (request) => sent.push(request),
    report: (report) => reports.push(report),
    isIdle: () => state.idle,
    nowMs: () => now,
  })
  return { log, sent, reports, state }
}

const sync = (sequence: number): LogRequest => ({ kind: 'sync', sequence, descriptor: 3 })

test('who syncs', () => {
  const { log, sent, reports, state } = host()
  expect(log.settle()).toBe(false)
  log.send(sync(1))
  expect(log.settle()).toBe(true)
  expect(reports).toEqual([{ kind: 'synced', sequence: 1 }])
  // Others wait for the writer.
  state.idle = false
  log.send(sync(2))
  expect(log.settle()).toBe(false)
  state.idle = true
  // One is on its way: the next one comes behind it.
  log.send(sync(3))
  expect(log.settle()).toBe(false)
  expect(sent).toEqual([sync(2), sync(3)])
  log.heard({ kind: 'synced', sequence: 2 })
  log.send(sync(4))
  expect(log.settle()).toBe(false)
  log.heard({ kind: 'synced', sequence: 4 })
  // Two of one step.
  log.send(sync(5))
  log.send(sync(6))
  expect(log.settle()).toBe(false)
  log.heard({ kind: 'syncFailed', sequence: 6, error: { name: 'FileError', message: '' } as never })
  state.slow = true
  log.send(sync(7))
  expect(log.settle()).toBe(true)
  log.send(sync(8))
  expect(log.settle()).toBe(false)
  expect(sent.map((request) => request.kind === 'sync' && request.sequence)).toEqual([2, 3, 4, 5, 6, 8])
  expect(reports).toHaveLength(2)
})
