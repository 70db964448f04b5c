// Converts fetched Kafka records to blocks of line protocol, decoding key and value by their formats. A block is
// complete at 1 MiB of lines or 8,192 records, and becomes one request to the engine.
//
// A record that cannot be decoded yields an error instead of lines. A record without a value (a tombstone) is skipped:
// it yields neither a line nor an error.

import { lineBytesMax } from '../../engine/base/limits.js'
import { countLines } from '../../engine/engine.js'
import { AvroReader } from './avro-reader.js'
import { BadRecordError } from './bad-record.js'
import type { FetchedRecord, TopicPartition } from './consumer.js'
import { csvRows, readCsvRow } from './csv-reader.js'
import { JsonKernel } from './json-kernel.js'
import { JsonReader } from './json-reader.js'
import { JsonSchemaReader } from './json-schema-reader.js'
import { LineText } from './line-text.js'
import type { MappingOptions, RegistryFormat } from './options.js'
import { ProtobufReader } from './protobuf-reader.js'
import type { RegistryReader } from './registered-schemas.js'
import { RowMapper } from './row-mapper.js'
import type { SchemaRegistry } from './schema-registry.js'

/** Size at which a block is complete. */
const blockBytes = 1024 * 1024
const blockRecordsMax = 8192
const tableNameMax = 250

const utf8 = new TextDecoder('utf-8', { fatal: true })
/** Column names for values that are not objects, when there is no prefix. */
const keyName = 'key'
const valueName = 'value'

export interface RecordBlock {
  /** Index after the last record of the block. */
  readonly end: number
  readonly lines: Uint8Array
  /** Number of lines of each record, from the first one of the block on. */
  readonly lineCounts: Int32Array
  /** Errors by record index. */
  readonly bad: ReadonlyMap<number, string>
}

interface Job {
  readonly place: TopicPartition
  readonly records: readonly FetchedRecord[]
  readonly start: number
  /** Records to leave out. */
  readonly left: ReadonlySet<number>
  readonly counts: Int32Array
  readonly bad: Map<number, string>
}

export class RecordReader {
  readonly #options: MappingOptions
  readonly #lines = new LineText()
  readonly #mapper: RowMapper
  readonly #kernel: JsonKernel | null
  readonly #json: JsonReader
  /** By the format of keys or values. */
  readonly #registered: ReadonlyMap<string, RegistryReader>
  readonly #template: TableTemplate
  /** Partition of the last record, whose table is cached. */
  #tablePlace: TopicPartition = { topic: '', partition: -1 }
  #table = ''

  /** Throws Error when the options are invalid. Without the kernel it is slower and yields the same lines. */
  constructor(options: MappingOptions, registry: SchemaRegistry | null, { useKernel = true } = {}) {
    this.#options = options
    this.#mapper = new RowMapper(this.#lines, options)
    const kernel = useKernel && JsonKernel.serves(options) ? new JsonKernel(this.#mapper, options) : null
    this.#kernel = kernel?.keyed === true ? kernel : null
    this.#json = new JsonReader(this.#mapper, this.#kernel)
    this.#registered = registry === null ? new Map() : registryReaders(registry, this.#mapper, this.#json, options)
    this.#template = tableTemplate(options.table)
  }

  /** Fetches the schemas that the records need. Rejects with RegistryError when they are not available now. */
  async prepare(records: readonly FetchedRecord[]): Promise<void> {
    const { keyFormat, valueFormat } = this.#options
    await this.#registered.get(keyFormat)?.prepare(records.map(({ key }) => key))
    await this.#registered.get(valueFormat)?.prepare(records.map(({ value }) => value))
  }

  /** Reads records from index `start` on, except those in `left`, until the block is full. */
  read(
    place: TopicPartition,
    records: readonly FetchedRecord[],
    start: number,
    left: ReadonlySet<number>,
  ): RecordBlock {
    const bad = new Map<number, string>()
    const counts = new Int32Array(Math.min(blockRecordsMax, records.length - start))
    const job: Job = { place, records, start, left, counts, bad }
    let index = start
    while (index < records.length && index - start < blockRecordsMax && this.#lines.length < blockBytes) {
      if (this.#kernel !== null) index = this.#slice(this.#kernel, job, index)
      else this.#one(job, index++)
    }
    return { end: index, lines: this.#lines.take(), lineCounts: counts.subarray(0, index - start), bad }
  }

  /**
   * Reads as many records as the kernel accepts at once, with a fallback for unsupported ones. Returns the index
   * after the last.
   */
  #slice(kernel: JsonKernel, job: Job, first: number): number {
    const { records, start, left, counts, place } = job
    // If the template is constant, the table is computed once per slice.
    const constant = this.#template.constant ? this.#tableFor(place, records[first] as FetchedRecord) : undefined
    const tableOf = (record: FetchedRecord): string | null =>
      constant === undefined ? this.#tableFor(place, record) : constant
    const count = kernel.gather(records, first, start + counts.length, left, tableOf)
    for (let done = 0; done < count; ) {
      const next = Math.min(kernel.encode(done, this.#lines), count)
      counts.fill(1, first - start + done, first - start + next)
      if (next < count) this.#one(job, first + next)
      done = next + 1
    }
    return first + count
  }

  #one({ place, records, start, left, counts, bad }: Job, index: number): void {
    const record = records[index] as FetchedRecord
    if (record.value === null || left.has(index)) return
    try {
      counts[index - start] = this.#record(place, record, record.value)
    } catch (error) {
      if (!(error instanceof BadRecordError)) throw error
      this.#lines.cancel()
      bad.set(index, error.message)
    }
  }

  /** Returns the number of lines of the record. */
  #record(place: TopicPartition, record: FetchedRecord, value: Uint8Array): number {
    const { valueFormat, valuePrefix, csvDelimiter } = this.#options
    if (valueFormat === 'line') {
      const count = countLines(value, lineBytesMax)
      if (count === null) throw new BadRecordError('the last line is cut off')
      if (count > 0) this.#lines.raw(value)
      return count
    }
    if (valueFormat !== 'csv') {
      return this.#row(place, record, () => this.#value(valueFormat, value, valuePrefix)) ? 1 : 0
    }
    const rows = csvRows(value, csvDelimiter)
    if (rows.length === 0) throw new BadRecordError('the record is empty')
    this.#rows(rows, (row) => this.#csvRow(place, record, row))
    return rows.length
  }

  /** Adds all rows of a record or none. */
  #rows<Row>(rows: readonly Row[], add: (row: Row) => void): void {
    const length = this.#lines.length
    try {
      for (const row of rows) add(row)
    } catch (error) {
      this.#lines.cutTo(length)
      throw error
    }
  }

  /** Returns false, without a line, when `fill` found nothing to store. */
  #row(place: TopicPartition, record: FetchedRecord, fill: () => boolean): boolean {
    this.#mapper.begin(this.#tableOf(place, record))
    if (this.#options.includeKey && record.key !== null) this.#key(record.key)
    if (!fill()) {
      this.#lines.cancel()
      return false
    }
    if (this.#options.recordColumns) this.#mapper.origin(place.topic, place.partition, String(record.offset))
    this.#mapper.end(String(record.timestamp))
    return true
  }

  /** Null when the key cannot be part of a name, or the name is too long. */
  #tableFor(place: TopicPartition, record: FetchedRecord): string | null {
    try {
      const table = this.#tableOf(place, record)
      return table.length > tableNameMax ? null : table
    } catch (error) {
      if (error instanceof BadRecordError) return null
      throw error
    }
  }

  #tableOf(place: TopicPartition, record: FetchedRecord): string {
    if (!this.#template.constant) return this.#template.name(place, this.#keyText(record.key))
    if (place.topic !== this.#tablePlace.topic || place.partition !== this.#tablePlace.partition) {
      this.#tablePlace = { topic: place.topic, partition: place.partition }
      this.#table = this.#template.name(place, '')
    }
    return this.#table
  }

  #csvRow(place: TopicPartition, record: FetchedRecord, row: Parameters<typeof readCsvRow>[1]): void {
    this.#row(place, record, () => {
      readCsvRow(this.#mapper, row, this.#options)
      return true
    })
  }

  /** Returns false for an envelope without a payload: a tombstone. */
  #value(format: 'json' | 'string' | RegistryFormat, value: Uint8Array, prefix: string): boolean {
    if (format === 'json') return this.#json.read(value, prefix, valueName, this.#options.schemasEnabled)
    if (format === 'string') this.#mapper.text(prefix === '' ? valueName : prefix, textOf(value))
    else this.#readRegistered(format, value, prefix, valueName)
    return true
  }

  #key(key: Uint8Array): void {
    const { keyFormat, keyPrefix, schemasEnabled } = this.#options
    const name = keyPrefix === '' ? keyName : keyPrefix
    if (keyFormat === 'none') return
    if (keyFormat === 'string') this.#mapper.text(name, textOf(key))
    else if (keyFormat === 'json') this.#json.read(key, keyPrefix, keyName, schemasEnabled)
    else if (keyFormat === 'double') this.#mapper.double(name, numberKey(key, 'double') as number)
    else if (keyFormat === 'int' || keyFormat === 'long') this.#mapper.number(name, String(numberKey(key, keyFormat)))
    else this.#readRegistered(keyFormat, key, keyPrefix, keyName)
  }

  #readRegistered(format: RegistryFormat, bytes: Uint8Array, prefix: string, fallback: string): void {
    const reader = this.#registered.get(format)
    if (reader === undefined) throw new BadRecordError(`the format ${format} needs a schema registry`)
    reader.read(bytes, prefix, fallback)
  }

  /** The key as part of a table name. */
  #keyText(key: Uint8Array | null): string {
    const { keyFormat } = this.#options
    if (key === null) return 'null'
    return keyFormat === 'int' || keyFormat === 'long' || keyFormat === 'double'
      ? String(numberKey(key, keyFormat))
      : textOf(key)
  }
}

/** The readers of the formats that the options name. */
function registryReaders(
  registry: SchemaRegistry,
  mapper: RowMapper,
  json: JsonReader,
  { keyFormat, valueFormat }: MappingOptions,
): ReadonlyMap<string, RegistryReader> {
  const readers = new Map<string, RegistryReader>()
  for (const format of [keyFormat, valueFormat]) {
    if (format === 'avro') readers.set(format, new AvroReader(registry, mapper))
    if (format === 'json_schema') readers.set(format, new JsonSchemaReader(registry, json))
    if (format === 'protobuf') readers.set(format, new ProtobufReader(registry, mapper))
  }
  return readers
}

function numberKey(key: Uint8Array, format: 'int' | 'long' | 'double'): bigint | number {
  const bytes = format === 'int' ? 4 : 8
  if (key.length !== bytes) throw new BadRecordError(`the key is not of format ${format} [bytes=${key.length}]`)
  const view = new DataView(key.buffer, key.byteOffset)
  if (format === 'int') return view.getInt32(0)
  return format === 'long' ? view.getBigInt64(0) : view.getFloat64(0)
}

function textOf(bytes: Uint8Array): string {
  try {
    return utf8.decode(bytes)
  } catch {
    throw new BadRecordError('a string is not UTF-8')
  }
}

// Table names: a template over topic, key and partition. Names are used unchanged, including hyphens and dots; a name
// that the server rejects makes the record a bad one.

/** The parts of a record that a template may use. */
interface RecordPlace {
  readonly topic: string
  readonly partition: number
}

const parameters = ['topic', 'key', 'partition'] as const
type Parameter = (typeof parameters)[number]

interface TableTemplate {
  /** Every record of a partition goes to the same table. */
  readonly constant: boolean
  name(place: RecordPlace, key: string): string
}

/** Throws Error when the template is invalid. Empty: the topic. */
function tableTemplate(template: string): TableTemplate {
  const parts: readonly TemplatePart[] = template === '' ? [{ literal: '', parameter: 'topic' }] : partsOf(template)
  return {
    constant: !parts.some((part) => part.parameter === 'key'),
    name: ({ topic, partition }, key) => {
      const values = { topic, key, partition: String(partition) }
      return parts.map(({ literal, parameter }) => literal + (parameter === null ? '' : values[parameter])).join('')
    },
  }
}

interface TemplatePart {
  readonly literal: string
  readonly parameter: Parameter | null
}

function partsOf(template: string): TemplatePart[] {
  const parts: TemplatePart[] = []
  let at = 0
  for (let start = template.indexOf('${'); start >= 0; start = template.indexOf('${', at)) {
    const end = template.indexOf('}', start)
    if (end < 0) throw new Error(`missing } in the table name '${template}'`)
    const name = template.slice(start + 2, end)
    const parameter = parameters.find((known) => known === name)
    if (parameter === undefined) throw new Error(`unknown parameter '${name}' in the table name '${template}'`)
    parts.push({ literal: template.slice(at, start), parameter })
    at = end + 1
  }
  return [...parts, { literal: template.slice(at), parameter: null }]
}
