// EqualityDeletes: rows that an Iceberg table has deleted by their values. A file of equality deletes is a Parquet file
// whose rows are values of some columns. It deletes the rows with these values from data files with a smaller sequence
// number; NULL equals NULL. A writer of streams adds such a file with each of its commits, so a data file may have
// hundreds of them.
//
// Files of deletes with the same columns and the same partition share one hash table, which maps values to the highest
// sequence number of the files that delete them. So a row of a data file is looked up once for each set of columns. The
// tables are in the query's memory.

import type { SharedMemory } from '../../memory/shared-memory.js'
import type { DeleteSource, EqualityDelete, ForeignFile } from '../../parquet/foreign-file.js'
import { openForeign } from '../../parquet/read-columns.js'
import { hashRow, type KeyColumn, sameRow } from '../../storage/memtable/key-columns.js'
import { type DataType, isVariable, widthOf } from '../../types/column-types.js'
import type { ExecContext } from '../batch/context.js'
import type { QueryArena } from '../batch/query-arena.js'
import { StringHeap } from '../batch/string-heap.js'

/** Reads columns of all rows of a file; `take` gets the addresses of the columns' values, batch by batch. */
type ReadRows = (
  file: ForeignFile,
  columns: EqualityDelete['columns'],
  take: (addresses: readonly number[], rows: number) => void,
) => void

interface Group {
  readonly keys: EqualityKeys
  readonly paths: Set<string>
}

interface DeletedKeys {
  readonly columns: EqualityDelete['columns']
  readonly keys: EqualityKeys
}

export class EqualityDeletes {
  readonly #context: ExecContext
  readonly #read: ReadRows
  readonly #groups = new Map<string, Group>()
  /** By list, since data files share lists. */
  readonly #lists = new Map<readonly DeleteSource[], readonly DeletedKeys[]>()

  constructor(context: ExecContext, read: ReadRows) {
    this.#context = context
    this.#read = read
  }

  /** The deleted values of each group of these files, with the columns of the group. Throws SqlError. */
  of(deletes: readonly DeleteSource[]): readonly DeletedKeys[] {
    const known = this.#lists.get(deletes) ?? this.#groupsOf(deletes)
    this.#lists.set(deletes, known)
    return known
  }

  #groupsOf(deletes: readonly DeleteSource[]): DeletedKeys[] {
    const used = new Map<EqualityKeys, EqualityDelete['columns']>()
    for (const source of deletes) {
      const { equality } = source
      if (equality === null) continue
      const types = equality.columns.map(({ type }) => type)
      const group = this.#groups.get(equality.group) ?? {
        keys: new EqualityKeys(this.#context, types),
        paths: new Set(),
      }
      this.#groups.set(equality.group, group)
      if (!group.paths.has(source.path)) this.#add(group, source, equality)
      used.set(group.keys, equality.columns)
    }
    return [...used].map(([keys, columns]) => ({ keys, columns }))
  }

  #add({ keys, paths }: Group, source: DeleteSource, { columns, sequence }: EqualityDelete): void {
    const file = openForeign(source)
    try {
      this.#read(file, columns, (addresses, rows) => {
        for (const [index, { name, type }] of columns.entries())
          if (hasNaN(this.#context.memory, type, addresses[index] ?? 0, rows))
            throw file.error('equality deletes by NULL or NaN in a FLOAT or DOUBLE column are not supported', {
              column: name,
            })
        keys.add(addresses, rows, sequence)
      })
      paths.add(source.path)
    } finally {
      file.close()
    }
  }
}

/** In memory, NULL is NaN: which of them a file deletes cannot be told. */
function hasNaN({ f32, f64 }: SharedMemory, { name }: DataType, address: number, rows: number): boolean {
  if (name !== 'FLOAT' && name !== 'DOUBLE') return false
  const [values, first] = name === 'FLOAT' ? [f32, address >>> 2] : [f64, address >>> 3]
  for (let at = first; at < first + rows; at++) if (Number.isNaN(values[at]!)) return true
  return false
}

const slotsFirst = 1024
/** Words of an entry before its values: the sequence number as a double, and the hash. */
const headWords = 4

/** Values of some columns, each with the highest sequence number of the files that delete them. */
export class EqualityKeys {
  readonly #memory: SharedMemory
  readonly #arena: QueryArena
  readonly #heap: StringHeap
  readonly #kinds: readonly Pick<KeyColumn, 'width' | 'variable'>[]
  readonly #entryWords: number
  /** Entries one behind the other. */
  #entries = 0
  /** Their values. */
  #columns: readonly KeyColumn[] = []
  #capacity = 0
  #count = 0
  /** Numbers of entries from 1 on, by hash; 0: free. */
  #slots = 0
  #slotCount = 0

  constructor({ memory, arena }: ExecContext, types: readonly DataType[]) {
    this.#memory = memory
    this.#arena = arena
    this.#heap = new StringHeap(arena)
    this.#kinds = types.map((type) => ({ width: widthOf(type), variable: isVariable(type) }))
    const words = this.#kinds.reduce((sum, { width }) => sum + (width >>> 2), headWords)
    this.#entryWords = words + (words & 1)
  }

  /** Adds rows, given by the addresses of their columns' values. */
  add(addresses: readonly number[], rows: number, sequence: number): void {
    const columns = this.#columnsAt(addresses)
    for (let row = 0; row < rows; row++) {
      if (this.#count * 2 >= this.#slotCount) this.#growSlots()
      const hash = hashRow(this.#memory, columns, row) >>> 0
      const slot = this.#find(columns, row, hash)
      const found = this.#memory.u32[slot]!
      const at = this.#entryAt(found === 0 ? this.#append(columns, row, hash, slot) : found - 1)
      const known = this.#memory.f64[at >>> 1]!
      if (found === 0 || known < sequence) this.#memory.f64[at >>> 1] = sequence
    }
  }

  /**
   * Keeps those of the row numbers at `index` (u32) whose values no file with a higher sequence number deletes; returns
   * how many.
   */
  keep(addresses: readonly number[], index: number, rows: number, sequence: number): number {
    if (this.#count === 0) return rows
    const { u32, f64 } = this.#memory
    const columns = this.#columnsAt(addresses)
    const first = index >>> 2
    let kept = 0
    for (let at = 0; at < rows; at++) {
      const row = u32[first + at]!
      const found = u32[this.#find(columns, row, hashRow(this.#memory, columns, row) >>> 0)]!
      if (found !== 0 && f64[this.#entryAt(found - 1) >>> 1]! > sequence) continue
      u32[first + kept++] = row
    }
    return kept
  }

  /** Index of the first word. */
  #entryAt(entry: number): number {
    return (this.#entries >>> 2) + entry * this.#entryWords
  }

  #columnsAt(addresses: readonly number[]): KeyColumn[] {
    return this.#kinds.map((kind, index) => ({ ...kind, address: addresses[index] ?? 0, stride: kind.width }))
  }

  #columnsOfEntries(): KeyColumn[] {
    let next = this.#entries + headWords * 4
    return this.#kinds.map((kind) => {
      const address = next
      next += kind.width
      return { ...kind, address, stride: this.#entryWords * 4 }
    })
  }

  /** Index of the slot with the entry of these values, or of the free slot where it belongs. */
  #find(columns: readonly KeyColumn[], row: number, hash: number): number {
    const { u32 } = this.#memory
    const mask = this.#slotCount - 1
    for (let slot = hash & mask; ; slot = (slot + 1) & mask) {
      const place = (this.#slots >>> 2) + slot
      const found = u32[place]!
      if (found === 0) return place
      if (u32[this.#entryAt(found - 1) + 2] !== hash) continue
      if (sameRow(this.#memory, this.#columns, found - 1, columns, row)) return place
    }
  }

  /** Returns the number of the new entry. */
  #append(columns: readonly KeyColumn[], row: number, hash: number, slot: number): number {
    if (this.#count === this.#capacity) this.#growEntries()
    const { u32 } = this.#memory
    const entry = this.#count++
    u32[slot] = entry + 1
    const at = this.#entryAt(entry)
    u32[at + 2] = hash
    let own = at + headWords
    for (const { address, stride, width, variable } of columns) {
      const from = (address + row * stride) >>> 2
      const words = width >>> 2
      for (let word = 0; word < words; word++) u32[own + word] = u32[from + word]!
      const length = u32[from + 1]! | 0
      if (variable && length > 0) u32[own] = this.#heap.copy(u32[from]!, length)
      own += words
    }
    return entry
  }

  #growEntries(): void {
    const bytes = this.#entryWords * 4
    const capacity = Math.max(slotsFirst / 2, this.#capacity * 2)
    const entries = this.#arena.take(capacity * bytes)
    if (this.#count > 0) {
      this.#memory.copy(entries, this.#entries, this.#entries + this.#count * bytes)
      this.#arena.give(this.#entries)
    }
    this.#entries = entries
    this.#columns = this.#columnsOfEntries()
    this.#capacity = capacity
  }

  #growSlots(): void {
    const { u32 } = this.#memory
    const count = Math.max(slotsFirst, this.#slotCount * 2)
    const slots = this.#arena.take(count * 4)
    if (this.#slotCount > 0) this.#arena.give(this.#slots)
    this.#slots = slots
    this.#slotCount = count
    const first = slots >>> 2
    u32.fill(0, first, first + count)
    for (let entry = 0; entry < this.#count; entry++) {
      let slot = u32[this.#entryAt(entry) + 2]! & (count - 1)
      while (u32[first + slot] !== 0) slot = (slot + 1) & (count - 1)
      u32[first + slot] = entry + 1
    }
  }
}
