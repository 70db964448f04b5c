// Lets other events be processed in the middle of long work on the main thread, so that it does not block other
// connections.

/** Resolves after all pending events have been processed. */
export function yieldToEventLoop(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve)
  })
}
