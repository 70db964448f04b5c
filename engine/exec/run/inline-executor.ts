// Executes small queries on the main thread, which also plans them, because passing one to a query thread and back
// takes longer than its work.
//
// A query is executed here if its estimated cost is small (work-estimate.ts). It must not wait: if it needs a lock that
// is taken or a page that is not cached, or exceeds its time limit, `run` returns null, and a query thread runs the
// query from the start.
//
// Also searches stored rows by their keys, for upserts of a few rows (key-search.ts).
//
// Invariant: a failed attempt has no side effects, and a result consists of copies, so it refers to no shared memory.

import { errorFromRecord, errorRecord, ResourceError } from '../../base/errors.js'
import { inlineArenaBytes } from '../../base/limits.js'
import { createJit } from '../../kernels/jit/jit.js'
import type { Kernels } from '../../kernels/load.js'
import type { Allocator } from '../../memory/budgets.js'
import type { SharedMemory } from '../../memory/shared-memory.js'
import type { Query } from '../../sql/plan/plan.js'
import type { ChunkCache, PageCache } from '../../storage/cache/chunk-cache.js'
import type { PackedBatch } from '../../storage/jobs/messages.js'
import { nullBytes } from '../../storage/memtable/key-columns.js'
import type { PartAccess, PartHandle } from '../../storage/part/part-access.js'
import { isRemoteOnly, type PartDescriptor, type TableSnapshot } from '../../storage/schema/schema.js'
import type { Value } from '../../types/value.js'
import { NewestInMemtables } from '../scan/newest-in-memtable.js'
import { type FoundKeys, KeySearch, type SearchRequest } from './key-search.js'
import type { Encoding, FromQueryThread, RunQuery } from './messages.js'
import type { QueryHost } from './query-host.js'
import { RunningQuery } from './running-query.js'
import { workOf } from './work-estimate.js'

/** Values that a query may read by the estimate: about half a millisecond's work. */
const workMax = 30_000
/** The estimate may be wrong, and a value may cost more than others: an attempt ends after so long. */
const deadlineMs = 2
const resultBytesMax = 256 * 1024
const askedPartsMax = 4096

export interface InlineExecutorOptions extends Pick<QueryHost, 'memory' | 'clock'> {
  readonly kernels: Kernels
  /** Over `readyChunks`, so that it loads no page. */
  readonly partAccess: PartAccess
  /** Address of `inlineArenaBytes`. */
  readonly arena: number
}

/** A result that is there as a whole. */
export interface InlineResult {
  /** Copies of the encoded blocks. */
  readonly blocks: readonly Buffer[]
  readonly values: readonly (readonly (readonly Value[])[])[]
  readonly batches: readonly PackedBatch[]
  readonly end: Extract<FromQueryThread, { kind: 'end' }> | Error
}

const inlineEncodings: ReadonlySet<Encoding['kind']> = new Set([
  ...(['json', 'csv', 'ndjson', 'qwp', 'pg', 'count', 'values', 'packed'] as const),
])

/** Thrown where an attempt cannot go on. */
const elsewhere = new Error('this query needs a thread of its own')

export class InlineExecutor {
  readonly #host: QueryHost
  readonly #arena: Arena
  readonly #keys: KeySearch
  #blocks: Buffer[] = []
  #bytes = 0
  #values: (readonly (readonly Value[])[])[] = []
  #batches: PackedBatch[] = []
  #end: InlineResult['end'] | null = null
  #running: RunningQuery | null = null
  #deadlineMs = 0
  /** The attempt under way met a part that no query thread has opened. */
  #unopened = false

  constructor({ memory, clock, kernels, partAccess, arena }: InlineExecutorOptions) {
    this.#arena = new Arena(arena + nullBytes, inlineArenaBytes - nullBytes)
    const post = (message: FromQueryThread): void => this.#take(message, memory)
    const jit = createJit(memory)
    const parts = openedTwice(partAccess, () => {
      this.#unopened = true
    })
    const check = (): void => {
      if (clock.monotonicMs() > this.#deadlineMs) throw elsewhere
    }
    this.#keys = new KeySearch({ memory, allocator: this.#arena, partAccess: parts, nulls: arena })
    const arenaHost = { memory, allocator: this.#arena, kernels, partAccess: parts, jit, clock }
    this.#host = { ...arenaHost, newest: new NewestInMemtables(), post, check, isInline: true }
  }

  /** Whether the query is small by the estimate. */
  isSmall(query: Query, encoding: Encoding, snapshots: readonly TableSnapshot[]): boolean {
    return inlineEncodings.has(encoding.kind) && workOf(query, { snapshots, memory: this.#host.memory }) <= workMax
  }

  /** Null: a query thread has to run it. */
  run(request: RunQuery): InlineResult | null {
    let query: RunningQuery | null = null
    this.#unopened = false
    this.#deadlineMs = this.#host.clock.monotonicMs() + deadlineMs
    try {
      query = new RunningQuery(this.#host, request, new Map())
      this.#running = query
      for (;;) {
        const progress = query.step()
        if (this.#unopened) return null
        if (progress === 'ended') break
        if (progress === 'waiting' || this.#host.clock.monotonicMs() > this.#deadlineMs) return null
      }
      return this.#result()
    } catch (error) {
      if (error === elsewhere || error instanceof ResourceError || this.#unopened) return null
      return { blocks: [], values: [], batches: [], end: errorFromRecord(errorRecord(error)) }
    } finally {
      query?.close()
      this.#forget()
    }
  }

  /** Finds stored rows by their keys; null: a query has to. */
  search(request: SearchRequest): FoundKeys | null {
    this.#unopened = false
    try {
      const found = this.#keys.find(request)
      return this.#unopened ? null : found
    } catch (error) {
      if (error === elsewhere || error instanceof ResourceError || this.#unopened) return null
      throw error
    } finally {
      this.#arena.empty()
    }
  }

  #result(): InlineResult | null {
    const end = this.#end
    return end === null ? null : { blocks: this.#blocks, values: this.#values, batches: this.#batches, end }
  }

  #forget(): void {
    this.#running = null
    this.#blocks = []
    this.#bytes = 0
    this.#values = []
    this.#batches = []
    this.#end = null
    this.#arena.empty()
  }

  /** What the query says to the main thread. */
  #take(message: FromQueryThread, { u8 }: SharedMemory): void {
    switch (message.kind) {
      case 'block':
        this.#keep(u8.subarray(message.address, message.address + message.bytes))
        this.#running?.released(message.bytes)
        return
      case 'rows':
        this.#values.push(message.rows as readonly (readonly Value[])[])
        this.#running?.taken(message.rows.length, 0)
        return
      case 'packed':
        this.#batches.push(message)
        this.#running?.taken(0, message.bytes)
        return
      case 'end':
        this.#end = message
        return
      default:
        throw elsewhere
    }
  }

  #keep(bytes: Uint8Array): void {
    this.#bytes += bytes.length
    if (this.#bytes > resultBytesMax) throw elsewhere
    this.#blocks.push(Buffer.from(bytes))
  }
}

/** Memory that is taken piece by piece and given back as a whole. */
class Arena implements Allocator {
  readonly #begin: number
  readonly #end: number
  #next: number

  constructor(begin: number, bytes: number) {
    this.#begin = begin
    this.#end = begin + bytes
    this.#next = begin
  }

  allocate(bytes: number): number {
    const address = this.#next
    const next = address + ((bytes + 63) & ~63)
    if (next > this.#end) return 0
    this.#next = next
    return address
  }

  allocateOrThrow(bytes: number): number {
    const address = this.allocate(bytes)
    if (address === 0) throw elsewhere
    return address
  }

  free(): void {}

  used(): number {
    return this.#next - this.#begin
  }

  limit(): number {
    return this.#end - this.#begin
  }

  empty(): void {
    this.#next = this.#begin
  }
}

function emptyPart(descriptor: PartDescriptor): PartHandle {
  const none = new BigInt64Array(0)
  return { descriptor, rows: 0, pageCount: 0, firstRows: new Uint32Array(1), minTs: none, maxTs: none }
}

/** The cache for attempts: what is in it, and nothing else. */
export function readyChunks(cache: ChunkCache): PageCache {
  return {
    checks: cache.checks,
    isFull: false,
    wanted: () => {},
    passes: () => false,
    pinReady: (key) => cache.pinReady(key),
    pin: (key) => {
      const data = cache.pinReady(key)
      if (data === 0) throw elsewhere
      return data
    },
    has: (key) => {
      const data = cache.pinReady(key)
      if (data !== 0) cache.unpin(data)
      return data !== 0
    },
    unpin: (data) => cache.unpin(data),
    reserve: () => {
      throw elsewhere
    },
  }
}

/**
 * A part's footer is read here only when a query thread has read it before, so that the disk is not waited for. Else it
 * is empty, which `missed` hears: the attempt goes on to name the others that it asks for, and comes to nothing.
 */
function openedTwice(access: PartAccess, missed: () => void): PartAccess {
  const requested = new Set<number>()
  return {
    open: (part, version) => {
      if (isRemoteOnly(part)) throw elsewhere
      if (requested.has(part.id)) return access.open(part, version)
      if (requested.size >= askedPartsMax) requested.clear()
      requested.add(part.id)
      missed()
      return emptyPart(part)
    },
    ready: () => true,
    readyWhole: () => true,
    pin: (part, columnId, page) => access.pin(part, columnId, page),
    unpin: (address) => access.unpin(address),
    pinPacked: (part, columnId, page) => access.pinPacked(part, columnId, page),
    symbolRows: (part, columnId, page, ids, from, rows, out) =>
      access.symbolRows(part, columnId, page, ids, from, rows, out),
    pick: (packed, index, first, count, target) => access.pick(packed, index, first, count, target),
    pinCodes: (part, columnId, page) => access.pinCodes(part, columnId, page),
    unpack: (part, columnId, page, target, width) => access.unpack(part, columnId, page, target, width),
    decode: () => false,
    statistics: (part, columnId, page) => access.statistics(part, columnId, page),
    nulls: (part, columnId) => (part.pageCount === 0 ? 0 : access.nulls(part, columnId)),
    // A query thread makes them.
    keys: (part, page) => ({ ...access.keys(part, page), keep: () => false }),
    mayHold: (part, columnId, ids) => access.mayHold(part, columnId, ids),
    symbols: (part, columnId) => (part.pageCount === 0 ? undefined : access.symbols(part, columnId)),
    pinNewest: (part, columnId) => (part.pageCount === 0 ? 0 : access.pinNewest(part, columnId)),
    // A query thread makes it again, and can keep it.
    keepNewest: () => {
      throw elsewhere
    },
    stored: () => undefined,
    forget: (partIds) => access.forget(partIds),
    goIdle: () => access.goIdle(),
    close: () => access.close(),
  }
}
