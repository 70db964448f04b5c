// Kernels over one shared memory: the WebAssembly modules of engine/kernels/generated, compiled and instantiated in this
// thread when first used, or their plain TypeScript twins.
//
// Modules share the memory; each has 64 KiB of its own for constants, rewritten at every instantiation. Kernels keep no
// state but in structures that the caller names; their globals belong to the thread and die with the call.

import type { SharedMemory } from '../memory/shared-memory.js'
import { writeConstants } from './constants.js'
import { wasmBase64 as ilpModule } from './generated/ilp.js'
import type { IlpKernel } from './ilp.js'
import { ilpTwin } from './ilp-twin.js'

export interface Kernels {
  readonly ilp: IlpKernel
}

export interface LoadOptions {
  /** Use the TypeScript twins: slower by far, the same answers. */
  readonly twins?: boolean
}

export function loadKernels(memory: SharedMemory, { twins = false }: LoadOptions = {}): Kernels {
  if (!twins) writeConstants(memory)
  const ilp = lazy(() => (twins ? ilpTwin(memory) : (instantiate(memory, ilpModule) as unknown as IlpKernel)))
  return {
    get ilp() {
      return ilp()
    },
  }
}

function lazy<T>(make: () => T): () => T {
  let made: T | null = null
  return () => {
    made ??= make()
    return made
  }
}

function instantiate(memory: SharedMemory, base64: string): Record<string, unknown> {
  const module = new WebAssembly.Module(Buffer.from(base64, 'base64'))
  return new WebAssembly.Instance(module, { env: { memory: memory.memory } }).exports
}
