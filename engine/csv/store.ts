// One value of fixed width into a column's memory.

import type { SharedMemory } from '../memory/shared-memory.js'
import { newSlot, setInteger, setNumber, storeSlot } from '../storage/writer-values.js'
import type { DataType } from '../types/column-types.js'
import type { Value } from '../types/value.js'

const slot = newSlot()
const noHeap = null as never

export function storeField(memory: SharedMemory, type: DataType, address: number, row: number, value: Value): void {
  if (typeof value === 'bigint') setInteger(slot, value)
  else if (typeof value === 'string') setNumber(slot, value.charCodeAt(0))
  else setNumber(slot, Number(value))
  storeSlot(memory, noHeap, { id: 0, type, width: 0, address, filled: 0 }, row, slot)
}
