// RunningQuery: the execution of one query, as a state machine. It runs the sub-queries first, then pulls batches from
// the plan's operators and passes them to the encoder. step() does a limited amount of work and never blocks: it
// returns why the query cannot continue, and its owner calls it again.
//
// Result blocks are freed when the client releases them, and work queues when no other thread uses them; all other
// memory is freed when the query ends. If the client stops reading, the query frees everything but the unread blocks
// and what its operators cannot compute again.

import { CancelledError, isShortage, TimeoutError } from '../../base/errors.js'
import { fullWindowAfterBytes, initialWindowBytes, resultWindowRows } from '../../base/limits.js'
import { budgets } from '../../memory/budgets.js'
import { listKeys, requireOneRow, type SubqueryResult } from '../../sql/functions/registry/evaluate.js'
import type { Value } from '../../types/value.js'
import { ByteWriter } from '../batch/byte-writer.js'
import type { ExecContext } from '../batch/context.js'
import type { QueryArena } from '../batch/query-arena.js'
import { valueReader } from '../batch/values.js'
import { type Batch, isBatch, type Operator, type Vector } from '../batch/vector.js'
import { buildOperator, type IsolatedRows, isolated } from '../build.js'
import { createEncoder } from '../encode/create-encoder.js'
import type { Encoder } from '../encode/encoder.js'
import { QueryParallelism } from '../parallel/query-parallelism.js'
import { ScanProgress } from '../scan/scan-progress.js'
import { type NumberList, numbersOf } from './list-numbers.js'
import type { RunQuery } from './messages.js'
import { type QueryHost, queryContext } from './query-host.js'

/** 'parked': the client must read first. 'waiting': another thread must act first. */
export type Progress = 'worked' | 'parked' | 'waiting' | 'ended'

/** Rows that are encoded before the window is checked again. */
const encodeRows = 1024
/**
 * All windows of a thread's clients together may take this fraction of the memory of queries, apart from the minimum
 * for each.
 */
const windowsParts = 16
const windowBytesMin = 64 * 1024
/** A client that has read nothing for this long has stopped. */
const stoppedMs = 200
/** It is checked once more after this time, because workers may have finished something meanwhile. */
const stoppedAgainMs = 600
/** The rest of a batch is encoded beyond the window up to this size, so that the batch can be freed. */
const beyondBytesMax = 512 * 1024

/** Bytes that the clients of a thread's queries have not read. */
export interface Windows {
  bytes: number
}

/** How often the main thread is told how many rows were read. */
const reportMs = 1000

/** A last block up to this size is sent with the last message, as a copy. */
const tailBytesMax = 256 * 1024

interface Block {
  readonly address: number
  readonly bytes: number
  readonly rows: number
}

interface OpenSubquery {
  readonly operator: IsolatedRows
  readonly values: Value[]
  readonly list: NumberList | undefined
  rows: number
}

export class RunningQuery {
  readonly queryId: number
  /** Milliseconds of work so far; short queries take precedence. */
  usedMs = 0
  readonly #host: QueryHost
  readonly #request: RunQuery
  readonly #arena: QueryArena
  readonly #parallelism: QueryParallelism
  readonly #context: ExecContext
  readonly #endings: (() => void)[] = []
  readonly #subqueries: SubqueryResult[] = []
  readonly #outstanding: Map<number, number>
  readonly #startedMs: number
  /** When the main thread was told last how many rows were read. */
  #reportedMs: number
  #cancelled: string | null = null
  #encoder: Encoder | null = null
  #root: Operator | null = null
  #subquery: OpenSubquery | null = null
  #batch: Batch | null = null
  #batchRow = 0
  /** Rows of the result so far, and rows sent. */
  #seen = 0
  #sent = 0
  #cut = false
  readonly #windows: Windows
  #waitingBytes = 0
  /** Bytes that the client has read. */
  #takenBytes = 0
  /** Since when the client has read nothing; -1: it reads, or nothing waits for it. */
  #parkedMs = -1
  #idleTimes = 0
  #yielded = false
  /** Rows of values that the client has not read. */
  #waitingRows = 0
  /** All rows are encoded; bytes may still have to be sent. */
  #exhausted = false
  #ending = false
  /** The last block closed when no more rows follow. It is held back, since it may be sent with the end message. */
  #last: Block | null = null

  /** `outstanding`: sizes of posted blocks by address; owned by the caller, because blocks outlive their query. */
  constructor(host: QueryHost, request: RunQuery, outstanding: Map<number, number>, windows: Windows = { bytes: 0 }) {
    this.#windows = windows
    this.queryId = request.queryId
    this.#host = host
    this.#request = request
    this.#outstanding = outstanding
    this.#startedMs = host.clock.monotonicMs() - (request.spentMs ?? 0)
    this.#reportedMs = this.#startedMs
    const nowMicros = BigInt(request.nowMicros)
    const onEnd = (release: () => void): void => {
      this.#endings.push(release)
    }
    const context = queryContext(host, request, this.#subqueries, nowMicros, onEnd)
    this.#arena = context.arena
    this.#parallelism = new QueryParallelism(host, {
      request,
      subqueries: this.#subqueries,
      nowMicros,
      arena: this.#arena,
    })
    context.parallelism = this.#parallelism
    if (host.isInline !== true) context.progress = new ScanProgress(request.query, request.snapshots)
    this.#context = context
  }

  cancel(reason: string): void {
    this.#cancelled = reason
  }

  /** The client has released a block of this query. */
  released(bytes: number): void {
    this.#waitingBytes -= bytes
    this.#tookSome(bytes)
  }

  /** The client has taken rows of values, or packed rows of so many bytes. */
  taken(rows: number, bytes: number): void {
    this.#waitingRows -= rows
    this.#waitingBytes -= bytes
    this.#tookSome(bytes)
  }

  #tookSome(bytes: number): void {
    this.#takenBytes += bytes
    this.#parkedMs = -1
    this.#idleTimes = 0
  }

  get parked(): boolean {
    const full = this.#waitingBytes >= this.#windowBytes || this.#waitingRows >= resultWindowRows
    return this.#cancelled === null && full
  }

  /** Tells the main thread how many rows were read, if it was not told lately. */
  report(nowMs: number): void {
    if (nowMs - this.#reportedMs < reportMs) return
    this.#reportedMs = nowMs
    const rows = this.#context.progress?.rows()
    if (rows !== undefined) this.#host.post({ kind: 'progress', queryId: this.queryId, ...rows })
  }

  /** Present size of the window. */
  get #windowBytes(): number {
    const { windowBytes, encoding } = this.#request
    // Packed rows go to the writer of the same server.
    if (encoding.kind === 'packed') return windowBytes
    if (this.#arena.short) return Math.min(1, windowBytes)
    const known = this.#takenBytes < fullWindowAfterBytes ? initialWindowBytes : windowBytes
    const free = (this.#arena.limit / windowsParts - this.#windows.bytes + this.#waitingBytes) / 2
    return Math.min(windowBytes, Math.max(windowBytesMin, Math.min(known, free)))
  }

  /** Whether the client may have stopped reading. */
  get mayGoIdle(): boolean {
    return this.#idleTimes < 2 && this.parked
  }

  /** Frees what can be recomputed if the client has stopped reading. Throws what ends the query. */
  lookAtReader(): void {
    if (!this.mayGoIdle) return
    const now = this.#host.clock.monotonicMs()
    if (this.#parkedMs < 0) this.#parkedMs = now
    if (now - this.#parkedMs < (this.#idleTimes === 0 ? stoppedMs : stoppedAgainMs)) return
    this.#idleTimes++
    if (this.#root?.goIdle === undefined) return
    while (this.#encoder?.drain?.() === true);
    if (this.#endBatch()) this.#root.goIdle()
  }

  /** Whether it has sent rows and can rebuild most of the memory that it holds. */
  get yields(): boolean {
    return this.#sent > 0 && this.#root?.goIdle !== undefined
  }

  /** Frees what can be rebuilt, because memory is scarce. Throws the error that ends the query. */
  yieldMemory(): void {
    if (this.#yielded || this.#root?.goIdle === undefined) return
    while (this.#encoder?.drain?.() === true);
    if (!this.#endBatch()) return
    this.#root.goIdle()
    this.#yielded = true
  }

  /** Encodes the rest of the batch beyond the window; false when that may take too much memory. */
  #endBatch(): boolean {
    const batch = this.#batch
    if (batch === null || batch.vectors.length === 0) return true
    const rows = batch.rows - this.#batchRow
    const rowBytes = (this.#takenBytes + this.#waitingBytes) / Math.max(1, this.#sent)
    if (rows * rowBytes > Math.min(beyondBytesMax, this.#arena.left / 2) || this.#sent + rows >= this.#request.rowsMax)
      return false
    while (this.#batch !== null) this.#encode(this.#batch)
    return true
  }

  /**
   * The same query with temporary files from the beginning, if that may help after this error: an operator that holds
   * memory can spill, and nothing was sent. Otherwise undefined.
   */
  againSpilling(error: unknown): RunQuery | undefined {
    const { canSpill, spills } = this.#context.state
    if (!isShortage(error) || !canSpill || spills || this.#arena.hasBegun || this.#parallelism.invited) return undefined
    return { ...this.#request, spills: true, spentMs: this.#host.clock.monotonicMs() - this.#startedMs }
  }

  get canSpillHeap(): boolean {
    return this.#context.state.canSpillHeap
  }

  /**
   * Lets an operator use temporary files instead of values on the heap; false if none has done so when asked before.
   */
  spillHeap(): boolean {
    const { state } = this.#context
    if (!state.canSpillHeap || state.heapFull) return false
    state.heapFull = true
    return true
  }

  /** Does a limited amount of work. Throws what ends the query. */
  step(): Progress {
    this.#check()
    if (this.parked) return 'parked'
    this.#yielded = false
    if (this.#request.profile === 'built') return this.#describe()
    if (this.#subqueries.length < this.#request.query.subqueries.length) return this.#stepSubquery()
    if (this.#root === null) this.#begin()
    if (this.#encoder?.drain?.() === true) return 'worked'
    if (this.#exhausted) return this.#finish()
    if (this.#batch !== null) return this.#encode(this.#batch)
    const pulled = (this.#root as Operator).pull()
    if (pulled === null) return this.#finish()
    if (!isBatch(pulled)) return pulled === 'waiting' ? 'waiting' : 'worked'
    this.#batch = pulled
    this.#batchRow = 0
    return this.#encode(pulled)
  }

  get parallelism(): QueryParallelism {
    return this.#parallelism
  }

  /** Frees everything except work queues; must be called once, at the end. */
  close(): void {
    for (const release of this.#endings.splice(0)) release()
    if (this.#last !== null) this.#host.allocator.free(this.#last.address)
    this.#last = null
    this.#arena.freeAll()
  }

  #check(): void {
    if (this.#cancelled !== null) throw new CancelledError(this.#cancelled)
    const { timeoutMs } = this.#request
    if (timeoutMs > 0 && this.#host.clock.monotonicMs() - this.#startedMs > timeoutMs) throw new TimeoutError(timeoutMs)
  }

  #begin(): void {
    const { memory } = this.#host
    const { encoding, query } = this.#request
    const sink = {
      open: (bytes: number) => this.#host.allocator.allocateOrThrow(bytes + 64, budgets.queries),
      drop: (address: number) => this.#host.allocator.free(address),
      // Several blocks are in transit while another one is filled.
      blockBytesMax: () => this.#windowBytes / 4,
      close: (address: number, bytes: number, rows: number) => this.#closed({ address, bytes, rows }),
    }
    const writer = new ByteWriter(memory, sink)
    this.#encoder = createEncoder(encoding, {
      context: this.#context,
      writer,
      columns: query.plan.columns,
      postRows: (rows) => {
        this.#arena.begun()
        this.#waitingRows += rows.length
        this.#host.post({ kind: 'rows', queryId: this.queryId, rows })
      },
      postPacked: (packed, bytes) => {
        this.#arena.begun()
        this.#waitingBytes += bytes
        this.#host.post({ kind: 'packed', queryId: this.queryId, packed, bytes })
      },
    })
    this.#endings.push(() => writer.abandon())
    const { skip, rowsMax } = this.#request
    this.#root = this.#encoder.operator?.(query.plan, { skip, rowsMax }) ?? buildOperator(this.#context, query.plan)
    this.#encoder.begin()
  }

  #closed(block: Block): void {
    this.#postLast()
    this.#last = block
    if (!this.#ending) this.#postLast()
  }

  #postLast(): void {
    if (this.#last === null) return
    const { address, bytes, rows } = this.#last
    this.#last = null
    this.#arena.begun()
    this.#outstanding.set(address, bytes)
    this.#waitingBytes += bytes
    this.#windows.bytes += bytes
    this.#host.post({ kind: 'block', queryId: this.queryId, address, bytes, rows })
  }

  /** A copy of the last block, if it is short. */
  #tail(): Uint8Array | undefined {
    if (this.#last === null) return undefined
    const { address, bytes } = this.#last
    if (bytes > tailBytesMax || this.#host.isInline === true) {
      this.#postLast()
      return undefined
    }
    this.#last = null
    const tail = this.#host.memory.u8.slice(address, address + bytes)
    this.#host.allocator.free(address)
    return tail
  }

  #encode(batch: Batch): Progress {
    const { skip, rowsMax, countAll } = this.#request
    const from = this.#batchRow
    const first = Math.min(batch.rows, Math.max(from, from + skip - this.#seen))
    const room = rowsMax - this.#sent
    const to = Math.min(batch.rows, first + Math.min(encodeRows, room))
    if (to > first) {
      this.#encoder?.rows(batch, first, to)
      this.#sent += to - first
    }
    const full = this.#sent >= rowsMax
    const next = full && to < batch.rows ? batch.rows : to
    if (full && to < batch.rows) this.#cut = true
    this.#seen += next - from
    this.#batchRow = next
    if (this.#batchRow >= batch.rows) this.#batch = null
    return full && !countAll && this.#cut ? this.#finish() : 'worked'
  }

  #finish(): Progress {
    if (!this.#exhausted) {
      this.#ending = true
      this.#encoder?.end()
    }
    this.#exhausted = true
    if (this.#encoder?.drain?.() === true) return 'worked'
    const { countAll } = this.#request
    const tail = this.#tail()
    this.#host.post({
      kind: 'end',
      queryId: this.queryId,
      rows: countAll ? this.#seen : this.#sent,
      cut: this.#cut,
      executeMs: this.#host.clock.monotonicMs() - this.#startedMs,
      profile: this.#context.profile?.results(),
      tail,
    })
    return 'ended'
  }

  /** EXPLAIN without ANALYZE: operators are built, but not run. */
  #describe(): Progress {
    buildOperator(this.#context, this.#request.query.plan)
    this.#host.post({
      kind: 'end',
      queryId: this.queryId,
      rows: 0,
      cut: false,
      executeMs: 0,
      profile: this.#context.profile?.results(),
    })
    return 'ended'
  }

  #stepSubquery(): Progress {
    const subquery = this.#request.query.subqueries[this.#subqueries.length] as RunQuery['query']['subqueries'][number]
    this.#subquery ??= this.#openSubquery(subquery)
    const { operator, values, list } = this.#subquery
    const pulled = operator.pull()
    if (isBatch(pulled)) {
      this.#subquery.rows += pulled.rows
      if (subquery.mode === 'scalar') requireOneRow(this.#subquery.rows, subquery.position)
      if (list !== undefined) {
        list.add(pulled.vectors[0] as Vector, pulled.rows)
        return 'worked'
      }
      const read = valueReader(this.#context.memory, this.#context.strings, pulled.vectors[0] as Vector)
      const wanted = subquery.mode === 'list' ? pulled.rows : values.length === 0 ? 1 : 0
      for (let row = 0; row < wanted; row++) values.push(read(row))
      if (subquery.mode !== 'exists') return 'worked'
    } else if (pulled !== null) return pulled === 'waiting' ? 'waiting' : 'worked'
    this.#subqueries.push(list?.result() ?? this.#subqueryResult(subquery.mode, values, this.#subquery.rows))
    this.#subquery = null
    // Otherwise workers may still read its results. With thousands of sub-queries, keeping all would take too much
    // memory.
    if (!this.#parallelism.invited) operator.release()
    return 'worked'
  }

  #openSubquery(subquery: RunQuery['query']['subqueries'][number]): OpenSubquery {
    const operator = isolated(this.#context, subquery.plan)
    this.#endings.push(() => operator.release())
    return { operator, values: [], list: numbersOf(this.#context, subquery), rows: 0 }
  }

  #subqueryResult(mode: 'scalar' | 'list' | 'exists', values: readonly Value[], rows: number): SubqueryResult {
    if (mode === 'exists') return { mode, exists: rows > 0 }
    return mode === 'list' ? { mode, keys: listKeys(values) } : { mode, value: values[0] ?? null }
  }
}
