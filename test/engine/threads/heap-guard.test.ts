// Goal: the guard reports a JavaScript heap as full long before live data fill it and V8 ends the thread. If a query
// can spill to temporary files, it reports a large heap as crowded before that. It does not count garbage. Method:
// worker threads with a limited heap.

import { join } from 'node:path'
import { Worker } from 'node:worker_threads'
import { expect, test } from 'vitest'
import { repositoryRoot } from '../../support/docs/source-tree.js'

const guard = JSON.stringify(join(repositoryRoot, 'dist/engine/threads/heap-guard.js'))

/** What the thread posts. Its clock jumps ahead with every look. */
function inHeap(body: string, maxOldGenerationSizeMb = 64): Promise<unknown> {
  const code = `
    const { parentPort } = require('node:worker_threads')
    import(${guard}).then(({ heapGuard }) => {
      let now = 0
      const stateOf = heapGuard(() => (now += 10_000))
      const isFull = () => stateOf(() => true) === 'full'
      ${body}
    })`
  return new Promise((resolve, reject) => {
    const worker = new Worker(code, { eval: true, resourceLimits: { maxOldGenerationSizeMb } })
    worker.once('message', resolve)
    worker.once('error', reject)
  })
}

test('values that are kept fill a heap long before its thread ends', async () => {
  const said = await inHeap(`
    const kept = []
    let full = false
    while (!full && kept.length < 1_000_000) {
      for (let i = 0; i < 1000; i++) kept.push({ text: String(Math.random()) })
      full = isFull()
    }
    kept.length = 0
    parentPort.postMessage({ full, after: isFull() })`)
  expect(said).toEqual({ full: true, after: false })
})

test('garbage does not', async () => {
  const said = await inHeap(`
    let full = false
    for (let i = 0; i < 500 && !full; i++) {
      let garbage = []
      for (let k = 0; k < 1000; k++) garbage.push({ text: String(Math.random()) })
      garbage = null
      full = isFull()
    }
    parentPort.postMessage({ full })`)
  expect(said).toEqual({ full: false })
})

test('a large heap is crowded before it is full, which matters to queries that can spill', async () => {
  const said = await inHeap(
    `
    const kept = []
    const state = { some: stateOf(() => true) }
    for (let i = 0; i < 2_200_000; i++) kept.push({ text: String(Math.random()) })
    state.unable = stateOf(() => false)
    state.many = stateOf(() => true)
    kept.length = 0
    state.after = stateOf(() => true)
    parentPort.postMessage(state)`,
    2000,
  )
  expect(said).toEqual({ some: 'free', unable: 'free', many: 'crowded', after: 'free' })
})
