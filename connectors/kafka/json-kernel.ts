// Fast path for JSON records: copies values into the memory of a WebAssembly kernel, a slice at a time, and gets
// lines of line protocol back. JsonReader reads the records that the kernel does not support; the keys that it meets
// there are added here, so that the kernel knows them next time.
//
//   memory   constants of the kernel | state | fields | keys and names | fields of one line | records | values | lines

import {
  openRecordEncoder,
  type RecordEncoder,
  recordActions,
  recordBytes,
  recordCodes,
  recordFieldBytes,
  recordHeapBase,
  recordLayout,
  recordPadding,
  recordStateBytes,
  recordUnits,
  writeRecordField,
} from '../../engine/records.js'
import type { FetchedRecord } from './consumer.js'
import { escapeWord, type LineText } from './line-text.js'
import type { MappingOptions } from './options.js'
import type { FieldAction, RowMapper } from './row-mapper.js'

const KIB = 1024
const sliceRecordsMax = 512
const fieldsMax = 1024
const stringsBytes = 256 * KIB
const scratchBytes = 512 * KIB
const valuesBytes = 1024 * KIB
/** Room for the table's name and the padding of a record. */
const recordMargin = 2048
const linesBytes = 1536 * KIB

const stateAt = recordHeapBase
const fieldsAt = stateAt + recordStateBytes
const stringsAt = fieldsAt + fieldsMax * recordFieldBytes
const scratchAt = stringsAt + stringsBytes
const recordsAt = scratchAt + scratchBytes
const valuesAt = recordsAt + sliceRecordsMax * recordBytes
const linesAt = valuesAt + valuesBytes
const memoryBytes = linesAt + linesBytes
/** The kernel's copies overshoot by less than this. */
const margin = 256

const actions: Readonly<Record<FieldAction, number>> = {
  value: recordActions.value,
  symbol: recordActions.symbol,
  double: recordActions.double,
  time: recordActions.time,
  timestamp: recordActions.timestamp,
  part: recordActions.other,
}

export class JsonKernel {
  readonly #encoder: RecordEncoder
  readonly #mapper: RowMapper
  readonly #known = new Map<string, number>()
  #strings = stringsAt
  #fields = 1
  /** Number of records in memory. */
  #count = 0
  #tableAt = 0
  #tableBytes = 0
  #table = ''
  readonly #native: boolean

  constructor(mapper: RowMapper, options: MappingOptions) {
    this.#encoder = openRecordEncoder(memoryBytes)
    this.#mapper = mapper
    this.#native = options.timestampNative
    this.#writeState(options)
  }

  /** The outermost object, as parent of keys. */
  get root(): number {
    return fieldsAt
  }

  /** Whether the kernel supports these options. */
  static serves(options: MappingOptions): boolean {
    const { valueFormat, schemasEnabled, includeKey, keyFormat, timestampFields } = options
    const plainKey = !includeKey || keyFormat === 'string' || keyFormat === 'none'
    const plainValue = valueFormat === 'json' && !schemasEnabled && !options.recordColumns
    return plainValue && plainKey && timestampFields.length < 2
  }

  #writeState(options: MappingOptions): void {
    const { u32 } = this.#encoder.memory
    u32[(stateAt + recordLayout.stateRecords) >>> 2] = recordsAt
    u32[(stateAt + recordLayout.stateOutEnd) >>> 2] = linesAt + linesBytes - margin
    u32[(stateAt + recordLayout.stateScratch) >>> 2] = scratchAt
    u32[(stateAt + recordLayout.stateScratchEnd) >>> 2] = scratchAt + scratchBytes - margin
    u32[(stateAt + recordLayout.stateFields) >>> 2] = fieldsAt
    u32[(stateAt + recordLayout.stateFieldCount) >>> 2] = 1
    u32[(stateAt + recordLayout.stateNative) >>> 2] = options.timestampNative ? 1 : 0
    u32[(stateAt + recordLayout.stateUnits) >>> 2] = recordUnits[options.timestampUnits]
    u32[(stateAt + recordLayout.stateIso) >>> 2] = options.timestampFormat === '' ? 1 : 0
    if (!options.includeKey || options.keyFormat === 'none') return
    const { action, column } = this.#mapper.field(options.keyPrefix === '' ? 'key' : options.keyPrefix)
    const name = this.#putText(Buffer.from(`${escapeWord(column)}=`))
    u32[(stateAt + recordLayout.stateKeyMode) >>> 2] = action === 'symbol' ? 2 : 1
    u32[(stateAt + recordLayout.stateKeyName) >>> 2] = name
    u32[(stateAt + recordLayout.stateKeyNameBytes) >>> 2] = this.#strings - name
    this.keyed = action === 'value' || action === 'symbol' || action === 'double'
  }

  /** The kernel can write the key column. */
  keyed = true

  /**
   * Copies records `start` to `last`, as many as fit, and returns how many. `tableOf` returns the table of each, or
   * null. A record without value or table, or one that `skip` contains, is left to the caller like any that the
   * kernel does not support.
   */
  gather(
    records: readonly FetchedRecord[],
    start: number,
    last: number,
    skip: ReadonlySet<number>,
    tableOf: (record: FetchedRecord) => string | null,
  ): number {
    const { u32, i32, f64 } = this.#encoder.memory
    const end = Math.min(last, start + sliceRecordsMax)
    let at = valuesAt
    let index = start
    this.#table = ''
    for (; index < end; index++) {
      const record = records[index] as FetchedRecord
      const { value, key } = record
      const bytes = (value?.length ?? 0) + (key?.length ?? 0) + recordMargin
      if (at + bytes > linesAt && index > start) break
      const entry = recordsAt + (index - start) * recordBytes
      const table = value === null || skip.has(index) || at + bytes > linesAt ? null : tableOf(record)
      u32[(entry + recordLayout.recordValue) >>> 2] = at
      u32[(entry + recordLayout.recordValueBytes) >>> 2] = 0
      if (value === null || table === null) {
        at = this.#padded(at)
        continue
      }
      at = this.#put(at, value)
      u32[(entry + recordLayout.recordValueBytes) >>> 2] = value.length
      u32[(entry + recordLayout.recordKey) >>> 2] = at
      i32[(entry + recordLayout.recordKeyBytes) >>> 2] = key === null ? -1 : key.length
      if (key !== null) at = this.#put(at, key)
      at = this.#putTable(table, at)
      u32[(entry + recordLayout.recordTable) >>> 2] = this.#tableAt
      u32[(entry + recordLayout.recordTableBytes) >>> 2] = this.#tableBytes
      if (this.#native) f64[(entry + recordLayout.recordMillis) >>> 3] = Number(record.timestamp)
    }
    this.#count = index - start
    return this.#count
  }

  /**
   * Converts the collected records from number `from` on to lines; returns the number of the first unsupported one.
   */
  encode(from: number, lines: LineText): number {
    const { u32, u8 } = this.#encoder.memory
    u32[(stateAt + recordLayout.stateCount) >>> 2] = this.#count
    u32[(stateAt + recordLayout.stateIndex) >>> 2] = from
    u32[(stateAt + recordLayout.stateFieldCount) >>> 2] = this.#fields
    for (;;) {
      u32[(stateAt + recordLayout.stateOut) >>> 2] = linesAt
      const code = this.#encoder.kernel.encodeRecords(stateAt)
      const end = u32[(stateAt + recordLayout.stateOut) >>> 2]!
      if (end > linesAt) lines.append(u8.subarray(linesAt, end))
      if (code !== recordCodes.full || end === linesAt) return u32[(stateAt + recordLayout.stateIndex) >>> 2]!
    }
  }

  /** Adds a quoted key of the object `parent`; returns its id as a parent, or 0 when it could not be added. */
  learn(parent: number, key: Uint8Array, path: string): number {
    if (parent === 0) return 0
    const id = `${parent} ${Buffer.from(key.buffer, key.byteOffset, key.length).toString('latin1')}`
    const known = this.#known.get(id)
    if (known !== undefined) return known
    const { column, action } = this.#mapper.field(path)
    const name = Buffer.from(`${escapeWord(column)}=`)
    const full = this.#strings + key.length + name.length + 2 * recordPadding > scratchAt
    if (full || this.#fields === fieldsMax) return 0
    const address = fieldsAt + this.#fields * recordFieldBytes
    const keyAt = this.#putText(key)
    const nameAt = this.#putText(name)
    writeRecordField(this.#encoder.memory, address, {
      ...{ keyAt, keyBytes: key.length, nameAt, nameBytes: name.length },
      ...{ action: actions[action], parent },
    })
    this.#fields++
    this.#known.set(id, address)
    return address
  }

  #putText(bytes: Uint8Array): number {
    const at = this.#strings
    this.#encoder.memory.u8.set(bytes, at)
    this.#strings += bytes.length
    return at
  }

  /** Returns the offset after the bytes and their padding. */
  #put(at: number, bytes: Uint8Array): number {
    this.#encoder.memory.u8.set(bytes, at)
    return this.#padded(at + bytes.length)
  }

  #padded(at: number): number {
    this.#encoder.memory.u8[at] = 0
    return at + recordPadding
  }

  #putTable(table: string, at: number): number {
    if (table === this.#table) return at
    const bytes = Buffer.from(escapeWord(table))
    this.#table = table
    this.#tableAt = at
    this.#tableBytes = bytes.length
    return this.#put(at, bytes)
  }
}
