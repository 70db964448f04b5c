// All WebAssembly kernels as reference implementations in plain TypeScript: much slower, with the same results. Tests
// compare the kernels with them, and run the storage engine on them.

import type { Kernels } from '../../engine/kernels/load.js'
import type { SharedMemory } from '../../engine/memory/shared-memory.js'
import { aggregateReference } from './aggregate.js'
import { csvReference } from './csv.js'
import { encodeReference } from './encode.js'
import { foreignReference } from './foreign.js'
import { ilpReference } from './ilp.js'
import { joinReference } from './join.js'
import { numberReference } from './number.js'
import { parquetReference } from './parquet.js'
import { rowsReference } from './rows.js'
import { sortReference } from './sort.js'
import { textReference } from './text.js'

export function referenceKernels(memory: SharedMemory): Kernels {
  return {
    aggregate: aggregateReference(memory),
    csv: csvReference(memory),
    encode: encodeReference(memory),
    foreign: foreignReference(memory),
    ilp: ilpReference(memory),
    join: joinReference(memory),
    number: numberReference(memory),
    parquet: parquetReference(memory),
    rows: rowsReference(memory),
    sort: sortReference(memory),
    text: textReference(memory),
  }
}
