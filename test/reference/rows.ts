// Reference implementation, in plain TypeScript, of the WebAssembly kernel that stores values of Bind messages and
// strings of client rows in columns. The contract is in engine/kernels/rows.ts.

import { isUtf8 } from 'node:buffer'
import type { RowsKernel, TakeFixed } from '../../engine/kernels/rows.js'
import type { SharedMemory } from '../../engine/memory/shared-memory.js'
import { scanDecimal, scanInteger, scanTimestamp } from '../../engine/types/pg-scan-text.js'
import { findBindsReference } from './rows-binds.js'

const exactMax = 2 ** 53
const epochMicros = 946_684_800_000_000n

/** The value of the bytes; undefined: not simple. */
type Read<Value> = (start: number, end: number) => Value | undefined

export function rowsReference(memory: SharedMemory): RowsKernel {
  const { u8, i32, f64, i64 } = memory
  const view = new DataView(memory.memory.buffer)
  const simple = (value: number): number | undefined => (Number.isNaN(value) ? undefined : value)
  const integers = (read: Read<bigint>): TakeFixed =>
    taking(memory, (at, value: bigint) => {
      i64[at >>> 3] = value
    })(read, 8)
  const doubles = (read: Read<number>): TakeFixed =>
    taking(memory, (at, value: number) => {
      f64[at >>> 3] = value
    })(read, 8)
  return {
    findBinds: (state) => findBindsReference(memory, state),
    takeDoubles: doubles((start, end) => (end - start === 8 ? simple(view.getFloat64(start)) : undefined)),
    takeLongs: integers((start, end) => (end - start === 8 ? view.getBigInt64(start) : undefined)),
    takeWideInts: integers((start, end) => (end - start === 4 ? BigInt(view.getInt32(start)) : undefined)),
    takeInts: taking(memory, (at, value: number) => {
      i32[at >>> 2] = value
    })((start, end) => {
      const value = end - start === 4 ? view.getInt32(start) : -(2 ** 31)
      return value === -(2 ** 31) ? undefined : value
    }, 4),
    takeMicros: integers((start, end) => {
      const value = end - start === 8 ? view.getBigInt64(start) : 2n ** 52n
      return value < -epochMicros || value >= 2n ** 52n ? undefined : value + epochMicros
    }),
    takeTimes: integers((start, end) => {
      const micros = scanTimestamp(u8, start, end)
      return micros >= 0 && micros < exactMax ? BigInt(micros) : undefined
    }),
    takeWholes: integers((start, end) => {
      const value = scanInteger(u8, start, end)
      return Number.isNaN(value) ? undefined : BigInt(value)
    }),
    takeDecimals: doubles((start, end) => simple(scanDecimal(u8, start, end))),
    ...textTakes(memory),
    ...entryStrings(memory),
  }
}

function taking<Value>({ u8, i32 }: SharedMemory, put: (at: number, value: Value) => void) {
  return (read: Read<Value>, width: number): TakeFixed =>
    (starts, ends, stride, rows, target, missing) => {
      for (let row = 0; row < rows; row++) {
        const end = i32[(ends + row * stride) >>> 2]!
        if (end < 0 && missing > 0) {
          u8.copyWithin(target + row * width, missing, missing + width)
          continue
        }
        const value = end < 0 ? undefined : read(i32[(starts + row * stride) >>> 2]!, end)
        if (value === undefined) return row
        put(target + row * width, value)
      }
      return rows
    }
}

function textTakes({ u8, i32, u32 }: SharedMemory): Pick<RowsKernel, 'takeStrings' | 'takeSymbols'> {
  /** -1: NULL; undefined: no text. */
  const textAt = (starts: number, ends: number): Uint8Array | -1 | undefined => {
    const end = i32[ends >>> 2]!
    if (end < 0) return -1
    const bytes = u8.slice(i32[starts >>> 2]!, end)
    return bytes.includes(0) || !isUtf8(bytes) ? undefined : bytes
  }
  return {
    takeStrings: (starts, ends, stride, rows, lengths, heap) => {
      let at = heap
      for (let row = 0; row < rows; row++) {
        const text = textAt(starts + row * stride, ends + row * stride)
        if (text === undefined) return row
        i32[(lengths >>> 2) + row] = text === -1 ? -1 : text.length
        if (text === -1) continue
        u8.set(text, at)
        at += text.length
      }
      return rows
    },
    takeSymbols: (state, starts, ends, stride, rows, ids) => {
      const known = knownStrings({ u8, u32 }, state)
      for (let row = 0; row < rows; row++) {
        const text = textAt(starts + row * stride, ends + row * stride)
        if (text === undefined) return row
        i32[(ids >>> 2) + row] = text === -1 ? -1 : known(text)
      }
      return rows
    },
  }
}

/** The number of a text. This implementation keeps no slots: it reads what is there. */
function knownStrings({ u8, u32 }: Pick<SharedMemory, 'u8' | 'u32'>, state: number): (text: Uint8Array) => number {
  const word = state >>> 2
  const heap = u32[word + 2]!
  const numbers = new Map<string, number>()
  const lengthAt = (at: number): number => new DataView(u8.buffer).getUint32(at, true)
  for (let at = heap; at < heap + u32[word + 4]!; at += 4 + lengthAt(at)) {
    numbers.set(Buffer.from(u8.slice(at + 4, at + 4 + lengthAt(at))).toString('latin1'), numbers.size)
  }
  return (text) => {
    const key = Buffer.from(text).toString('latin1')
    const number = numbers.get(key)
    if (number !== undefined) return number
    const at = heap + u32[word + 4]!
    new DataView(u8.buffer).setUint32(at, text.length, true)
    u8.set(text, at + 4)
    u32[word + 4] = at + 4 + text.length - heap
    u32[word + 3] = numbers.size + 1
    numbers.set(key, numbers.size)
    return numbers.size - 1
  }
}

function entryStrings({
  u8,
  i32,
  u32,
}: SharedMemory): Pick<RowsKernel, 'entriesOf' | 'moveStrings' | 'stringsBytes' | 'packStrings'> {
  return {
    entriesOf: (lengths, rows, heap, entries) => {
      let at = heap
      for (let row = 0; row < rows; row++) {
        const length = i32[(lengths >>> 2) + row]!
        u32[(entries >>> 2) + row * 2] = at
        i32[(entries >>> 2) + row * 2 + 1] = length
        at += Math.max(0, length)
      }
    },
    moveStrings: (entries, rows, state) => {
      let next = u32[state >>> 2]!
      let row = 0
      for (; row < rows; row++) {
        const word = (entries >>> 2) + row * 2
        const length = i32[word + 1]!
        if (length < 0) continue
        if (next + length > u32[(state >>> 2) + 1]!) break
        const from = u32[word]!
        u8.copyWithin(next, from, from + length)
        u32[word] = next
        next += (length + 7) & ~7
      }
      u32[state >>> 2] = next
      return row
    },
    stringsBytes: (entries, rows) => {
      let bytes = 0
      for (let row = 0; row < rows; row++) bytes += Math.max(0, i32[(entries >>> 2) + row * 2 + 1]!)
      return bytes
    },
    packStrings: (entries, rows, lengths, heap) => {
      let next = heap
      for (let row = 0; row < rows; row++) {
        const length = i32[(entries >>> 2) + row * 2 + 1]!
        const from = u32[(entries >>> 2) + row * 2]!
        i32[(lengths >>> 2) + row] = length
        if (length > 0) u8.copyWithin(next, from, from + length)
        next += Math.max(0, length)
      }
      return next
    },
  }
}
