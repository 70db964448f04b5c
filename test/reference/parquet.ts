// Reference implementation, in plain TypeScript, of the WebAssembly kernel that encodes and decodes Parquet pages;
// property tests compare the two. The contract is in engine/kernels/parquet.ts.

import { nullKinds, type ParquetKernel, rangeKinds, widenKinds } from '../../engine/kernels/parquet.js'
import { xxh64 } from '../../engine/kernels/xxh64.js'
import type { SharedMemory } from '../../engine/memory/shared-memory.js'
import { deltaDecode, deltaEncode } from './parquet-delta.js'
import { dictionaryReference } from './parquet-dictionary.js'
import { decodeIndexed, packIndexes, pickIndexed } from './parquet-hybrid.js'
import { lz4Compress, lz4Decompress } from './parquet-lz4.js'
import { snappyLiterals } from './parquet-snappy.js'

const zeros = (count: number): number[] => Array.from({ length: count }, () => 0)
const ones = (count: number): number[] => Array.from({ length: count }, () => 255)
const i64Minimum = [...zeros(7), 128]

/** NULL as it lies in memory. */
const nullBytes: Readonly<Record<number, readonly number[]>> = {
  [nullKinds.i8]: ones(1),
  [nullKinds.i16]: ones(2),
  [nullKinds.i32]: ones(4),
  [nullKinds.i64]: ones(8),
  [nullKinds.i32Minimum]: [0, 0, 0, 128],
  [nullKinds.i64Minimum]: i64Minimum,
  [nullKinds.i32Zero]: zeros(4),
  [nullKinds.f32]: [0, 0, 0xc0, 0x7f],
  [nullKinds.f64]: [...zeros(6), 0xf8, 0x7f],
  [nullKinds.words16]: [...i64Minimum, ...i64Minimum],
  [nullKinds.words32]: [...i64Minimum, ...i64Minimum, ...i64Minimum, ...i64Minimum],
  [nullKinds.decimal16]: [...zeros(15), 128],
  [nullKinds.decimal32]: [...zeros(31), 128],
  [nullKinds.entry]: [...zeros(4), ...ones(4)],
}

export function parquetReference(memory: SharedMemory): ParquetKernel {
  const view = new DataView(memory.memory.buffer)
  const u8 = memory.u8
  return {
    presence: (values, count, kind, bits) => presence(view, values, count, kind, bits),
    compact: (values, count, width, bits, target) => {
      let out = target
      for (let i = 0; i < count; i++) {
        if (!bitAt(u8, bits, i)) continue
        u8.copyWithin(out, values + i * width, values + (i + 1) * width)
        out += width
      }
    },
    expand: (values, present, count, width, bits, kind, target) => {
      let taken = 0
      for (let i = 0; i < count; i++) {
        const out = target + i * width
        if (!bitAt(u8, bits, i)) storeNull(view, out, kind)
        else if (taken === present) return -1
        else u8.copyWithin(out, values + taken * width, values + ++taken * width)
      }
      return taken === present ? 0 : -1
    },
    fillNull: (count, width, kind, target) => {
      for (let i = 0; i < count; i++) storeNull(view, target + i * width, kind)
    },
    widen: (values, count, kind, target) => {
      for (let i = 0; i < count; i++) view.setInt32(target + i * 4, smallAt(view, values, i, kind), true)
    },
    narrow: (values, count, width, target) => {
      for (let i = 0; i < count; i++) {
        const value = view.getUint32(values + i * 4, true)
        if (width === 1) view.setUint8(target + i, value & 255)
        else view.setUint16(target + i * 2, value & 0xffff, true)
      }
    },
    packBooleans: (values, count, target) => {
      u8.fill(0, target, target + ((count + 7) >>> 3))
      for (let i = 0; i < count; i++) if (u8[values + i] !== 0) setBit(u8, target, i)
    },
    unpackBooleans: (bits, count, target) => {
      for (let i = 0; i < count; i++) u8[target + i] = bitAt(u8, bits, i) ? 1 : 0
    },
    packIndexes: (values, count, width, target) => packIndexes(view, values, count, width, target),
    decodeIndexed: (source, bytes, count, bits, dictionary, entries, width, target) =>
      decodeIndexed(view, { source, end: source + bytes }, count, bits, { dictionary, entries, width }, target),
    pickIndexed: (source, bytes, count, bits, dictionary, entries, width, index, first, picked, target) =>
      pickIndexed(
        view,
        { source, end: source + bytes },
        count,
        bits,
        { dictionary, entries, width },
        { index, first, picked },
        target,
      ),
    deltaEncode32: (values, count, target) => deltaEncode(view, values, count, 32, target),
    deltaEncode64: (values, count, target) => deltaEncode(view, values, count, 64, target),
    deltaDecode32: (source, bytes, count, target) => deltaDecode(view, source, bytes, count, 32, target),
    deltaDecode64: (source, bytes, count, target) => deltaDecode(view, source, bytes, count, 64, target),
    splitBytes: (values, count, width, target) => {
      for (let i = 0; i < count; i++) {
        for (let k = 0; k < width; k++) u8[target + k * count + i] = u8[values + i * width + k]!
      }
    },
    joinBytes: (source, count, width, target) => {
      for (let i = 0; i < count; i++) {
        for (let k = 0; k < width; k++) u8[target + i * width + k] = u8[source + k * count + i]!
      }
    },
    reverseBytes: (values, count, width, target) => {
      for (let i = 0; i < count; i++) {
        const value = u8.slice(values + i * width, values + (i + 1) * width).reverse()
        u8.set(value, target + i * width)
      }
    },
    ...textReference(view),
    range: (values, count, kind, target) => range(view, values, count, kind, target),
    sum: (values, count, kind, target) => sum(view, values, count, kind, target),
    gatherBlocks: (positions, count, shift, bases, width, kind, target) => {
      for (let i = 0; i < count; i++) {
        const position = view.getUint32(positions + i * 4, true)
        const base = view.getUint32(bases + (position >>> shift) * 4, true)
        const from = base + (position & ((1 << shift) - 1)) * width
        if (base !== 0) u8.copyWithin(target + i * width, from, from + width)
        else if (kind === nullKinds.none) u8.fill(0, target + i * width, target + (i + 1) * width)
        else storeNull(view, target + i * width, kind)
      }
    },
    ...dictionaryReference(view),
    hashPlain: (values, count, width, target) => hashPlain(view, values, count, width, target),
    snappyCompress: (source, bytes, target) => snappyLiterals(u8, source, bytes, target),
    lz4Compress: (source, bytes, target, limit) => lz4Compress(u8, source, bytes, target, limit),
    lz4Decompress: (source, bytes, target, targetBytes) => lz4Decompress(u8, source, bytes, target, targetBytes),
  }
}

function bitAt(u8: Uint8Array, bits: number, index: number): boolean {
  return ((u8[bits + (index >>> 3)]! >>> (index & 7)) & 1) === 1
}

function setBit(u8: Uint8Array, bits: number, index: number): void {
  u8[bits + (index >>> 3)] = u8[bits + (index >>> 3)]! | (1 << (index & 7))
}

function presence(view: DataView, values: number, count: number, kind: number, bits: number): number {
  const width = nullBytes[kind]?.length
  if (width === undefined) return -1
  let present = 0
  for (let byte = 0; byte < (count + 7) >>> 3; byte++) view.setUint8(bits + byte, 0)
  for (let i = 0; i < count; i++) {
    if (isNull(view, values + i * width, kind)) continue
    view.setUint8(bits + (i >>> 3), view.getUint8(bits + (i >>> 3)) | (1 << (i & 7)))
    present++
  }
  return present
}

function isNull(view: DataView, at: number, kind: number): boolean {
  if (kind === nullKinds.f32) return Number.isNaN(view.getFloat32(at, true))
  if (kind === nullKinds.f64) return Number.isNaN(view.getFloat64(at, true))
  if (kind === nullKinds.entry) return view.getInt32(at + 4, true) === -1
  return (nullBytes[kind] ?? []).every((byte, index) => view.getUint8(at + index) === byte)
}

function storeNull(view: DataView, at: number, kind: number): void {
  nullBytes[kind]?.forEach((byte, index) => {
    view.setUint8(at + index, byte)
  })
}

function smallAt(view: DataView, values: number, index: number, kind: number): number {
  if (kind === widenKinds.i8) return view.getInt8(values + index)
  return kind === widenKinds.i16 ? view.getInt16(values + index * 2, true) : view.getUint16(values + index * 2, true)
}

function textReference(
  view: DataView,
): Pick<ParquetKernel, 'textLengths' | 'textBytes' | 'plainStrings' | 'textEntries' | 'plainTextEntries'> {
  const u8 = new Uint8Array(view.buffer)
  return {
    textLengths: (entries, count, target) => {
      let total = 0
      for (let i = 0; i < count; i++) {
        const length = view.getInt32(entries + i * 8 + 4, true)
        view.setInt32(target + i * 4, length, true)
        total += length
      }
      return total
    },
    textBytes: (entries, count, target) => {
      let out = target
      for (let i = 0; i < count; i++) {
        const from = view.getUint32(entries + i * 8, true)
        const length = view.getInt32(entries + i * 8 + 4, true)
        u8.copyWithin(out, from, from + length)
        out += length
      }
    },
    plainStrings: (entries, count, target) => {
      let out = target
      for (let i = 0; i < count; i++) {
        const from = view.getUint32(entries + i * 8, true)
        const length = view.getInt32(entries + i * 8 + 4, true)
        view.setInt32(out, length, true)
        u8.copyWithin(out + 4, from, from + length)
        out += 4 + length
      }
      return out - target
    },
    textEntries: (lengths, count, base, bytes, target) => {
      let at = base
      for (let i = 0; i < count; i++) {
        const length = view.getInt32(lengths + i * 4, true)
        if (length < 0) return -1
        view.setUint32(target + i * 8, at, true)
        view.setInt32(target + i * 8 + 4, length, true)
        at += length
        if (at > base + bytes) return -1
      }
      return at === base + bytes ? 0 : -1
    },
    plainTextEntries: (source, bytes, count, target) => {
      let at = source
      for (let i = 0; i < count; i++) {
        if (at + 4 > source + bytes) return -1
        const length = view.getUint32(at, true)
        view.setUint32(target + i * 8, at + 4, true)
        view.setUint32(target + i * 8 + 4, length, true)
        at += 4 + length
        if (at > source + bytes) return -1
      }
      return at === source + bytes ? 0 : -1
    },
  }
}

function range(view: DataView, values: number, count: number, kind: number, target: number): void {
  if (kind === rangeKinds.i64) {
    let low = view.getBigInt64(values, true)
    let high = low
    for (let i = 1; i < count; i++) {
      const value = view.getBigInt64(values + i * 8, true)
      if (value < low) low = value
      if (value > high) high = value
    }
    view.setBigInt64(target, low, true)
    view.setBigInt64(target + 8, high, true)
    return
  }
  const width = kind === rangeKinds.f64 ? 8 : 4
  let low = numberAt(view, values, kind)
  let high = low
  for (let i = 1; i < count; i++) {
    const value = numberAt(view, values + i * width, kind)
    // Math.min and Math.max order -0 before 0, as the kernels do.
    low = Math.min(low, value)
    high = Math.max(high, value)
  }
  storeNumber(view, target, kind, low)
  storeNumber(view, target + 8, kind, high)
}

/** In the order of the kernel, so that the bits are the same. */
function sum(view: DataView, values: number, count: number, kind: number, target: number): void {
  const width = kind === rangeKinds.f64 || kind === rangeKinds.i64 ? 8 : 4
  if (kind === rangeKinds.i64 || kind === rangeKinds.i32) {
    let total = 0n
    for (let i = 0; i < count; i++) {
      total +=
        kind === rangeKinds.i64 ? view.getBigInt64(values + i * 8, true) : BigInt(view.getInt32(values + i * 4, true))
    }
    view.setBigInt64(target, BigInt.asIntN(64, total), true)
    return
  }
  const lanes = [0, 0, 0, 0]
  const whole = count - (count % 4)
  for (let i = 0; i < whole; i++) lanes[i % 4] = (lanes[i % 4] as number) + numberAt(view, values + i * width, kind)
  let rest = 0
  for (let i = whole; i < count; i++) rest += numberAt(view, values + i * width, kind)
  const [a, b, c, d] = lanes as [number, number, number, number]
  view.setFloat64(target, a + c + (b + d) + rest, true)
}

function numberAt(view: DataView, at: number, kind: number): number {
  if (kind === rangeKinds.f64) return view.getFloat64(at, true)
  if (kind === rangeKinds.f32) return view.getFloat32(at, true)
  return kind === rangeKinds.u32 ? view.getUint32(at, true) : view.getInt32(at, true)
}

function storeNumber(view: DataView, at: number, kind: number, value: number): void {
  if (kind === rangeKinds.f64) view.setFloat64(at, value, true)
  else if (kind === rangeKinds.f32) view.setFloat32(at, value, true)
  else view.setInt32(at, value | 0, true)
}

function hashPlain(view: DataView, values: number, count: number, width: number, target: number): void {
  let at = values
  for (let index = 0; index < count; index++) {
    const bytes = width === 0 ? view.getUint32(at, true) : width
    if (width === 0) at += 4
    view.setBigUint64(target + index * 8, xxh64(new Uint8Array(view.buffer, at, bytes)), true)
    at += bytes
  }
}
