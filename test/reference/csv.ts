// Reference implementation of the CSV kernel (WebAssembly), which splits regular records into fields and leaves others
// to its caller. The reference leaves every record to the caller, whose byte-by-byte scanner must give the same result.

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
