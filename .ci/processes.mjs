// Helpers of the steps that run other programs beside the server: finding a free port, and waiting for a condition.

import { createServer } from 'node:net'

/** A port of this machine that nobody listens on. */
export function freePort() {
  return new Promise((resolve) => {
    const server = createServer().listen(0, '127.0.0.1', () => {
      const { port } = server.address()
      server.close(() => resolve(port))
    })
  })
}

/** Polls until the condition holds; throws `failure` after `seconds`. */
export async function until(condition, seconds, failure) {
  for (const end = performance.now() + seconds * 1000; performance.now() < end; ) {
    if (await condition()) return
    await new Promise((resolve) => setTimeout(resolve, 200))
  }
  throw new Error(failure)
}
