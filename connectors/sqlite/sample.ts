// Infers column types from the first rows of a table. SQLite accepts any value in any column, so the declared type is
// only a hint and the values decide.
//
// The first line that applies determines the type:
//
//   a blob                                      BINARY
//   strings, all of them timestamps             TIMESTAMP; numbers among them only if declared as date or time
//   strings and no numbers, few distinct ones   SYMBOL
//   other strings                               VARCHAR
//   numbers, declared as date or time           TIMESTAMP, if their magnitude suggests a unit
//   0 and 1, no NULL, declared BOOL             BOOLEAN
//   some fractions, or declared REAL            DOUBLE
//   other integers                              LONG
//   no value                                    by the declared type

import { type DataType, dataType } from '../../engine/types/column-types.js'
import { valueKinds } from './row-scan.js'
import type { SourceColumn } from './schema-statements.js'
import { microsOfText, type TimeUnit, unitOf } from './times.js'

/** Limit of distinct strings for a SYMBOL; `repeats` is how often each must occur on average. */
const symbolsMax = 1000
const symbolRepeats = 20

/** Smaller numbers are no plausible timestamps in any unit: 1973, in seconds. */
const epochMin = 1e8
const julianMin = 2.2e6
const julianMax = 2.7e6
const timeName = /^(ts|t|time|timestamp|datetime|date|epoch|unix_?time)$|(_at|_ts|_time|_?timestamp|datetime)$/i

export class ColumnSample {
  private integers = 0
  private reals = 0
  private strings = 0
  private times = 0
  private blobs = 0
  private nulls = 0
  private bits = 0
  private least = Number.POSITIVE_INFINITY
  private most = Number.NEGATIVE_INFINITY
  private readonly distinct = new Set<string>()

  note(bytes: Buffer, kind: number, begin: number, end: number): void {
    switch (kind) {
      case valueKinds.null:
        this.nulls++
        return
      case valueKinds.integer:
      case valueKinds.real:
        this.noteNumber(kind, Number(bytes.toString('latin1', begin, end)))
        return
      case valueKinds.blob:
        this.blobs++
        return
      default:
        this.strings++
        if (!Number.isNaN(microsOfText(bytes, begin, end))) this.times++
        if (this.distinct.size <= symbolsMax) this.distinct.add(bytes.toString('latin1', begin, end))
    }
  }

  private noteNumber(kind: number, value: number): void {
    if (kind === valueKinds.integer) this.integers++
    else this.reals++
    if (value === 0 || value === 1) this.bits++
    if (value < this.least) this.least = value
    if (value > this.most) this.most = value
  }

  get complete(): boolean {
    return this.nulls === 0
  }

  /** Unit of the column's numeric timestamps; null when they are none. */
  get timeUnit(): TimeUnit | null {
    if (this.integers + this.reals === 0) return null
    if (this.reals > 0 && this.least > julianMin && this.most < julianMax) return 'julian'
    return this.least >= epochMin && this.most < 1e20 ? unitOf(this.most) : null
  }

  /** Whether the column may become the designated timestamp without being named. */
  mayReport(column: SourceColumn, type: DataType): boolean {
    if (!this.complete || this.integers + this.reals + this.strings === 0) return false
    return (
      type.name === 'TIMESTAMP' ||
      (this.blobs + this.strings === 0 && timeName.test(column.name) && this.timeUnit !== null)
    )
  }

  typeOf({ declared, affinity }: SourceColumn): DataType {
    const isTime = /DATE|TIME/.test(declared)
    const numbers = this.integers + this.reals
    if (this.blobs > 0) return dataType('BINARY')
    if (this.strings > 0) return this.textType(isTime)
    if (numbers === 0) return typeWithoutValues(declared, affinity)
    if (isTime && this.timeUnit !== null) return dataType('TIMESTAMP')
    if (/BOOL/.test(declared) && this.bits === numbers && this.complete) return dataType('BOOLEAN')
    return dataType(this.reals > 0 || affinity === 'real' ? 'DOUBLE' : 'LONG')
  }

  private textType(isTime: boolean): DataType {
    const numbers = this.integers + this.reals
    if (this.times === this.strings && (numbers === 0 || isTime)) return dataType('TIMESTAMP')
    const few = this.distinct.size <= symbolsMax && this.strings >= this.distinct.size * symbolRepeats
    return dataType(few && numbers === 0 ? 'SYMBOL' : 'VARCHAR')
  }
}

function typeWithoutValues(declared: string, affinity: SourceColumn['affinity']): DataType {
  if (/DATE|TIME/.test(declared)) return dataType('TIMESTAMP')
  if (/BOOL/.test(declared)) return dataType('BOOLEAN')
  switch (affinity) {
    case 'integer':
      return dataType('LONG')
    case 'real':
    case 'numeric':
      return dataType('DOUBLE')
    case 'text':
      return dataType('VARCHAR')
    case 'blob':
      return dataType(declared === '' ? 'VARCHAR' : 'BINARY')
  }
}
