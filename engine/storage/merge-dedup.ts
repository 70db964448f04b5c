// DEDUP UPSERT KEYS across parts: of rows with the same timestamp and keys only the one of the last input stays. Each
// input has no such rows of its own, so only rows of equal timestamps from several inputs are compared.

import { isVariable, widthOf } from '../types/column-types.js'
import { type Choices, dropped } from './merge-rows.js'
import type { PartAccess, PartHandle } from './part-access.js'
import type { JobTools } from './part-job.js'
import type { Scratch } from './part-scratch.js'
import type { TableSchema } from './schema.js'

/** Groups of equal timestamps between two breaks. */
const groupsPerStep = 4096

/** The choices with superseded rows marked as dropped. */
export function* dedupChoices(
  { memory, parts }: JobTools & { readonly parts: PartAccess },
  scratch: Scratch,
  handles: readonly PartHandle[],
  schema: TableSchema,
  choices: Choices,
): Generator<undefined, Choices> {
  const { u8 } = scratch.memory
  const readers = handles.map((handle) => new KeyReader(memory.u8, memory.u32, parts, handle, schema))
  const consumed = new Uint32Array(handles.length)
  let rows = choices.rows
  try {
    for (let at = 0, group = 0; at < choices.count; group++) {
      const end = groupEnd(u8, choices, readers, consumed, at)
      if (end - at > 1) rows -= markGroup(u8, choices.address, readers, consumed, at, end)
      for (let i = at; i < end; i++) {
        const input = (u8[choices.address + i] as number) & ~dropped
        consumed[input] = (consumed[input] as number) + 1
      }
      at = end
      if (group % groupsPerStep === 0) yield
    }
  } finally {
    for (const reader of readers) reader.release()
  }
  return { ...choices, rows }
}

/** End of the rows that have the timestamp of the row at `at`. */
function groupEnd(
  u8: Uint8Array,
  { address, count }: Choices,
  readers: readonly KeyReader[],
  consumed: Uint32Array,
  at: number,
): number {
  const ahead = consumed.slice()
  const timestampAt = (index: number) => {
    const input = u8[address + index] as number
    const row = ahead[input] as number
    ahead[input] = row + 1
    return (readers[input] as KeyReader).timestamp(row)
  }
  const first = timestampAt(at)
  let end = at + 1
  while (end < count && timestampAt(end) === first) end++
  return end
}

/** Marks the rows of a group whose keys come again from a later input; answers how many. */
function markGroup(
  u8: Uint8Array,
  address: number,
  readers: readonly KeyReader[],
  consumed: Uint32Array,
  at: number,
  end: number,
): number {
  const ahead = consumed.slice()
  const last = new Map<string, number>()
  let count = 0
  for (let i = at; i < end; i++) {
    const input = u8[address + i] as number
    const row = ahead[input] as number
    ahead[input] = row + 1
    const key = (readers[input] as KeyReader).key(row)
    const older = last.get(key)
    if (older !== undefined) {
      u8[address + older] = (u8[address + older] as number) | dropped
      count++
    }
    last.set(key, i)
  }
  return count
}

/** Timestamps and keys of one input, read front to back with a little look-ahead. */
class KeyReader {
  private readonly u8: Uint8Array
  private readonly u32: Uint32Array
  private readonly parts: PartAccess
  private readonly handle: PartHandle
  private readonly schema: TableSchema
  private page = 0
  private readonly pinned = new Map<number, number>()

  constructor(u8: Uint8Array, u32: Uint32Array, parts: PartAccess, handle: PartHandle, schema: TableSchema) {
    this.u8 = u8
    this.u32 = u32
    this.parts = parts
    this.handle = handle
    this.schema = schema
  }

  timestamp(row: number): string {
    return this.value(this.schema.timestampId, row)
  }

  /** The key columns besides the timestamp, as text that no two keys share. */
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
    this.turnTo(row)
    let address = this.pinned.get(columnId)
    if (address === undefined) {
      address = this.parts.pin(this.handle, columnId, this.page)
      this.pinned.set(columnId, address)
    }
    const type = this.schema.columns[columnId]?.type
    if (address === 0 || type === undefined) return 'absent'
    const width = widthOf(type)
    const at = address + (row - (this.handle.firstRows[this.page] as number)) * width
    if (!isVariable(type)) return this.text(at, width)
    const length = (this.u32[(at + 4) >>> 2] as number) | 0
    return length < 0 ? 'absent' : `=${this.text(this.u32[at >>> 2] as number, length)}`
  }

  private text(address: number, bytes: number): string {
    return Buffer.from(this.u8.buffer, address, bytes).toString('latin1')
  }

  private turnTo(row: number): void {
    const { firstRows } = this.handle
    if (row >= (firstRows[this.page] as number) && row < (firstRows[this.page + 1] as number)) return
    this.release()
    while ((firstRows[this.page + 1] as number) <= row) this.page++
    while ((firstRows[this.page] as number) > row) this.page--
  }
}
