// Computes values that depend on settings and machine: the size of the shared memory, and the disk space to keep free.

import { statfsSync } from 'node:fs'
import { totalmem } from 'node:os'

const MIB = 1024 ** 2
const GIB = 1024 ** 3

const memoryBytesMin = 512 * MIB
const memoryBytesMax = 3.5 * GIB
/** With less memory a quarter of it is used, else half. */
const largeMachineBytes = 8 * GIB
/** The unit of WebAssembly memory. */
const pageBytes = 64 * 1024

/** Size of the shared memory: the setting, or a share of the machine's memory, in whole pages. */
export function memoryBytes(setting: number, machine: number): number {
  const share = machine < largeMachineBytes ? machine / 4 : machine / 2
  const wanted = setting === 0 ? share : setting
  const bounded = Math.min(Math.max(wanted, memoryBytesMin), memoryBytesMax)
  return Math.floor(bounded / pageBytes) * pageBytes
}

/** Memory of the machine, or the container's limit. */
export function machineBytes(): number {
  const constrained = process.constrainedMemory?.() ?? 0
  return constrained > 0 ? Math.min(constrained, totalmem()) : totalmem()
}

/** Free bytes of the file system below which writes are refused: the setting, but at most a tenth of its size. */
export function freeBytesMin(setting: number, root: string): number {
  try {
    const { blocks, bsize } = statfsSync(root)
    return Math.min(setting, (blocks * bsize) / 10)
  } catch {
    return setting
  }
}
