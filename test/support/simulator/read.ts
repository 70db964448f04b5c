// Reads whole tables in the deterministic simulation as a query would see them: memtables through the accessors of the
// shared memory layout, Parquet files through the reader of parts. Returns the rows in the order that readers rely on,
// without rows that DEDUP has replaced.

import { blockAt, blockColumn, blockCount, dictionaryEntry } from '../../../engine/memory/column-layout.js'
import type { SharedMemory } from '../../../engine/memory/shared-memory.js'
import type { PartAccess } from '../../../engine/storage/part/part-access.js'
import { type ColumnSchema, liveColumns, type TableSnapshot } from '../../../engine/storage/schema/schema.js'
import { dataType } from '../../../engine/types/column-types.js'
import type { Cell, ObservedTable } from './model.js'

export interface ReadTools {
  readonly memory: SharedMemory
  readonly parts: PartAccess
}

/** Columns of values while they are collected. */
interface Collected {
  readonly columns: readonly ColumnSchema[]
  readonly cells: Cell[][]
  rows: number
}

export function readTable(tools: ReadTools, snapshot: TableSnapshot): ObservedTable {
  const { schema } = snapshot.version
  const columns = liveColumns(schema)
  const collected: Collected = { columns, cells: columns.map(() => []), rows: 0 }
  for (const part of snapshot.version.parts) readPart(tools, snapshot, part.id, collected)
  snapshot.version.memtables.forEach(({ address }, index) => {
    readMemtable(tools.memory, snapshot, address, snapshot.visibleRows[index] as number, collected)
  })
  const order = rowOrder(snapshot, collected)
  return {
    id: schema.id,
    name: schema.name,
    columns: columns.map(({ name, type }) => ({ name, type: type.name })),
    rowCount: order.length,
    cells: collected.cells.map((cells) => order.map((row) => cells[row] as Cell)),
  }
}

function readPart({ memory, parts }: ReadTools, snapshot: TableSnapshot, partId: number, into: Collected): void {
  const { version } = snapshot
  const descriptor = version.parts.find(({ id }) => id === partId)
  if (descriptor === undefined) return
  const handle = parts.open(descriptor, version)
  if (handle.rows !== descriptor.rows) throw new Error(`a part has other rows than named [file=${descriptor.file}]`)
  const timestamps = into.columns.findIndex(({ id }) => id === version.schema.timestampId)
  for (let page = 0; page < handle.pageCount; page++) {
    const count = handle.firstRows[page + 1]! - handle.firstRows[page]!
    into.columns.forEach((column, index) => {
      const address = parts.pin(handle, column.id, page)
      try {
        readCells(memory, snapshot, column, address, count, undefined, into.cells[index] as Cell[])
      } finally {
        parts.unpin(address)
      }
    })
    into.rows += count
  }
  if (timestamps >= 0) checkSorted(into.cells[timestamps] as Cell[], into.rows - handle.rows, descriptor.file)
}

function checkSorted(cells: readonly Cell[], from: number, file: string): void {
  for (let row = from + 1; row < cells.length; row++) {
    if ((cells[row] as number) < (cells[row - 1] as number)) throw new Error(`a part is not sorted [file=${file}]`)
  }
}

function readMemtable(
  memory: SharedMemory,
  snapshot: TableSnapshot,
  memtable: number,
  visible: number,
  into: Collected,
): void {
  for (let index = 0; index < blockCount(memory, memtable); index++) {
    const block = blockAt(memory, memtable, index)
    const firstRow = memory.u32[block >>> 2]!
    const used = Math.max(0, Math.min(memory.u32[(block + 8) >>> 2]!, visible - firstRow))
    if (used === 0) continue
    const live = liveRows(memory, memory.u32[(block + 36) >>> 2]!, used, visible)
    into.columns.forEach((column, at) => {
      const address = blockColumn(memory, block, column.id)
      readCells(memory, snapshot, column, address, used, live, into.cells[at] as Cell[])
    })
    into.rows += live === undefined ? used : live.filter((alive) => alive).length
  }
}

/** Rows that no visible row has replaced; undefined when there are marks for none. */
function liveRows(memory: SharedMemory, superseded: number, used: number, visible: number): boolean[] | undefined {
  if (superseded === 0) return undefined
  return Array.from({ length: used }, (_, row) => {
    const by = memory.u32[(superseded >>> 2) + row]!
    return by === 0 || by > visible
  })
}

function readCells(
  memory: SharedMemory,
  { version }: TableSnapshot,
  { id, type }: ColumnSchema,
  address: number,
  count: number,
  live: readonly boolean[] | undefined,
  into: Cell[],
): void {
  const dictionary = type.name === 'SYMBOL' ? (version.dictionaries.find(([column]) => column === id)?.[1] ?? 0) : 0
  for (let row = 0; row < count; row++) {
    if (live !== undefined && !live[row]) continue
    into.push(readCell(memory, type.name, dictionary, address, row))
  }
}

const decoders = new WeakMap<SharedMemory, Buffer>()

function textAt(memory: SharedMemory, address: number, bytes: number): string {
  let buffer = decoders.get(memory)
  if (buffer === undefined) {
    buffer = Buffer.from(memory.memory.buffer)
    decoders.set(memory, buffer)
  }
  return buffer.toString('latin1', address, address + bytes)
}

const booleanName = dataType('BOOLEAN').name

function readCell(memory: SharedMemory, type: string, dictionary: number, address: number, row: number): Cell {
  if (address === 0) return type === booleanName ? false : null
  switch (type) {
    case 'LONG':
    case 'TIMESTAMP': {
      const value = memory.i64[(address >>> 3) + row]!
      return value === -(2n ** 63n) ? null : Number(value)
    }
    case 'DOUBLE': {
      const value = memory.f64[(address >>> 3) + row]!
      return Number.isNaN(value) ? null : value
    }
    case 'BOOLEAN':
      return memory.u8[address + row] !== 0
    case 'SYMBOL':
      return symbolText(memory, dictionary, memory.i32[(address >>> 2) + row]!)
    case 'VARCHAR': {
      const word = (address >>> 2) + row * 2
      const bytes = memory.i32[word + 1]!
      return bytes < 0 ? null : textAt(memory, memory.u32[word]!, bytes)
    }
    default:
      throw new Error(`the simulator reads no ${type}`)
  }
}

function symbolText(memory: SharedMemory, dictionary: number, id: number): string | null {
  if (id < 0) return null
  if (id >= memory.u32[dictionary >>> 2]!) throw new Error(`a symbol is beyond its dictionary [id=${id}]`)
  const entry = dictionaryEntry(memory, dictionary, id) >>> 2
  return textAt(memory, memory.u32[entry]!, memory.u32[entry + 1]!)
}

/** Runs lie in commit order; of rows with the same DEDUP keys the last one counts. */
function rowOrder({ version }: TableSnapshot, { columns, cells, rows }: Collected): number[] {
  const { timestampId, dedupKeys } = version.schema
  let order = Array.from({ length: rows }, (_, row) => row)
  const at = columns.findIndex(({ id }) => id === timestampId)
  if (at < 0) return order
  if (dedupKeys.length > 0) {
    const keys = dedupKeys.map((id) => cells[columns.findIndex((column) => column.id === id)] as Cell[])
    const last = new Map(order.map((row) => [keys.map((key) => String(key[row])).join(' '), row]))
    order = [...last.values()].sort((x, y) => x - y)
  }
  const times = cells[at] as number[]
  return order.sort((x, y) => (times[x] as number) - (times[y] as number))
}
