// Goal: when a QWP connection (columnar protocol over WebSocket) ends, for whatever reason, the engine frees the state
// of the connection, such as its dictionary, but only after its last request. If the state were freed earlier, a
// request still on its way would create it again, and nothing would free it.

import { expect, test } from 'vitest'
import { errorRecord, ResourceError } from '../../engine/base/errors.js'
import type { LineTicket, Receipt } from '../../engine/engine.js'
import { metrics } from '../../engine/memory/metrics.js'
import { ByteBudget } from '../../pipeline/byte-budget.js'
import { qwpSink } from '../../pipeline/qwp-sink.js'

const receipt: Receipt = { requestId: 0, lsn: 0, existed: false, rows: 1, rejected: 0, rejects: [], error: null }
const turn = () => new Promise((resolve) => setImmediate(resolve))

interface Given {
  readonly take: () => void
  readonly refuse: (error: Error) => void
  readonly receive: (receipt: Receipt) => void
  readonly fail: (error: Error) => void
}

function open(holdMs = 0) {
  const requests: Given[] = []
  const state = { forgotten: 0, refused: null as string | null, error: null as Error | null }
  const lines = (): LineTicket => {
    let taking: Pick<Given, 'take' | 'refuse'> = { take: () => {}, refuse: () => {} }
    let given: Pick<Given, 'receive' | 'fail'> = { receive: () => {}, fail: () => {} }
    const ticket = {
      taken: new Promise<void>((take, refuse) => {
        taking = { take, refuse }
      }),
      receipt: new Promise<Receipt>((receive, fail) => {
        given = { receive, fail }
      }),
    }
    requests.push({ ...taking, ...given })
    return ticket
  }
  const sink = qwpSink({
    engine: {
      lines,
      metrics: () => ({ ...metrics, writesRefused: state.refused }) as never,
      forgetConnection: () => void state.forgotten++,
    },
    ...{ connectionId: 7, badValue: 'reject', holdMs: () => holdMs, groups: new ByteBudget(1000), nowMs: () => 0 },
    accepted: () => {},
    rejected: () => {},
  })
  sink.on('error', (error) => {
    state.error = error
  })
  return { sink, requests, state }
}

test('a connection that ends without a request', async () => {
  const { sink, state } = open()
  sink.destroy()
  await turn()
  expect(state.forgotten).toBe(1)
})

test('a connection that ends while a message waits for room in the ring', async () => {
  const { sink, requests, state } = open()
  sink.write(Buffer.of(1))
  sink.destroy()
  await turn()
  expect(state.forgotten).toBe(0)
  requests[0]?.take()
  await turn()
  expect(state.forgotten).toBe(0)
  requests[0]?.receive(receipt)
  await turn()
  expect(state.forgotten).toBe(1)
})

test('a connection that is closed because the server begins to refuse writes', async () => {
  const { sink, requests, state } = open()
  for (const message of [1, 2]) {
    sink.write(Buffer.of(message))
    requests[message - 1]?.take()
    await turn()
  }
  state.refused = 'the disk is full'
  requests[0]?.receive({ ...receipt, error: errorRecord(new ResourceError('the disk is full')) })
  await turn()
  expect(state.error?.message).toBe('writes are refused: the disk is full')
  expect(state.forgotten).toBe(0)
  requests[1]?.receive(receipt)
  await turn()
  expect(state.forgotten).toBe(1)
})

test('a request that the engine fails', async () => {
  const { sink, requests, state } = open()
  sink.write(Buffer.of(1))
  requests[0]?.take()
  await turn()
  requests[0]?.fail(new ResourceError('the server is shutting down'))
  await turn()
  expect(state.forgotten).toBe(1)
})

test('a message that waits while writes are refused is not sent when its connection has ended', async () => {
  const refusal = new ResourceError('the disk is full')
  const [ended, waiting] = [open(1000), open(1000)]
  for (const { sink, requests } of [ended, waiting]) {
    sink.write(Buffer.of(1))
    requests[0]?.refuse(refusal)
    requests[0]?.fail(refusal)
    await turn()
  }
  ended.sink.destroy()
  // The second one began to wait later.
  await expect.poll(() => waiting.requests.length).toBe(2)
  await turn()
  expect(ended.requests.length).toBe(1)
  expect(ended.state.forgotten).toBe(1)
})
