// Worker of a test: answers each number with so many objects below each other, and anything else with its depth.

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
