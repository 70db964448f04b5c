// The WebAssembly kernel for string functions on columns, such as LIKE patterns, comparisons with constants,
// substrings, upper and lower case. Its TypeScript interface.
//
// Strings are entries {address u32, bytes i32} a row; NULL has negative bytes.
//
// A pattern consists of literals separated by %. The literals must occur in order; the first at the start of the string
// and the last at its end, if the pattern is anchored there.
//
// PATTERN (8 bytes + 8 a literal, 8-byte aligned):
//
//   0  count u32      literals
//   4  flags u32      textFlags
//   8  {address u32, bytes u32} per literal: UTF-8, not empty; lower case with `ignoreCase`; with `wildcards` a byte
//      of 255 matches any character
//
// Without literals every string matches (`%`), or with both anchors only the empty one.

import { assert } from '../base/assert.js'
import type { SharedMemory } from '../memory/shared-memory.js'

export const textFlags = { anchoredStart: 1, anchoredEnd: 2, ignoreCase: 4, wildcards: 8 } as const

/** Matches any character in a literal of a pattern with wildcards. It does not occur in UTF-8. */
export const anyByte = 255

/** Results of matchStrings per row. NULL does not match. */
export const textResults = {
  no: 0,
  yes: 1,
  /** With ignoreCase or wildcards: the string is not ASCII, so the caller decides. */
  undecided: 2,
} as const

/** Bits of the relations that orderStrings accepts. */
export const textOrders = { less: 1, equal: 2, greater: 4, missing: 8 } as const

/** Bytes of an entry that sliceStrings and foldStrings leave to the caller, because the string is not ASCII. */
export const undecidedBytes = -2

export interface TextKernel {
  /** One byte per row: whether the string matches. */
  matchStrings(pattern: number, entries: number, rows: number, out: number): void
  /** One byte per row: whether the string is one of the members, which are entries as well. NULL equals NULL. */
  memberStrings(entries: number, rows: number, members: number, count: number, out: number): void
  /** One byte per row: whether the string has one of the `wanted` relations (textOrders) to another one. */
  orderStrings(entries: number, rows: number, text: number, bytes: number, wanted: number, out: number): void
  /** An i32 per row: length in UTF-16 code units; -1 for NULL. */
  textUnits(entries: number, rows: number, out: number): void
  /**
   * Entries of the characters [from, to) of each string, as in Array.slice, without copying. Returns the number of rows
   * that are left to the caller.
   */
  sliceStrings(entries: number, rows: number, from: number, to: number, out: number): number
  /** Converts the strings to lower or upper case in a heap. Returns the number of rows that are left to the caller. */
  foldStrings(entries: number, rows: number, upper: number, heap: number, out: number): number
  /** An i32 per row: first position of a string within each, in characters from 1; 0 if none, the minimum for NULL. */
  findInStrings(entries: number, rows: number, text: number, bytes: number, out: number): void
  /** Entries without blanks at the start (1), the end (2) or both (3), without copying. */
  trimStrings(entries: number, rows: number, sides: number, out: number): void
  /** Concatenates the strings of all columns (u32 addresses of entries); NULL is skipped. */
  joinStrings(columns: number, count: number, rows: number, heap: number, out: number): void
  /** Entries with every occurrence of a non-empty string replaced by another one. */
  replaceInStrings(
    entries: number,
    rows: number,
    from: number,
    fromBytes: number,
    to: number,
    toBytes: number,
    heap: number,
    out: number,
  ): void
  /** Size of all strings together. */
  stringsBytes(entries: number, rows: number): number
  /** Number of bytes that moveStrings writes. */
  movedBytes(entries: number, rows: number): number
  /**
   * Copies the strings of all entries to the target, which is aligned to 8, each padded to 8. The entries get the
   * address of their copy minus `base`.
   */
  moveStrings(entries: number, rows: number, target: number, base: number): void
  /**
   * Words whose signed order is that of the eight bytes from `from` on, zero padded; i64 a row, `missing` for NULL.
   */
  textWords(entries: number, rows: number, from: number, missing: bigint, out: number): void
}

export interface TextPattern {
  readonly literals: readonly Uint8Array[]
  readonly flags: number
}

export function textPatternBytes({ literals }: TextPattern): number {
  return 8 + literals.reduce((sum, literal) => sum + 8 + literal.length, 0)
}

/** Writes a pattern at an address aligned to 8. */
export function writeTextPattern(memory: SharedMemory, address: number, { literals, flags }: TextPattern): void {
  assert(address % 8 === 0, 'K1: a pattern is aligned to 8 bytes')
  assert(!literals.some(({ length }) => length === 0), 'K2: the literals of a pattern are not empty')
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
