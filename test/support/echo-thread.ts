// A worker thread for tests: answers a number with that many nested objects, and an object with its depth.

import { runWorker, workerContext } from '../../engine/threads/thread.js'
import { depthOf, nested } from './nested.js'

const context = workerContext<null, unknown, unknown>()
const { post } = context

runWorker<unknown>(
  context,
  (message) => {
    try {
      post(typeof message === 'number' ? nested(message) : { depth: depthOf(message) })
    } catch (error) {
      post({ failed: String(error) })
    }
  },
  () => 'idle',
  1000,
)
