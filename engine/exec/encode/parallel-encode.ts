// Parallel encoding: several query threads encode a result, and the coordinator (the thread that runs the query) writes
// it in the order of the rows.
//
//   source (morsel-source.ts)   divides a result into morsels: a table, ranges of time, sorted rows
//   format (morsel-format.ts)   turns a morsel into blocks of bytes and a note: text, Arrow, QWP, Parquet row groups
//   this file                   the worker that encodes morsels, and the coordinator that writes them in order
//
// An encoded morsel in shared memory:
//
//   blocks u32 | rows u32 | note bytes u32 | of each block: address u32, bytes u32, rows u32 | note
//
// Invariants:
//   1. Blocks are written in the order of the morsels. The coordinator may encode a morsel straight to the output
//      (a direct morsel), but only when all earlier ones are written.
//   2. A worker holds at most `heldMax` encoded morsels, so a slow client stops all threads.
//   3. When the client stops reading, encoded morsels are freed to save memory, and encoded again when it continues. A
//      partly written morsel is freed, too, if its format can continue after the last written row; otherwise it stays
//      in memory.

import { assert } from '../../base/assert.js'
import type { Plan } from '../../sql/plan/plan.js'
import type { ExecContext } from '../batch/context.js'
import type { QueryArena } from '../batch/query-arena.js'
import { isBatch, type Operator, type Pull } from '../batch/vector.js'
import {
  type ChunkWorker,
  CoordinatorRun,
  type CoordinatorWork,
  type FragmentDetails,
  type Parallelism,
} from '../parallel/coordinator.js'
import { singleThread } from '../parallel/single-thread.js'
import type { EncoderOptions, RowWindow } from './encoder.js'
import type { EncodedBlock, Measured, MorselEncoder, MorselFormat, MorselSink } from './morsel-format.js'
import type { DivisibleRows, MorselCut, MorselSource, SourceShape } from './morsel-source.js'
import { sortedShape } from './source-sorted.js'
import { tableShape } from './source-table.js'
import { timeShape } from './source-time.js'

/** The first shape that recognises a plan divides it. */
const shapes: readonly SourceShape[] = [tableShape, timeShape, sortedShape]

type Output = Pick<EncoderOptions, 'context' | 'columns'>

/**
 * Encodes the requested rows of a plan into the sink. Batches of the operator have no vectors, except those of the
 * head.
 */
export function parallelEncode(
  output: Output,
  plan: Plan,
  window: RowWindow,
  format: MorselFormat,
  sink: MorselSink,
): Operator | undefined {
  const { context } = output
  const parallelism = context.parallelism ?? singleThread(context.arena)
  if (parallelism.workers === 0 && !format.takesStored) return undefined
  const options = { context, plan, window, certain: sink.certain, smallRows: parallelism.chunkRowsMin / 4 }
  for (const shape of shapes) {
    const operator = shape.open(options, (rows) => {
      const mayDivide = parallelism.workers > 0 || rows.hasStoredPages
      return mayDivide && format.divides(rows, parallelism)
        ? new Coordinator(output, plan, format, sink, rows)
        : undefined
    })
    if (operator !== undefined) return operator
  }
  return undefined
}

/** A worker's part for a coordinator; undefined when this thread cannot take part. */
export function encodeWorker(
  context: ExecContext,
  plan: Plan,
  format: MorselFormat,
  details: FragmentDetails,
): ChunkWorker | undefined {
  for (const shape of shapes) {
    const source = shape.attach(context, plan, details)
    if (source !== undefined) return new MorselWorker({ context, columns: plan.columns }, format, source, null)
  }
  return undefined
}

/** Measures the rows, cuts them, and writes what the threads encode. */
class Coordinator implements Operator {
  readonly #output: Output
  readonly #plan: Plan
  readonly #format: MorselFormat
  readonly #sink: MorselSink
  readonly #rows: DivisibleRows
  readonly #parallelism: Parallelism
  readonly #head: Operator | null
  readonly #firstByte: number
  #headRows = 0
  #headMs = 0
  #selectivity: number | null = null
  /** The operator after the measurement. */
  #inner: Operator | null = null

  constructor(output: Output, plan: Plan, format: MorselFormat, sink: MorselSink, rows: DivisibleRows) {
    this.#output = output
    this.#plan = plan
    this.#format = format
    this.#sink = sink
    this.#rows = rows
    this.#parallelism = output.context.parallelism ?? singleThread(output.context.arena)
    this.#head = format.measures === 'head' ? rows.head() : null
    this.#firstByte = sink.bytes()
  }

  readonly pull = (): Pull => {
    if (this.#inner !== null) return this.#inner.pull()
    if (this.#head !== null) {
      const startedMs = this.#parallelism.nowMs()
      const pulled = this.#head.pull()
      this.#headMs += this.#parallelism.nowMs() - startedMs
      if (isBatch(pulled)) this.#headRows += pulled.rows
      if (pulled !== null) return pulled
    } else {
      const selectivity = this.#rows.computed === null ? 1 : this.#rows.computed.selectivity()
      if (typeof selectivity !== 'number') return selectivity
      this.#selectivity = selectivity
    }
    this.#inner = this.#divided()
    return 'working'
  }

  readonly goIdle = (): void => (this.#inner ?? this.#head)?.goIdle?.()

  #divided(): Operator {
    const measured: Measured = {
      parallelism: this.#parallelism,
      headRows: this.#headRows,
      headBytes: this.#sink.bytes() - this.#firstByte,
      headMs: this.#headMs,
      selectivity: this.#selectivity ?? 1,
    }
    const morselRows = this.#format.morselRows(this.#rows, measured)
    const cut = morselRows === null ? undefined : this.#rows.divide(morselRows, this.#format.cut)
    const { computed, scanned, rows } = this.#rows
    if (cut !== undefined) {
      const counted = scanned === null ? undefined : this.#output.context.progress?.chunked(scanned, rows)
      return inOrder(this.#output, this.#parallelism, this.#plan, this.#format, this.#sink, { ...cut, counted })
    }
    assert(computed !== null, 'Q3: rows that are not computed can be divided')
    return computed.undivided()
  }
}

/** Writes the morsels in their order; its batches count the rows written. */
function inOrder(
  output: Output,
  parallelism: Parallelism,
  plan: Plan,
  format: MorselFormat,
  sink: MorselSink,
  { source, details, counted }: MorselCut & Pick<CoordinatorWork, 'counted'>,
): Operator {
  const { memory } = output.context
  const worker = new MorselWorker(output, format, source, sink.direct)
  /** Of the last merged morsel: blocks not written yet, and rows of written blocks. */
  let pending: EncodedBlock[] = []
  let written = 0
  /** Rows of a direct morsel. */
  let direct = 0
  const run = new CoordinatorRun(memory, parallelism, {
    ...{ plan, worker, details, counted },
    chunks: source.morsels,
    merge: (result) => {
      const { blocks, rows, note } = readMorsel(memory, result)
      worker.taken()
      written = 0
      if (note !== '') sink.note(note)
      pending = blocks
      if (blocks.length === 0) direct = rows
    },
  })
  const pull = (): Pull => {
    const block = pending.shift()
    if (block !== undefined) {
      sink.block(block)
      written += block.rows
    }
    const rows = block?.rows ?? direct
    direct = 0
    if (rows > 0) return { rows, vectors: [] }
    if (block !== undefined) return 'working'
    const outcome = run.step()
    return outcome === 'done' ? (pending.length > 0 || direct > 0 ? 'working' : null) : outcome
  }
  const goIdle = (): void => {
    const last = pending.length === 0 ? 'written' : format.resumes ? 'again' : 'kept'
    if (last === 'again') {
      worker.continueLast(written)
      pending = []
    }
    run.goIdle(last)
    worker.goIdle()
  }
  return { pull, goIdle }
}

class MorselWorker implements ChunkWorker {
  readonly heldMax: number
  /** Number of morsels that the coordinator has merged. */
  #merged = 0
  readonly #output: Output
  readonly #format: MorselFormat
  readonly #source: MorselSource
  readonly #direct: MorselSink['direct']
  readonly #results = new Map<number, QueryArena>()
  #work: QueryArena
  #retained: QueryArena
  #encoder: MorselEncoder | null = null
  #isDirect = false
  /** Rows already written of the next morsel to be merged. */
  #written = 0

  /** `direct`: set on the coordinator only. */
  constructor(output: Output, format: MorselFormat, source: MorselSource, direct: MorselSink['direct']) {
    const { context } = output
    this.heldMax = format.heldMax
    this.#output = output
    this.#format = format
    this.#source = source
    this.#direct = direct
    this.#work = context.arena.child()
    this.#retained = context.arena.child()
    context.onEnd(() => {
      this.#abandon()
      for (const result of [...this.#results.keys()]) this.recycle(result)
    })
  }

  hasRoom(): boolean {
    return this.#output.context.arena.hasRoomAhead
  }

  begin(morsel: number): void {
    this.#abandon()
    const { context, columns } = this.#output
    const next = morsel === this.#merged
    this.#work.isAhead = !next
    this.#retained.isAhead = !next
    const skipped = next ? this.#written : 0
    this.#isDirect = next && this.#direct !== null
    this.#encoder =
      next && this.#direct !== null
        ? this.#direct(skipped)
        : this.#format.open({ work: { ...context, arena: this.#work }, retained: this.#retained }, columns, skipped)
    this.#source.seek(morsel)
  }

  step(): boolean | 'waiting' {
    return this.#encoder?.step(this.#source) ?? false
  }

  result(): number {
    assert(this.#encoder !== null, 'Q3: a morsel is under way')
    const { rows } = this.#encoder
    const { blocks, note } = this.#encoder.end()
    const retained = this.#retained
    const result = writeMorsel(this.#output.context.memory, retained, blocks, rows, note)
    this.#results.set(result, retained)
    this.#retained = this.#output.context.arena.child()
    this.#abandon()
    return result
  }

  recycle(result: number): void {
    this.#results.get(result)?.freeAll()
    this.#results.delete(result)
  }

  readonly drop = (): void => this.#abandon()

  get inPart(): boolean {
    return this.#isDirect
  }

  /** The coordinator has merged the next morsel. */
  taken(): void {
    this.#merged++
    this.#written = 0
  }

  /** The last merged morsel will be encoded again, without the rows already written. */
  continueLast(written: number): void {
    this.#merged--
    this.#written = written
  }

  /** Called between two steps. */
  goIdle(): void {
    if (this.#encoder?.betweenBatches !== false) this.#source.goIdle?.()
  }

  #abandon(): void {
    this.#source.release()
    this.#encoder = null
    this.#isDirect = false
    this.#work.freeAll()
    this.#retained.freeAll()
  }
}

const headerWords = 3
const blockWords = 3

function writeMorsel(
  { u8, u32 }: ExecContext['memory'],
  arena: QueryArena,
  blocks: readonly EncodedBlock[],
  rows: number,
  note: string,
): number {
  const text = Buffer.from(note, 'utf8')
  const headBytes = (headerWords + blocks.length * blockWords) * 4
  const result = arena.take(headBytes + text.length)
  const word = result >>> 2
  u32.set([blocks.length, rows, text.length], word)
  for (const [index, { address, bytes, rows: ended }] of blocks.entries())
    u32.set([address, bytes, ended], word + headerWords + index * blockWords)
  u8.set(text, result + headBytes)
  return result
}

function readMorsel({ u8, u32 }: ExecContext['memory'], result: number) {
  const word = result >>> 2
  const [count, rows, noteBytes] = [u32[word]!, u32[word + 1]!, u32[word + 2]!]
  const noteAt = result + (headerWords + count * blockWords) * 4
  const blocks: EncodedBlock[] = []
  for (let at = word + headerWords; at < noteAt >>> 2; at += blockWords)
    blocks.push({ address: u32[at]!, bytes: u32[at + 1]!, rows: u32[at + 2]! })
  return { blocks, rows, note: Buffer.from(u8.subarray(noteAt, noteAt + noteBytes)).toString('utf8') }
}
