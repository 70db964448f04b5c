// Deduplication during compaction (DEDUP UPSERT KEYS: a row replaces older rows with equal keys): takes the merge order
// of merge-rows.ts and marks in it the rows to drop. Of several rows with the same timestamp and keys, the row of the
// last input, which is the newest, remains; with DEDUP SKIP it is the row of the first input. Only rows of different
// inputs with equal timestamps are compared: an input contains duplicates only if they were stored before DEDUP was
// declared, and those remain. For the same reason an input of that time supersedes no other.

import { assert } from '../../base/assert.js'
import type { SharedMemory } from '../../memory/shared-memory.js'
import { isVariable, widthOf } from '../../types/column-types.js'
import { mappingOf } from '../part/parquet-types.js'
import type { PartAccess, PartHandle } from '../part/part-access.js'
import type { Scratch } from '../part/part-scratch.js'
import { precedesDedup, type TableSchema } from '../schema/schema.js'
import { type Choices, dropped, sliceStart } from './merge-rows.js'
import type { CompactionInput } from './merge-slices.js'
import type { JobTools } from './part-job.js'

/** Groups of equal timestamps that are processed before the job yields. */
const groupsPerStep = 4096

/** Marks superseded rows as dropped in the choices, and returns the choices with the new row count. */
export function* dedupChoices(
  { memory, parts, kernels }: JobTools & { readonly parts: PartAccess },
  scratch: Scratch,
  inputs: readonly CompactionInput[],
  schema: TableSchema,
  choices: Choices,
): Generator<undefined, Choices> {
  const nulls = scratch.room('nulls', 64)
  const fillNull = (width: number, kind: number) => {
    memory.u8.fill(0, nulls, nulls + width)
    kernels.parquet.fillNull(1, width, kind, nulls)
    return nulls
  }
  const readers = inputs.map(({ handle }) => new KeyReader(memory, parts, handle, schema, fillNull))
  const skips = schema.dedupSkips === true
  const isOld = inputs.map(({ handle }) => precedesDedup(schema, handle.descriptor.maxTxn))
  const walk = { ...choices, u8: memory.u8, readers, consumed: sliceStart(inputs), skips, isOld }
  const ahead = new Uint32Array(inputs.length)
  let rows = choices.rows
  try {
    for (let at = 0, group = 0; at < choices.count; group++) {
      const end = groupEnd(walk, ahead, at)
      if (end - at > 1) rows -= markGroup(walk, ahead, at, end)
      for (let i = at; i < end; i++) take(walk.consumed, memory.u8[choices.address + i]! & ~dropped)
      at = end
      if (group % groupsPerStep === 0) yield
    }
  } finally {
    for (const reader of readers) reader.release()
  }
  assert(rows > 0, 'S2: of rows with the same keys one stays')
  return { ...choices, rows }
}

interface Walk extends Choices {
  readonly u8: Uint8Array
  readonly readers: readonly KeyReader[]
  /** Rows consumed of each input before the group. */
  readonly consumed: Uint32Array
  readonly skips: boolean
  /** Of each input: whether its rows were stored before DEDUP was declared. */
  readonly isOld: readonly boolean[]
}

/** Consumes and returns the input's next row. */
function take(consumed: Uint32Array, input: number): number {
  const row = consumed[input]!
  consumed[input] = row + 1
  return row
}

/** End of the group of rows with the same timestamp as the row at `at`. */
function groupEnd({ address, count, u8, readers, consumed }: Walk, ahead: Uint32Array, at: number): number {
  ahead.set(consumed)
  const first = u8[address + at]!
  const firstRow = take(ahead, first)
  let end = at + 1
  for (; end < count; end++) {
    const input = u8[address + end]!
    const row = take(ahead, input)
    const reader = readers[input] as KeyReader
    if (!reader.hasTimestampOf(row, readers[first] as KeyReader, firstRow)) break
  }
  return end
}

/** Marks the rows of a group whose keys occur in a later (DEDUP SKIP: earlier) input; returns their number. */
function markGroup(walk: Walk, ahead: Uint32Array, at: number, end: number): number {
  const { address, u8, readers, consumed } = walk
  ahead.set(consumed)
  const sameKeys = new Map<string, number[]>()
  for (let i = at; i < end; i++) {
    const input = u8[address + i]!
    const key = (readers[input] as KeyReader).key(take(ahead, input))
    const known = sameKeys.get(key)
    if (known === undefined) sameKeys.set(key, [i])
    else known.push(i)
  }
  let count = 0
  for (const places of sameKeys.values()) if (places.length > 1) count += markSameKeys(walk, places)
  return count
}

/** Marks those of the rows with the same keys, by their places among the choices, that others supersede. */
function markSameKeys({ address, u8, skips, isOld }: Walk, places: readonly number[]): number {
  let [first, newest] = [Number.POSITIVE_INFINITY, -1]
  for (const place of places) {
    const input = u8[address + place]!
    first = Math.min(first, input)
    if (isOld[input] !== true) newest = Math.max(newest, input)
  }
  let count = 0
  for (const place of places) {
    const input = u8[address + place]!
    if (skips ? input === first || isOld[input] === true : input >= newest) continue
    u8[address + place] = input | dropped
    count++
  }
  assert(count < places.length, 'S2: of rows with the same keys one stays')
  return count
}

/** Reads timestamps and keys of one input, mostly sequentially; it keeps the pages of one page number pinned. */
class KeyReader {
  private readonly memory: SharedMemory
  private readonly parts: PartAccess
  private readonly handle: PartHandle
  private readonly schema: TableSchema
  /** Address of one NULL of that width and kind. */
  private readonly fillNull: (width: number, kind: number) => number
  private page = 0
  private readonly pinned = new Map<number, number>()

  constructor(
    memory: SharedMemory,
    parts: PartAccess,
    handle: PartHandle,
    schema: TableSchema,
    fillNull: (width: number, kind: number) => number,
  ) {
    this.memory = memory
    this.parts = parts
    this.handle = handle
    this.schema = schema
    this.fillNull = fillNull
  }

  hasTimestampOf(row: number, other: KeyReader, otherRow: number): boolean {
    const { u32 } = this.memory
    const mine = this.place(this.schema.timestampId, row, 8) >>> 2
    const [low, high] = [u32[mine], u32[mine + 1]]
    const theirs = other.place(this.schema.timestampId, otherRow, 8) >>> 2
    return low === u32[theirs] && high === u32[theirs + 1]
  }

  /** The key columns other than the timestamp, as an unambiguous string. */
  key(row: number): string {
    let key = ''
    for (const id of this.schema.dedupKeys) {
      if (id === this.schema.timestampId) continue
      const value = this.value(id, row)
      key += `${value.length}:${value}`
    }
    return key
  }

  release(): void {
    for (const address of this.pinned.values()) this.parts.unpin(address)
    this.pinned.clear()
  }

  private value(columnId: number, row: number): string {
    const type = this.schema.columns[columnId]?.type
    assert(type !== undefined, 'R1: a key column exists')
    const width = widthOf(type)
    const at = this.place(columnId, row, width)
    // A column that the part lacks is NULL, which equals a NULL that another part stores.
    if (at === 0) return isVariable(type) ? 'null' : this.text(this.fillNull(width, mappingOf(type).nullKind), width)
    if (!isVariable(type)) return this.text(at, width)
    const length = this.memory.i32[(at + 4) >>> 2]!
    return length < 0 ? 'null' : `=${this.text(this.memory.u32[at >>> 2]!, length)}`
  }

  private text(address: number, bytes: number): string {
    return Buffer.from(this.memory.memory.buffer, address, bytes).toString('latin1')
  }

  /** Address of a value; 0 if the part does not have the column. */
  private place(columnId: number, row: number, width: number): number {
    this.turnTo(row)
    let address = this.pinned.get(columnId)
    if (address === undefined) {
      address = this.parts.pin(this.handle, columnId, this.page)
      this.pinned.set(columnId, address)
    }
    return address === 0 ? 0 : address + (row - this.handle.firstRows[this.page]!) * width
  }

  private turnTo(row: number): void {
    const { firstRows } = this.handle
    if (row >= firstRows[this.page]! && row < firstRows[this.page + 1]!) return
    this.release()
    while (firstRows[this.page + 1]! <= row) this.page++
    while (firstRows[this.page]! > row) this.page--
  }
}
