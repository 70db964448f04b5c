// Support for the executor's tests: creates tables in memory (memtables) from values, and runs a query to its end in
// the test's own thread, with the code that a query thread runs.

import { errorFromRecord } from '../../../engine/base/errors.js'
import type { Encoding, FromQueryThread, RunQuery } from '../../../engine/exec/run/messages.js'
import { QueryLoop } from '../../../engine/exec/run/query-loop.js'
import { type Kernels, loadKernels } from '../../../engine/kernels/load.js'
import { createAllocator, initializeHeap } from '../../../engine/memory/allocator.js'
import { type Allocator, budgets } from '../../../engine/memory/budgets.js'
import { createSharedMemory, type SharedMemory } from '../../../engine/memory/shared-memory.js'
import type { Expression, Plan, PlanColumn, Query } from '../../../engine/sql/plan/plan.js'
import { SymbolDictionary } from '../../../engine/storage/memtable/dictionary.js'
import { Memtable } from '../../../engine/storage/memtable/memtable.js'
import type { PartAccess } from '../../../engine/storage/part/part-access.js'
import type { TemporaryFiles } from '../../../engine/storage/part/temporary-files.js'
import type { PartDescriptor, TableSnapshot } from '../../../engine/storage/schema/schema.js'
import {
  BatchHeap,
  chunkColumn,
  newChunk,
  noteTimestamp,
  settleChunk,
  settleColumn,
} from '../../../engine/storage/writer/writer-batch.js'
import {
  newSlot,
  setArrayValue,
  setBytes,
  setInteger,
  setNumber,
  storeSlot,
} from '../../../engine/storage/writer/writer-values.js'
import { type DataType, dataType } from '../../../engine/types/column-types.js'
import type { ArrayValue, Value } from '../../../engine/types/value.js'

const MIB = 1024 * 1024

export interface Bench {
  readonly memory: SharedMemory
  readonly allocator: Allocator
  readonly kernels: Kernels
}

export function createBench(mebibytes = 128): Bench {
  const memory = createSharedMemory(mebibytes * MIB)
  initializeHeap(memory, { limits: [64, 64, 64, 64, 8].map((size) => (size * mebibytes * MIB) / 128) })
  return { memory, allocator: createAllocator(memory, 3), kernels: loadKernels(memory) }
}

export interface TestTable {
  readonly snapshot: TableSnapshot
  readonly memtables: readonly Memtable[]
  readonly columns: readonly PlanColumn[]
  /** All rows in commit order. */
  readonly rows: readonly (readonly Value[])[]
  readonly timestampId: number
}

export const noParts: PartAccess = {
  open: () => {
    throw new Error('there are no parts')
  },
  ready: () => true,
  readyWhole: () => true,
  pin: () => 0,
  unpin: () => {},
  pinPacked: () => 0,
  pick: () => {},
  symbolRows: () => -1,
  pinCodes: () => undefined,
  unpack: () => false,
  decode: () => false,
  stored: () => undefined,
  statistics: () => undefined,
  nulls: () => undefined,
  keys: () => ({ mayContain: () => true, mayHave: () => true, select: () => -1, keep: () => false }),
  mayHold: () => true,
  symbols: () => undefined,
  pinNewest: () => 0,
  keepNewest: () => {},
  forget: () => {},
  goIdle: () => {},
  close: () => {},
}

/** A table whose rows lie in one memtable per list of rows. */
export function makeTable(
  bench: Bench,
  columns: readonly PlanColumn[],
  memtables: readonly (readonly (readonly Value[])[])[],
  timestampId: number,
  parts: readonly PartDescriptor[] = [],
): TestTable {
  const { memory, allocator, kernels } = bench
  const dictionaries = new Map<number, SymbolDictionary>()
  columns.forEach(({ type }, id) => {
    if (type.name === 'SYMBOL') dictionaries.set(id, new SymbolDictionary(memory, allocator, kernels.ilp))
  })
  const tables = memtables.map((rows, index) => {
    const memtable = new Memtable({ memory, allocator, kernels, id: index + 1 })
    for (let from = 0; from < rows.length; from += 3000) {
      fill(bench, memtable, columns, rows.slice(from, from + 3000), timestampId, dictionaries)
    }
    memtable.publish(rows.length)
    return memtable
  })
  const snapshot: TableSnapshot = {
    visibleRows: memtables.map((rows) => rows.length),
    version: {
      version: 1,
      parts,
      memtables: tables.map(({ id, address }) => ({ id, address })),
      dictionaries: [...dictionaries].map(([id, dictionary]) => [id, dictionary.address] as const),
      schema: {
        id: 1,
        name: 't',
        version: 1,
        columns: columns.map(({ name, type }, id) => ({ id, name, type, dropped: false })),
        timestampId,
        partitionBy: 'DAY',
        bypassWal: false,
        dedupKeys: [],
        ttl: null,
        maxUncommittedRows: 1000,
        o3MaxLagMicros: 0,
        createdMicros: 0,
      },
    },
  }
  return { snapshot, memtables: tables, columns, rows: memtables.flat(), timestampId }
}

function fill(
  { memory, allocator }: Bench,
  memtable: Memtable,
  columns: readonly PlanColumn[],
  rows: readonly (readonly Value[])[],
  timestampId: number,
  dictionaries: ReadonlyMap<number, SymbolDictionary>,
): void {
  const chunk = newChunk(rows.length)
  const heap = new BatchHeap(memory, allocator)
  for (const row of rows) {
    columns.forEach(({ type }, id) => {
      const value = row[id] ?? null
      if (value === null) return
      const column = chunkColumn(allocator, chunk, id, type)
      settleColumn(memory, column, chunk.rows)
      const slot = newSlot()
      setSlot(memory, heap, slot, type, value, dictionaries.get(id))
      storeSlot(memory, heap, column, chunk.rows, slot)
      column.filled = chunk.rows + 1
    })
    if (timestampId >= 0) noteTimestamp(chunk, row[timestampId] as bigint)
    chunk.rows++
  }
  settleChunk(memory, chunk)
  if (!memtable.append([chunk], timestampId)) throw new Error('the memtable is full')
  heap.free()
  for (const { address } of chunk.columns.values()) allocator.free(address)
}

function setSlot(
  memory: SharedMemory,
  heap: BatchHeap,
  slot: ReturnType<typeof newSlot>,
  type: DataType,
  value: Exclude<Value, null>,
  dictionary: SymbolDictionary | undefined,
): void {
  if (dictionary !== undefined) {
    const bytes = Buffer.from(String(value), 'utf8')
    const address = heap.put(bytes)
    setNumber(slot, dictionary.intern(address, bytes.length) as number)
  } else if (type.name === 'CHAR') setNumber(slot, String(value).charCodeAt(0) || 0)
  else if (typeof value === 'string') setBytes(slot, Buffer.from(value, 'utf8'))
  else if (typeof value === 'boolean') setNumber(slot, value ? 1 : 0)
  else if (typeof value === 'number') setNumber(slot, type.name === 'IPv4' ? value | 0 : value)
  else if (typeof value === 'bigint') setInteger(slot, value)
  else if (value instanceof Uint8Array) setBytes(slot, value)
  else setArrayValue(slot, value as ArrayValue)
  void memory
}

export interface RunOptions {
  readonly encoding?: Encoding
  readonly skip?: number
  readonly rowsMax?: number
  readonly countAll?: boolean
  readonly jit?: boolean
  readonly partAccess?: PartAccess
  readonly temporary?: TemporaryFiles
  readonly spillBytesMax?: number
  /** Free memory of queries, in bytes. */
  readonly memoryLeft?: number
  readonly timeoutMs?: number
  /** Called after each slice of work. */
  readonly heapState?: () => 'free' | 'crowded' | 'full'
}

export interface Outcome {
  readonly rows: (readonly Value[])[]
  readonly text: string
  readonly end: Extract<FromQueryThread, { kind: 'end' }>
}

export const json: Encoding = { kind: 'json', quoteLargeNumbers: false, geohashAsText: true }

/** Runs a query with as much memory as the options say. */
export function runQuery(bench: Bench, query: Query, tables: readonly TestTable[], options: RunOptions = {}): Outcome {
  const { memoryLeft } = options
  if (memoryLeft === undefined) return runAlone(bench, query, tables, options)
  const ballast = ballastOf(bench, memoryLeft)
  try {
    return runAlone(bench, query, tables, options)
  } finally {
    bench.allocator.free(ballast)
  }
}

/** Takes the memory of queries except so many bytes. */
export function ballastOf({ allocator }: Bench, left: number): number {
  return allocator.allocateOrThrow(
    allocator.limit(budgets.queries) - allocator.used(budgets.queries) - left,
    budgets.queries,
  )
}

/** Runs a query on a role of its own to its end; throws what it answered as error. Checks that all memory came back. */
function runAlone(bench: Bench, query: Query, tables: readonly TestTable[], options: RunOptions): Outcome {
  const { memory, allocator, kernels } = bench
  const usedBefore = allocator.used(budgets.queries)
  const messages: FromQueryThread[] = []
  const loop = new QueryLoop({
    memory,
    allocator,
    kernels,
    partAccess: options.partAccess ?? noParts,
    ...(options.temporary === undefined ? {} : { temporary: options.temporary }),
    ...(options.spillBytesMax === undefined ? {} : { spillBytesMax: options.spillBytesMax }),
    ...(options.heapState === undefined ? {} : { heapState: options.heapState }),
    clock: { nowMicros: () => 1_700_000_000_000_000, monotonicMs: () => performance.now() },
    post: (message) => messages.push(message),
  })
  loop.receive(runMessage(query, tables, options))
  const rows: (readonly Value[])[] = []
  let text = ''
  for (;;) {
    const outcome = loop.step()
    for (const message of messages.splice(0)) {
      if (message.kind === 'rows') {
        rows.push(...(message.rows as Value[][]))
        loop.receive({ kind: 'taken', queryId: 1, rows: message.rows.length, bytes: 0 })
      }
      if (message.kind === 'block') {
        text += Buffer.from(memory.u8.slice(message.address, message.address + message.bytes)).toString('utf8')
        loop.receive({ kind: 'release', queryId: 1, address: message.address })
      }
      if (message.kind === 'error') throw errorFromRecord(message.error)
      if (message.kind !== 'end') continue
      text += Buffer.from(message.tail ?? []).toString('utf8')
      const usedAfter = allocator.used(budgets.queries)
      if (usedAfter !== usedBefore) throw new Error(`the query kept ${usedAfter - usedBefore} bytes`)
      return { rows, text, end: message }
    }
    if (outcome === 'idle') throw new Error('the query is stuck')
  }
}

export function runMessage(query: Query, tables: readonly TestTable[], options: RunOptions): RunQuery {
  return {
    kind: 'run',
    queryId: 1,
    query,
    snapshots: tables.map(({ snapshot }) => snapshot),
    encoding: options.encoding ?? { kind: 'values' },
    skip: options.skip ?? 0,
    rowsMax: options.rowsMax ?? Number.POSITIVE_INFINITY,
    countAll: options.countAll ?? false,
    nowMicros: 1_700_000_000_000_000,
    timeoutMs: options.timeoutMs ?? 0,
    jit: options.jit ?? true,
    windowBytes: 1024 * 1024,
  }
}

// Plans by hand.

export function queryOf(plan: Plan): Query {
  return { plan, tables: [1], subqueries: [], timestampIndex: -1 }
}

export function scanOf(
  table: TestTable,
  more: Partial<Pick<Extract<Plan, { kind: 'scan' }>, 'ranges' | 'filter' | 'order'>> = {},
): Extract<Plan, { kind: 'scan' }> {
  return {
    kind: 'scan',
    columns: table.columns,
    table: 0,
    columnIds: table.columns.map((_, id) => id),
    ranges: null,
    filter: null,
    order: 'any',
    ...more,
  }
}

export function columnOf(columns: readonly PlanColumn[], index: number): Expression {
  return { kind: 'column', index, type: (columns[index] as PlanColumn).type, position: 0 }
}

export function constantOf(value: Value, type: DataType): Expression {
  return { kind: 'constant', value, type, position: 0 }
}

export function callOf(name: string, args: readonly Expression[], type: DataType = dataType('BOOLEAN')): Expression {
  return { kind: 'call', name, args, type, position: 0 }
}
