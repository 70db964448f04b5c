// All shared memory of one query. Whatever was taken is given back at the query's end, whatever happened; the budget of
// queries bounds it. A part of the budget is for those that send rows already: they need small areas now and then, and cannot
// begin anew when others have taken everything.

import { ResourceError } from '../../base/errors.js'
import { pageRowsMax } from '../../base/limits.js'
import { type Allocator, budgets } from '../../memory/budgets.js'
import type { SharedMemory } from '../../memory/shared-memory.js'
import { fillNull } from '../../storage/memtable/memtable-values.js'
import { type DataType, typeText, widthOf } from '../../types/column-types.js'
import { batchRowsMax } from './vector.js'

/** Readable bytes behind every area: kernels read ahead. */
const paddingBytes = 64
const smallBytes = 4096
/** Of the first chunk of small areas, and of the largest: a space may be for a state of few groups. */
const chunkBytesFirst = 8 * 1024
const chunkBytesMax = 64 * 1024
/** One of so many parts of the budget is for areas up to this size, and for who sends rows already. */
const reserveParts = 16
const modestBytes = 256 * 1024
/** Results wait in small blocks, and few of them, when less than one of so many parts is left. */
const shortParts = 8

/** What a query and its child spaces hold together on one thread. */
interface Account {
  bytes: number
  /** Rows were sent. */
  begun: boolean
  bytesMax: number
}

export class QuerySpace {
  readonly memory: SharedMemory
  readonly #allocator: Allocator
  readonly #account: Account
  /** Bytes by address. */
  readonly #taken = new Map<number, number>()
  readonly #nulls = new Map<string, number>()
  readonly #parent: QuerySpace | null
  /** Spaces within this one that hold something. */
  readonly #children = new Set<QuerySpace>()
  #chunkNext = 0
  #chunkEnd = 0
  #chunkBytes = chunkBytesFirst
  #scratch = 0

  /** `bytesMax`: who wants more has to wait until nobody else waits for memory. */
  constructor(
    memory: SharedMemory,
    allocator: Allocator,
    bytesMax = Number.POSITIVE_INFINITY,
    account: Account = { bytes: 0, begun: false, bytesMax },
    parent: QuerySpace | null = null,
  ) {
    this.memory = memory
    this.#allocator = allocator
    this.#account = account
    this.#parent = parent
  }

  /** A space of its own within the same budget: what it holds is given back with it, or with this one. */
  child(): QuerySpace {
    return new QuerySpace(this.memory, this.#allocator, undefined, this.#account, this)
  }

  /** The query has sent something: it cannot begin anew behind others. */
  begun(): void {
    this.#account.begun = true
  }

  get short(): boolean {
    return this.#allocator.used(budgets.queries) > this.limit - this.limit / shortParts
  }

  /** Bytes that no query holds. */
  get left(): number {
    return Math.max(0, this.limit - this.#allocator.used(budgets.queries))
  }

  /** At least so many bytes, 64-byte aligned, contents undefined. Throws ResourceError. */
  take(bytes: number): number {
    this.#admit(bytes)
    const address = this.#allocator.demand(bytes + paddingBytes, budgets.queries)
    if (this.#taken.size === 0 && this.#parent !== null) this.#parent.#children.add(this)
    this.#taken.set(address, bytes)
    this.#account.bytes += bytes
    return address
  }

  give(address: number): void {
    const bytes = this.#taken.get(address)
    if (bytes === undefined) return
    this.#taken.delete(address)
    this.#account.bytes -= bytes
    this.#allocator.free(address)
  }

  #admit(bytes: number): void {
    const { bytes: held, bytesMax, begun } = this.#account
    if (begun) return
    if (held + bytes > bytesMax) throw new ResourceError('others wait for memory [budget=queries]', 'memory')
    if (bytes <= modestBytes) return
    const used = this.#allocator.used(budgets.queries)
    if (used + bytes > this.limit - this.limit / reserveParts) throw ResourceError.outOfMemory('queries', bytes)
  }

  /** Gives back all areas but some. */
  keepOnly(addresses: readonly number[]): void {
    const kept = new Set(addresses)
    for (const address of [...this.#taken.keys()]) if (!kept.has(address)) this.give(address)
    this.#nulls.clear()
    this.#chunkNext = 0
    this.#chunkEnd = 0
    this.#scratch = 0
  }

  /** Bytes that all queries may hold together. */
  get limit(): number {
    return this.#allocator.limit(budgets.queries)
  }

  /** Small areas that live as long as the query. */
  keep(bytes: number): number {
    if (bytes > smallBytes) return this.take(bytes)
    const span = (bytes + 127) & ~63
    if (this.#chunkNext + span > this.#chunkEnd) {
      this.#chunkNext = this.take(this.#chunkBytes)
      this.#chunkEnd = this.#chunkNext + this.#chunkBytes
      this.#chunkBytes = Math.min(chunkBytesMax, this.#chunkBytes * 2)
    }
    const address = this.#chunkNext
    this.#chunkNext += span
    return address
  }

  /** Eight bytes for each row of a batch, for one call: whoever is called next writes there too, in spaces within this one as well. */
  scratch(): number {
    if (this.#parent !== null) return this.#parent.scratch()
    if (this.#scratch === 0) this.#scratch = this.take(batchRowsMax * 8)
    return this.#scratch
  }

  /** A run of batchRowsMax NULLs of the type. Read only. */
  nulls(type: DataType): number {
    return this.#nullRun(type, batchRowsMax)
  }

  /** As many NULLs as a piece has rows at most. Read only. */
  pageOfNulls(type: DataType): number {
    return this.#nullRun(type, pageRowsMax)
  }

  #nullRun(type: DataType, rows: number): number {
    const key = `${typeText(type)} ${rows}`
    const known = this.#nulls.get(key)
    if (known !== undefined) return known
    const address = this.take(rows * widthOf(type))
    fillNull(this.memory, type, address, 0, rows)
    this.#nulls.set(key, address)
    return address
  }

  freeAll(): void {
    for (const child of this.#children) child.freeAll()
    if (this.#parent !== null) this.#parent.#children.delete(this)
    for (const address of [...this.#taken.keys()]) this.give(address)
    this.#nulls.clear()
    this.#chunkNext = 0
    this.#chunkEnd = 0
    this.#scratch = 0
  }
}
