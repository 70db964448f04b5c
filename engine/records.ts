// A second entry point, for threads that make lines of records: the kernel for JSON records over a memory of its own. It brings
// nothing of the engine along.

import { wasmBase64 } from './kernels/generated/records.js'
import type { RecordKernel } from './kernels/records.js'
import { createSharedMemory, type SharedMemory } from './memory/shared-memory.js'

export {
  recordActions,
  recordBytes,
  recordCodes,
  recordFieldBytes,
  recordPadding,
  recordStateBytes,
  recordUnits,
  writeRecordField,
} from './kernels/records.js'
export { heapBase as recordHeapBase } from './memory/layout.js'

export interface RecordEncoder {
  readonly memory: SharedMemory
  readonly kernel: RecordKernel
}

/** `bytes` of memory, below recordHeapBase the kernel's. */
export function openRecordEncoder(bytes: number): RecordEncoder {
  const memory = createSharedMemory(bytes)
  const module = new WebAssembly.Module(Buffer.from(wasmBase64, 'base64'))
  const { exports } = new WebAssembly.Instance(module, { env: { memory: memory.memory } })
  return { memory, kernel: exports as unknown as RecordKernel }
}
