// Goal: only one thread at a time holds a lock in shared memory, no thread keeps sleeping while the lock is free, and
// the lock of a dead thread is broken. Method: worker threads that increment plain memory under the lock; a holder that
// ends without releasing it.

import { Worker } from 'node:worker_threads'
import { expect, test } from 'vitest'
import { breakLock, lock, tryLock, unlock } from '../../../engine/memory/thread-lock.js'

const module = new URL('../../../dist/engine/memory/thread-lock.js', import.meta.url).href

/** Runs the lines on a thread, which knows `i32`, `id` and the lock's functions. */
function onThread(i32: Int32Array, id: number, lines: string): Promise<void> {
  const source = `const { workerData: { i32, id } } = require('node:worker_threads')
    import(${JSON.stringify(module)}).then(({ lock, unlock }) => { ${lines} })`
  const worker = new Worker(source, { eval: true, workerData: { i32, id } })
  return new Promise((resolve, reject) => {
    worker.once('error', reject)
    worker.once('exit', () => resolve())
  })
}

test('threads count one after the other', async () => {
  const i32 = new Int32Array(new SharedArrayBuffer(16))
  const count = 'for (let n = 0; n < 20000; n++) { lock(i32, 0, id); i32[1] = i32[1] + 1; unlock(i32, 0) }'
  await Promise.all([1, 2, 3].map((id) => onThread(i32, id, count)))
  expect([...i32.subarray(0, 2)]).toEqual([0, 60_000])
})

test('the lock of a thread that has ended is broken, and of no other', async () => {
  const i32 = new Int32Array(new SharedArrayBuffer(16))
  await onThread(i32, 3, 'lock(i32, 0, id)')
  expect(tryLock(i32, 0, 1)).toBe(false)
  const waiting = onThread(i32, 5, 'lock(i32, 0, id); i32[1] = 5; unlock(i32, 0)')
  // Until it waits: the word says so.
  while (Atomics.load(i32, 0) >>> 16 === 0) await new Promise((resolve) => setTimeout(resolve, 1))
  breakLock(i32, 0, 2)
  expect(tryLock(i32, 0, 1)).toBe(false)
  breakLock(i32, 0, 3)
  await waiting
  expect([...i32.subarray(0, 2)]).toEqual([0, 5])
  lock(i32, 0, 7)
  expect(i32[0]).toBe(8)
  unlock(i32, 0)
})
