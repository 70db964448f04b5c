// Decodes and compares UTF-8 strings that are stored in shared memory.

import type { SharedMemory } from '../../memory/shared-memory.js'

const buffers = new WeakMap<SharedMemory, Buffer>()

/** The whole shared memory as a Buffer, cached, to decode strings without a copy. */
export function bufferOf(memory: SharedMemory): Buffer {
  const known = buffers.get(memory)
  if (known !== undefined) return known
  const made = Buffer.from(memory.memory.buffer)
  buffers.set(memory, made)
  return made
}

export function textAt(memory: SharedMemory, address: number, bytes: number): string {
  return bufferOf(memory).toString('utf8', address, address + bytes)
}

/** Compares a string in shared memory with other bytes: -1, 0 or 1. The byte order of UTF-8 is that of code points. */
export function compareBytes({ u8 }: SharedMemory, address: number, bytes: number, other: Uint8Array): number {
  const common = Math.min(bytes, other.length)
  for (let at = 0; at < common; at++) {
    const difference = u8[address + at]! - other[at]!
    if (difference !== 0) return difference < 0 ? -1 : 1
  }
  return Math.sign(bytes - other.length)
}
