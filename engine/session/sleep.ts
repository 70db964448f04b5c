// Executes pg_sleep(): delays the start of the query without blocking a thread. The delay ends early when the query's
// deadline passes or the client cancels it.

import type { ExecuteOptions } from '../api/statements.js'
import { CancelledError, TimeoutError } from '../base/errors.js'
import { cancelReason } from './plan-helpers.js'

/** Throws TimeoutError and CancelledError. */
export function sleepBefore(
  sleepMs: number,
  { signal, timeoutMs }: Pick<ExecuteOptions, 'signal' | 'timeoutMs'>,
): Promise<void> {
  return new Promise((resolve, reject) => {
    const timesOut = timeoutMs > 0 && timeoutMs < sleepMs
    const timer = setTimeout(
      () => {
        signal?.removeEventListener('abort', cancel)
        if (timesOut) reject(new TimeoutError(timeoutMs))
        else resolve()
      },
      timesOut ? timeoutMs : sleepMs,
    )
    const cancel = (): void => {
      clearTimeout(timer)
      reject(new CancelledError(cancelReason(signal)))
    }
    if (signal?.aborted === true) cancel()
    else signal?.addEventListener('abort', cancel, { once: true })
  })
}
