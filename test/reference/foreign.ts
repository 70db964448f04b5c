// Reference implementation, in plain TypeScript, of the kernel that decodes Parquet pages written by other programs
// (engine/kernels/as/foreign.ts); the property tests compare the two.

import { isUtf8 } from 'node:buffer'
import type { ForeignKernel } from '../../engine/kernels/foreign.js'
import type { SharedMemory } from '../../engine/memory/shared-memory.js'
import { deltas, hybrid, packedLevels } from './foreign-packed.js'
import { snappyDecompress } from './foreign-snappy.js'

export function foreignReference(memory: SharedMemory): ForeignKernel {
  const { u8 } = memory
  const view = new DataView(memory.memory.buffer)
  const i32 = (address: number): number => view.getInt32(address, true)
  const u32 = (address: number): number => view.getUint32(address, true)
  const putEntry = (target: number, index: number, address: number, bytes: number): void => {
    view.setUint32(target + index * 8, address, true)
    view.setInt32(target + index * 8 + 4, bytes, true)
  }
  const integer = (from: number, bytes: number, width: number, target: number): boolean => {
    let value = 0n
    for (let i = 0; i < bytes; i++) value = (value << 8n) | BigInt(u8[from + i]!)
    value = BigInt.asIntN(bytes * 8, value)
    if (BigInt.asIntN(width * 8, value) !== value) return false
    for (let i = 0; i < width; i++) u8[target + i] = Number((value >> BigInt(i * 8)) & 255n)
    return true
  }
  return {
    hybrid: (...args) => hybrid(view, ...args),
    packedLevels: (...args) => packedLevels(view, ...args),
    levelBits: (levels, count, level, bits) => {
      let present = 0
      u8.fill(0, bits, bits + ((count + 7) >>> 3))
      for (let i = 0; i < count; i++) {
        if (i32(levels + i * 4) !== level) continue
        present++
        u8[bits + (i >>> 3)] = u8[bits + (i >>> 3)]! | (1 << (i & 7))
      }
      return present
    },
    gather: (indexes, count, dictionary, width, target) => {
      for (let i = 0; i < count; i++) {
        const from = dictionary + u32(indexes + i * 4) * width
        u8.copyWithin(target + i * width, from, from + width)
      }
    },
    deltas: (...args) => deltas(view, ...args),
    fixedEntries: (source, count, width, target) => {
      for (let i = 0; i < count; i++) putEntry(target, i, source + i * width, width)
    },
    joinedTextBytes: (prefixes, suffixes, count, bytes) => {
      let [total, read, before] = [0, 0, 0]
      for (let i = 0; i < count; i++) {
        const [prefix, suffix] = [i32(prefixes + i * 4), i32(suffixes + i * 4)]
        if (prefix < 0 || suffix < 0 || prefix > before) return -1
        read += suffix
        before = prefix + suffix
        total += before
      }
      return read === bytes ? total : -1
    },
    joinStrings: (prefixes, suffixes, count, source, room, target) => {
      let [before, to, from] = [room, room, source]
      for (let i = 0; i < count; i++) {
        const [prefix, suffix] = [i32(prefixes + i * 4), i32(suffixes + i * 4)]
        u8.copyWithin(to, before, before + prefix)
        u8.copyWithin(to + prefix, from, from + suffix)
        putEntry(target, i, to, prefix + suffix)
        before = to
        to += prefix + suffix
        from += suffix
      }
    },
    firstNoText: (entries, count) => {
      for (let i = 0; i < count; i++) {
        const from = u32(entries + i * 8)
        if (!isUtf8(u8.slice(from, from + i32(entries + i * 8 + 4)))) return i
      }
      return count
    },
    joinStreams: (source, count, width, target) => {
      for (let i = 0; i < count; i++)
        for (let k = 0; k < width; k++) u8[target + i * width + k] = u8[source + k * count + i]!
    },
    integersOfFixed: (source, count, bytes, width, target) => {
      for (let i = 0; i < count; i++) if (!integer(source + i * bytes, bytes, width, target + i * width)) return i
      return count
    },
    integersOfStrings: (entries, count, width, target) => {
      for (let i = 0; i < count; i++)
        if (!integer(u32(entries + i * 8), i32(entries + i * 8 + 4), width, target + i * width)) return i
      return count
    },
    ...numbers(view),
    snappyDecompress: (...args) => snappyDecompress(u8, ...args),
  }
}

type Numbers = Pick<
  ForeignKernel,
  'widenIntegers' | 'widenUnsigned' | 'firstNegative' | 'multiply' | 'nanosOfInt96' | 'floatsOfHalves'
>

function numbers(view: DataView): Numbers {
  const read = (source: number, i: number, bytes: number): bigint =>
    bytes === 4 ? BigInt(view.getInt32(source + i * 4, true)) : view.getBigInt64(source + i * 8, true)
  return {
    widenIntegers: (source, count, bytes, width, target) => {
      for (let i = 0; i < count; i++)
        for (let word = 0; word < width / 8; word++)
          view.setBigInt64(target + i * width + word * 8, read(source, i, bytes) >> BigInt(word * 64), true)
    },
    widenUnsigned: (source, count, target) => {
      for (let i = 0; i < count; i++)
        view.setBigInt64(target + i * 8, BigInt(view.getUint32(source + i * 4, true)), true)
    },
    firstNegative: (source, count) => {
      for (let i = 0; i < count; i++) if (read(source, i, 8) < 0n) return i
      return count
    },
    multiply: (source, count, bytes, factor, target) => {
      const most = (2n ** 63n - 1n) / BigInt(factor)
      for (let i = 0; i < count; i++) {
        const value = read(source, i, bytes)
        if (value > most || value < -most) return i
        view.setBigInt64(target + i * 8, value * BigInt(factor), true)
      }
      return count
    },
    nanosOfInt96: (source, count, target) => {
      const day = 86_400_000_000_000n
      for (let i = 0; i < count; i++) {
        const nanos = view.getBigInt64(source + i * 12, true)
        const days = BigInt(view.getInt32(source + i * 12 + 8, true) - 2_440_588)
        if (days > 106_750n || days < -106_750n || nanos > day || nanos < -day) return i
        view.setBigInt64(target + i * 8, days * day + nanos, true)
      }
      return count
    },
    floatsOfHalves: (source, count, target) => {
      for (let i = 0; i < count; i++)
        view.setUint32(target + i * 4, bitsOfHalf(view.getUint16(source + i * 2, true)), true)
    },
  }
}

function bitsOfHalf(half: number): number {
  const [exponent, fraction] = [(half >>> 10) & 31, half & 1023]
  const sign = ((half & 0x8000) << 16) >>> 0
  if (exponent === 31) return (sign | 0x7f800000 | (fraction << 13)) >>> 0
  const value = exponent === 0 ? fraction * 2 ** -24 : (1 + fraction / 1024) * 2 ** (exponent - 15)
  const bits = new DataView(new ArrayBuffer(4))
  bits.setFloat32(0, value)
  return (sign | bits.getUint32(0)) >>> 0
}
