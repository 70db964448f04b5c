// Enforces PRIMARY KEY .. ENFORCED: finds the rows of a batch that must be refused, before they are appended to the
// memtable: those with NULL in a column of the key, and those whose key another row has. The key contains the
// designated timestamp, so a row is compared only with rows of the same time:
//
//   batch      a hash table of its rows, unless their timestamps ascend
//   memtables  those whose time range meets that of the batch, by an index of their keys (memtable/key-index.ts)
//   parts      those whose time range meets that of the batch, by binary search (part-keys.ts)
//
// So rows that arrive in time order are compared with no other row. The writer appends one request after the other, so
// if two sessions insert the same key, the second row is refused.
//
// Rows that upserts have removed do not count. Replay of the log does not come here: its rows were accepted before.
//
// Parts that are only in the object store are not searched, because the writer does not wait for the network. A row
// within the time range of such a part is refused.

import { assert } from '../../base/assert.js'
import { CorruptionError, FileError, ResourceError } from '../../base/errors.js'
import { type Allocator, budgets } from '../../memory/budgets.js'
import type { SharedMemory } from '../../memory/shared-memory.js'
import { columnTypes, isVariable } from '../../types/column-types.js'
import { isTime } from '../../types/convert.js'
import { formatTimestamp } from '../../types/timestamp.js'
import { hashRow, type KeyColumn, keyColumnsAt, nullBytes, sameRow } from '../memtable/key-columns.js'
import { KeyIndex } from '../memtable/key-index.js'
import type { Memtable } from '../memtable/memtable.js'
import type { PartAccess } from '../part/part-access.js'
import { partitionNamer } from '../schema/partition.js'
import { type DeclaredKey, enforcedKey, isRemoteOnly } from '../schema/schema.js'
import { PartKeys } from './part-keys.js'
import type { RowChunk } from './writer-batch.js'
import type { WriterTable } from './writer-table.js'

/** A row of a batch that must not be stored. */
export interface RefusedRow {
  /** Number of the row among all rows of the batch. */
  readonly row: number
  readonly message: string
}

/** Rows that the transaction of the batch removes, so that their keys are free. */
export interface LeavingRows {
  /** All rows that the table has. */
  readonly all?: boolean
  readonly parts: ReadonlyMap<number, ReadonlySet<number>>
  /** Rows of the open memtable. */
  readonly rows: ReadonlySet<number>
  /** Rows of the batch itself. */
  readonly hidden: ReadonlySet<number>
}

export const noneLeaving: LeavingRows = { parts: new Map(), rows: new Set(), hidden: new Set() }

interface KeyOptions {
  readonly memory: SharedMemory
  readonly allocator: Allocator
  readonly partAccess?: PartAccess | undefined
}

/** The rows of a batch, with the key columns of each chunk. */
interface Batch {
  readonly table: WriterTable
  readonly key: DeclaredKey
  /** The designated timestamp is the first one. */
  readonly columnIds: readonly number[]
  readonly chunks: readonly { readonly first: number; readonly rows: number; readonly columns: readonly KeyColumn[] }[]
  readonly rows: number
  readonly minTs: bigint
  readonly maxTs: bigint
  readonly leaving: LeavingRows
}

/** A place where stored rows are found by their key. Returns what is wrong with the row; empty: nothing. */
type Search = (columns: readonly KeyColumn[], row: number, hash: number, ts: bigint) => 'repeated' | 'away' | ''

/** The writer has one. */
export class KeyChecks {
  private readonly options: KeyOptions
  private readonly indexes = new WeakMap<Memtable, KeyIndex>()
  /** Address of nullBytes bytes each: for stored rows and for those of batches; 0 before the first use. */
  private nulls = 0

  constructor(options: KeyOptions) {
    this.options = options
  }

  /** Closes files that are kept open between checks. */
  goIdle(): void {
    this.options.partAccess?.goIdle()
  }

  /**
   * The rows of a settled batch that must be refused, in ascending order; at most `limit`. Throws ResourceError if
   * stored rows cannot be read.
   */
  refused(
    table: WriterTable,
    chunks: readonly RowChunk[],
    leaving: LeavingRows = noneLeaving,
    limit = Number.POSITIVE_INFINITY,
  ): RefusedRow[] {
    const key = enforcedKey(table.schema)
    if (key === undefined) return []
    assert(key.columnIds.includes(table.schema.timestampId), 'T1: an enforced key contains the designated timestamp')
    const batch = this.batchOf(table, key, chunks, leaving)
    if (batch.rows === 0) return []
    const found: RefusedRow[] = []
    const releases: (() => void)[] = []
    try {
      this.search(batch, this.searches(batch, releases), limit, found)
      return found
    } catch (thrown) {
      if (!(thrown instanceof CorruptionError || thrown instanceof FileError)) throw thrown
      throw new ResourceError(`the rows with the key cannot be read [key=${key.name}, error=${thrown.message}]`)
    } finally {
      for (const release of releases) release()
    }
  }

  private batchOf(table: WriterTable, key: DeclaredKey, chunks: readonly RowChunk[], leaving: LeavingRows): Batch {
    const { timestampId } = table.schema
    const { memory, allocator } = this.options
    if (this.nulls === 0) this.nulls = allocator.allocateOrThrow(nullBytes * 2, budgets.ingest)
    const columnIds = [timestampId, ...key.columnIds.filter((id) => id !== timestampId)]
    let first = 0
    const described = chunks.map((chunk) => {
      const columns = keyColumnsAt(memory, table.schema, columnIds, this.nulls + nullBytes, (id) => {
        const column = chunk.columns.get(id)
        return column === undefined || column.filled === 0 ? 0 : column.address
      })
      const entry = { first, rows: chunk.rows, columns }
      first += chunk.rows
      return entry
    })
    let [minTs, maxTs] = [chunks[0]?.minTs ?? 0n, chunks[0]?.maxTs ?? 0n]
    for (const chunk of chunks) {
      if (chunk.minTs < minTs) minTs = chunk.minTs
      if (chunk.maxTs > maxTs) maxTs = chunk.maxTs
    }
    assert(chunks.length === 0 || minTs <= maxTs, 'T1: the time range of a batch is not empty')
    return { table, key, columnIds, chunks: described, rows: first, minTs, maxTs, leaving }
  }

  private searches(batch: Batch, releases: (() => void)[]): Search[] {
    const { table, minTs, maxTs, leaving } = batch
    if (leaving.all === true) return []
    const searches: Search[] = []
    for (const { memtable, leaving: partitions } of table.memtables) {
      const range = memtable.timeRange()
      if (range === undefined || range.min > maxTs || range.max < minTs) continue
      const index = this.indexOf(batch, memtable)
      const own = memtable === table.open?.memtable ? leaving.rows : noneLeaving.rows
      const nameOf = partitions === undefined ? null : partitionNamer(table.schema)
      searches.push((columns, row, hash, ts) => {
        if (nameOf !== null && partitions?.has(nameOf(ts)) === true) return ''
        const found = index.find(columns, row, hash)
        return found < 0 || own.has(found) ? '' : 'repeated'
      })
    }
    for (const part of table.parts) {
      if (part.minTs > maxTs || part.maxTs < minTs) continue
      const isWithin = (ts: bigint): boolean => part.minTs <= ts && ts <= part.maxTs
      const keys = isRemoteOnly(part) ? null : this.partKeys(batch, part)
      if (keys !== null) releases.push(() => keys.release())
      searches.push((columns, row, _, ts) => {
        if (!isWithin(ts)) return ''
        if (keys === null) return 'away'
        return keys.has(ts, columns, row) ? 'repeated' : ''
      })
    }
    return searches
  }

  private indexOf({ table, columnIds }: Batch, memtable: Memtable): KeyIndex {
    const { memory } = this.options
    const { schema } = table
    const index = this.indexes.get(memtable) ?? new KeyIndex({ memory, memtable, schema, columnIds, nulls: this.nulls })
    this.indexes.set(memtable, index)
    index.catchUp()
    return index
  }

  private partKeys({ table, columnIds, leaving }: Batch, part: WriterTable['parts'][number]): PartKeys {
    const { memory, partAccess } = this.options
    assert(partAccess !== undefined, 'S2: a writer that compares rows with stored ones reads parts')
    const gone = leaving.parts.get(part.id)
    const marks = table.marks.get(part.id)
    const isRemoved = (row: number): boolean => marks?.isRemoved(row) === true || gone?.has(row) === true
    const tools = { memory, parts: partAccess, nulls: this.nulls }
    return new PartKeys(tools, part, table.describeSettled(), columnIds, isRemoved)
  }

  private search(batch: Batch, searches: readonly Search[], limit: number, found: RefusedRow[]): void {
    const { chunks, leaving, key } = batch
    const { memory } = this.options
    const seen = ascends(memory, batch) ? null : new SeenKeys(memory, batch)
    const missing = this.missing(batch)
    if (searches.length === 0 && seen === null && missing.size === 0) return
    for (const { first, rows, columns } of chunks) {
      const times = (columns[0]?.address ?? 0) >>> 3
      for (let row = 0; row < rows; row++) {
        if (leaving.hidden.has(first + row)) continue
        const absent = missing.get(first + row)
        const hash = hashRow(memory, columns, row)
        const own = absent === undefined ? (seen?.add(first + row, columns, row, hash) ?? '') : ''
        const message =
          absent === undefined
            ? this.messageOf(batch, columns, row, own, searches, hash, memory.i64[times + row]!)
            : `null value in column "${nameOf(batch, absent)}" violates not-null constraint [key=${key.name}]`
        if (message === '') continue
        found.push({ row: first + row, message })
        if (found.length >= limit) return
      }
    }
  }

  /** The rows with a NULL in the key, which a primary key must not have, and the index of its column. */
  private missing({ table, columnIds, chunks }: Batch): Map<number, number> {
    const { memory } = this.options
    const found = new Map<number, number>()
    const nulls = keyColumnsAt(memory, table.schema, columnIds, this.nulls, () => 0)
    for (const [index, id] of columnIds.entries()) {
      const type = table.schema.columns[id]?.type
      if (index === 0 || type === undefined || !(columnTypes[type.name].nullable || type.name === 'CHAR')) continue
      const none = nulls.slice(index, index + 1)
      for (const { first, rows, columns } of chunks) {
        const own = columns.slice(index, index + 1)
        for (let row = 0; row < rows; row++) if (sameRow(memory, own, row, none, 0)) found.set(first + row, index)
      }
    }
    return found
  }

  private messageOf(
    batch: Batch,
    columns: readonly KeyColumn[],
    row: number,
    own: ReturnType<Search>,
    searches: readonly Search[],
    hash: number,
    ts: bigint,
  ): string {
    let outcome = own
    for (let at = 0; outcome === '' && at < searches.length; at++) outcome = searches[at]!(columns, row, hash, ts)
    if (outcome === '') return ''
    const { table, key } = batch
    if (outcome === 'away')
      return `the key cannot be checked, because rows of that time are only in object storage [key=${key.name}, partition=${partitionNamer(table.schema)(ts)}]`
    const indexes = key.columnIds.map((id) => batch.columnIds.indexOf(id))
    const names = indexes.map((index) => nameOf(batch, index)).join(', ')
    const values = indexes.map((index) => this.textOf(batch, columns, index, row)).join(', ')
    return `duplicate key value violates unique constraint "${key.name}" [key=(${names}), value=(${values})]`
  }

  /** The value for an error message. */
  private textOf({ table, columnIds }: Batch, columns: readonly KeyColumn[], index: number, row: number): string {
    const { i64, i32, u32, u8, memory } = this.options.memory
    const id = columnIds[index] ?? -1
    const [type, column] = [table.schema.columns[id]?.type, columns[index]]
    if (type === undefined || column === undefined) return ''
    const at = column.address + row * column.stride
    if (isTime(type)) return formatTimestamp(i64[at >>> 3]!, type.name === 'TIMESTAMP_NS' ? type.name : 'TIMESTAMP')
    if (type.name === 'SYMBOL') return Buffer.from(table.dictionary(id).textOf(i32[at >>> 2]!)).toString()
    if (type.name === 'STRING' || type.name === 'VARCHAR') {
      const start = u32[at >>> 2]!
      return Buffer.from(u8.slice(start, start + i32[(at >>> 2) + 1]!)).toString()
    }
    if (type.name === 'LONG') return String(i64[at >>> 3]!)
    if (type.name === 'INT') return String(i32[at >>> 2]!)
    return isVariable(type) ? '..' : `0x${Buffer.from(memory.buffer, at, column.width).reverse().toString('hex')}`
  }
}

function nameOf({ table, columnIds }: Batch, index: number): string {
  return table.schema.columns[columnIds[index] ?? -1]?.name ?? ''
}

/** Whether each timestamp is greater than the one before, so that no two rows have the same key. */
function ascends({ i32, u32 }: SharedMemory, { chunks }: Batch): boolean {
  let [high, low] = [-1, 0]
  for (const { rows, columns } of chunks) {
    const first = (columns[0]?.address ?? 0) >>> 2
    for (let row = 0; row < rows; row++) {
      const nextHigh = i32[first + row * 2 + 1]!
      const nextLow = u32[first + row * 2]!
      if (nextHigh < high || (nextHigh === high && nextLow <= low)) return false
      high = nextHigh
      low = nextLow
    }
  }
  return true
}

/** A hash table over the rows of the batch that came before. */
class SeenKeys {
  private readonly memory: SharedMemory
  private readonly chunks: Batch['chunks']
  /** Row number + 1; 0 is free. */
  private readonly slots: Int32Array
  private readonly hashes: Int32Array

  constructor(memory: SharedMemory, { chunks, rows }: Batch) {
    this.memory = memory
    this.chunks = chunks
    this.slots = new Int32Array(2 ** Math.max(4, 33 - Math.clz32(rows)))
    this.hashes = new Int32Array(rows)
  }

  /** Adds the row, unless an earlier one has its key. */
  add(number: number, columns: readonly KeyColumn[], row: number, hash: number): ReturnType<Search> {
    const { slots, hashes } = this
    assert(number < hashes.length, 'R1: every row of a batch has its place')
    const mask = slots.length - 1
    hashes[number] = hash
    for (let at = hash & mask; ; at = (at + 1) & mask) {
      const other = slots[at]! - 1
      if (other < 0) {
        slots[at] = number + 1
        return ''
      }
      if (hashes[other] === hash && this.isSame(other, columns, row)) return 'repeated'
    }
  }

  private isSame(number: number, columns: readonly KeyColumn[], row: number): boolean {
    let low = 0
    let high = this.chunks.length - 1
    while (low < high) {
      const middle = (low + high + 1) >>> 1
      if (this.chunks[middle]!.first <= number) low = middle
      else high = middle - 1
    }
    const chunk = this.chunks[low]
    return chunk !== undefined && sameRow(this.memory, chunk.columns, number - chunk.first, columns, row)
  }
}
