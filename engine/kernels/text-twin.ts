// The plain TypeScript twin of the text kernel: fall-back and oracle.

import type { SharedMemory } from '../memory/shared-memory.js'
import { type TextKernel, textAnswers, textFlags } from './text.js'

export function textTwin({ u8, u32, i32 }: SharedMemory): TextKernel {
  function folded(byte: number): number {
    return byte >= 65 && byte <= 90 ? byte | 32 : byte
  }

  function matchesAt(at: number, literal: number, bytes: number, fold: boolean): boolean {
    for (let index = 0; index < bytes; index++) {
      const byte = u8[at + index] as number
      if ((fold ? folded(byte) : byte) !== u8[literal + index]) return false
    }
    return true
  }

  function find(from: number, end: number, literal: number, bytes: number, fold: boolean): number {
    for (let at = from; at + bytes <= end; at++) {
      if (matchesAt(at, literal, bytes, fold)) return at
    }
    return -1
  }

  function isAscii(from: number, end: number): boolean {
    for (let at = from; at < end; at++) if ((u8[at] as number) > 127) return false
    return true
  }

  function answer(pattern: number, start: number, end: number): number {
    const count = u32[pattern >>> 2] as number
    const flags = u32[(pattern >>> 2) + 1] as number
    const fold = (flags & textFlags.ignoreCase) !== 0
    if (fold && !isAscii(start, end)) return textAnswers.undecided
    const anchoredEnd = (flags & textFlags.anchoredEnd) !== 0
    const anchoredStart = (flags & textFlags.anchoredStart) !== 0
    if (count === 0) return anchoredEnd && start < end ? textAnswers.no : textAnswers.yes
    let at = start
    for (let index = 0; index < count; index++) {
      const literal = u32[(pattern >>> 2) + 2 + index * 2] as number
      const bytes = u32[(pattern >>> 2) + 3 + index * 2] as number
      const pinnedStart = index === 0 && anchoredStart
      const pinnedEnd = index === count - 1 && anchoredEnd
      if (at + bytes > end) return textAnswers.no
      const found = pinnedEnd ? end - bytes : pinnedStart ? at : find(at, end, literal, bytes, fold)
      if (found < at || (pinnedStart && found !== at)) return textAnswers.no
      if (!matchesAt(found, literal, bytes, fold)) return textAnswers.no
      at = found + bytes
    }
    return textAnswers.yes
  }

  return {
    matchTexts(pattern, entries, rows, out) {
      for (let row = 0; row < rows; row++) {
        const start = u32[(entries >>> 2) + row * 2] as number
        const bytes = i32[(entries >>> 2) + row * 2 + 1] as number
        u8[out + row] = bytes < 0 ? textAnswers.no : answer(pattern, start, start + bytes)
      }
    },
  }
}
