// Assertions: always on, for programmer errors only. Input is checked where it arrives and reported as an error of
// errors.ts; whole-column checks hide behind `invariantsEnabled`, which tests switch on.

import { AssertionError } from './errors.js'

/** Throws AssertionError when the condition does not hold. */
export function assert(condition: boolean, message: string): asserts condition {
  if (!condition) throw new AssertionError(message)
}

/** Ends a switch over a union: a new member fails to compile until it has its case. */
export function unreachable(value: never): never {
  throw new AssertionError(`unreachable value [value=${String(value)}]`)
}
