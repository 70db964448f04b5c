// Assertions that detect bugs in this code; always enabled. Errors in input are not handled here: input is checked
// where it arrives and rejected with the classes of errors.ts.

import { AssertionError } from './errors.js'

/** Throws AssertionError when the condition is false. */
export function assert(condition: boolean, message: string): asserts condition {
  if (!condition) throw new AssertionError(message)
}

/** The value, which the caller knows to exist: an element within a list, a key that was added, a field that is set. */
export function nonNull<T>(value: T | null | undefined): T {
  if (value === undefined || value === null) throw new AssertionError('a value is missing')
  return value
}

/** Ends a switch over a union, so that a new member does not compile until it has a case. */
export function unreachable(value: never): never {
  throw new AssertionError(`unreachable value [value=${String(value)}]`)
}
