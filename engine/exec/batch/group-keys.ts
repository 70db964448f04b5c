// Assigns a group id to each row of a batch by the values of its GROUP BY columns, and stores the key values of each
// group once. Ids are consecutive, in order of first appearance.
//
// With several key columns, the values of each column are first mapped to 32-bit numbers (codes, see key-codes.ts). A
// hash table maps the codes of the first two columns, as one 64-bit key, to an id; a second table maps this id and the
// code of the third column to an id, and so on. With more than 48 columns, each row's keys are serialised to one string
// instead (row-strings.ts). If all keys are symbols with at most 8192 combinations, and the operator permits ids that
// are not consecutive, the id is computed from the dictionary ids of the columns, without a hash table.

import { dictionaryCount } from '../../memory/column-layout.js'
import { type DataType, storageOf, widthOf } from '../../types/column-types.js'
import type { ExecContext } from './context.js'
import { dictionaryStrings } from './dictionary-strings.js'
import { type Coder, keyCoder, plainDoubles } from './key-codes.js'
import { KeyTable } from './key-table.js'
import { RowBuffer } from './row-buffer.js'
import { RowStrings } from './row-strings.js'
import { type Batch, batchRowsMax, type Vector } from './vector.js'

/** Maximal ids of a dense grouping: accumulators are allocated for all of them, used or not. */
const denseIdsMax = 8192
/** With more key columns than this, a hash table for each would need more memory than the rows. */
const columnTablesMax = 48

export interface Grouping {
  /** u32[batchRowsMax]: the group id of each row of the last batch; 0xffff_ffff for masked rows. */
  readonly ids: number
  /** All ids are below this. */
  readonly size: number
  /** Number of groups that have rows. */
  readonly count: number
  /** The id of the group that appeared as number `index`. */
  idAt(index: number): number
  /** The key values: one row for each group, in order of first appearance. */
  readonly keys: RowBuffer
  /** Computes `ids` for a batch. `mask`: 0, or the address of a byte for each row, where 0 excludes the row. */
  assign(keys: readonly Vector[], rows: number, mask: number): void
}

/** `dense`: all batches have the same dictionaries, and ids need not be consecutive. */
export function createGrouping(context: ExecContext, types: readonly DataType[], dense: boolean): Grouping {
  return dense && types.every(({ name }) => name === 'SYMBOL')
    ? new DenseGroups(context, types)
    : new GroupKeys(context, types)
}

/**
 * General grouping by hash tables. `carried`: types of columns after the keys whose values are stored for each group's
 * first row.
 */
export class GroupKeys implements Grouping {
  readonly ids: number
  readonly keys: RowBuffer
  readonly #context: ExecContext
  readonly #types: readonly DataType[]
  readonly #coders: readonly Coder[]
  readonly #keyCount: number
  /** For keys of too many columns: rows serialised to strings. */
  readonly #strings: RowStrings | null
  /** Tables of pairs, one for each key but the first. A single key column has its own table, in #last only. */
  readonly #tables: readonly KeyTable[]
  readonly #last: KeyTable
  readonly #pairs: number
  readonly #codes: number
  readonly #firstRows: number
  #count = 0

  constructor(context: ExecContext, types: readonly DataType[], carried: readonly DataType[] = []) {
    const { arena } = context
    this.#context = context
    this.#types = [...types, ...carried]
    this.#keyCount = types.length
    this.#strings = types.length > columnTablesMax ? new RowStrings(context, types) : null
    const only = this.#strings === null ? ownTableOf(context, types) : new KeyTable(context, 0)
    this.#coders = only === null ? types.map((type) => keyCoder(context, type)) : []
    this.#tables = only === null ? types.slice(Math.min(1, types.length - 1)).map(() => new KeyTable(context, 8)) : []
    this.#last = only ?? (this.#tables[this.#tables.length - 1] as KeyTable)
    this.ids = arena.take(batchRowsMax * 4)
    this.#codes = arena.take(batchRowsMax * 4)
    this.#pairs = arena.take(batchRowsMax * 8)
    this.#firstRows = arena.take(batchRowsMax * 4)
    this.keys = new RowBuffer(context, this.#types)
  }

  get count(): number {
    return this.#count
  }

  get size(): number {
    return this.#count
  }

  idAt(index: number): number {
    return index
  }

  assign(keys: readonly Vector[], rows: number, mask = 0): void {
    if (this.#strings !== null) {
      this.#strings.number(this.#last, keys.slice(0, this.#keyCount), rows, mask, this.ids)
      this.#noteNew({ rows, vectors: keys })
      return
    }
    const [first, ...more] = keys.slice(0, Math.max(1, this.#coders.length)) as [Vector, ...Vector[]]
    if (this.#coders.length === 0) this.#assignOwn(first, rows, mask)
    else {
      const [coder, ...coders] = this.#coders as [Coder, ...Coder[]]
      coder(first, mask, rows, this.ids)
      if (more.length === 0) this.#pairAndNumber(null, this.#last, rows, mask)
      more.forEach((vector, index) => {
        ;(coders[index] as Coder)(vector, mask, rows, this.#codes)
        this.#pairAndNumber(this.#codes, this.#tables[index] as KeyTable, rows, mask)
      })
    }
    this.#noteNew({ rows, vectors: keys })
  }

  #assignOwn(vector: Vector, rows: number, mask: number): void {
    const { type } = vector
    if (storageOf(type) === 'entry') {
      this.#last.internStrings(vector, mask, rows, this.ids)
      return
    }
    if (type.name === 'DOUBLE') plainDoubles(this.#context, vector.address, rows, this.#pairs)
    this.#last.number(type.name === 'DOUBLE' ? this.#pairs : vector.address, mask, rows, this.ids)
  }

  #pairAndNumber(high: number | null, table: KeyTable, rows: number, mask: number): void {
    this.#context.kernels.aggregate.pairIds(this.ids, high ?? 0, rows, this.#pairs)
    table.number(this.#pairs, mask, rows, this.ids)
  }

  /** New groups get consecutive ids in the order of their first rows. */
  #noteNew(batch: Batch): void {
    const { u32 } = this.#context.memory
    const ids = this.ids >>> 2
    const before = this.#count
    const now = this.#last.count
    if (now === before) return
    const firstRows = (this.#firstRows >>> 2) - before
    for (let row = 0, next = before; next < now; row++) {
      if (u32[ids + row] === next) u32[firstRows + next++] = row
    }
    this.#count = now
    keepKeys(this.#context, this.keys, this.#types, batch, this.#firstRows, now - before)
  }
}

function ownTableOf(context: ExecContext, types: readonly DataType[]): KeyTable | null {
  return types.length === 1 ? ownTable(context, types[0] as DataType) : null
}

/** The table for a single key of 64 or 128 bits or of strings: its ids are the group ids. null for other types. */
function ownTable(context: ExecContext, type: DataType): KeyTable | null {
  switch (storageOf(type)) {
    case 'f64':
    case 'i64':
      return new KeyTable(context, 8)
    case 'b16':
      return new KeyTable(context, 16)
    case 'entry':
      return new KeyTable(context, 0)
    default:
      return null
  }
}

/** Appends the keys of the selected rows to the store. */
function keepKeys(
  { kernels, arena }: ExecContext,
  store: RowBuffer,
  types: readonly DataType[],
  batch: Batch,
  index: number,
  rows: number,
): void {
  const vectors = batch.vectors.map((vector, column): Vector => {
    const width = widthOf(types[column] as DataType)
    const address = arena.take(rows * width)
    const strings = dictionaryStrings(vector)
    if (strings !== undefined) {
      const codes = arena.take(rows * 4)
      kernels.sort.gather(4, strings.codes, index, rows, codes)
      kernels.sort.gather(8, strings.entries, codes, rows, address)
      arena.give(codes)
    } else kernels.sort.gather(width, vector.address, index, rows, address)
    return { type: vector.type, address, dictionary: vector.dictionary }
  })
  store.append({ rows, vectors })
  for (const { address } of vectors) arena.give(address)
}

class DenseGroups implements Grouping {
  readonly ids: number
  readonly #context: ExecContext
  readonly #types: readonly DataType[]
  readonly #firstRows: number
  readonly #dense: { readonly keys: RowBuffer; readonly order: number[] }
  #cardinalities: number[] = []
  #seen: Uint8Array = new Uint8Array(0)
  #counts = 0
  /** Used instead when there would be too many dense ids. */
  #general: GroupKeys | null = null

  constructor(context: ExecContext, types: readonly DataType[]) {
    this.#context = context
    this.#types = types
    this.ids = context.arena.take(batchRowsMax * 4)
    this.#firstRows = context.arena.take(batchRowsMax * 4)
    this.#dense = { keys: new RowBuffer(context, types), order: [] }
  }

  get keys(): RowBuffer {
    return this.#general?.keys ?? this.#dense.keys
  }

  get count(): number {
    return this.#general?.count ?? this.#dense.order.length
  }

  get size(): number {
    return this.#general?.size ?? this.#seen.length
  }

  idAt(index: number): number {
    return this.#general === null ? (this.#dense.order[index] as number) : index
  }

  assign(keys: readonly Vector[], rows: number, mask: number): void {
    if (this.#cardinalities.length === 0) this.#begin(keys)
    if (this.#general !== null) {
      this.#general.assign(keys, rows, mask)
      this.#context.memory.u8.copyWithin(this.ids, this.#general.ids, this.#general.ids + rows * 4)
      return
    }
    const { aggregate } = this.#context.kernels
    let previous = 0
    keys.forEach(({ address }, index) => {
      aggregate.combineIds(address, rows, this.#cardinalities[index] as number, previous, this.ids)
      previous = this.ids
    })
    this.#noteNew({ rows, vectors: keys }, mask)
  }

  /**
   * Sizes of the dictionaries at the first batch. They stay valid: the rows of a snapshot have no ids that were added
   * after it was taken.
   */
  #begin(keys: readonly Vector[]): void {
    const { memory, arena } = this.#context
    this.#cardinalities = keys.map(({ dictionary }) => dictionaryCount(memory, dictionary) + 1)
    const size = this.#cardinalities.reduce((product, count) => product * count, 1)
    if (size > denseIdsMax) {
      this.#general = new GroupKeys(this.#context, this.#types)
      return
    }
    this.#seen = new Uint8Array(size)
    this.#counts = arena.take(size * 8)
    memory.u8.fill(0, this.#counts, this.#counts + size * 8)
  }

  #noteNew(batch: Batch, mask: number): void {
    const { memory, kernels } = this.#context
    const size = this.#seen.length
    if (this.#dense.order.length === size) return
    kernels.aggregate.groupCounts(this.ids, mask, batch.rows, size, this.#counts)
    let fresh = 0
    for (let id = 0; id < size; id++) {
      if (this.#seen[id] === 0 && memory.u32[(this.#counts >>> 2) + id * 2] !== 0) fresh++
    }
    if (fresh > 0) this.#find(batch, mask, fresh)
  }

  #find(batch: Batch, mask: number, fresh: number): void {
    const { u32, u8 } = this.#context.memory
    let found = 0
    for (let row = 0; found < fresh; row++) {
      const id = u32[(this.ids >>> 2) + row]!
      if (this.#seen[id] === 1 || (mask !== 0 && u8[mask + row] === 0)) continue
      this.#seen[id] = 1
      this.#dense.order.push(id)
      u32[(this.#firstRows >>> 2) + found++] = row
    }
    keepKeys(this.#context, this.#dense.keys, this.#types, batch, this.#firstRows, found)
  }
}
