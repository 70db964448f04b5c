// Loads the kernels: compiles and instantiates the WebAssembly modules of engine/kernels/generated at their first use
// in a thread, apart from that of records.ts (engine/records.ts). test/reference has a reference implementation of each
// in TypeScript.
//
// These modules share one memory, in which each has 64 KiB for constants, rewritten at every instantiation. Kernels
// keep state only in structures that the caller passes; their globals belong to the thread and are meaningless after a
// call.

import type { SharedMemory } from '../memory/shared-memory.js'
import type { AggregateKernel } from './aggregate.js'
import { writeConstants } from './constants.js'
import type { CsvKernel } from './csv.js'
import type { EncodeKernel } from './encode.js'
import type { ForeignKernel } from './foreign.js'
import { wasmBase64 as aggregateModule } from './generated/aggregate.js'
import { wasmBase64 as csvModule } from './generated/csv.js'
import { wasmBase64 as encodeModule } from './generated/encode.js'
import { wasmBase64 as foreignModule } from './generated/foreign.js'
import { wasmBase64 as ilpModule } from './generated/ilp.js'
import { wasmBase64 as joinModule } from './generated/join.js'
import { wasmBase64 as numberModule } from './generated/number.js'
import { wasmBase64 as parquetModule } from './generated/parquet.js'
import { wasmBase64 as rowsModule } from './generated/rows.js'
import { wasmBase64 as sortModule } from './generated/sort.js'
import { wasmBase64 as textModule } from './generated/text.js'
import type { IlpKernel } from './ilp.js'
import type { JoinKernel } from './join.js'
import type { NumberKernel } from './number.js'
import type { ParquetKernel } from './parquet.js'
import type { RowsKernel } from './rows.js'
import type { SortKernel } from './sort.js'
import type { TextKernel } from './text.js'

export interface Kernels {
  readonly number: NumberKernel
  readonly aggregate: AggregateKernel
  readonly csv: CsvKernel
  readonly encode: EncodeKernel
  readonly foreign: ForeignKernel
  readonly ilp: IlpKernel
  readonly join: JoinKernel
  readonly rows: RowsKernel
  readonly sort: SortKernel
  readonly text: TextKernel
  readonly parquet: ParquetKernel
}

export function loadKernels(memory: SharedMemory): Kernels {
  writeConstants(memory)
  const csv = kernel<CsvKernel>(memory, csvModule)
  const ilp = kernel<IlpKernel>(memory, ilpModule)
  const rows = kernel<RowsKernel>(memory, rowsModule)
  const sort = kernel<SortKernel>(memory, sortModule)
  const text = kernel<TextKernel>(memory, textModule)
  const parquet = kernel<ParquetKernel>(memory, parquetModule)
  const encode = kernel<EncodeKernel>(memory, encodeModule)
  const foreign = kernel<ForeignKernel>(memory, foreignModule)
  const aggregate = kernel<AggregateKernel>(memory, aggregateModule)
  const number = kernel<NumberKernel>(memory, numberModule)
  const join = kernel<JoinKernel>(memory, joinModule)
  return {
    get csv() {
      return csv()
    },
    get join() {
      return join()
    },
    get number() {
      return number()
    },
    get aggregate() {
      return aggregate()
    },
    get encode() {
      return encode()
    },
    get foreign() {
      return foreign()
    },
    get ilp() {
      return ilp()
    },
    get rows() {
      return rows()
    },
    get sort() {
      return sort()
    },
    get text() {
      return text()
    },
    get parquet() {
      return parquet()
    },
  }
}

/** Loads only the kernel for rows, which does not need the constant tables. */
export function loadRows(memory: SharedMemory): RowsKernel {
  return kernel<RowsKernel>(memory, rowsModule)()
}

/** Instantiates the kernel at its first use. That a module has the functions of the interface is proved by tests. */
function kernel<K>(memory: SharedMemory, base64: string): () => K {
  let made: K | null = null
  return () => {
    made ??= instantiate(memory, base64) as K
    return made
  }
}

/** Compiled modules by their code, for the further memories of a thread: tests open many engines in a thread. */
const compiled = new Map<string, WebAssembly.Module>()

function instantiate(memory: SharedMemory, base64: string): unknown {
  const module = compiled.get(base64) ?? new WebAssembly.Module(Buffer.from(base64, 'base64'))
  compiled.set(base64, module)
  return new WebAssembly.Instance(module, { env: { memory: memory.memory } }).exports
}
