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
