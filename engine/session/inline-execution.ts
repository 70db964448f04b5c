// Runs a small query on the main thread instead of a query thread, if its estimated cost, computed from the row counts
// of its tables, is so low that passing it to another thread would take longer than the query. Such a query ends before
// control returns to the event loop, so it need not register the table versions (immutable lists of files and
// memtables) that it reads as being in use, and its result is complete at once. Also looks up a few stored rows by
// their keys.

import type { ReadSnapshot } from '../api/session.js'
import type { ReadyRows } from '../api/statements.js'
import type { Clock } from '../base/clock.js'
import { movedError } from '../base/errors.js'
import { nodeFiles } from '../base/files.js'
import { InlineExecutor, type InlineResult, readyChunks } from '../exec/run/inline-executor.js'
import type { FoundKeys, SearchRequest } from '../exec/run/key-search.js'
import type { RunQuery } from '../exec/run/messages.js'
import { loadKernels } from '../kernels/load.js'
import { createAllocator } from '../memory/allocator.js'
import type { SharedMemory } from '../memory/shared-memory.js'
import type { Query } from '../sql/plan/plan.js'
import type { ChunkCache } from '../storage/cache/chunk-cache.js'
import type { PackedBatch } from '../storage/jobs/messages.js'
import { createPartAccess } from '../storage/part/part-reader.js'
import type { TableSnapshot } from '../storage/schema/schema.js'
import { PinnedSymbols } from '../threads/pinned-symbols.js'
import type { QueryPool, QuerySummary, RunningQuery } from '../threads/query-pool.js'
import { threadIds } from '../threads/wake.js'
import type { Value } from '../types/value.js'
import { withViewSides } from '../views/view-sides.js'
import type { CatalogView } from './catalog-view.js'

export interface InlineExecutionOptions {
  readonly inline: InlineExecutor
  readonly memory: SharedMemory
  readonly view: CatalogView
  readonly queries: QueryPool
}

/** Rows by the index of their key, and the newest snapshot of the table, which has them. */
export interface FoundRows {
  readonly snapshot: TableSnapshot
  readonly found: FoundKeys
}

export class InlineExecution {
  readonly #options: InlineExecutionOptions
  constructor(options: InlineExecutionOptions) {
    this.#options = options
  }

  /** null when the query has to run on a query thread. */
  run(request: Omit<RunQuery, 'kind' | 'queryId' | 'snapshots'>, snapshot?: ReadSnapshot): RunningQuery | null {
    const { inline, view } = this.#options
    // EXPLAIN ANALYZE reports execution on query threads.
    if (request.profile !== undefined) return null
    const { encoding } = request
    const seen = view.readNow(request.query.tables, snapshot)
    const { query, snapshots } = withViewSides(request.query, seen, this.#options.memory)
    if (!inline.isSmall(query, encoding, snapshots)) return null
    const symbols = new PinnedSymbols(this.#options.memory, snapshots)
    try {
      return symbols.evicted.length > 0 ? null : this.#run(inline, query, request, snapshots)
    } finally {
      symbols.release()
    }
  }

  /** Finds the stored rows that have the keys; null: a query has to. */
  search(tableId: number, keys: Omit<SearchRequest, 'snapshot'>): FoundRows | null {
    const [snapshot] = this.#options.view.readNow([tableId])
    if (snapshot === undefined) return null
    const symbols = new PinnedSymbols(this.#options.memory, [snapshot])
    try {
      const found = symbols.evicted.length > 0 ? null : this.#options.inline.search({ ...keys, snapshot })
      return found === null ? null : { snapshot, found }
    } finally {
      symbols.release()
    }
  }

  #run(
    inline: InlineExecutor,
    query: Query,
    request: Omit<RunQuery, 'kind' | 'queryId' | 'snapshots' | 'query'>,
    snapshots: readonly TableSnapshot[],
  ): RunningQuery | null {
    const { queries } = this.#options
    const { encoding, skip, rowsMax, countAll, nowMicros, timeoutMs, jit, windowBytes } = request
    const queryId = queries.nextQueryId
    // Members are listed one by one: spreading the object takes a noticeable part of a small query's time.
    const result = inline.run({
      kind: 'run',
      queryId,
      query,
      snapshots,
      encoding,
      skip,
      rowsMax,
      countAll,
      nowMicros,
      timeoutMs,
      jit,
      windowBytes,
    })
    if (result === null) return null
    queries.nextQueryId++
    return new FinishedQuery(queryId, result)
  }
}

class FinishedQuery implements RunningQuery {
  readonly queryId: number
  readonly ready: ReadyRows | null
  moved: RunningQuery['moved'] = undefined
  readonly #result: InlineResult

  constructor(queryId: number, result: InlineResult) {
    this.queryId = queryId
    this.#result = result
    const { blocks, end } = result
    this.ready = end instanceof Error ? null : { blocks, rows: end.rows, cut: end.cut }
  }

  cancel(): void {}

  get summary(): Promise<QuerySummary> {
    const { end } = this.#result
    if (!(end instanceof Error)) return Promise.resolve(end)
    const failed = Promise.reject(movedError(end, this.moved))
    // The reader of the blocks gets the error.
    failed.catch(() => {})
    return failed
  }

  get blocks(): AsyncIterable<Uint8Array> {
    return this.#iterate(this.#result.blocks)
  }

  get values(): AsyncIterable<readonly (readonly Value[])[]> {
    return this.#iterate(this.#result.values)
  }

  get batches(): AsyncIterable<PackedBatch> {
    return this.#iterate(this.#result.batches)
  }

  async *#iterate<T>(items: readonly T[]): AsyncGenerator<T> {
    yield* items
    if (this.#result.end instanceof Error) throw movedError(this.#result.end, this.moved)
  }
}

interface InlineExecutorOptions {
  readonly memory: SharedMemory
  /** Address of the memory of the queries. */
  readonly arena: number
  readonly cache: ChunkCache
  /** The database directory. */
  readonly directory: string
  readonly clock: Clock
}

/**
 * An executor with kernels and access to parts of its own. It waits for no lock and reads cached pages only, since the main
 * thread must not wait for a disk.
 */
export function openInlineExecutor({ memory, arena, cache, directory, clock }: InlineExecutorOptions): InlineExecutor {
  const kernels = loadKernels(memory)
  const partAccess = createPartAccess({
    files: nodeFiles(),
    directory,
    memory,
    allocator: createAllocator(memory, threadIds.main),
    kernels,
    cache: readyChunks(cache),
  })
  return new InlineExecutor({ memory, clock, kernels, partAccess, arena })
}
