// A second entry point of the engine, for threads of connectors that convert JSON records to line protocol: provides
// the WebAssembly kernel for that, with a memory of its own. Importing this file loads nothing else of the engine.

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
export * as recordLayout from './kernels/records-layout.js'
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
