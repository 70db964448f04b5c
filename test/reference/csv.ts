// Reference implementation of the CSV kernel: leaves every record to the caller, which decodes it byte by byte.

import { type CsvKernel, csvOutcomes } from '../../engine/kernels/csv.js'
import type { SharedMemory } from '../../engine/memory/shared-memory.js'

export function csvReference({ u32 }: SharedMemory): CsvKernel {
  return {
    scanRecords: (state, firstRow) => {
      u32[(state >>> 2) + 9] = csvOutcomes.irregular
      return firstRow
    },
  }
}
