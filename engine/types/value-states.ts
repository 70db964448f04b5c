// Encodes and decodes states of aggregates: the distinct values of a group, and its numbers with their frequencies.
// Materialized views store them for each group of a time bucket in hidden columns of type BINARY. Equal groups have
// equal bytes, whatever the order of their rows was.
//
//   0   format   u8    1
//   1   form     u8    1, 2, 3: distinct values of 8, 16, 32 bytes; 4: distinct texts; 5: numbers
//   2   extras   u16   1 if numbers are followed by their frequencies, else 0
//   4   count    u32
//   8   1        values of 8 bytes: integers (of BOOLEAN, BYTE, SHORT, INT, LONG, IPv4, DATE, TIMESTAMP, GEOHASH, and
//                DECIMAL of up to 18 digits), or the bits of a DOUBLE (of FLOAT and DOUBLE, 0 for -0); ascending as
//                signed integers
//       2, 3     UUID, LONG256 and DECIMAL of more digits: 16 or 32 bytes, ascending as unsigned integers
//       4        the lengths in bytes (u32), then the texts in UTF-8, ascending by their bytes
//       5        different numbers (f64), ascending, and with extras 1 how often each occurs (u32, at least 1)
//
// All numbers are little-endian. The bytes come from a checksummed page of a part, or from the log; they are checked all
// the same, since a client may pass any bytes to the functions that read states.

import { CorruptionError } from '../base/errors.js'
import { type DataType, dataType, widthOf } from './column-types.js'
import type { Value } from './value.js'

const format = 1
const headerBytes = 8

/** How the values of a set are stored. */
export interface ValueForm {
  readonly tag: 1 | 2 | 3 | 4
  /** Bytes of a value; 0 for texts. */
  readonly width: 8 | 16 | 32 | 0
  /** A type whose vectors have the values in this form. NULL of this type is not among them. */
  readonly type: DataType
}

const plainForm: ValueForm = { tag: 1, width: 8, type: dataType('LONG') }
const wideForm: ValueForm = { tag: 2, width: 16, type: dataType('UUID') }
const widestForm: ValueForm = { tag: 3, width: 32, type: dataType('LONG256') }
const textForm: ValueForm = { tag: 4, width: 0, type: dataType('VARCHAR') }
const forms = [plainForm, wideForm, widestForm, textForm] as const
const numbersTag = 5

/** Undefined for types without sets. CHAR has none, since its NULL is an empty string. */
export function formOf(type: DataType): ValueForm | undefined {
  switch (type.name) {
    case 'STRING':
    case 'VARCHAR':
    case 'SYMBOL':
      return textForm
    case 'ARRAY':
    case 'BINARY':
    case 'CHAR':
    case 'INTERVAL':
      return undefined
    default: {
      const width = widthOf(type)
      return width <= 8 ? plainForm : width === 16 ? wideForm : widestForm
    }
  }
}

/** Names the meaning of the bytes of a type's values: sets of types with the same name can be united. */
export function formName({ name, a, b }: DataType): string {
  switch (name) {
    case 'BYTE':
    case 'SHORT':
    case 'INT':
    case 'LONG':
      return 'long'
    case 'FLOAT':
    case 'DOUBLE':
      return 'double'
    case 'STRING':
    case 'VARCHAR':
    case 'SYMBOL':
      return 'text'
    case 'DECIMAL':
      return `decimal${widthOf({ name, a, b }) * 8}_${b}`
    case 'GEOHASH':
      return `geohash${a}`
    default:
      return name.toLowerCase()
  }
}

/** A value of a set: texts as bytes. */
export type SetValue = bigint | Uint8Array

const bits = new DataView(new ArrayBuffer(8))

/** The value as a set has it. Those of 16 and 32 bytes are unsigned. */
export function setValueOf(value: Exclude<Value, null>, type: DataType): SetValue {
  if (typeof value === 'string') return Buffer.from(value, 'utf8')
  if (typeof value === 'boolean') return value ? 1n : 0n
  if (typeof value === 'bigint') return widthOf(type) <= 8 ? value : BigInt.asUintN(widthOf(type) * 8, value)
  if (typeof value !== 'number') return new Uint8Array(0)
  if (type.name !== 'DOUBLE' && type.name !== 'FLOAT') return BigInt(value)
  bits.setFloat64(0, value === 0 ? 0 : value)
  return bits.getBigInt64(0)
}

/** Of a set value: equal for equal values. */
export function setKey(value: SetValue): bigint | string {
  return typeof value === 'bigint' ? value : Buffer.from(value).toString('latin1')
}

/** Bytes that the value takes in a state. */
function setValueBytes({ width }: ValueForm, value: SetValue): number {
  return width === 0 && typeof value !== 'bigint' ? 4 + value.length : width
}

// Sets of distinct values -------------------------------------------------------------------------------------------

/** A set of distinct values, up to a size of its state. */
export class ValueSet {
  readonly form: ValueForm
  readonly #bytesMax: number
  /** Values of 8 bytes. */
  #integers = new BigInt64Array(0)
  #count = 0
  /** All others. */
  #values: SetValue[] = []
  #bytes = headerBytes

  constructor(form: ValueForm, bytesMax: number) {
    this.form = form
    this.#bytesMax = bytesMax
  }

  /** The set does not have the value yet. Returns by how many bytes the state grows; it is empty if it is too large. */
  add(value: SetValue): number {
    if (this.#bytes > this.#bytesMax) return 0
    const more = setValueBytes(this.form, value)
    this.#bytes += more
    if (this.#bytes > this.#bytesMax) return this.drop() + more
    if (this.form.width === 8 && typeof value === 'bigint') this.#addInteger(value)
    else this.#values.push(value)
    return more
  }

  /** Makes the set one that is too large. Returns by how many bytes the state grows. */
  drop(): number {
    const before = this.#bytes
    this.#bytes = Number.POSITIVE_INFINITY
    this.#integers = new BigInt64Array(0)
    this.#values = []
    return before === Number.POSITIVE_INFINITY ? 0 : headerBytes - before
  }

  /** Null if it is too large. */
  state(): Uint8Array | null {
    if (this.#bytes > this.#bytesMax || this.#bytes === Number.POSITIVE_INFINITY) return null
    const state = Buffer.alloc(this.#bytes)
    const { tag, width } = this.form
    writeHeader(state, tag, 0, width === 8 ? this.#count : this.#values.length)
    if (width === 8) {
      const sorted = this.#integers.slice(0, this.#count).sort()
      state.set(new Uint8Array(sorted.buffer, sorted.byteOffset, sorted.byteLength), headerBytes)
    } else if (width === 0) writeTexts(state, this.#values)
    else writeIntegers(state, width, this.#values)
    return state
  }

  #addInteger(value: bigint): void {
    if (this.#count === this.#integers.length) {
      const larger = new BigInt64Array(Math.max(8, this.#count * 2))
      larger.set(this.#integers)
      this.#integers = larger
    }
    this.#integers[this.#count++] = value
  }
}

/** The state of a set with these values, which are distinct; null if it has more bytes. */
export function encodeValues(
  form: ValueForm,
  values: Iterable<SetValue>,
  bytesMax = Number.POSITIVE_INFINITY,
): Uint8Array | null {
  const set = new ValueSet(form, bytesMax)
  for (const value of values) set.add(value)
  return set.state()
}

function writeHeader(state: Buffer, tag: number, extras: number, count: number): void {
  state[0] = format
  state[1] = tag
  state.writeUInt16LE(extras, 2)
  state.writeUInt32LE(count, 4)
}

function writeIntegers(state: Buffer, width: number, values: readonly SetValue[]): void {
  const integers = values.flatMap((value) => (typeof value === 'bigint' ? value : []))
  integers.sort((x, y) => (x < y ? -1 : x > y ? 1 : 0))
  let at = headerBytes
  for (const integer of integers) {
    for (let word = 0; word < width; word += 8)
      state.writeBigUInt64LE(BigInt.asUintN(64, integer >> BigInt(word * 8)), at + word)
    at += width
  }
}

function writeTexts(state: Buffer, values: readonly SetValue[]): void {
  const texts = values.flatMap((value) => (typeof value === 'bigint' ? [] : value)).sort((x, y) => Buffer.compare(x, y))
  let at = headerBytes + texts.length * 4
  for (const [index, text] of texts.entries()) {
    state.writeUInt32LE(text.length, headerBytes + index * 4)
    state.set(text, at)
    at += text.length
  }
}

export interface ValuesState {
  readonly form: ValueForm
  readonly count: number
  /** Offset of the first value, or of the first text. */
  readonly first: number
  /** Of texts: the length of each. */
  readonly lengths: readonly number[]
}

/** Checks the bytes. Throws CorruptionError. */
export function readValues(state: Uint8Array): ValuesState {
  const { tag, extras, count, view } = headerOf(state)
  const form = forms.find((known) => known.tag === tag)
  if (form === undefined) throw damaged(`the form is not one of distinct values [form=${tag}]`, 1)
  if (extras !== 0) throw damaged(`unknown extras [extras=${extras}]`, 2)
  const first = headerBytes + (form.width === 0 ? count * 4 : 0)
  if (form.width > 0) {
    checkLength(state, first + count * form.width)
    return { form, count, first, lengths: [] }
  }
  if (first > state.length) checkLength(state, first)
  const lengths = Array.from({ length: count }, (_, index) => view.getUint32(headerBytes + index * 4, true))
  checkLength(
    state,
    lengths.reduce((sum, length) => sum + length, first),
  )
  return { form, count, first, lengths }
}

/** The values of a state, in its order. */
export function valuesIn(state: Uint8Array): SetValue[] {
  const { form, count, first, lengths } = readValues(state)
  if (form.width === 0) {
    let at = first
    return lengths.map((length) => {
      at += length
      return state.slice(at - length, at)
    })
  }
  const view = viewOf(state)
  return Array.from({ length: count }, (_, index) => integerAt(view, first + index * form.width, form.width))
}

function integerAt(view: DataView, at: number, width: number): bigint {
  if (width === 8) return view.getBigInt64(at, true)
  let value = 0n
  for (let word = width - 8; word >= 0; word -= 8) value = (value << 64n) | view.getBigUint64(at + word, true)
  return value
}

// Numbers -----------------------------------------------------------------------------------------------------------

/** Null if the state would have more bytes. Sorts the numbers, which contain no NaN. */
export function encodeNumbers(numbers: Float64Array, bytesMax: number): Uint8Array | null {
  numbers.sort()
  let count = 0
  for (let at = 0; at < numbers.length; at++) if (at === 0 || !Object.is(numbers[at], numbers[at - 1])) count++
  const extras = count < numbers.length ? 1 : 0
  const bytes = headerBytes + count * (extras === 0 ? 8 : 12)
  if (bytes > bytesMax) return null
  const state = Buffer.alloc(bytes)
  writeHeader(state, numbersTag, extras, count)
  const frequencies = headerBytes + count * 8
  for (let at = 0, index = -1, begin = 0; at < numbers.length; at++) {
    const number = numbers[at] ?? 0
    if (at === 0 || !Object.is(number, numbers[at - 1])) {
      state.writeDoubleLE(number, headerBytes + ++index * 8)
      begin = at
    }
    if (extras === 1) state.writeUInt32LE(at - begin + 1, frequencies + index * 4)
  }
  return state
}

export interface NumbersState {
  /** Ascending. */
  readonly numbers: Float64Array
  /** How often each of them occurs; null: once. */
  readonly frequencies: Uint32Array | null
}

/** Checks the bytes. Throws CorruptionError. */
export function readNumbers(state: Uint8Array): NumbersState {
  const { tag, extras, count, view } = headerOf(state)
  if (tag !== numbersTag) throw damaged(`the form is not that of numbers [form=${tag}]`, 1)
  if (extras > 1) throw damaged(`unknown extras [extras=${extras}]`, 2)
  checkLength(state, headerBytes + count * (extras === 0 ? 8 : 12))
  const numbers = new Float64Array(count)
  const frequencies = extras === 0 ? null : new Uint32Array(count)
  const last = headerBytes + count * 8
  for (let index = 0; index < count; index++) {
    const [at, number] = [headerBytes + index * 8, view.getFloat64(headerBytes + index * 8, true)]
    const before = index === 0 ? Number.NEGATIVE_INFINITY : (numbers[index - 1] ?? 0)
    if (!(number >= before)) throw damaged('numbers are not in order', at)
    numbers[index] = number
    if (frequencies === null) continue
    const frequency = view.getUint32(last + index * 4, true)
    if (frequency === 0) throw damaged('a number occurs never', last + index * 4)
    frequencies[index] = frequency
  }
  return { numbers, frequencies }
}

// Checks ------------------------------------------------------------------------------------------------------------

function viewOf({ buffer, byteOffset, byteLength }: Uint8Array): DataView {
  return new DataView(buffer, byteOffset, byteLength)
}

function headerOf(state: Uint8Array) {
  if (state.length < headerBytes) throw damaged(`it is too short [bytes=${state.length}]`, 0)
  const view = viewOf(state)
  if (view.getUint8(0) !== format) throw damaged(`unknown format [format=${view.getUint8(0)}]`, 0)
  return { tag: view.getUint8(1), extras: view.getUint16(2, true), count: view.getUint32(4, true), view }
}

function checkLength({ length }: Uint8Array, expected: number): void {
  if (length !== expected) throw damaged(`wrong length [bytes=${length}, expected=${expected}]`, headerBytes)
}

function damaged(reason: string, offset: number): CorruptionError {
  return new CorruptionError(`the state of an aggregate is damaged: ${reason}`, 'BINARY value', offset)
}
