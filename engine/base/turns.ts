// Long work on the main thread is done in pieces: between them whatever waits has its turn.

/** Resolves when everything that was ready has been looked at. */
export function turnOfOthers(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve)
  })
}
