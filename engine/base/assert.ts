// Assertions for programmer errors; always enabled. Input is validated where it arrives and reported with errors.ts.
// Checks of whole columns run only if `invariantsEnabled`, which tests set.

import { AssertionError } from './errors.js'

/** Throws AssertionError when the condition is false. */
export function assert(condition: boolean, message: string): asserts condition {
  if (!condition) throw new AssertionError(message)
}

/** Ends a switch over a union, so that a new member does not compile until it has a case. */
export function unreachable(value: never): never {
  throw new AssertionError(`unreachable value [value=${String(value)}]`)
}
