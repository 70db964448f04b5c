// Runs the kernels (WebAssembly loops) of the scan benchmark over arrays in memory, as a lower bound: the cost of a
// scan without files, pages, decoding and HTTP. Two threads process half of the rows each, a page per call. Returns
// times scaled to the requested number of rows.

import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads'
import type { AggregateShape, FragmentExpression, GroupKey } from '../../engine/kernels/jit/fragment.js'
import { createJit } from '../../engine/kernels/jit/jit.js'
import { createSharedMemory, SharedMemory } from '../../engine/memory/shared-memory.js'
import { type DataType, dataType } from '../../engine/types/column-types.js'
import { randomNumbers } from './line-template.js'

/** Rows of the arrays: far more than the processor's caches hold. */
const rowsHeld = 16 * 1024 * 1024
const callRows = 65_536
const threads = 2
const symbolCount = 10
const areaBytes = 16 * 1024 * 1024

const double = dataType('DOUBLE')
const int = dataType('INT')
const symbol = dataType('SYMBOL')
const price: FragmentExpression = { kind: 'column', index: 0, type: double }
const amount: FragmentExpression = { kind: 'column', index: 1, type: double }
const isAbove: FragmentExpression = {
  kind: 'call',
  name: '>',
  args: [price, { kind: 'constant', value: 30_001, type: double }],
  type: dataType('BOOLEAN'),
}
const isOne: FragmentExpression = {
  kind: 'call',
  name: '=',
  args: [
    { kind: 'column', index: 1, type: int },
    { kind: 'constant', value: 1, type: int },
  ],
  type: dataType('BOOLEAN'),
}
const bySymbol = (index: number): GroupKey => ({
  kind: 'integer',
  expression: { kind: 'column', index, type: symbol },
  origin: 0,
})

const plain = { columns: [double, double], predicate: null, keys: [] }
const sumOfPrice = { name: 'sum', arg: price }
const rowCount = { name: 'count', arg: null }

/**
 * By the name of the query (suite-scan.ts). Ranges of time and buckets cost a kernel nothing: rows are in their order.
 */
export const residentShapes: Readonly<Record<string, AggregateShape>> = {
  'sum of doubles': { ...plain, columns: [double], aggregates: [sumOfPrice] },
  'min, max': {
    ...plain,
    columns: [double],
    aggregates: [
      { name: 'min', arg: price },
      { name: 'max', arg: price },
    ],
  },
  'count where': { ...plain, columns: [double], predicate: isAbove, aggregates: [rowCount] },
  'filtered sum (time and price)': { ...plain, predicate: isAbove, aggregates: [{ name: 'sum', arg: amount }] },
  'five aggregates': {
    ...plain,
    aggregates: [
      rowCount,
      sumOfPrice,
      { name: 'avg', arg: amount },
      { name: 'min', arg: price },
      { name: 'max', arg: amount },
    ],
  },
  'group by symbol': {
    columns: [double, symbol],
    predicate: null,
    keys: [bySymbol(1)],
    aggregates: [sumOfPrice, rowCount],
  },
  'group by symbol, side': {
    columns: [double, symbol, symbol],
    predicate: null,
    keys: [bySymbol(1), bySymbol(2)],
    aggregates: [{ name: 'avg', arg: price }],
  },
  'SAMPLE BY 1h': { ...plain, columns: [double], aggregates: [sumOfPrice] },
  'where symbol': { ...plain, columns: [double, int], predicate: isOne, aggregates: [sumOfPrice] },
}

interface Job {
  readonly memory: WebAssembly.Memory
  readonly thread: number
}

/** Where a column lies: doubles first, then the ids. */
function addressOf(type: DataType, index: number): number {
  const doubles = threads * areaBytes
  return type.name === 'DOUBLE'
    ? doubles + index * rowsHeld * 8
    : doubles + 2 * rowsHeld * 8 + (index - 1) * rowsHeld * 4
}

function runShape(memory: SharedMemory, thread: number, shape: AggregateShape): number {
  const fragment = createJit(memory).aggregate(shape)
  if (fragment === null) throw new Error('the kernels know the shape')
  const block = thread * areaBytes + 1024
  const state = block + 65_536
  const groups = (symbolCount + 1) ** shape.keys.length
  fragment.writeConstants(block)
  shape.keys.forEach((_, key) => fragment.setCount(block, key, symbolCount + 1))
  fragment.init(state, groups)
  const begin = (rowsHeld / threads) * thread
  for (let row = begin; row < begin + rowsHeld / threads; row += callRows) {
    shape.columns.forEach((type, index) => {
      fragment.setColumn(block, index, addressOf(type, index) + row * (type.name === 'DOUBLE' ? 8 : 4))
    })
    fragment.run(block, callRows, state, groups, row)
  }
  fragment.fold(state, groups)
  return groups
}

export interface Resident {
  /** Milliseconds for so many rows, the best of the runs; undefined: the query has no such kernel. */
  measure(name: string, rows: number, runs: number): Promise<number | undefined>
  close(): Promise<void>
}

export async function residentArrays(): Promise<Resident> {
  const memory = createSharedMemory(threads * areaBytes + 2 * rowsHeld * 12 + 65_536)
  const random = randomNumbers(7)
  const at = addressOf(double, 0) >>> 3
  for (let row = 0; row < 2 * rowsHeld; row++) memory.f64[at + row] = random() * 60_000
  const ids = addressOf(symbol, 1) >>> 2
  for (let row = 0; row < 2 * rowsHeld; row++) memory.u32[ids + row] = Math.floor(random() * symbolCount)
  const workers = Array.from({ length: threads }, (_, thread) => {
    return new Worker(new URL(import.meta.url), { workerData: { memory: memory.memory, thread } satisfies Job })
  })
  const once = (name: string): Promise<unknown> => {
    return Promise.all(
      workers.map((worker) => {
        const done = new Promise((resolve) => worker.once('message', resolve))
        worker.postMessage(name)
        return done
      }),
    )
  }
  return {
    measure: async (name, rows, runs) => {
      if (residentShapes[name] === undefined) return undefined
      await once(name)
      let best = Number.POSITIVE_INFINITY
      for (let run = 0; run < runs; run++) {
        const start = performance.now()
        await once(name)
        best = Math.min(best, performance.now() - start)
      }
      return (best * rows) / rowsHeld
    },
    close: async () => {
      await Promise.all(workers.map((worker) => worker.terminate()))
    },
  }
}

if (!isMainThread && parentPort !== null) {
  const { memory, thread } = workerData as Job
  const shared = new SharedMemory(memory)
  const port = parentPort
  port.on('message', (name: string) => {
    port.postMessage(runShape(shared, thread, residentShapes[name] as AggregateShape))
  })
}
