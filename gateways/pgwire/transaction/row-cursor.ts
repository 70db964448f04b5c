// Sends the rows of a result to a client, as many as it requests. The engine's blocks contain whole DataRow messages;
// the cursor keeps the unsent rest of a block.

import type { ResultColumn, RowsResult } from '../../../engine/engine.js'
import { recodedRows } from '../protocol/client-encoding.js'
import type { Outbound } from '../protocol/outbound.js'

export interface SentRows {
  readonly rows: number
  /** No rows are left. */
  readonly exhausted: boolean
}

/** Destination of rows. */
export type RowTarget = Pick<Outbound, 'put' | 'block' | 'encoding'>

type RowsTag = 'SELECT' | 'INSERT 0' | 'UPDATE' | 'DELETE' | 'MERGE' | 'FETCH' | 'MOVE' | UncountedTag
type UncountedTag = 'SHOW' | 'EXPLAIN'

/** Rows that a statement returns. */
export interface Rows {
  readonly columns: readonly ResultColumn[]
  /** Binary flags by column, as in PgEncoding. */
  readonly binary: readonly boolean[]
  readonly tag: RowsTag
  /** Sends up to `rowsMax` rows. Rejects with the error that ended the query. */
  send(out: Outbound | null, rowsMax: number): Promise<SentRows>
  /**
   * Sends all rows synchronously if the result is complete and small; returns their number, or -1 if nothing was
   * sent.
   */
  sendWhole?(out: RowTarget): number
  close(): Promise<void>
}

/** Builds the tag; PostgreSQL reports row counts only for rows of tables. */
export function countedTag(tag: RowsTag, rows: number): string {
  return tag === 'SHOW' || tag === 'EXPLAIN' ? tag : `${tag} ${rows}`
}

const smallBytes = 4096

export class RowCursor implements Rows {
  readonly tag: RowsTag
  readonly result: RowsResult
  /** Binary flags by column. */
  readonly binary: readonly boolean[]
  /** Null: the whole result was available at once and `#rest` is what is left of it. */
  readonly #blocks: AsyncIterator<Uint8Array> | null
  readonly #ready: readonly Buffer[]
  readonly #part: (() => () => void) | null
  #readyAt = 0
  /** Unsent rest of the last block. */
  #rest: Uint8Array | null = null
  #ended = false

  /**
   * `part` is called when rows are requested, and the function that it returns when they have been sent; `uncounted`:
   * the rows are not rows of tables.
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
    // A failure also surfaces through the blocks.
    result.summary.catch(() => {})
  }

  get columns(): readonly ResultColumn[] {
    return this.result.columns
  }

  /** `out` null: skips the rows. */
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

  /** Ends the query if it is still running. */
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

/** Returns DataRow messages in the client's encoding. */
export function rowsFor(
  { encoding }: RowTarget,
  block: Uint8Array,
  { columns, binary }: Pick<Rows, 'columns' | 'binary'>,
): Uint8Array {
  return encoding === null ? block : recodedRows(block, columns, binary, encoding)
}

/** Copies a small block into the output buffer, so that a small response is one write. */
async function sendBlock(out: RowTarget, block: Uint8Array): Promise<void> {
  if (block.length > smallBytes) await out.block(block)
  else out.put(block)
}

function rowsIn(block: Buffer): number {
  let rows = 0
  for (let at = 0; at < block.length; rows++) at += 1 + block.readInt32BE(at + 1)
  return rows
}

/** Measures the first `rowsMax` messages of a block. */
function cutRows(block: Uint8Array, rowsMax: number): { readonly bytes: number; readonly rows: number } {
  const view = new DataView(block.buffer, block.byteOffset, block.byteLength)
  let at = 0
  let rows = 0
  for (; rows < rowsMax && at < block.length; rows++) at += 1 + view.getInt32(at + 1)
  return { bytes: at, rows }
}
