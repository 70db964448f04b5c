// A worker thread for tests of nested messages: answers a number with an object nested that many times, and an object
// with its nesting depth.

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
