// Reference implementation in plain TypeScript of the dictionaries of Parquet column chunks; engine/kernels/parquet.ts
// specifies their state (DICTIONARY STATE). The hash function differs from the kernel's, since only the order of the
// values is part of the contract.

import type { ParquetKernel } from '../../engine/kernels/parquet.js'

type DictionaryKernel = Pick<ParquetKernel, 'dictionaryAdd' | 'dictionaryAddText' | 'dictionaryRehash'>

export function dictionaryReference(view: DataView): DictionaryKernel {
  const u8 = new Uint8Array(view.buffer)

  function hash(at: number, length: number): number {
    let value = 0x811c9dc5
    for (let i = 0; i < length; i++) value = Math.imul(value ^ u8[at + i]!, 0x01000193)
    return value >>> 0
  }

  function same(a: number, b: number, length: number): boolean {
    for (let i = 0; i < length; i++) if (u8[a + i] !== u8[b + i]) return false
    return true
  }

  /** The slot of the value, or the free slot where it belongs. */
  function slotOf(state: number, at: number, length: number): number {
    const slots = view.getUint32(state, true)
    const mask = view.getUint32(state + 4, true)
    let slot = (hash(at, length) & mask) >>> 0
    for (;;) {
      const index = view.getUint32(slots + slot * 4, true)
      if (index === 0) return slots + slot * 4
      const known = knownAt(state, index - 1)
      if (known.length === length && same(known.at, at, length)) return slots + slot * 4
      slot = ((slot + 1) & mask) >>> 0
    }
  }

  function knownAt(state: number, index: number): { at: number; length: number } {
    const values = view.getUint32(state + 8, true)
    const width = view.getUint32(state + 20, true)
    if (width > 0) return { at: values + index * width, length: width }
    const at = values + view.getUint32(view.getUint32(state + 32, true) + index * 4, true)
    return { at: at + 4, length: view.getUint32(at, true) }
  }

  /** False when there is no room. */
  function append(state: number, at: number, length: number): boolean {
    const count = view.getUint32(state + 12, true)
    if (count === view.getUint32(state + 16, true)) return false
    const values = view.getUint32(state + 8, true)
    const width = view.getUint32(state + 20, true)
    if (width > 0) u8.copyWithin(values + count * width, at, at + width)
    else if (!appendText(state, count, at, length)) return false
    view.setUint32(state + 12, count + 1, true)
    return true
  }

  function appendText(state: number, count: number, at: number, length: number): boolean {
    const bytes = view.getUint32(state + 24, true)
    if (bytes + length + 4 > view.getUint32(state + 28, true)) return false
    const text = view.getUint32(state + 8, true) + bytes
    view.setUint32(view.getUint32(state + 32, true) + count * 4, bytes, true)
    view.setUint32(text, length, true)
    u8.copyWithin(text + 4, at, at + length)
    view.setUint32(state + 24, bytes + length + 4, true)
    return true
  }

  function addOne(state: number, at: number, length: number, target: number): boolean {
    const slot = slotOf(state, at, length)
    if (view.getUint32(slot, true) === 0) {
      if (!append(state, at, length)) return false
      view.setUint32(slot, view.getUint32(state + 12, true), true)
    }
    view.setUint32(target, view.getUint32(slot, true) - 1, true)
    return true
  }

  return {
    dictionaryAdd: (state, values, count, indexes) => {
      const width = view.getUint32(state + 20, true)
      for (let i = 0; i < count; i++) if (!addOne(state, values + i * width, width, indexes + i * 4)) return i
      return count
    },
    dictionaryAddText: (state, entries, count, indexes) => {
      for (let i = 0; i < count; i++) {
        const at = view.getUint32(entries + i * 8, true)
        if (!addOne(state, at, view.getUint32(entries + i * 8 + 4, true), indexes + i * 4)) return i
      }
      return count
    },
    dictionaryRehash: (state) => {
      for (let index = 0; index < view.getUint32(state + 12, true); index++) {
        const { at, length } = knownAt(state, index)
        view.setUint32(slotOf(state, at, length), index + 1, true)
      }
    },
  }
}
