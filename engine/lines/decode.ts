// Decodes the blocks of a line-protocol request into staged batches, the uncommitted rows of each table in columns. The
// template kernel (WebAssembly; kernels/ilp.ts) decodes lines whose columns were in earlier ones; a general parser
// decodes the rest. The writer calls, for each request, begin() once, block() for each block of lines, and result();
// then release(), when the rows are stored or discarded.
//
// Bad lines, by kind of request:
//
//   atomic       the caller stores nothing. Decoding stops at the first bad line, or, if the request asks for a list of
//                all bad lines, goes on only to find them
//   partial      (`accept_partial` over HTTP) bad lines are skipped, the others are stored together
//   not atomic   (line protocol over TCP) rows before a bad line are stored; decoding continues after it only if bad
//                lines are to be skipped. block() of such a request pauses when its rows fill their memory budget: the
//                caller stores and releases them, and calls goOn(), which decodes the rest of the block
//
// A rejected request leaves its new symbols in the dictionary (storage/memtable/dictionary.ts) and nothing else.

import { assert } from '../base/assert.js'
import { type ErrorRecord, errorRecord, ResourceError, RowError } from '../base/errors.js'
import { type IlpKernel, ilpStateBytes, writeIlpState } from '../kernels/ilp.js'
import * as layout from '../kernels/ilp-layout.js'
import { type Allocator, budgets } from '../memory/budgets.js'
import type { SharedMemory } from '../memory/shared-memory.js'
import type { LineReject } from '../storage/jobs/messages.js'
import type { RefusedRow, RowDecoder } from '../storage/writer/row-decoder.js'
import type { WriterCatalog } from '../storage/writer/writer-catalog.js'
import type { WriterTable } from '../storage/writer/writer-table.js'
import {
  type LinePlan,
  type LineSettings,
  type LineTimes,
  newLinePlan,
  planLine,
  refuseTable,
  storeRow,
} from './general.js'
import { newParsedLine, replaceNames } from './line.js'
import { parseLine } from './parse-line.js'
import { type DecodedLines, refusedLines } from './refused-rows.js'
import { learnShape } from './shape.js'
import { LineTarget } from './target.js'
import { TemplateIndex } from './template-index.js'
import { textOf } from './text.js'

const rejectsMax = 1000
/** Limit of reported bad lines of an atomic request. */
const atomicRejectsMax = 65_536
/** Bytes of a bad line that its report shows. */
const shownLineBytesMax = 256
/**
 * Staged rows of a request that is not atomic are committed at these fractions of the ingest budget and of the
 * memtables' budget. Memtable blocks double in size, so sparse rows may take twice as much there.
 */
const pauseShares = { ingest: 0.5, memtables: 0.2 } as const
/** A commit has at least this many rows, even if others occupy the budget. */
const pauseRowsMin = 64
const newline = 10

export interface LineRequestOptions extends LineTimes {
  readonly atomic: boolean
  readonly skipBadLines: boolean
  /** For an atomic request that skips bad lines: store the others together and report the bad ones. */
  readonly partial: boolean
}

export interface LineDecoderOptions {
  readonly memory: SharedMemory
  readonly allocator: Allocator
  /** Undefined: every line takes the general path. */
  readonly kernel: IlpKernel | undefined
  readonly catalog: WriterCatalog
  readonly settings: LineSettings
}

export class LineDecoder implements RowDecoder {
  readonly namesTables = false
  private readonly options: LineDecoderOptions
  private readonly state: number
  private readonly line = newParsedLine()
  private readonly plan: LinePlan = newLinePlan()
  /** Use of the ingest budget at which rows must be committed and idle tables release their memory. */
  private readonly pauseBytes: number
  private readonly targets = new Map<WriterTable, LineTarget>()
  /** Undefined without a kernel. */
  private readonly templates: TemplateIndex<LineTarget> | undefined
  /** Targets that the kernel is writing to. */
  private readonly active = new Set<LineTarget>()
  private used = new Set<LineTarget>()
  private last: LineTarget | undefined
  private request: LineRequestOptions = {
    atomic: true,
    skipBadLines: false,
    partial: false,
    unitNanos: 1n,
    allNanos: false,
    nowMicros: 0,
  }
  /** Lines that produced no row. */
  private otherLines = 0
  /** Rows of earlier, committed blocks of the request. */
  private earlierRows = 0
  private stopped = false
  /** Where to continue in a paused block; undefined when the block is decoded. */
  private rest: { readonly cursor: number; readonly end: number } | undefined
  /** The lines of all staged rows; undefined if some are of an earlier block. */
  private lines: (DecodedLines & { readonly bad: Set<number> }) | undefined
  rejects: LineReject[] = []
  /** Includes bad lines beyond the limit of the list. */
  rejected = 0
  error: ErrorRecord | null = null

  constructor(options: LineDecoderOptions) {
    this.options = options
    const { memory, allocator, kernel } = options
    this.state = allocator.allocateOrThrow(ilpStateBytes, budgets.ingest)
    this.templates = kernel === undefined ? undefined : new TemplateIndex(memory, allocator, kernel)
    this.pauseBytes = pauseBytes(allocator)
  }

  begin(request: LineRequestOptions): void {
    assert(this.rows === 0, 'R4: rows of a request are stored or given up before the next one')
    this.request = request
    this.otherLines = 0
    this.earlierRows = 0
    this.stopped = false
    this.rest = undefined
    this.rejects = []
    this.rejected = 0
    this.error = null
  }

  /**
   * Decodes whole lines. The bytes must stay until the rows are stored, or until own() has copied what they refer
   * to.
   */
  block(address: number, bytes: number): void {
    assert(!this.paused, 'P1: a block waits until the one before is decoded')
    this.decodeSome(address, address + bytes)
  }

  skip(): void {
    assert(this.rows === 0, 'R4: nothing is staged of a request that was rejected')
  }

  /** Whether the request is stored as a whole or not at all. */
  get atomic(): boolean {
    return this.request.atomic
  }

  get paused(): boolean {
    return this.rest !== undefined
  }

  /** Decodes the rest of a paused block. */
  goOn(): void {
    if (this.rest !== undefined) this.decodeSome(this.rest.cursor, this.rest.end)
  }

  private decodeSome(start: number, end: number): void {
    this.rest = undefined
    if (this.stopped) return
    const firstLine = this.earlierRows + this.otherLines + 1
    const lines = { bytes: this.options.memory.u8, start, end, firstLine, bad: new Set<number>() }
    this.lines = this.rows === 0 ? lines : undefined
    try {
      this.decodeBlock(start, end)
    } catch (thrown) {
      if (!(thrown instanceof ResourceError)) throw thrown
      this.error = errorRecord(thrown)
      this.stopped = true
    }
    for (const target of this.used) target.sync()
    this.deactivateAll()
  }

  /** Tables with rows, in the order in which the request names them. */
  result(): LineTarget[] {
    return [...this.used].filter((target) => target.rows > 0)
  }

  /** Rows since begin() that are not committed yet. */
  get rows(): number {
    let rows = 0
    for (const target of this.used) rows += target.rows
    return rows
  }

  /** Copies data that the staged rows refer to out of the ring. */
  own(): void {
    for (const target of this.used) target.own()
  }

  /** Call when the staged rows are stored or discarded. */
  release(): void {
    this.earlierRows += this.rows
    for (const target of this.used) target.reset()
    this.used = new Set()
    this.trim()
  }

  /** Drops the state of a dropped table. */
  forget(table: WriterTable): void {
    const target = this.targets.get(table)
    if (target === undefined) return
    target.free()
    this.targets.delete(table)
    this.used.delete(target)
    if (this.last === target) this.last = undefined
  }

  private decodeBlock(start: number, end: number): void {
    const { u8, u32 } = this.options.memory
    let kernelEnd = end
    while (kernelEnd > start && u8[kernelEnd - 1] !== newline) kernelEnd--
    let current = 0
    for (let cursor = start; cursor < end && !this.stopped; ) {
      if (this.mustPause()) {
        this.rest = { cursor, end }
        return
      }
      if (cursor < kernelEnd && this.templates !== undefined && this.templates.count > 0) {
        const code = this.decodeLines(this.templates, cursor, kernelEnd, current)
        assert(code !== layout.badBlock, 'K2: the line kernel is given whole lines')
        assert(u32[(this.state + layout.stateCursor) >>> 2]! >= cursor, 'P1: decoding never goes back')
        cursor = u32[(this.state + layout.stateCursor) >>> 2]!
        assert(cursor <= kernelEnd, 'P1: decoding ends within its block')
        current = u32[(this.state + layout.stateCurrent) >>> 2]!
        if (code === layout.done) continue
        if (this.mayGoOn(this.templates, code)) {
          // The template may be another one.
          current = 0
          continue
        }
      }
      cursor = this.generalLine(cursor, end)
      current = this.last?.template ?? 0
    }
  }

  /** Decodes lines with the kernel; returns the reason why it stopped. */
  private decodeLines(templates: TemplateIndex<LineTarget>, cursor: number, end: number, current: number): number {
    writeIlpState(this.options.memory, this.state, {
      cursor,
      end,
      templates: templates.address,
      mask: templates.mask,
      current,
      unitNanos: this.request.unitNanos,
      nowMicros: BigInt(this.request.nowMicros),
    })
    return this.options.kernel?.decode(this.state) ?? layout.otherLine
  }

  /** Makes the room that the kernel lacked; false if the line needs the general parser. */
  private mayGoOn(templates: TemplateIndex<LineTarget>, code: number): boolean {
    const { u32 } = this.options.memory
    const target = templates.owner(u32[(this.state + layout.stateStoppedTemplate) >>> 2]!)
    if (target === undefined) return false
    if (code === layout.dictionaryFull) {
      const bytes = u32[(this.state + layout.stateStoppedBytes) >>> 2]!
      target.growDictionary(u32[(this.state + layout.stateStoppedColumn) >>> 2]!, bytes)
      return true
    }
    if (code !== layout.templateFull || !this.takesLines(target)) return false
    target.sync()
    this.activate(target)
    return target.template !== 0
  }

  /** Whether lines with the name in the target's template still are rows of its table. */
  private takesLines({ name, table }: LineTarget): boolean {
    return this.options.catalog.find(name) === table && refuseTable(table) === ''
  }

  /** Bytes of the ingest budget in use, without those of symbols. */
  private get stagedBytes(): number {
    const { allocator, catalog } = this.options
    return allocator.used(budgets.ingest) - catalog.indexes.stagedBytes
  }

  private mustPause(): boolean {
    return !this.request.atomic && this.stagedBytes >= this.pauseBytes && this.rows >= pauseRowsMin
  }

  /** Decodes one line with the general parser; returns where the next one starts. */
  private generalLine(cursor: number, end: number): number {
    const { memory } = this.options
    const { line } = this
    parseLine(memory.u8, cursor, end, line)
    if (line.outcome === 'blank') this.otherLines++
    else {
      const error = this.lineError()
      if (error !== '') this.reject(error, cursor)
      else this.tryRow(cursor)
    }
    assert(line.next > cursor, 'P1: every line moves the decoder forward')
    return line.next
  }

  /** Plans the parsed line; returns an error message, or an empty string. */
  private lineError(): string {
    const { catalog, settings } = this.options
    const { line } = this
    if (line.outcome === 'error') return line.error
    const error = settings.nameReplacement === '' ? '' : replaceNames(line, settings.nameReplacement)
    return error === '' ? planLine(line, catalog, settings, this.request, this.plan) : error
  }

  /** Stores the row; exceeding a limit of tables or columns makes the line a bad one. */
  private tryRow(lineStart: number): void {
    try {
      this.addRow(lineStart)
    } catch (thrown) {
      if (!(thrown instanceof RowError)) throw thrown
      this.reject(thrown.message, lineStart)
    }
  }

  private addRow(lineStart: number): void {
    const { memory, catalog, settings } = this.options
    const { line, plan, request } = this
    let { table } = plan
    if (table === undefined) {
      const { newColumns, timestampType } = plan
      table = catalog.createProvisional(line.table, newColumns, settings.defaults, request.nowMicros, timestampType)
    } else if (plan.newColumns.length > 0) catalog.addProvisional(table, plan.newColumns)
    const target = this.targetOf(table)
    target.sync()
    storeRow(memory, plan, target)
    if (this.options.kernel === undefined) return
    const shape = learnShape(memory.u8, lineStart, line, table)
    if (shape !== undefined) target.learn(shape, line.table)
    this.activate(target)
  }

  private targetOf(table: WriterTable): LineTarget {
    let target = this.targets.get(table)
    if (target === undefined) {
      target = new LineTarget(this.options.memory, this.options.allocator, table, this.templates)
      this.targets.set(table, target)
    }
    this.used.add(target)
    return target
  }

  /** Lets the kernel add rows to the target. */
  private activate(target: LineTarget): void {
    target.resume()
    this.last = target
    if (target.template === 0) return
    this.active.add(target)
    this.used.add(target)
  }

  private deactivateAll(): void {
    for (const target of this.active) target.sync()
    this.active.clear()
  }

  private reject(message: string, lineStart: number): void {
    const line = this.lineNumber()
    this.lines?.bad.add(line)
    this.otherLines++
    this.rejected++
    if (this.rejects.length < (this.request.atomic ? atomicRejectsMax : rejectsMax))
      this.rejects.push({ line, message, table: this.line.table, ...this.shownLine(lineStart, this.line.next) })
    if (this.request.atomic && !this.request.partial) this.error ??= errorRecord(new RowError(message, line))
    this.stopped = !this.request.skipBadLines
  }

  refuse(refused: readonly RefusedRow[]): boolean {
    const { lines, request } = this
    if (lines === undefined) return false
    const { catalog, memory, settings } = this.options
    const found = refusedLines(lines, refused, this.line, (line) => {
      if (settings.nameReplacement !== '') replaceNames(line, settings.nameReplacement)
      return catalog.find(line.table)
    })
    assert(found.length === refused.length, 'R4: a staged row comes from a line of its request')
    for (const { line, start, end, refused: row } of found) {
      this.rejected++
      if (this.rejects.length >= (request.atomic ? atomicRejectsMax : rejectsMax)) continue
      this.rejects.push({ line, message: row.message, table: row.table.schema.name, ...this.shownLine(start, end) })
    }
    const [first] = found
    if (request.atomic && !request.partial) {
      this.error ??= errorRecord(new RowError(first?.refused.message ?? '', first?.line ?? 0))
      return true
    }
    for (const target of this.used)
      target.drop(memory, new Set(refused.flatMap(({ table, row }) => (table === target.table ? [row] : []))))
    this.otherLines += found.length
    this.stopped = !request.skipBadLines
    return true
  }

  private shownLine(lineStart: number, lineEnd: number): Pick<LineReject, 'text'> {
    if (!this.request.partial) return {}
    const { u8 } = this.options.memory
    const end = Math.min(lineEnd, lineStart + shownLineBytesMax)
    return { text: textOf(u8, lineStart, end).replace(/\r?\n$/, '') }
  }

  private lineNumber(): number {
    return this.earlierRows + this.rows + this.otherLines + 1
  }

  /** Releases staging memory of idle tables when memory gets short. */
  private trim(): void {
    if (this.stagedBytes < this.pauseBytes) return
    this.templates?.clear()
    for (const target of this.targets.values()) target.free()
    this.targets.clear()
    this.last = undefined
  }
}

/** Memory in use when the decoder is created (the ring) stays in use. */
function pauseBytes(allocator: Allocator): number {
  const used = allocator.used(budgets.ingest)
  const ingest = (allocator.limit(budgets.ingest) - used) * pauseShares.ingest
  return used + Math.min(ingest, allocator.limit(budgets.memtables) * pauseShares.memtables)
}
