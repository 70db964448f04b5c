// Yields to the event loop, so that long work on the main thread does not block other connections.

/** Resolves after all pending events have been processed. */
export function turnOfOthers(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve)
  })
}
