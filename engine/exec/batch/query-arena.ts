// QueryArena: the memory of one query. It allocates shared memory within a budget that all queries share, and frees
// everything when the query ends. A fraction of the budget is reserved for small allocations and for queries that have
// already sent rows, because such queries cannot be restarted when memory is short.

import { ResourceError } from '../../base/errors.js'
import { LazyMap } from '../../base/lazy-map.js'
import { pageRowsMax } from '../../base/limits.js'
import { type Allocator, budgets } from '../../memory/budgets.js'
import type { SharedMemory } from '../../memory/shared-memory.js'
import { fillNull } from '../../storage/memtable/memtable-values.js'
import { type DataType, typeText, widthOf } from '../../types/column-types.js'
import { batchRowsMax } from './vector.js'

/** Readable bytes after each allocation: kernels read ahead. */
const paddingBytes = 64
const smallBytes = 4096
/**
 * Sizes of the first and of the largest chunk that keep() takes small allocations from. The first is small, since an
 * arena may hold one small state only.
 */
const chunkBytesFirst = 8 * 1024
const chunkBytesMax = 64 * 1024
/**
 * This fraction of the budget is reserved for queries that have already sent rows. Allocations up to `modestBytes` may
 * use half of it.
 */
const reserveParts = 16
/**
 * Work ahead of what is sent next may use memory up to this fraction of the budget, so that it leaves the rest to
 * queries that must go on.
 */
const aheadParts = 2
const modestBytes = 256 * 1024
/** When less than this fraction of the budget is left, results are buffered in few and small blocks. */
const shortParts = 8

/** Bytes held by a query and its child arenas on one thread. */
interface Account {
  bytes: number
  /** Whether rows have been sent. */
  begun: boolean
  bytesMax: number
  growingTables: number
}

export class QueryArena {
  readonly memory: SharedMemory
  readonly #allocator: Allocator
  readonly #account: Account
  /** Bytes of each allocation by its address. */
  readonly #taken = new Map<number, number>()
  readonly #nulls = new LazyMap<string, number>()
  readonly #parent: QueryArena | null
  /** Child arenas that hold memory. */
  #children: Set<QueryArena> | null = null
  #chunkNext = 0
  #chunkEnd = 0
  #chunkBytes = chunkBytesFirst
  #scratch = 0
  #growingTables = 0

  /**
   * `bytesMax`: a query that needs more fails with a ResourceError, and is queued until no other query waits for
   * memory.
   */
  constructor(
    memory: SharedMemory,
    allocator: Allocator,
    bytesMax = Number.POSITIVE_INFINITY,
    account: Account = { bytes: 0, begun: false, bytesMax, growingTables: 0 },
    parent: QueryArena | null = null,
  ) {
    this.memory = memory
    this.#allocator = allocator
    this.#account = account
    this.#parent = parent
  }

  /** A child arena within the same account. It can be freed on its own, and is freed with this one. */
  child(): QueryArena {
    return new QueryArena(this.memory, this.#allocator, undefined, this.#account, this)
  }

  /**
   * For work ahead of what is sent next, which can be given up: even if the query has sent rows, it takes no memory when
   * half of the budget is used, so that the rest of all results can be sent.
   */
  isAhead = false

  /** Whether there is enough memory to begin work ahead. */
  get hasRoomAhead(): boolean {
    const { limit } = this
    return this.#allocator.used(budgets.queries) < limit - limit / aheadParts - limit / reserveParts
  }

  /** Notes that the query has sent rows, so it can no longer be restarted. */
  begun(): void {
    this.#account.begun = true
  }

  get hasBegun(): boolean {
    return this.#account.begun
  }

  get short(): boolean {
    return this.#allocator.used(budgets.queries) > this.limit - this.limit / shortParts
  }

  /** Bytes that the query may still take. */
  get left(): number {
    const { begun, bytes, bytesMax } = this.#account
    const free = this.limit - this.#allocator.used(budgets.queries)
    return Math.max(0, begun ? free : Math.min(free - this.limit / reserveParts, bytesMax - bytes))
  }

  /** Notes a table that may grow with each row. There may be hundreds: one for each column or aggregate. */
  addGrowingTable(): void {
    this.#growingTables++
    this.#account.growingTables++
  }

  /** Free bytes for each of the query's growing tables. Other threads and buffers need most of the memory. */
  get leftForTable(): number {
    return this.left / (4 * Math.max(1, this.#account.growingTables))
  }

  /** Allocates at least this many bytes, aligned to 64, with undefined contents. Throws ResourceError. */
  take(bytes: number): number {
    this.#admit(bytes)
    const address = this.#allocator.allocateOrThrow(bytes + paddingBytes, budgets.queries)
    if (this.#taken.size === 0 && this.#parent !== null) this.#parent.#adopt(this)
    this.#taken.set(address, bytes)
    this.#account.bytes += bytes
    return address
  }

  #adopt(child: QueryArena): void {
    this.#children ??= new Set()
    this.#children.add(child)
  }

  #disown(child: QueryArena): void {
    this.#children?.delete(child)
  }

  give(address: number): void {
    const bytes = this.#taken.get(address)
    if (bytes === undefined) return
    this.#taken.delete(address)
    this.#account.bytes -= bytes
    this.#allocator.free(address)
  }

  holds(address: number): boolean {
    return this.#taken.has(address)
  }

  #admit(bytes: number): void {
    const { bytes: held, bytesMax, begun } = this.#account
    if (begun && !this.isAhead) return
    if (!begun && held + bytes > bytesMax) throw new ResourceError('others wait for memory [budget=queries]', 'memory')
    const { limit } = this
    const modest = bytes > modestBytes ? 1 : 2
    const reserve = this.isAhead ? limit / aheadParts : limit / reserveParts / modest
    if (this.#allocator.used(budgets.queries) + bytes > limit - reserve)
      throw ResourceError.outOfMemory('queries', bytes)
  }

  /** Frees all allocations except the given ones. */
  keepOnly(addresses: readonly number[]): void {
    const retained = new Set(addresses)
    for (const address of [...this.#taken.keys()]) if (!retained.has(address)) this.give(address)
    this.#nulls.clear()
    this.#chunkNext = 0
    this.#chunkEnd = 0
    this.#scratch = 0
  }

  /** Limit of the budget that all queries share. */
  get limit(): number {
    return this.#allocator.limit(budgets.queries)
  }

  /** Allocates a small area that lives as long as the query. */
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

  /**
   * A shared scratch buffer of eight bytes for each row of a batch. It is valid during one call only: every callee uses
   * the same buffer, in child arenas as well.
   */
  scratch(): number {
    if (this.#parent !== null) return this.#parent.scratch()
    if (this.#scratch === 0) this.#scratch = this.take(batchRowsMax * 8)
    return this.#scratch
  }

  /** batchRowsMax NULLs of the type. Read only. */
  nulls(type: DataType): number {
    return this.#nullRun(type, batchRowsMax)
  }

  /** pageRowsMax NULLs of the type, as many as a morsel has rows. Read only. */
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
    for (const child of this.#children ?? []) child.freeAll()
    if (this.#parent !== null) this.#parent.#disown(this)
    for (const address of this.#taken.keys()) this.give(address)
    this.#account.growingTables -= this.#growingTables
    this.#growingTables = 0
    this.#nulls.clear()
    this.#chunkNext = 0
    this.#chunkEnd = 0
    this.#scratch = 0
  }
}
