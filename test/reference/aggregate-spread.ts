// Part of the reference implementation of the aggregate kernel (WebAssembly) in plain TypeScript: hashes keys, and
// partitions rows by the hash of their key.

import { type AggregateKernel, hashKinds } from '../../engine/kernels/aggregate.js'
import type { SharedMemory } from '../../engine/memory/shared-memory.js'

export function spreadReference(memory: SharedMemory): Pick<AggregateKernel, 'hashKeys' | 'spreadRows'> {
  return {
    hashKeys: (kind, values, rows, hashes) => {
      for (let row = 0; row < rows; row++) {
        const at = (hashes >>> 2) + row
        const before = BigInt(memory.u32[at]!)
        memory.u32[at] = mix((before << 32n) ^ wordAt(memory, kind, values, row, before))
      }
    },
    spreadRows: (hashes, rows, shift, starts, out) => {
      const lists = Array.from({ length: 2 ** (32 - shift) }, (): number[] => [])
      for (let row = 0; row < rows; row++) lists[memory.u32[(hashes >>> 2) + row]! >>> shift]?.push(row)
      let at = 0
      lists.forEach((list, partition) => {
        memory.u32[(starts >>> 2) + partition] = at
        memory.u32.set(list, (out >>> 2) + at)
        at += list.length
      })
      memory.u32[(starts >>> 2) + lists.length] = at
    },
  }
}

function mix(key: bigint): number {
  const product = BigInt.asUintN(64, (key ^ (key >> 32n)) * 0x9e3779b97f4a7c15n)
  return Number(BigInt.asUintN(32, (product >> 32n) ^ (product >> 15n)))
}

function wordAt(memory: SharedMemory, kind: number, values: number, row: number, before: bigint): bigint {
  switch (kind) {
    case hashKinds.entry:
      return BigInt(textHash(memory, values + row * 8))
    case hashKinds.b16:
      return wideWord(memory, values + row * 16, 2)
    case hashKinds.b32:
      return wideWord(memory, values + row * 32, 4)
    default:
      return BigInt.asUintN(64, plainWord(memory, kind, values, row) + before)
  }
}

function plainWord({ f64, f32, u64, u32, u16, u8 }: SharedMemory, kind: number, values: number, row: number): bigint {
  if (kind === hashKinds.f64) {
    const value = f64[(values >>> 3) + row]!
    if (value === 0) return 0n
    return Number.isNaN(value) ? 0x7ff8_0000_0000_0000n : u64[(values >>> 3) + row]!
  }
  if (kind === hashKinds.f32) {
    const value = f32[(values >>> 2) + row]!
    if (value === 0) return 0n
    return Number.isNaN(value) ? 0x7fc0_0000n : BigInt(u32[(values >>> 2) + row]!)
  }
  if (kind === hashKinds.i64) return u64[(values >>> 3) + row]!
  if (kind === hashKinds.i32) return BigInt(u32[(values >>> 2) + row]!)
  return BigInt((kind === hashKinds.i16 ? u16[(values >>> 1) + row] : u8[values + row]) as number)
}

const mixer = 0xff51_afd7_ed55_8ccdn

function wideWord({ u64 }: SharedMemory, at: number, words: number): bigint {
  let word = 0n
  for (let index = 0; index < words; index++) {
    word = BigInt.asUintN(64, (word ^ u64[(at >>> 3) + index]!) * mixer)
  }
  return word
}

/** Of an entry: eight bytes at a time, the last ones filled up with zeros. */
function textHash({ u32, i32, u8 }: SharedMemory, entry: number): number {
  const from = u32[entry >>> 2]!
  const bytes = i32[(entry >>> 2) + 1]!
  let hash = BigInt.asUintN(64, BigInt(bytes) * 0x9e3779b97f4a7c15n)
  for (let at = 0; at < bytes; at += 8) {
    let word = 0n
    for (let index = Math.min(8, bytes - at) - 1; index >= 0; index--) {
      word = (word << 8n) | BigInt(u8[from + at + index]!)
    }
    hash = BigInt.asUintN(64, (hash ^ word) * mixer)
    hash ^= hash >> 32n
  }
  return mix(hash)
}
