// Decodes the blocks of a line-protocol request into staged batches, one per table: the template kernel as far as it
// gets, the general parser for the rest.
//
//   begin() block()* then result(), and release() when the rows are stored or given up
//   block() may pause: the rows are then to be stored and released before goOn() decodes the rest of the block
//
// Atomic requests stop at the first bad line, or go on to name all of them, and their caller gives everything up; partial
// ones leave the bad lines out, and the others are stored together. Requests that are not atomic
// keep the rows before it, and go on behind it when bad lines are to be skipped; they pause when wide rows with few values
// fill the budget.
//
// A symbol that a refused request brought stays in the dictionary (see dictionary.ts); nothing else does.

import { type ErrorRecord, errorRecord, ResourceError, RowError } from '../base/errors.js'
import { type IlpKernel, ilpCodes, ilpStateBytes, resetSuccessors, writeIlpState } from '../kernels/ilp.js'
import { type Allocator, budgets } from '../memory/budgets.js'
import type { SharedMemory } from '../memory/shared-memory.js'
import type { LineReject } from '../storage/jobs/messages.js'
import type { WriterCatalog } from '../storage/writer/writer-catalog.js'
import type { WriterTable } from '../storage/writer/writer-table.js'
import { type LinePlan, type LineSettings, type LineTimes, newLinePlan, planLine, storeRow } from './general.js'
import { newParsedLine } from './line.js'
import { parseLine } from './parse-line.js'
import { replaceNames } from './replace-names.js'
import { learnShape } from './shape.js'
import { LineTarget } from './target.js'
import { textOf } from './text.js'

/** Tables whose templates the kernel tries at once; lines of others take the general path and get a place. */
const activeTargetsMax = 64
const rejectsMax = 1000
/** Whoever wants to know all bad lines of an atomic request sends it again without them. */
const atomicRejectsMax = 65_536
/** Bytes of a bad line that its report shows. */
const shownLineBytesMax = 256
/**
 * Staged rows of a request that is not atomic are committed at these shares of the ingest budget and of the memtables'.
 * Blocks of a memtable double, so sparse rows may take twice as much there.
 */
const pauseShares = { ingest: 0.5, memtables: 0.2 } as const
/** A commit has at least so many rows, should others hold the budget. */
const pauseRowsMin = 64
const newline = 10

export interface LineRequestOptions extends LineTimes {
  readonly atomic: boolean
  readonly skipBadLines: boolean
  /** Of an atomic request that skips bad lines: store the others together, and show the bad ones. */
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

export class LineDecoder {
  private readonly options: LineDecoderOptions
  private readonly state: number
  private readonly list: number
  private readonly line = newParsedLine()
  private readonly plan: LinePlan = newLinePlan()
  /** Used bytes of the ingest budget at which rows are to be committed, and idle tables give their memory back. */
  private readonly pauseBytes: number
  private readonly targets = new Map<WriterTable, LineTarget>()
  /** Targets that the kernel writes to now; the state's list holds their templates. */
  private active: LineTarget[] = []
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
  /** Lines that gave no row. */
  private otherLines = 0
  /** Rows of earlier, committed blocks of the request. */
  private earlierRows = 0
  private stopped = false
  /** Where the block goes on when its rows are stored; undefined when it is decoded. */
  private rest: { readonly cursor: number; readonly end: number } | undefined
  rejects: LineReject[] = []
  /** With those that are one too many for the list. */
  rejected = 0
  error: ErrorRecord | null = null

  constructor(options: LineDecoderOptions) {
    this.options = options
    this.state = options.allocator.demand(ilpStateBytes + activeTargetsMax * 4, budgets.ingest)
    this.list = this.state + ilpStateBytes
    this.pauseBytes = pauseBytes(options.allocator)
  }

  begin(request: LineRequestOptions): void {
    this.request = request
    this.otherLines = 0
    this.earlierRows = 0
    this.stopped = false
    this.rest = undefined
    this.rejects = []
    this.rejected = 0
    this.error = null
    this.predictLast()
  }

  /** Decodes whole lines. The bytes must stay until the rows are stored, or until own() has copied what they hold. */
  block(address: number, bytes: number): void {
    this.decodeSome(address, address + bytes)
  }

  /** Whether the request is stored as a whole or not at all. */
  get atomic(): boolean {
    return this.request.atomic
  }

  get paused(): boolean {
    return this.rest !== undefined
  }

  /** Decodes what a pause has left. */
  goOn(): void {
    if (this.rest !== undefined) this.decodeSome(this.rest.cursor, this.rest.end)
  }

  private decodeSome(start: number, end: number): void {
    this.rest = undefined
    if (this.stopped) return
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

  /** Tables with rows, in the order in which the request named them. */
  result(): LineTarget[] {
    return [...this.used].filter((target) => target.rows > 0)
  }

  /** Rows since begin() that are not committed yet. */
  get rows(): number {
    let rows = 0
    for (const target of this.used) rows += target.rows
    return rows
  }

  /** Copies out of the ring what the staged rows point at. */
  own(): void {
    for (const target of this.used) target.own()
  }

  /** The staged rows are stored or given up. */
  release(): void {
    this.earlierRows += this.rows
    for (const target of this.used) target.reset()
    this.used = new Set()
    this.trim()
  }

  /** Forgets a table that is gone. */
  forget(table: WriterTable): void {
    const target = this.targets.get(table)
    if (target === undefined) return
    target.free()
    this.targets.delete(table)
    this.used.delete(target)
    if (this.last === target) this.last = undefined
  }

  /** The next request most likely begins with the shape with which the last one ended. */
  private predictLast(): void {
    if (this.last === undefined || this.last.table.dropped) return
    try {
      this.activate(this.last)
    } catch (thrown) {
      if (!(thrown instanceof ResourceError)) throw thrown
      this.last = undefined
    }
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
      if (cursor < kernelEnd && this.active.length > 0 && this.options.kernel !== undefined) {
        this.writeState(cursor, kernelEnd, current)
        const code = this.options.kernel.decode(this.state)
        cursor = u32[this.state >>> 2]!
        current = u32[(this.state + 16) >>> 2]!
        if (code === ilpCodes.done) continue
        if (code === ilpCodes.templateFull) {
          this.makeRoom(u32[(this.state + 24) >>> 2]!)
          current = 0
          continue
        }
      }
      cursor = this.generalLine(cursor, end)
      current = this.last?.template ?? 0
    }
  }

  /** Of the ingest budget, without what symbols have of it. */
  private get stagedBytes(): number {
    const { allocator, catalog } = this.options
    return allocator.used(budgets.ingest) - catalog.indexes.stagedBytes
  }

  private mustPause(): boolean {
    if (this.request.atomic || this.stagedBytes < this.pauseBytes) return false
    for (const target of this.used) target.sync()
    const { rows } = this
    for (const target of this.active) target.resume()
    return rows >= pauseRowsMin
  }

  private writeState(cursor: number, end: number, current: number): void {
    writeIlpState(this.options.memory, this.state, {
      cursor,
      end,
      templates: this.list,
      count: this.active.length,
      current,
      unitNanos: this.request.unitNanos,
      nowMicros: BigInt(this.request.nowMicros),
    })
  }

  /** Reads one line by the general parser; returns where the next one begins. */
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
    return line.next
  }

  /** Plans the parsed line; returns what is wrong with it, or nothing. */
  private lineError(): string {
    const { catalog, settings } = this.options
    const { line } = this
    if (line.outcome === 'error') return line.error
    const error = settings.nameReplacement === '' ? '' : replaceNames(line, settings.nameReplacement)
    return error === '' ? planLine(line, catalog, settings, this.request, this.plan) : error
  }

  /** A row that would pass a limit of tables or columns is a bad line like others. */
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
    target.activate(learnShape(memory.u8, lineStart, line, table))
    this.activate(target)
  }

  private targetOf(table: WriterTable): LineTarget {
    let target = this.targets.get(table)
    if (target === undefined) {
      target = new LineTarget(this.options.memory, this.options.allocator, table)
      this.targets.set(table, target)
    }
    this.used.add(target)
    return target
  }

  /** Gives the target's template a place in the kernel's list, and its rows to the template. */
  private activate(target: LineTarget): void {
    target.resume()
    this.last = target
    if (target.template === 0) return
    if (!this.active.includes(target)) {
      if (this.active.length === activeTargetsMax) this.deactivateAll()
      this.active.push(target)
    }
    this.used.add(target)
    this.writeList()
  }

  private writeList(): void {
    const { u32 } = this.options.memory
    const templates = this.active.map(({ template }) => template)
    templates.forEach((template, index) => {
      u32[(this.list >>> 2) + index] = template
    })
    resetSuccessors(this.options.memory, templates)
  }

  private deactivateAll(): void {
    for (const target of this.active) target.sync()
    this.active = []
  }

  /** The template's piece is full. */
  private makeRoom(template: number): void {
    const target = this.active.find((candidate) => candidate.template === template)
    if (target === undefined) return
    target.sync()
    this.activate(target)
  }

  private reject(message: string, lineStart: number): void {
    const line = this.lineNumber()
    this.otherLines++
    this.rejected++
    if (this.rejects.length < (this.request.atomic ? atomicRejectsMax : rejectsMax))
      this.rejects.push({ line, message, table: this.line.table, ...this.shownLine(lineStart) })
    if (this.request.atomic && !this.request.partial) this.error ??= errorRecord(new RowError(message, line))
    this.stopped = !this.request.skipBadLines
  }

  private shownLine(lineStart: number): Pick<LineReject, 'text'> {
    if (!this.request.partial) return {}
    const { u8 } = this.options.memory
    const end = Math.min(this.line.next, lineStart + shownLineBytesMax)
    return { text: textOf(u8, lineStart, end).replace(/\r?\n$/, '') }
  }

  private lineNumber(): number {
    for (const target of this.active) {
      target.sync()
      target.resume()
    }
    return this.earlierRows + this.rows + this.otherLines + 1
  }

  /** Staging memory is for requests under way: idle tables give theirs back when it gets short. */
  private trim(): void {
    if (this.stagedBytes < this.pauseBytes) return
    for (const target of this.targets.values()) target.free()
    this.targets.clear()
    this.last = undefined
  }
}

/** What is used when the decoder begins (the ring) stays used. */
function pauseBytes(allocator: Allocator): number {
  const used = allocator.used(budgets.ingest)
  const ingest = (allocator.limit(budgets.ingest) - used) * pauseShares.ingest
  return used + Math.min(ingest, allocator.limit(budgets.memtables) * pauseShares.memtables)
}
