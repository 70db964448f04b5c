// Helpers for tests of the WebAssembly kernels: creates two small memories with the same layout, one for the kernels
// and one for their reference implementations in TypeScript, and compares bytes of both.

import { type Kernels, loadKernels } from '../../../engine/kernels/load.js'
import { createSharedMemory, type SharedMemory } from '../../../engine/memory/shared-memory.js'
import { referenceKernels } from '../../reference/kernels.js'

export interface Bench {
  readonly memory: SharedMemory
  readonly kernels: Kernels
}

/** First address that a test may use. */
export const testBase = 4 * 1024 * 1024

/** The same structures are laid out in both memories; a property compares what both leave behind. */
export function kernelsAndReferences(mebibytes = 16): { wasm: Bench; reference: Bench } {
  const wasmMemory = createSharedMemory(mebibytes * 1024 * 1024)
  const referenceMemory = createSharedMemory(mebibytes * 1024 * 1024)
  return {
    wasm: { memory: wasmMemory, kernels: loadKernels(wasmMemory) },
    reference: { memory: referenceMemory, kernels: referenceKernels(referenceMemory) },
  }
}

/** A copy of a range, for comparison. */
export function bytesAt(memory: SharedMemory, address: number, bytes: number): Buffer {
  return Buffer.from(memory.u8.slice(address, address + bytes))
}

/** Whether kernel and reference left the same bytes in a range. */
export function sameBytes(
  { wasm, reference }: { wasm: Bench; reference: Bench },
  address: number,
  bytes: number,
): boolean {
  return bytesAt(wasm.memory, address, bytes).equals(bytesAt(reference.memory, address, bytes))
}
