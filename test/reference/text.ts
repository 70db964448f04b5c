// Reference implementation, in plain TypeScript, of the WebAssembly kernel for string functions (LIKE, comparisons,
// substrings); property tests compare the two. The contract is in engine/kernels/text.ts.

import { anyByte, type TextKernel, textFlags, textResults, undecidedBytes } from '../../engine/kernels/text.js'
import type { SharedMemory } from '../../engine/memory/shared-memory.js'
import { intMin } from '../../engine/types/number.js'

const paddedBytes = (bytes: number): number => (bytes > 0 ? (bytes + 7) & ~7 : 0)

export function textReference(memory: SharedMemory): TextKernel {
  const { u8, u32, i32 } = memory
  function folded(byte: number): number {
    return byte >= 65 && byte <= 90 ? byte | 32 : byte
  }

  function matchesAt(at: number, literal: number, bytes: number, fold: boolean): boolean {
    for (let index = 0; index < bytes; index++) {
      const byte = u8[at + index]!
      const wanted = u8[literal + index]!
      // No byte of a text is it, so a pattern without wildcards has none.
      if (wanted !== anyByte && (fold ? folded(byte) : byte) !== wanted) return false
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
    for (let at = from; at < end; at++) if (u8[at]! > 127) return false
    return true
  }

  function answer(pattern: number, start: number, end: number): number {
    const count = u32[pattern >>> 2]!
    const flags = u32[(pattern >>> 2) + 1]!
    const fold = (flags & textFlags.ignoreCase) !== 0
    const wild = (flags & textFlags.wildcards) !== 0
    if ((fold || wild) && !isAscii(start, end)) return textResults.undecided
    const anchoredEnd = (flags & textFlags.anchoredEnd) !== 0
    const anchoredStart = (flags & textFlags.anchoredStart) !== 0
    if (count === 0) return anchoredEnd && start < end ? textResults.no : textResults.yes
    let at = start
    for (let index = 0; index < count; index++) {
      const literal = u32[(pattern >>> 2) + 2 + index * 2]!
      const bytes = u32[(pattern >>> 2) + 3 + index * 2]!
      const pinnedStart = index === 0 && anchoredStart
      const pinnedEnd = index === count - 1 && anchoredEnd
      if (at + bytes > end) return textResults.no
      const found = pinnedEnd ? end - bytes : pinnedStart ? at : find(at, end, literal, bytes, fold)
      if (found < at || (pinnedStart && found !== at)) return textResults.no
      if (!matchesAt(found, literal, bytes, fold)) return textResults.no
      at = found + bytes
    }
    return textResults.yes
  }

  const { startOf, bytesOf } = entryReaders(memory)

  function orderOf(a: number, aBytes: number, b: number, bBytes: number): number {
    const order = Buffer.compare(u8.slice(a, a + aBytes), u8.slice(b, b + bBytes))
    return Math.sign(order) + 1
  }

  function textOf(entries: number, row: number): string {
    const start = startOf(entries, row)
    return Buffer.from(u8.slice(start, start + bytesOf(entries, row))).toString()
  }

  function put(out: number, row: number, address: number, bytes: number): void {
    u32[(out >>> 2) + row * 2] = address
    i32[(out >>> 2) + row * 2 + 1] = bytes
  }

  /** Answers where the next text goes. */
  function putText(out: number, row: number, target: number, text: string): number {
    const bytes = Buffer.from(text)
    u8.set(bytes, target)
    put(out, row, target, bytes.length)
    return target + bytes.length
  }

  /** Rows whose text is not ASCII are left; `write` does the others but NULL. */
  function eachAscii(entries: number, rows: number, out: number, write: (row: number) => void): number {
    let left = 0
    for (let row = 0; row < rows; row++) {
      const [start, bytes] = [startOf(entries, row), bytesOf(entries, row)]
      if (bytes < 0) put(out, row, 0, -1)
      else if (isAscii(start, start + bytes)) write(row)
      else {
        put(out, row, 0, undecidedBytes)
        left++
      }
    }
    return left
  }

  return {
    ...bytesReference(memory),

    matchStrings(pattern, entries, rows, out) {
      for (let row = 0; row < rows; row++) {
        const start = startOf(entries, row)
        const bytes = bytesOf(entries, row)
        u8[out + row] = bytes < 0 ? textResults.no : answer(pattern, start, start + bytes)
      }
    },

    memberStrings(entries, rows, members, count, out) {
      const wanted = new Set<string | null>()
      const at = (list: number, row: number): string | null => (bytesOf(list, row) < 0 ? null : textOf(list, row))
      for (let index = 0; index < count; index++) wanted.add(at(members, index))
      for (let row = 0; row < rows; row++) u8[out + row] = wanted.has(at(entries, row)) ? 1 : 0
    },

    orderStrings(entries, rows, text, textBytes, wanted, out) {
      for (let row = 0; row < rows; row++) {
        const bytes = bytesOf(entries, row)
        const order = bytes < 0 ? 3 : orderOf(startOf(entries, row), bytes, text, textBytes)
        u8[out + row] = (wanted >> order) & 1
      }
    },

    textUnits(entries, rows, out) {
      for (let row = 0; row < rows; row++)
        i32[(out >>> 2) + row] = bytesOf(entries, row) < 0 ? -1 : textOf(entries, row).length
    },

    sliceStrings(entries, rows, from, to, out) {
      return eachAscii(entries, rows, out, (row) => {
        const bytes = bytesOf(entries, row)
        const [first, last] = [from, to].map((place) =>
          place < 0 ? Math.max(0, place + bytes) : Math.min(place, bytes),
        ) as [number, number]
        put(out, row, startOf(entries, row) + first, Math.max(0, last - first))
      })
    },

    foldStrings(entries, rows, upper, heap, out) {
      let target = heap
      return eachAscii(entries, rows, out, (row) => {
        const text = textOf(entries, row)
        target = putText(out, row, target, upper ? text.toUpperCase() : text.toLowerCase())
      })
    },

    findInStrings(entries, rows, text, bytes, out) {
      const wanted = Buffer.from(u8.slice(text, text + bytes)).toString()
      for (let row = 0; row < rows; row++)
        i32[(out >>> 2) + row] = bytesOf(entries, row) < 0 ? intMin : placeOf(textOf(entries, row), wanted)
    },

    trimStrings(entries, rows, sides, out) {
      for (let row = 0; row < rows; row++) {
        let start = startOf(entries, row)
        const bytes = bytesOf(entries, row)
        let end = start + Math.max(0, bytes)
        while ((sides & 1) !== 0 && start < end && u8[start] === 32) start++
        while ((sides & 2) !== 0 && end > start && u8[end - 1] === 32) end--
        put(out, row, start, bytes < 0 ? -1 : end - start)
      }
    },

    joinStrings(columns, count, rows, heap, out) {
      const lists = [...u32.subarray(columns >>> 2, (columns >>> 2) + count)]
      let target = heap
      for (let row = 0; row < rows; row++) {
        const strings = lists.map((list) => (bytesOf(list, row) < 0 ? '' : textOf(list, row)))
        target = putText(out, row, target, strings.join(''))
      }
    },

    replaceInStrings(entries, rows, from, fromBytes, to, toBytes, heap, out) {
      const [wanted, other] = [u8.slice(from, from + fromBytes), u8.slice(to, to + toBytes)].map((bytes) =>
        Buffer.from(bytes).toString(),
      ) as [string, string]
      let target = heap
      for (let row = 0; row < rows; row++) {
        if (bytesOf(entries, row) < 0) put(out, row, target, -1)
        else target = putText(out, row, target, textOf(entries, row).split(wanted).join(other))
      }
    },
  }
}

type BytesKernel = Pick<TextKernel, 'stringsBytes' | 'movedBytes' | 'moveStrings' | 'textWords'>

/** What looks at bytes, whatever characters they are. */
function bytesReference(memory: SharedMemory): BytesKernel {
  const { u8, u32, i64 } = memory
  const { startOf, bytesOf } = entryReaders(memory)
  return {
    stringsBytes(entries, rows) {
      let sum = 0
      for (let row = 0; row < rows; row++) sum += Math.max(0, bytesOf(entries, row))
      return sum
    },

    movedBytes(entries, rows) {
      let sum = 0
      for (let row = 0; row < rows; row++) sum += paddedBytes(bytesOf(entries, row))
      return sum
    },

    moveStrings(entries, rows, target, base) {
      let to = target
      for (let row = 0; row < rows; row++) {
        const bytes = bytesOf(entries, row)
        if (bytes <= 0) continue
        const from = startOf(entries, row)
        u8.copyWithin(to, from, from + bytes)
        u32[(entries >>> 2) + row * 2] = to - base
        to += paddedBytes(bytes)
      }
    },

    textWords(entries, rows, from, missing, out) {
      for (let row = 0; row < rows; row++) {
        const bytes = bytesOf(entries, row)
        let word = 0n
        for (let index = from; index < from + 8; index++) {
          word = (word << 8n) | BigInt(index < bytes ? u8[startOf(entries, row) + index]! : 0)
        }
        i64[(out >>> 3) + row] = bytes < 0 ? missing : BigInt.asIntN(64, word ^ (1n << 63n))
      }
    },
  }
}

function entryReaders({ u32, i32 }: SharedMemory) {
  return {
    startOf: (entries: number, row: number): number => u32[(entries >>> 2) + row * 2]!,
    bytesOf: (entries: number, row: number): number => i32[(entries >>> 2) + row * 2 + 1]!,
  }
}

/** From 1, in characters; 0 without one. */
function placeOf(text: string, wanted: string): number {
  const at = text.indexOf(wanted)
  return at < 0 ? 0 : [...text.slice(0, at)].length + 1
}
