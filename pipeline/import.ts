// Imports one CSV file into a table with bounded memory.
//
//   bytes ──> sample: delimiter, header, types ──> blocks ──> decoder (a query thread) ──> batches ──> transactions
//
// The first `retainedBytesMax` bytes and the batches decoded from them stay in memory, and nothing is stored before
// that size is exceeded or the file ends. Until then, a detected type that proves too narrow is widened and everything
// is decoded again; a file that fits is one transaction. The rows of a larger file are written to Parquet files (parts)
// while they arrive, and one record in the manifest, the list of all parts, adds them at the end. A new table is built
// under a temporary (staging) name and renamed then. A table with DEDUP or arrays takes no parts: its rows go to a
// staging table that is copied at the end or, when bad rows are skipped, directly to the table in bounded transactions.
//
// A large file for a new table is also copied to a temporary file. The whole file is decoded again from the copy if
// a type proves too narrow late, or if the multipart request brings its `schema` part (names and types of columns) only
// after the part with the rows. If the disk is too full for the copy, the import continues without it.

import { nonNull } from '../engine/base/assert.js'
import { ResourceError } from '../engine/base/errors.js'
import type {
  CsvBatch,
  CsvDecoding,
  CsvLoad,
  CsvReject,
  CsvShape,
  LineReject,
  PackedRows,
  TableShape,
} from '../engine/engine.js'
import { type DataType, dataType, isVariable, storedKind, typeText, widthOf } from '../engine/types/column-types.js'
import { detectColumns, widerType } from './csv-detect.js'
import { delimiterLine, longSampleBytesMax, type Sample, sampleOf } from './csv-sample.js'
import type { ImportOptions, ImportResult } from './import-options.js'
import { createStatement, type ImportPlan, isKnownHeader, planImport, shapeOfPlan } from './import-plan.js'
import { ImportError, type SchemaColumn } from './import-schema.js'
import { dropTable, finishStaging, run, stagingName } from './import-staging.js'
import { isTimestamp, requestWords, timeFormatHint } from './import-times.js'
import { ReplayFile } from './replay-file.js'

const retainedBytesMax = 24 * 1024 * 1024
const transactionBytes = 8 * 1024 * 1024
const rejectsShown = 100
/** Rejected lines not yet reported: when a file is decoded again they must not be reported twice. */
const notesMax = 10_000

export class ImportSession {
  readonly #options: ImportOptions
  #schema: readonly SchemaColumn[] = []
  #widened = new Map<number, DataType>()
  /** Bytes that do not fill a block yet. */
  #chunks: Buffer[] = []
  #chunkBytes = 0
  /** Blocks that may be decoded again; null once rows are being stored. */
  #retained: Buffer[] | null = []
  #retainedBytes = 0
  #sample: Sample | null = null
  #sampleBytesMin = 0
  /** Named by the request, or by a first line `sep=;`, which is not a row. */
  #delimiter: string | null
  #firstLine: number
  #plan: ImportPlan | null = null
  #decoding: CsvDecoding | null = null
  #held: PackedRows[] = []
  #heldBytes = 0
  #sending: Promise<unknown> = Promise.resolve()
  /** The target table, once rows are being stored. */
  #target: TableShape | null = null
  #staging: string | null = null
  /** Receives the rows of a large file. */
  #load: CsvLoad | null = null
  /** Copy of a large file, while it may have to be decoded again. */
  #spool: ReplayFile | null = null
  /** A type of the current load turned out too narrow. */
  #outgrown = false
  /** Rejected lines up to this one have been reported. */
  #notedLine = 0
  #notes: LineReject[] = []
  #imported = 0
  #rejected = 0
  #rejects: { readonly line: number; readonly column: string; readonly reason: string }[] = []
  #errors = new Map<number, number>()
  /** The table is created by this import. */
  #isNew = false

  constructor(options: ImportOptions) {
    this.#options = options
    this.#delimiter = options.delimiter
    this.#firstLine = options.firstLine ?? 1
  }

  /** Sets the schema; may follow the bytes, as long as no rows have been stored. */
  async schema(schema: readonly SchemaColumn[]): Promise<void> {
    this.#schema = schema
    if (this.#plan === null || schema.length === 0) return
    if (this.#retained !== null) return this.#again(false)
    if (this.#spool === null) throw new ImportError('the schema must come before a file of this size')
    await this.#reload(this.#spool)
  }

  async write(chunk: Buffer): Promise<void> {
    if (this.#load !== null) return this.#writeLarge(this.#load, chunk)
    this.#chunks.push(chunk)
    this.#chunkBytes += chunk.length
    if (this.#chunkBytes >= this.#options.blockBytes) await this.#take(this.#nextBlock(), false)
  }

  /**
   * Rejects with ImportError, RowError or an error of the engine; nothing is stored then unless bad rows are
   * skipped.
   */
  async end(): Promise<ImportResult> {
    await this.prepare()
    return this.commit()
  }

  /** The header of the file, decided by the bytes so far; null when the file starts with a row. */
  async header(): Promise<{ readonly names: readonly string[]; readonly delimiter: string } | null> {
    if (this.#plan === null) await this.#take(this.#nextBlock(), false, true)
    const names = this.#sample?.records[0]
    if (this.#plan?.header !== true || this.#sample === null || names === undefined) return null
    return { names: names.map((name) => name.replace(/^\ufeff/, '')), delimiter: this.#sample.delimiter }
  }

  /** Decodes the rest after the last byte has arrived, so that all errors are found. */
  async prepare(): Promise<void> {
    if (this.#load === null) await this.#take(this.#nextBlock(), true)
    if (this.#plan === null) throw new ImportError('the file has no lines')
    if (this.#load !== null) await this.#endLoad()
  }

  /** Stores what was prepared. */
  async commit(): Promise<ImportResult> {
    const plan = nonNull(this.#plan)
    if (this.#load !== null) {
      if (this.#imported > 0) await this.#load.commit()
    } else if (this.#target === null) await this.#openTarget(plan, this.existing === undefined)
    await this.#flush()
    await this.#sending
    if (this.#staging !== null) await finishStaging(this.#options, this.#staging, plan.columns)
    this.#staging = null
    this.#note(true)
    // The last lines may have widened types.
    return this.#result(this.#plan ?? plan)
  }

  /** Releases all resources; call once at the end, after success or failure. */
  async close(): Promise<void> {
    this.#decoding?.close()
    this.#decoding = null
    await this.#load?.close()
    await this.#spool?.close()
    await this.#sending.catch(() => {})
    if (this.#staging !== null) await dropTable(this.#options, this.#staging)
  }

  /** The table that gets the rows; undefined: a new one is made. */
  get existing(): TableShape | undefined {
    const { engine, name, overwrite } = this.#options
    return overwrite ? undefined : engine.table(name)
  }

  #nextBlock(): Buffer {
    const block = Buffer.concat(this.#chunks)
    this.#chunks = []
    this.#chunkBytes = 0
    return block
  }

  /** `whole`: do not wait for a larger sample. */
  async #take(block: Buffer, last: boolean, whole = last): Promise<void> {
    this.#retained?.push(block)
    this.#retainedBytes += block.length
    if (this.#plan !== null) await this.#decode(block, last)
    else {
      this.#sample = this.#takeSample(whole)
      if (this.#sample === null) return
      await this.#again(last)
    }
    if (this.#retained !== null && this.#retainedBytes > retainedBytesMax && !last) {
      await this.#beginLarge(nonNull(this.#plan), this.#retained)
    }
  }

  /** The file is large: starts to store its rows. */
  async #beginLarge(plan: ImportPlan, retained: readonly Buffer[]): Promise<void> {
    const { existing } = this
    this.#retained = null
    if (existing?.comparesRows === true || plan.columns.some(({ type }) => type.name === 'ARRAY')) {
      await this.#openTarget(plan, !this.#options.skipRows)
      return
    }
    if (existing === undefined && plan.columns.some(({ guessed }) => guessed)) await this.#openSpool()
    await this.#openLoad(plan, existing === undefined)
    for (const block of retained) await this.#writeLarge(nonNull(this.#load), block)
  }

  async #openSpool(): Promise<void> {
    const { spoolDirectory } = this.#options
    if (spoolDirectory === undefined) return
    this.#spool = await ReplayFile.open(spoolDirectory).catch(() => null)
  }

  async #openLoad(plan: ImportPlan, staged: boolean): Promise<void> {
    const { engine, blockBytes } = this.#options
    this.#held = []
    this.#forgetRows()
    this.#decoding?.close()
    this.#decoding = null
    await this.#openTarget(plan, staged)
    const { columns } = nonNull(this.#plan)
    const columnIds = columns.map(({ columnId }) => columnId)
    const { id: tableId } = nonNull(this.#target)
    this.#outgrown = false
    this.#load = engine.load({
      ...{ tableId, shape: this.#shape(plan), columnIds, blockBytes },
      onDecoded: (rows, rejects) => {
        this.#imported += rows
        for (const reject of rejects) {
          if (this.#widen(reject)) this.#outgrown = true
          else if (!this.#outgrown) this.#refuse(reject)
        }
      },
    })
  }

  async #writeLarge(load: CsvLoad, chunk: Buffer): Promise<void> {
    await this.#spool?.append(chunk).catch(() => this.#closeSpool())
    await load.write(chunk)
    if (this.#outgrown) await this.#reload(this.#spool)
  }

  async #closeSpool(): Promise<void> {
    const spool = this.#spool
    this.#spool = null
    await spool?.close()
  }

  /** Loads the whole file again with the types known now. */
  async #reload(spool: ReplayFile | null): Promise<void> {
    if (spool === null) throw new ResourceError('the disk has no space for a file that must be read twice')
    await spool.flush()
    do {
      await this.#load?.close()
      this.#load = null
      if (this.#staging !== null) await dropTable(this.#options, this.#staging)
      this.#staging = null
      this.#begin(nonNull(this.#sample))
      await this.#openLoad(nonNull(this.#plan), true)
      for await (const chunk of spool.read()) {
        if (this.#outgrown) break
        await nonNull<CsvLoad>(this.#load).write(chunk)
      }
    } while (this.#outgrown)
  }

  async #endLoad(): Promise<void> {
    await this.#load?.end()
    while (this.#outgrown) {
      await this.#reload(this.#spool)
      await this.#load?.end()
    }
  }

  /** Null: more bytes are needed, or there are no lines. */
  #takeSample(last: boolean): Sample | null {
    if (!last && this.#retainedBytes < this.#sampleBytesMin) return null
    if (this.#retainedBytes > retainedBytesMax) throw new ImportError('the file starts with too many blank lines')
    // If the sample is too short, it is parsed again at twice the size.
    this.#sampleBytesMin = Math.min(this.#retainedBytes * 2, longSampleBytesMax)
    const bytes = this.#withoutDelimiterLine(Buffer.concat(this.#retained ?? []))
    const sample = sampleOf(bytes, last, this.#delimiter)
    return sample?.records.length === 0 ? null : sample
  }

  #withoutDelimiterLine(bytes: Buffer): Buffer {
    const line = this.#firstLine === 1 ? delimiterLine(bytes) : null
    if (line === null) return bytes
    const rest = bytes.subarray(line.bytes)
    this.#delimiter ??= line.delimiter
    this.#firstLine = 2
    this.#retained = [rest]
    this.#retainedBytes = rest.length
    return rest
  }

  /** The file's shape for the decoder. */
  #shape(plan: ImportPlan): CsvShape {
    return { ...shapeOfPlan(plan, this.#options), firstLine: this.#firstLine }
  }

  #begin(sample: Sample): void {
    const { engine, name, forceHeader, noHeader, skipExtra, timestamp, partitionBy } = this.#options
    const { delimiter } = sample
    const width = sample.records[0]?.length ?? 0
    const records = skipExtra ? sample.records.map((record) => record.slice(0, width)) : sample.records
    const table = this.existing
    this.#isNew = table === undefined
    const named = forceHeader || isKnownHeader(records[0] ?? [], this.#schema, table, timestamp)
    const detected = detectColumns(records, noHeader === true ? 'no' : named ? 'yes' : 'perhaps')
    if (this.#options.create === false && engine.table(name) === undefined)
      throw new ImportError(`table does not exist [table=${name}] and create param was set to false.`)
    const from = detected.header ? 1 : 0
    const lines = sample.lines.map((line) => line + this.#firstLine - 1)
    const rows = { records: records.slice(from), lines: lines.slice(from) }
    const request = {
      ...rows,
      name,
      detected,
      forceHeader,
      delimiter,
      schema: this.#schema,
      table,
      timestamp,
      partitionBy,
    }
    const { unit = null, words = requestWords } = this.#options
    this.#plan = planImport({ ...request, unit, words, widened: this.#widened })
    this.#decoding = engine.csv(this.#shape(this.#plan))
  }

  /** Decodes all kept blocks again with the types known now. */
  async #again(last: boolean): Promise<void> {
    this.#decoding?.close()
    this.#held = []
    this.#forgetRows()
    this.#begin(nonNull(this.#sample))
    const blocks = this.#retained ?? []
    for (const [index, block] of blocks.entries()) {
      if (await this.#decodeOnce(block, last && index === blocks.length - 1)) continue
      return this.#again(last)
    }
  }

  #forgetRows(): void {
    this.#heldBytes = 0
    this.#imported = 0
    this.#rejected = 0
    this.#rejects = []
    this.#notes = []
    this.#errors.clear()
  }

  async #decode(block: Buffer, last: boolean): Promise<void> {
    if (!(await this.#decodeOnce(block, last))) await this.#again(last)
  }

  /** Returns false when types were widened, so that everything must be decoded again. */
  async #decodeOnce(block: Buffer, last: boolean): Promise<boolean> {
    const batches = await nonNull(this.#decoding).decode(block, last)
    let widened = false
    for (const batch of batches) for (const reject of batch.rejects) widened = this.#widen(reject) || widened
    if (widened) return false
    for (const batch of batches) await this.#hold(batch)
    return true
  }

  #widen({ column, cause, retained = false }: CsvReject): boolean {
    if ((this.#retained === null && this.#spool === null) || column < 0 || retained) return false
    const planned = this.#plan?.columns[column]
    if (planned === undefined || !planned.guessed) return false
    if (planned.name === this.#plan?.timestamp && cause !== 'cut') return false
    const wider = widerType(planned.type.name, cause)
    if (wider === null) return false
    // Another line may already require a wider type.
    if (this.#widened.get(column)?.name !== 'VARCHAR') this.#widened.set(column, dataType(wider))
    return true
  }

  async #hold(batch: CsvBatch): Promise<void> {
    for (const reject of batch.rejects) this.#refuse(reject)
    if (batch.rows === 0) return
    const { columns } = nonNull(this.#plan)
    const packed = columns.map(({ columnId, type }, index) => ({
      columnId,
      type: storedKind(type),
      values: batch.columns[index] as CsvBatch['columns'][number],
    }))
    this.#held.push({ rows: batch.rows, columns: packed })
    this.#heldBytes += bytesOf(batch)
    this.#imported += batch.rows
    if (this.#target !== null && this.#heldBytes >= transactionBytes) await this.#flush()
  }

  #refuse(reject: CsvReject): void {
    const { skipRows, name, place = 'line' } = this.#options
    const { line, column, retained = false } = reject
    const columnName = this.#plan?.columns[column]?.name ?? ''
    const reason = this.#explained(reject)
    const skipped = skipRows || retained
    if (line > this.#notedLine) this.#notes.push({ line, message: reason, table: name })
    const settled = this.#retained === null && this.#spool === null
    if (!skipped || settled || this.#notes.length > notesMax) this.#note(skipped)
    if (!skipped)
      throw new ImportError(`${place} ${line}${columnName === '' ? '' : `, column ${columnName}`}: ${reason}`)
    if (!retained) this.#rejected++
    if (column >= 0) this.#errors.set(column, (this.#errors.get(column) ?? 0) + 1)
    if (this.#rejects.length < rejectsShown) this.#rejects.push({ line, column: columnName, reason })
  }

  /** Adds the option that would help to the message. */
  #explained({ column, reason, extra, retained = false }: CsvReject): string {
    const { words = requestWords, timestamp } = this.#options
    if (extra && words.extra !== null) return `${reason}: ${words.extra} skips the fields after the last column`
    const planned = this.#plan?.columns[column]
    if (planned === undefined || retained || !isTimestamp(planned)) return reason
    if (!reason.startsWith('not a value')) {
      const isChosen = planned.name === this.#plan?.timestamp && timestamp === null && this.#isNew
      return isChosen ? `${reason}: ${words.none} imports without a designated timestamp` : reason
    }
    return `${reason}: ${timeFormatHint(/value=(.*)\]$/.exec(reason)?.[1] ?? '', words)}`
  }

  /** Reports rejected lines to sys.rejects. */
  #note(stored: boolean): void {
    const { engine, connectionId } = this.#options
    if (this.#notes.length === 0) return
    this.#notedLine = Math.max(this.#notedLine, this.#notes.at(-1)?.line ?? 0)
    engine.rejects(connectionId, this.#notes.splice(0), stored)
  }

  /** Creates the target table if necessary. */
  async #openTarget(plan: ImportPlan, staged: boolean): Promise<void> {
    const { engine, name, overwrite } = this.#options
    const existing = engine.table(name)
    let target = name
    if (staged) {
      target = stagingName()
      this.#staging = target
    } else if (overwrite && existing !== undefined) await dropTable(this.#options, name)
    if (staged || overwrite || existing === undefined) await run(this.#options, createStatement(target, plan))
    const table = engine.table(target)
    if (table === undefined) throw new ResourceError(`the table was dropped in the meantime [table=${target}]`)
    this.#target = table
    this.#plan = {
      ...plan,
      columns: plan.columns.map((column) => ({ ...column, columnId: columnId(table, column.name) })),
    }
    this.#held = this.#held.map(({ rows, columns }) => ({
      rows,
      columns: columns.map((column, index) => ({
        ...column,
        columnId: nonNull(this.#plan).columns[index]?.columnId ?? -1,
      })),
    }))
  }

  /** Sends the collected rows to the engine after the previous transaction. */
  async #flush(): Promise<void> {
    if (this.#held.length === 0 || this.#target === null) return
    const rows = this.#held
    this.#held = []
    this.#heldBytes = 0
    await this.#sending
    this.#sending = this.#options.engine.rows(this.#target.id, rows)
    this.#sending.catch(() => {})
  }

  #result(plan: ImportPlan): ImportResult {
    const { engine, name } = this.#options
    const table = engine.table(name)
    const errorsOf = (column: string): number =>
      this.#errors.get(plan.columns.findIndex((planned) => planned.name === column)) ?? 0
    return {
      location: name,
      ...{ header: plan.header, partitionBy: plan.partitionBy, timestamp: plan.timestamp, warnings: plan.warnings },
      rowsImported: this.#imported,
      rowsRejected: this.#rejected,
      columns: (table?.columns ?? plan.columns).map(({ name: column, type }) => ({
        ...{ name: column, type: typeText(type), size: isVariable(type) ? 0 : widthOf(type) },
        errors: errorsOf(column),
      })),
      rejects: this.#rejects,
    }
  }
}

function columnId(table: TableShape, name: string): number {
  const column = table.columns.find((known) => known.name.toLowerCase() === name.toLowerCase())
  if (column === undefined) throw new ImportError(`column does not exist [column=${name}, table=${table.name}]`)
  return column.id
}

function bytesOf({ columns }: CsvBatch): number {
  let bytes = 0
  for (const column of columns) {
    if (column.kind === 'fixed') bytes += column.bytes.length
    else if (column.kind === 'strings') bytes += column.lengths.length * 8 + column.bytes.length
    else bytes += column.ids.length * 4 + column.strings.length
  }
  return bytes
}
