// Texts of the shared memory as strings.

import type { SharedMemory } from '../../memory/shared-memory.js'

const buffers = new WeakMap<SharedMemory, Buffer>()

/** The whole memory as a Buffer: decodes text without a copy. */
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

/** -1, 0, 1: a text of the shared memory beside bytes; the order of UTF-8 is that of code points. */
export function compareBytes({ u8 }: SharedMemory, address: number, bytes: number, other: Uint8Array): number {
  const common = Math.min(bytes, other.length)
  for (let at = 0; at < common; at++) {
    const difference = u8[address + at]! - other[at]!
    if (difference !== 0) return difference < 0 ? -1 : 1
  }
  return Math.sign(bytes - other.length)
}
