// Goal: a load whose rows are all in parts is committed whatever becomes of its decoder, whose thread may be terminated
// because of a query before the client commits. Before that, the end of the thread fails the load.

import { expect, test } from 'vitest'
import { errorRecord, ResourceError } from '../../../engine/base/errors.js'
import { Load, type LoadServices } from '../../../engine/threads/load-client.js'
import { dataType } from '../../../engine/types/column-types.js'

const gone = errorRecord(new ResourceError('a query thread has ended'))
const parts = [{ id: 7, rows: 1 }]
const memtable = { address: 64, rows: 1, allocations: [], symbols: [], last: true }

function newLoad(): { load: Load; discarded: unknown[] } {
  const discarded: unknown[] = []
  const services = {
    memory: { put: () => {} },
    thread: { threadId: 1, post: () => {} },
    csvId: 1,
    runStage: async () => ({ parts }),
    request: async () => ({ staged: { version: {}, firstPartId: 7, symbolIds: [] } }),
    postWriter: (message: unknown) => void discarded.push(message),
    ended: () => {},
  } as unknown as LoadServices
  const shape = { delimiter: 9, columns: [{ name: 'ts', type: dataType('TIMESTAMP'), pattern: null }], timestamp: 0 }
  const options = {
    tableId: 3,
    shape: { ...shape, header: false },
    columnIds: [0],
    blockBytes: 64,
    onDecoded: () => {},
  }
  const load = new Load(services, options)
  load.receive({ kind: 'csvLent', csvId: 1, address: 128 })
  return { load, discarded }
}

test('the thread of the decoder ends after the load has ended', async () => {
  const { load, discarded } = newLoad()
  const ended = load.end()
  load.receive({ kind: 'csvMemtable', csvId: 1, memtable })
  await ended
  load.threadEnded(gone)
  expect(load.handOver()).toEqual({ tableId: 3, columnIds: [0], parts })
  await load.close()
  expect(discarded).toEqual([])
})

test('the thread of the decoder ends before the load has ended', async () => {
  const { load } = newLoad()
  const ended = load.end()
  load.receive({ kind: 'csvMemtable', csvId: 1, memtable })
  load.threadEnded(gone)
  await expect(ended).rejects.toThrow('a query thread has ended')
  await load.close()
})
