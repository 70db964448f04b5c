// Converts the rows of one table of a dump to batches. The first rows are kept until the column types are known. Then
// these and all later rows go into column builders, and each full batch is emitted.

import { nonNull } from '../../engine/base/assert.js'
import type { PackedRows } from '../../engine/engine.js'
import { type DataType, dataType, typeText } from '../../engine/types/column-types.js'
import { batchRows, type ColumnBuilder, columnBuilder, misfit } from './columns.js'
import { type Computed, evaluate } from './expression.js'
import type { DecoderOptions, ProposedTable } from './messages.js'
import { columnNameOf } from './names.js'
import { ScannedRow, scanRow, valueKinds } from './row-scan.js'
import { ColumnSample } from './sample.js'
import type { SourceColumn, SourceTable } from './schema-statements.js'
import type { TimeUnit } from './times.js'

const sampleRowsMax = 10_000
const sampleBytesMax = 8 * 1024 * 1024
const batchHeapBytes = 4 * 1024 * 1024

/** For kept rows that are scanned again. */
const scratchRow = new ScannedRow()

interface Target {
  readonly source: SourceColumn
  readonly name: string
  readonly sample: ColumnSample
  columnId: number
  type: DataType
  unit: TimeUnit | null
  builder: ColumnBuilder
}

/** Events for the reader of the dump. */
export interface LoadEvents {
  readonly rows: (rows: PackedRows) => void
  readonly refuse: (line: number, reason: string) => void
  readonly note: (line: number, reason: string) => void
}

export class TableLoad {
  readonly source: SourceTable
  /** Line of its CREATE TABLE. */
  readonly line: number
  name: string
  state: 'sampling' | 'open' | 'refused' = 'sampling'
  private readonly targets: Target[] = []
  private retained: { readonly bytes: Buffer; readonly line: number }[] = []
  private retainedBytes = 0
  private timestamp = -1
  private rows = 0
  private readonly events: LoadEvents
  private readonly options: DecoderOptions

  constructor(source: SourceTable, name: string, line: number, options: DecoderOptions, events: LoadEvents) {
    this.source = source
    this.name = name
    this.line = line
    this.options = options
    this.events = events
    const taken = new Set<string>()
    for (const column of source.columns.filter(({ generated }) => !generated)) {
      const own = columnNameOf(column.name, taken)
      taken.add(own.toLowerCase())
      if (own !== column.name) events.note(line, `the column "${column.name}" becomes "${own}"`)
      const type = dataType('VARCHAR')
      const builder = columnBuilder(type, null) as ColumnBuilder
      this.targets.push({
        source: column,
        name: own,
        sample: new ColumnSample(),
        columnId: -1,
        type,
        unit: null,
        builder,
      })
    }
  }

  /** Maps table columns to positions in a row by the statement's column list; null: the table's order. */
  order(columns: readonly string[] | null): Int32Array {
    if (columns === null) return Int32Array.from(this.targets, (_, index) => index)
    const known = this.targets.map(({ source }) => source.name.toLowerCase())
    return Int32Array.from(columns, (column) => known.indexOf(column.toLowerCase()))
  }

  /** Adds the row between the two offsets, which has already been scanned. */
  take(bytes: Buffer, from: number, to: number, row: ScannedRow, order: Int32Array, line: number): void {
    if (this.state === 'open') {
      this.append(bytes, row, order, line)
      return
    }
    if (this.state === 'refused') {
      this.events.refuse(line, '')
      return
    }
    if (row.count !== order.length) {
      this.events.refuse(line, countsDiffer(row.count, order.length))
      return
    }
    const ordered = isInOrder(order, this.targets.length) ? bytes.subarray(from, to) : this.reordered(bytes, row, order)
    this.retained.push({ bytes: Buffer.from(ordered), line })
    this.retainedBytes += ordered.length
    this.note(bytes, row, order)
    if (this.retained.length >= sampleRowsMax || this.retainedBytes >= sampleBytesMax) this.open()
  }

  /** Decides the types and emits the kept rows. */
  open(): void {
    if (this.state !== 'sampling') return
    for (const target of this.targets) this.decide(target)
    this.timestamp = this.chooseTimestamp()
    const proposal = this.proposal()
    const resolved = this.options.resolve(proposal)
    if ('refused' in resolved) {
      this.state = 'refused'
      this.events.note(this.line, resolved.refused)
      for (const { line } of this.retained) this.events.refuse(line, '')
      this.retained = []
      return
    }
    for (const [index, target] of this.targets.entries()) {
      const { columnId, type } = nonNull(resolved.columns[index])
      target.columnId = columnId
      target.type = type
      const builder = columnBuilder(type, this.options.unit ?? target.sample.timeUnit)
      if (builder === undefined) throw new RangeError(`values of a dump cannot be converted to ${typeText(type)}`)
      target.builder = builder
    }
    this.timestamp = resolved.timestamp
    this.state = 'open'
    this.replay()
  }

  /** Emits the last rows. */
  flush(): void {
    if (this.rows === 0) return
    const rows = this.rows
    this.rows = 0
    this.events.rows({
      rows,
      columns: this.targets.map(({ columnId, type, builder }) => ({ columnId, type, values: builder.take(rows) })),
    })
  }

  private replay(): void {
    const row = scratchRow
    const order = this.order(null)
    for (const { bytes, line } of this.retained) {
      scanRow(bytes, 0, row)
      this.append(bytes, row, order, line)
    }
    this.retained = []
  }

  private note(bytes: Buffer, row: ScannedRow, order: Int32Array): void {
    for (let index = 0; index < row.count; index++) {
      const target = this.targets[order[index]!]
      if (target === undefined) continue
      const kind = row.kinds[index]!
      if (kind !== valueKinds.expression) {
        target.sample.note(bytes, kind, row.begins[index]!, row.ends[index]!)
        continue
      }
      const value = computed(bytes, row, index)
      if (value !== undefined) target.sample.note(value.bytes, value.kind, 0, value.bytes.length)
    }
  }

  private append(bytes: Buffer, row: ScannedRow, order: Int32Array, line: number): void {
    if (row.count !== order.length) {
      this.events.refuse(line, countsDiffer(row.count, order.length))
      return
    }
    if (order.length < this.targets.length || !isInOrder(order, this.targets.length)) {
      const ordered = this.reordered(bytes, row, order)
      scanRow(ordered, 0, row)
      this.appendValues(ordered, row, line)
    } else this.appendValues(bytes, row, line)
  }

  private appendValues(bytes: Buffer, row: ScannedRow, line: number): void {
    const { targets } = this
    for (let index = 0; index < row.count; index++) {
      const { builder } = nonNull(targets[index])
      const kind = row.kinds[index]!
      const isNull = kind === valueKinds.null && index === this.timestamp
      const fits =
        kind === valueKinds.expression
          ? this.appendComputed(builder, bytes, row, index)
          : builder.append(bytes, kind, row.begins[index]!, row.ends[index]!)
      if (fits && !isNull) continue
      for (let done = 0; done < index + (fits ? 1 : 0); done++) nonNull(targets[done]).builder.undo()
      this.events.refuse(line, this.misfit(bytes, row, index))
      return
    }
    this.rows++
    let heap = 0
    for (let index = 0; index < targets.length; index++) heap += nonNull(targets[index]).builder.heapBytes
    if (this.rows === batchRows || heap >= batchHeapBytes) this.flush()
  }

  private appendComputed(builder: ColumnBuilder, bytes: Buffer, row: ScannedRow, index: number): boolean {
    const value = computed(bytes, row, index)
    return value !== undefined && builder.append(value.bytes, value.kind, 0, value.bytes.length)
  }

  private misfit(bytes: Buffer, { kinds, begins, ends }: ScannedRow, index: number): string {
    const { name, type } = nonNull(this.targets[index])
    if (kinds[index] === valueKinds.null && index === this.timestamp) return `NULL in the designated timestamp ${name}`
    return misfit(bytes, kinds[index]!, begins[index]!, ends[index]!, name, type)
  }

  /** Rewrites the row in the table's order, with NULL for columns that the statement omits. */
  private reordered(bytes: Buffer, row: ScannedRow, order: Int32Array): Buffer {
    const strings = this.targets.map(() => 'NULL')
    for (let index = 0; index < row.count; index++) {
      const place = order[index]!
      if (place >= 0) strings[place] = literal(bytes, row, index)
    }
    return Buffer.from(`(${strings.join(',')})`, 'latin1')
  }

  private decide(target: Target): void {
    const { source, sample } = target
    const given = this.given(source)
    target.type = given ?? sample.typeOf(source)
    target.unit = this.options.unit ?? sample.timeUnit
  }

  private given({ name }: SourceColumn): DataType | undefined {
    const names = [`${this.source.name}.${name}`.toLowerCase(), name.toLowerCase()]
    return names.map((wanted) => this.options.types.find(({ column }) => column === wanted)?.type).find((type) => type)
  }

  /** Chooses the named timestamp column, else the first eligible one. */
  private chooseTimestamp(): number {
    const { timestamps } = this.options
    const named = this.targets.findIndex(({ source, name }) =>
      [source.name, name, `${this.source.name}.${source.name}`, `${this.name}.${name}`].some((wanted) =>
        timestamps.some((given) => given.toLowerCase() === wanted.toLowerCase()),
      ),
    )
    const none = timestamps.some((given) => ['none', `${this.source.name}.none`].includes(given.toLowerCase()))
    const first = (type: boolean): number =>
      this.targets.findIndex(({ source, sample, type: { name }, type: own }) =>
        type === (name === 'TIMESTAMP') && this.given(source) === undefined ? sample.mayReport(source, own) : false,
      )
    let found = named
    if (found < 0 && !none) found = first(true)
    if (found < 0 && !none) found = first(false)
    const target = this.targets[found]
    if (target !== undefined && !/^TIMESTAMP/.test(target.type.name)) target.type = dataType('TIMESTAMP')
    return found
  }

  private proposal(): ProposedTable {
    const { timestamp } = this
    return {
      source: this.source.name,
      name: this.name,
      columns: this.targets.map(({ name, type }) => ({ name, type })),
      timestamp: this.targets[timestamp]?.name ?? null,
      partitionBy: timestamp < 0 ? 'NONE' : this.options.partitionBy,
    }
  }
}

function countsDiffer(values: number, columns: number): string {
  return `a row of ${values} values for ${columns} columns`
}

function isInOrder(order: Int32Array, count: number): boolean {
  return order.length === count && order.every((place, index) => place === index)
}

/** A value as written in the statement. */
function literal(bytes: Buffer, { kinds, begins, ends }: ScannedRow, index: number): string {
  const text = bytes.toString('latin1', begins[index], ends[index])
  const kind = kinds[index]
  if (kind === valueKinds.text || kind === valueKinds.quotedText) return `'${text}'`
  return kind === valueKinds.blob ? `X'${text}'` : text
}

/** Undefined when the expression is not supported. */
function computed(
  bytes: Buffer,
  { begins, ends }: ScannedRow,
  index: number,
): { readonly bytes: Buffer; readonly kind: number } | undefined {
  const value: Computed | undefined = evaluate(bytes.toString('utf8', begins[index], ends[index]))
  if (value === undefined) return undefined
  if (value === null) return { bytes: nothing, kind: valueKinds.null }
  if (Buffer.isBuffer(value)) return { bytes: Buffer.from(value.toString('hex')), kind: valueKinds.blob }
  if (typeof value === 'string') return { bytes: Buffer.from(value), kind: valueKinds.text }
  const text = typeof value === 'number' && !Number.isFinite(value) ? (value < 0 ? '-9e999' : '9e999') : String(value)
  return { bytes: Buffer.from(text), kind: typeof value === 'bigint' ? valueKinds.integer : valueKinds.real }
}

const nothing = Buffer.alloc(0)
