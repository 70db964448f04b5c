// Decodes messages of QWP (columnar protocol over WebSocket) into staged batches, the uncommitted rows of each table in
// columns. A request is one message, or several that are committed together. It is normally stored as a whole or not at
// all; a request may ask that rows with bad values are skipped and the others stored.
//
// A rejected request stores nothing except the strings of its symbols, which remain in the dictionaries of the
// connection and of the columns.

import { assert } from '../base/assert.js'
import { type ErrorRecord, errorRecord, GapError, NetworkError, ResourceError, RowError } from '../base/errors.js'
import { type Allocator, budgets } from '../memory/budgets.js'
import type { SharedMemory } from '../memory/shared-memory.js'
import type { LineReject } from '../storage/jobs/messages.js'
import type { RowDecoder, RowRequest } from '../storage/writer/row-decoder.js'
import { dropRows, type RowChunk, resetChunk } from '../storage/writer/writer-batch.js'
import type { WriterCatalog } from '../storage/writer/writer-catalog.js'
import type { WriterTable } from '../storage/writer/writer-table.js'
import { type ColumnDecoding, ColumnScratch, decodeColumn } from './columns.js'
import { ConnectionSymbols, SymbolBudget } from './dictionary.js'
import { messageFlags, readHeader, readTable, type TableBlock, WireReader } from './message.js'
import { planTable, type TablePlan, type TableSettings } from './plan.js'
import { QwpTarget } from './target.js'
import { fillTimes, noteTimes } from './times.js'

const rejectsMax = 1000
/** Bytes behind a message that loops may read, and ignore. */
const readAhead = 4
/** Of the ingest budget: idle tables release their memory when more is in use. */
const trimShare = 0.5

interface QwpLimits {
  readonly rowsPerTableMax: number
  readonly tablesPerConnectionMax: number
  readonly uncommittedRowsMax: number
  readonly symbolBytesMax: number
}

export interface QwpDecoderOptions {
  readonly memory: SharedMemory
  readonly allocator: Allocator
  readonly catalog: WriterCatalog
  readonly settings: TableSettings & QwpLimits
}

/** What the server remembers of a connection. */
interface WireConnection {
  readonly symbols: ConnectionSymbols
  /** Names of the tables that it has written to, in lower case. */
  readonly tables: Set<string>
}

export class QwpDecoder implements RowDecoder {
  readonly atomic = true
  readonly paused = false
  readonly namesTables = true
  rejects: LineReject[] = []
  rejected = 0
  error: ErrorRecord | null = null
  private readonly options: QwpDecoderOptions
  private readonly budget: SymbolBudget
  private readonly connections = new Map<number, WireConnection>()
  private readonly targets = new Map<WriterTable, QwpTarget>()
  private used = new Set<QwpTarget>()
  /** Those that the last message has rows for. */
  private readonly fresh = new Set<QwpTarget>()
  private request: RowRequest | undefined
  private connection: WireConnection
  private messages = 0
  /** Rows of the request's blocks so far, dropped ones included. */
  private rowsSeen = 0
  private readonly trimBytes: number
  private readonly scratch = new ColumnScratch()

  constructor(options: QwpDecoderOptions) {
    const { allocator, settings } = options
    this.options = options
    this.budget = new SymbolBudget(settings.symbolBytesMax)
    this.connection = { symbols: new ConnectionSymbols(this.budget), tables: new Set() }
    const used = allocator.used(budgets.ingest)
    this.trimBytes = used + (allocator.limit(budgets.ingest) - used) * trimShare
  }

  begin(request: RowRequest): void {
    assert(this.rows === 0, 'R4: rows of a request are stored or given up before the next one')
    this.request = request
    this.rejects = []
    this.rejected = 0
    this.error = null
    this.messages = 0
    this.rowsSeen = 0
    const known = this.connections.get(request.connectionId)
    this.connection = known ?? { symbols: new ConnectionSymbols(this.budget), tables: new Set() }
    if (known === undefined) this.connections.set(request.connectionId, this.connection)
  }

  block(address: number, bytes: number): void {
    if (this.error !== null) {
      this.skip(address, bytes)
      return
    }
    try {
      this.decodeMessage(this.reader(address, bytes))
    } catch (thrown) {
      if (!isRefusal(thrown)) throw thrown
      this.error = errorRecord(thrown)
      // Codes may be those of columns that are not created now.
      this.connection.symbols.forgetCodes()
    }
  }

  /** Later messages refer to the symbols of a rejected one. */
  skip(address: number, bytes: number): void {
    try {
      const reader = this.reader(address, bytes)
      this.readSymbols(reader, readHeader(reader).flags)
    } catch (thrown) {
      if (!isRefusal(thrown)) throw thrown
    }
  }

  goOn(): void {
    assert(!this.paused, 'P1: a message is decoded at once')
  }

  result(): QwpTarget[] {
    return [...this.used].filter((target) => target.rows > 0)
  }

  get rows(): number {
    let rows = 0
    for (const target of this.used) rows += target.rows
    return rows
  }

  /** Rows of a message are stored together. */
  refuse(): boolean {
    return false
  }

  own(): void {
    for (const target of this.fresh) target.own()
    this.fresh.clear()
  }

  release(): void {
    for (const target of this.used) {
      if (target.table.dropped) this.drop(target)
      else target.reset()
    }
    this.used = new Set()
    this.fresh.clear()
    if (this.options.allocator.used(budgets.ingest) < this.trimBytes) return
    for (const target of this.targets.values()) target.free()
    this.targets.clear()
  }

  forget(table: WriterTable): void {
    for (const { symbols } of this.connections.values()) {
      for (const dictionary of table.dictionaries.values()) symbols.forget(dictionary)
    }
    const target = this.targets.get(table)
    if (target !== undefined) this.drop(target)
  }

  /** The connection is closed: nothing of it comes any more. */
  forgetConnection(connectionId: number): void {
    this.connections.get(connectionId)?.symbols.free()
    this.connections.delete(connectionId)
  }

  private drop(target: QwpTarget): void {
    target.free()
    this.targets.delete(target.table)
    this.used.delete(target)
    this.fresh.delete(target)
  }

  private reader(address: number, bytes: number): WireReader {
    const { u8 } = this.options.memory
    return new WireReader(
      u8.subarray(address, address + bytes + readAhead),
      new DataView(u8.buffer, address, bytes),
      0,
      bytes,
    )
  }

  private decodeMessage(reader: WireReader): void {
    const { settings } = this.options
    const { flags, tables } = readHeader(reader)
    this.readSymbols(reader, flags)
    this.messages++
    for (let index = 0; index < tables; index++) {
      const block = readTable(reader, flags, { rowsMax: settings.rowsPerTableMax })
      if (block.rows > 0) this.decodeTable(block, reader)
      this.rowsSeen += block.rows
    }
    if (reader.at !== reader.end) throw reader.error('bytes follow the last table')
    const { uncommittedRowsMax } = settings
    if (this.messages > 1 && this.rowsSeen > uncommittedRowsMax) {
      throw new NetworkError(
        `too many rows wait for their commit [rows=${this.rowsSeen}, limit=${uncommittedRowsMax}, setting=qwp.max.uncommitted.rows]`,
      )
    }
  }

  private readSymbols(reader: WireReader, flags: number): void {
    if ((flags & messageFlags.deltaSymbols) !== 0) this.connection.symbols.readDelta(reader)
  }

  private decodeTable(block: TableBlock, reader: WireReader): void {
    this.countTable(block.name)
    const { catalog, settings } = this.options
    const nowMicros = this.request?.nowMicros ?? 0
    try {
      const plan = planTable(block, catalog, settings, nowMicros)
      this.storeBlock(block, reader, plan, nowMicros)
    } catch (thrown) {
      if (!(thrown instanceof RowError)) throw thrown
      throw new RowError(`table: ${block.name}; ${thrown.message}`, thrown.line)
    }
  }

  private countTable(name: string): void {
    const { tables } = this.connection
    const { tablesPerConnectionMax } = this.options.settings
    tables.add(name.toLowerCase())
    if (tables.size <= tablesPerConnectionMax) return
    tables.delete(name.toLowerCase())
    throw new NetworkError(
      `too many tables of one connection [limit=${tablesPerConnectionMax}, setting=qwp.max.tables.per.connection]`,
    )
  }

  private storeBlock(block: TableBlock, { u8, view }: WireReader, plan: TablePlan, nowMicros: number): void {
    const { memory } = this.options
    const { rows } = block
    const target = this.targetOf(plan.table)
    const chunk = target.addChunk(rows)
    const bad = new Map<number, string>()
    const decoding: ColumnDecoding = {
      ...{ memory, u8, view, target, chunk, rows, symbols: this.connection.symbols, scratch: this.scratch },
      misfit: (row, { wire }, why) => this.misfit(bad, row, `column: ${wire.name}; ${why}`),
    }
    for (const column of plan.columns) decodeColumn(decoding, column)
    chunk.rows = rows
    this.storeTimes(decoding, plan, nowMicros, bad)
    if (bad.size > 0) this.dropBad(block, plan.table, chunk, bad)
    target.join()
  }

  private storeTimes(
    decoding: ColumnDecoding,
    { table, timestamp }: TablePlan,
    nowMicros: number,
    bad: Map<number, string>,
  ): void {
    const { timestampId } = table.schema
    if (timestampId < 0) return
    const { memory } = this.options
    const { target, chunk } = decoding
    const schema = table.columnById(timestampId)
    if (timestamp !== undefined) decodeColumn(decoding, { wire: timestamp, schema })
    const column = target.column(chunk, timestampId)
    fillTimes(decoding, column, schema, timestamp, nowMicros)
    noteTimes(memory, column, chunk, (row, why) => this.misfit(bad, row, why))
  }

  /** A value does not fit: its row is dropped, or the request rejected. */
  private misfit(bad: Map<number, string>, row: number, why: string): void {
    if (this.request?.partial !== true) throw new RowError(`${why} [row=${row + 1}]`, this.rowsSeen + row + 1)
    if (!bad.has(row)) bad.set(row, why)
  }

  private dropBad(block: TableBlock, table: WriterTable, chunk: RowChunk, bad: ReadonlyMap<number, string>): void {
    const { memory } = this.options
    for (const [row, why] of bad) {
      this.rejected++
      if (this.rejects.length >= rejectsMax) continue
      this.rejects.push({ line: this.rowsSeen + row + 1, message: `table: ${block.name}, ${why}`, table: block.name })
    }
    dropRows(memory, chunk, new Set(bad.keys()))
    if (chunk.rows === 0) resetChunk(chunk)
    const column = chunk.columns.get(table.schema.timestampId)
    if (column !== undefined && chunk.rows > 0) noteTimes(memory, column, chunk, () => {})
  }

  private targetOf(table: WriterTable): QwpTarget {
    let target = this.targets.get(table)
    if (target === undefined) {
      target = new QwpTarget(this.options.memory, this.options.allocator, table)
      this.targets.set(table, target)
    }
    this.used.add(target)
    this.fresh.add(target)
    return target
  }
}

function isRefusal(thrown: unknown): boolean {
  const refusals = [RowError, NetworkError, GapError, ResourceError]
  return refusals.some((kind) => thrown instanceof kind)
}
