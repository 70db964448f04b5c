// Goal: QWP messages (columnar protocol) that arrive as datagrams are committed in groups: after a fixed time, or
// earlier when many are waiting. A message that cannot be stored loses only its own rows. While the server refuses
// writes, messages wait, up to a limit.

import { afterEach, describe, expect, test, vi } from 'vitest'
import { errorRecord, NetworkError, ResourceError } from '../../engine/base/errors.js'
import type { LineRequest, LineTicket, Receipt } from '../../engine/engine.js'
import { metrics } from '../../engine/memory/metrics.js'
import { type QwpDatagramOptions, QwpDatagrams } from '../../pipeline/qwp-datagrams.js'

afterEach(() => vi.useRealTimers())

const none: Receipt = { requestId: 0, lsn: 0, existed: false, rows: 0, rejected: 0, rejects: [], error: null }

/** A message's first byte says whether it is bad. */
function engineOf(bad: number) {
  const commits: number[][] = []
  const state = { refused: null as string | null, forgotten: [] as number[] }
  const engine: QwpDatagramOptions['engine'] = {
    lines: ({ blocks }: LineRequest): LineTicket => {
      if (state.refused !== null) {
        const refusal = Promise.reject(new ResourceError(state.refused))
        refusal.catch(() => {})
        return { taken: refusal, receipt: refusal }
      }
      const bytes = blocks.map((block) => block[0] ?? 0)
      const isBad = bytes.includes(bad)
      if (!isBad) commits.push(bytes)
      const error = isBad ? errorRecord(new NetworkError('malformed message')) : null
      return { taken: Promise.resolve(), receipt: Promise.resolve({ ...none, rows: bytes.length, error }) }
    },
    metrics: () => ({ ...metrics, writesRefused: state.refused }) as never,
    forgetConnection: (id) => void state.forgotten.push(id),
  }
  return { engine, commits, state }
}

function open(changes: Partial<QwpDatagramOptions> = {}, bad = 255) {
  const fake = engineOf(bad)
  const outcome = { stored: 0, rejected: [] as string[] }
  const datagrams = new QwpDatagrams({
    ...{ engine: fake.engine, connectionId: 7, commitMs: 20, uncommittedMax: 100, waitingMax: 1000 },
    waitingBytesMax: 10_000,
    stored: (_receipt, messages) => {
      outcome.stored += messages
    },
    rejected: (error, messages) => outcome.rejected.push(`${messages} ${error.message}`),
    ...changes,
  })
  return { ...fake, outcome, datagrams }
}

const message = (first: number): Uint8Array => Uint8Array.of(first, 0)

describe('messages are committed', () => {
  test('together, when their time is over', async () => {
    vi.useFakeTimers()
    const { datagrams, commits } = open({ commitMs: 2000 })
    for (const first of [1, 2, 3]) expect(datagrams.take(message(first))).toBe(true)
    await vi.advanceTimersByTimeAsync(1999)
    expect(commits).toEqual([])
    await vi.advanceTimersByTimeAsync(1)
    expect(commits).toEqual([[1, 2, 3]])
    datagrams.take(message(4))
    await vi.advanceTimersByTimeAsync(2000)
    expect(commits).toEqual([[1, 2, 3], [4]])
  })

  test.each([
    ['the limit of their number', { uncommittedMax: 3 }],
    ['half of those that may wait', { waitingMax: 6 }],
    ['half of the bytes that may wait', { waitingBytesMax: 12 }],
  ])('earlier at %s', async (_name, limits) => {
    const { datagrams, commits } = open({ commitMs: 100_000, ...limits })
    for (const first of [1, 2, 3, 4]) datagrams.take(message(first))
    await vi.waitFor(() => expect(commits).toEqual([[1, 2, 3]]))
    await datagrams.close()
    expect(commits).toEqual([[1, 2, 3], [4]])
  })

  test('at the end, and the connection is forgotten', async () => {
    const { datagrams, commits, state, outcome } = open({ commitMs: 100_000 })
    datagrams.take(message(1))
    await datagrams.close()
    expect([commits, state.forgotten, outcome.stored]).toEqual([[[1]], [7], 1])
  })
})

test('a bad message is left out, wherever it is', async () => {
  for (let place = 0; place < 9; place++) {
    const { datagrams, commits, outcome } = open({}, 100 + place)
    for (let index = 0; index < 9; index++) datagrams.take(message(100 + index))
    await datagrams.close()
    expect(commits.flat()).toEqual([...Array(9).keys()].filter((index) => index !== place).map((index) => 100 + index))
    expect(outcome).toEqual({ stored: 8, rejected: ['1 malformed message'] })
  }
})

test('messages wait while writes are refused, and others are dropped when the room is full', async () => {
  const { datagrams, commits, state } = open({ uncommittedMax: 1, waitingMax: 4, commitMs: 0 })
  state.refused = 'the disk is full'
  expect([1, 2, 3, 4, 5].map((first) => datagrams.take(message(first)))).toEqual([true, true, true, true, false])
  await new Promise((resolve) => setTimeout(resolve, 150))
  expect(commits).toEqual([])
  state.refused = null
  await vi.waitFor(() => expect(commits).toEqual([[1], [2], [3], [4]]), 5000)
  expect(datagrams.take(message(6))).toBe(true)
  await datagrams.close()
})

test('a shutdown does not wait until writes are accepted again', async () => {
  const { datagrams, state, outcome } = open({ commitMs: 0 })
  state.refused = 'the disk is full'
  datagrams.take(message(1))
  await datagrams.close()
  expect(outcome.rejected).toEqual(['1 the disk is full'])
})
