// Support of the kernel tests: two small memories, one for the WebAssembly kernels and one for their twins.

import { type Kernels, loadKernels } from '../../../engine/kernels/load.js'
import { createSharedMemory, type SharedMemory } from '../../../engine/memory/shared-memory.js'

export interface Bench {
  readonly memory: SharedMemory
  readonly kernels: Kernels
}

/** First address that a test may use. */
export const testBase = 4 * 1024 * 1024

/** The same structures are laid out in both memories; a property compares what both leave behind. */
export function kernelsAndTwins(mebibytes = 16): { wasm: Bench; twin: Bench } {
  const wasmMemory = createSharedMemory(mebibytes * 1024 * 1024)
  const twinMemory = createSharedMemory(mebibytes * 1024 * 1024)
  return {
    wasm: { memory: wasmMemory, kernels: loadKernels(wasmMemory) },
    twin: { memory: twinMemory, kernels: loadKernels(twinMemory, { twins: true }) },
  }
}

/** A copy of a range, for comparison. */
export function bytesAt(memory: SharedMemory, address: number, bytes: number): Buffer {
  return Buffer.from(memory.u8.slice(address, address + bytes))
}

/** Whether kernel and twin left the same bytes in a range. */
export function sameBytes({ wasm, twin }: { wasm: Bench; twin: Bench }, address: number, bytes: number): boolean {
  return bytesAt(wasm.memory, address, bytes).equals(bytesAt(twin.memory, address, bytes))
}
