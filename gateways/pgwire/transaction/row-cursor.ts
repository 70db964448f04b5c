// Rows of a result on their way to the client, as many as it asks for. The engine's blocks hold whole DataRow messages;
// a block that is sent in part stays with the cursor.

import type { ResultColumn, RowsResult } from '../../../engine/engine.js'
import { recodedRows } from '../protocol/client-encoding.js'
import type { Outbound } from '../protocol/outbound.js'

export interface SentRows {
  readonly rows: number
  /** Nothing is left. */
  readonly exhausted: boolean
}

/** Where rows go. */
export type RowTarget = Pick<Outbound, 'put' | 'block' | 'encoding'>

type RowsTag = 'SELECT' | 'INSERT 0' | 'UPDATE' | 'DELETE' | 'FETCH' | 'MOVE' | UncountedTag
type UncountedTag = 'SHOW' | 'EXPLAIN'

/** Rows that a statement gives. */
export interface Rows {
  readonly columns: readonly ResultColumn[]
  /** As PgEncoding has it. */
  readonly binary: readonly boolean[]
  readonly tag: RowsTag
  /** Sends up to so many rows. Rejects with what ended the query. */
  send(out: Outbound | null, rowsMax: number): Promise<SentRows>
  /** Sends all rows at once, where they are there and few; answers how many, -1 when nothing was sent. */
  sendWhole?(out: RowTarget): number
  close(): Promise<void>
}

/** PostgreSQL counts the rows of tables alone. */
export function countedTag(tag: RowsTag, rows: number): string {
  return tag === 'SHOW' || tag === 'EXPLAIN' ? tag : `${tag} ${rows}`
}

const smallBytes = 4096

export class RowCursor implements Rows {
  readonly tag: RowsTag
  readonly result: RowsResult
  /** By column. */
  readonly binary: readonly boolean[]
  /** Null: the whole result was there at once, and this is what is left of it. */
  readonly #blocks: AsyncIterator<Uint8Array> | null
  readonly #ready: readonly Buffer[]
  readonly #part: (() => () => void) | null
  #readyAt = 0
  /** What of the last block was not sent. */
  #rest: Uint8Array | null = null
  #ended = false

  /**
   * `part` is called when some of the rows are asked for, and what it answers when they are sent; `uncounted`: they are no
   * rows of tables.
   */
  constructor(
    result: RowsResult,
    binary: readonly boolean[],
    part: (() => () => void) | null,
    uncounted: UncountedTag | null = null,
  ) {
    this.#part = part
    this.result = result
    this.binary = binary
    this.tag = uncounted ?? result.changed ?? (result.inserted === undefined ? 'SELECT' : 'INSERT 0')
    this.#ready = result.ready?.blocks ?? []
    this.#blocks = result.ready === null ? result.blocks[Symbol.asyncIterator]() : null
    if (result.ready !== null) return
    // A failure reaches us through the blocks as well.
    result.summary.catch(() => {})
  }

  get columns(): readonly ResultColumn[] {
    return this.result.columns
  }

  /** `out` null passes over the rows. */
  async send(out: RowTarget | null, rowsMax: number): Promise<SentRows> {
    const end = this.#part?.()
    try {
      return await this.#send(out, rowsMax)
    } finally {
      end?.()
    }
  }

  sendWhole(out: RowTarget): number {
    if (this.#blocks !== null || this.#part !== null || this.#readyAt > 0 || this.#rest !== null) return -1
    for (const block of this.#ready) if (block.length > smallBytes) return -1
    let rows = 0
    for (const block of this.#ready) {
      rows += rowsIn(block)
      out.put(rowsFor(out, block, this))
    }
    this.#readyAt = this.#ready.length
    this.#ended = true
    return rows
  }

  async #send(out: RowTarget | null, rowsMax: number): Promise<SentRows> {
    let rows = 0
    while (rows < rowsMax) {
      const next = this.#next()
      const block = next instanceof Promise ? await next : next
      if (block === null) return { rows, exhausted: true }
      const cut = cutRows(block, rowsMax - rows)
      this.#rest = cut.bytes < block.length ? block.subarray(cut.bytes) : null
      rows += cut.rows
      if (out !== null) await sendBlock(out, rowsFor(out, block.subarray(0, cut.bytes), this))
    }
    return { rows, exhausted: false }
  }

  /** Ends the query if it still runs. */
  async close(): Promise<void> {
    if (this.#ended) return
    this.#ended = true
    this.#rest = null
    await this.#blocks?.return?.()
  }

  #next(): Promise<Uint8Array | null> | Uint8Array | null {
    if (this.#rest !== null) return this.#rest
    if (this.#blocks === null) return this.#ready[this.#readyAt++] ?? null
    return this.#ended ? null : this.#nextOf(this.#blocks)
  }

  async #nextOf(blocks: AsyncIterator<Uint8Array>): Promise<Uint8Array | null> {
    const next = await blocks.next()
    if (next.done !== true) return next.value
    this.#ended = true
    return null
  }
}

/** DataRow messages with texts as the client has them. */
export function rowsFor(
  { encoding }: RowTarget,
  block: Uint8Array,
  { columns, binary }: Pick<Rows, 'columns' | 'binary'>,
): Uint8Array {
  return encoding === null ? block : recodedRows(block, columns, binary, encoding)
}

/** Small blocks are copied to what else waits, so that a small answer is one write. */
async function sendBlock(out: RowTarget, block: Uint8Array): Promise<void> {
  if (block.length > smallBytes) await out.block(block)
  else out.put(block)
}

function rowsIn(block: Buffer): number {
  let rows = 0
  for (let at = 0; at < block.length; rows++) at += 1 + block.readInt32BE(at + 1)
  return rows
}

/** Bytes of the first `rowsMax` messages of a block. */
function cutRows(block: Uint8Array, rowsMax: number): { readonly bytes: number; readonly rows: number } {
  const view = new DataView(block.buffer, block.byteOffset, block.byteLength)
  let at = 0
  let rows = 0
  for (; rows < rowsMax && at < block.length; rows++) at += 1 + view.getInt32(at + 1)
  return { bytes: at, rows }
}
