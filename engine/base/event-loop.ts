// Yields to the event loop in the middle of long work on the main thread, so that other connections are served.

/** Resolves after all pending events have been processed. */
export function yieldToEventLoop(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve)
  })
}
