// Runs what follows a function that returns a value or a promise: at once after a value, and after a promise when it
// has settled. So a small statement passes from request to response without promises: a chain of promises would take
// longer than the statement.

/** Calls `next` at once, or when the promise resolves. */
export function andThen<T, R>(value: T | Promise<T>, next: (value: T) => R | Promise<R>): R | Promise<R> {
  return value instanceof Promise ? value.then(next) : next(value)
}

/** `try { work() } catch (error) { failed(error) } finally { ended() }`. */
export function attempt(
  work: () => void | Promise<void>,
  failed: (error: unknown) => void,
  ended: () => void,
): void | Promise<void> {
  let later: Promise<void> | null = null
  try {
    const working = work()
    if (working instanceof Promise) later = working.catch(failed).finally(ended)
  } catch (error) {
    failed(error)
  } finally {
    if (later === null) ended()
  }
  if (later !== null) return later
}
