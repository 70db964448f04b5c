// Waiting that an order to stop ends.

import { deferred } from '../../engine/base/deferred.js'

export async function pauseFor(ms: number, signal: AbortSignal): Promise<void> {
  if (signal.aborted) return
  const { promise, resolve } = deferred<void>()
  const timer = setTimeout(resolve, ms)
  signal.addEventListener('abort', () => resolve(), { once: true })
  await promise
  clearTimeout(timer)
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
