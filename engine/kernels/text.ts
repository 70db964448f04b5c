// Matching texts against LIKE patterns: the interface of the kernel.
//
// A pattern of literals divided by % (no _): the literals must occur one behind the other; the first at the text's start
// and the last at its end where the pattern is anchored there.
//
// PATTERN (8 bytes + 8 a literal, 8-byte aligned):
//
//   0  count u32      literals
//   4  flags u32      textFlags
//   8  {address u32, bytes u32} per literal: UTF-8, not empty; lower case with `ignoreCase`
//
// Without literals: every text matches (`%`), or with both anchors only the empty one.

import type { SharedMemory } from '../memory/shared-memory.js'

export const textFlags = { anchoredStart: 1, anchoredEnd: 2, ignoreCase: 4 } as const

/** What matchTexts writes per row. NULL does not match. */
export const textAnswers = {
  no: 0,
  yes: 1,
  /** With ignoreCase: the text is not ASCII, the caller decides. */
  undecided: 2,
} as const

export interface TextKernel {
  /** One byte per row: whether the text of the entry {address u32, length i32} matches. */
  matchTexts(pattern: number, entries: number, rows: number, out: number): void
}

export interface TextPattern {
  readonly literals: readonly Uint8Array[]
  readonly flags: number
}

export function textPatternBytes({ literals }: TextPattern): number {
  return 8 + literals.reduce((sum, literal) => sum + 8 + literal.length, 0)
}

/** Lays a pattern out at an address aligned to 8. */
export function writeTextPattern(memory: SharedMemory, address: number, { literals, flags }: TextPattern): void {
  const word = address >>> 2
  memory.u32[word] = literals.length
  memory.u32[word + 1] = flags
  let at = address + 8 + literals.length * 8
  literals.forEach((literal, index) => {
    memory.u32[word + 2 + index * 2] = at
    memory.u32[word + 3 + index * 2] = literal.length
    memory.u8.set(literal, at)
    at += literal.length
  })
}
