// Goal: a message between threads that is nested too deeply for the stack of sender or receiver is reported: the query
// fails, the thread continues. Method: a thread that echoes nested messages; a query pool with threads that refuse or
// lose a message.

import { expect, test } from 'vitest'
import { SqlError } from '../../../engine/base/errors.js'
import { QueryLoop, type QueryLoopOptions } from '../../../engine/exec/run/query-loop.js'
import { initializeHeap } from '../../../engine/memory/allocator.js'
import { createSharedMemory } from '../../../engine/memory/shared-memory.js'
import type { ToQueryHost } from '../../../engine/threads/messages.js'
import { QueryPool } from '../../../engine/threads/query-pool.js'
import { startThread } from '../../../engine/threads/thread.js'
import { threadIds } from '../../../engine/threads/wake.js'
import { depthOf, nested } from '../../support/nested.js'

const MIB = 1024 * 1024
const tooDeep = 'the query or its result is nested too deeply to be handed to another thread'

function heap() {
  const memory = createSharedMemory(256 * MIB)
  initializeHeap(memory, { limits: [MIB, MIB, MIB, 128 * MIB, MIB] })
  return memory
}

test('lost messages are reported in their order, and the thread continues', async () => {
  const heard: unknown[] = []
  let next = (): void => {}
  const hear = (what: unknown): void => {
    heard.push(what)
    next()
  }
  const thread = startThread<null, unknown, unknown>(
    heap(),
    threadIds.firstQuery,
    '../../test/support/echo-thread.js',
    null,
    {
      onMessage: (message) =>
        hear(typeof message === 'object' && message !== null && 'below' in message ? depthOf(message) : message),
      onLost: () => hear('lost'),
      onEnd: () => hear('ended'),
      log: () => {},
    },
  )
  const answers = async (count: number): Promise<unknown[]> => {
    while (heard.length < count) await new Promise<void>((resolve) => (next = resolve))
    return heard.splice(0)
  }
  for (const depth of [10, 5_000, 20, 1_000_000, 30]) thread.post(depth)
  expect(await answers(5)).toEqual([10, 'lost', 20, { failed: `SqlError: ${tooDeep}` }, 30])
  expect(() => thread.post(nested(1_000_000))).toThrow(new SqlError(tooDeep, 0))
  thread.post(nested(100))
  expect(await answers(1)).toEqual([{ depth: 100 }])
  await thread.terminate()
})

const request = { query: { plan: { kind: 'values', columns: [], rows: [] }, subqueries: [] }, timeoutMs: 0 } as never

test('a query that cannot be sent to a thread fails', async () => {
  const pool = new QueryPool({ memory: heap(), jobDone: () => {}, jobFailed: () => {} })
  const post = (): void => {
    throw new SqlError(tooDeep, 0)
  }
  pool.addThread({ threadId: 3, post, terminate: async () => {} })
  const ended: number[] = []
  const query = pool.run(request, () => ended.push(query.queryId))
  await expect(query.summary).rejects.toThrow(tooDeep)
  expect(ended).toEqual([query.queryId])
})

test('a lost message fails the queries of its thread, whether the thread still knows them or not', async () => {
  const memory = heap()
  const pool = new QueryPool({ memory, jobDone: () => {}, jobFailed: () => {} })
  const loop = new QueryLoop({ memory, post: (answer) => pool.receive(3, answer) } as QueryLoopOptions)
  const post = (message: ToQueryHost): void => {
    if (message.kind === 'fail') loop.receive(message)
  }
  pool.addThread({ threadId: 3, post, terminate: async () => {} })
  const query = pool.run(request, () => {})
  pool.messageLost(3)
  await expect(query.summary).rejects.toThrow(tooDeep)
})
