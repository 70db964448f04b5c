// Reference implementation, in plain TypeScript, of the WebAssembly kernel that decodes line protocol; property tests
// compare the two. The contract is in engine/kernels/ilp.ts.

import { type IlpKernel, ilpColumnBytes, ilpKinds } from '../../engine/kernels/ilp.js'
import * as layout from '../../engine/kernels/ilp-layout.js'
import * as symbolLayout from '../../engine/memory/dictionary-layout.js'
import type { SharedMemory } from '../../engine/memory/shared-memory.js'
import { findSymbol, internSymbol, longHash, rehashSymbols, validText } from './symbols.js'

export function ilpReference(memory: SharedMemory): IlpKernel {
  return {
    decode: (state) => decode(memory, state),
    intern: (dictionary, address, bytes) => internSymbol(memory, dictionary, address, bytes),
    find: (dictionary, address, bytes) => findSymbol(memory, dictionary, address, bytes),
    templateSlot: (templates, mask, name) => templateSlot(memory, templates, mask, name),
    rehashDictionary: (dictionary) => rehashSymbols(memory, dictionary),
  }
}

/** Outcome of a value or a line: the address behind it, or what went wrong. */
type Outcome = number | 'otherTable' | 'full' | 'odd' | 'needDictionary'

const longMax = 0x7fff_ffff_ffff_ffffn
const wordPattern = /^(?:t|T|true|True|TRUE|(f|F|false|False|FALSE))(?=[, \n\r])/
const numberPattern = /^-?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?/

function u32(memory: SharedMemory, address: number): number {
  return memory.u32[address >>> 2]!
}

/** Up to `bytes` bytes of the block as one character each. */
function latin(memory: SharedMemory, address: number, bytes: number): string {
  return Buffer.from(memory.u8.buffer, address, bytes).toString('latin1')
}

function decode(memory: SharedMemory, state: number): number {
  const end = u32(memory, state + layout.stateEnd)
  let cursor = u32(memory, state + layout.stateCursor)
  let template = u32(memory, state + layout.stateCurrent)
  if (cursor >= end) return layout.done
  if (memory.u8[end - 1] !== 10) return layout.badBlock
  memory.u32[(state + layout.stateStoppedTemplate) >>> 2] = 0
  let code: number = layout.done
  while (cursor < end) {
    if (template === 0 || !isOfTable(memory, cursor, template)) {
      const [templates, mask] = [u32(memory, state + layout.stateTemplates), u32(memory, state + layout.stateMask)]
      const other = u32(memory, templateSlot(memory, templates, mask, cursor))
      if (other !== 0) template = other
    }
    const next = template === 0 ? 'otherTable' : parseLine(memory, cursor, end, template, state)
    if (typeof next === 'string') {
      code = stopCodes[next]
      if (next !== 'otherTable') memory.u32[(state + layout.stateStoppedTemplate) >>> 2] = template
      break
    }
    cursor = next
  }
  memory.u32[(state + layout.stateCursor) >>> 2] = cursor
  memory.u32[(state + layout.stateCurrent) >>> 2] = template
  return code
}

const stopCodes: Readonly<Record<Exclude<Outcome, number>, number>> = {
  otherTable: layout.otherLine,
  odd: layout.otherLine,
  full: layout.templateFull,
  needDictionary: layout.dictionaryFull,
}

/** The bytes that end a name or a symbol: newline, space, comma, equals sign, backslash. */
const stops = [10, 32, 44, 61, 92]

function wordBytes(memory: SharedMemory, at: number): number {
  let bytes = 0
  while (!stops.includes(memory.u8[at + bytes]!)) bytes++
  return bytes
}

function templateSlot(memory: SharedMemory, templates: number, mask: number, name: number): number {
  let at = longHash(memory.u8, name, wordBytes(memory, name)) & mask
  for (;;) {
    const template = u32(memory, templates + at * 4)
    if (template === 0 || isOfTable(memory, name, template)) return templates + at * 4
    at = (at + 1) & mask
  }
}

function isOfTable(memory: SharedMemory, at: number, template: number): boolean {
  const bytes = u32(memory, template + layout.templateNameBytes)
  const name = u32(memory, template + layout.templateNameAddress)
  for (let i = 0; i < bytes; i++) if (memory.u8[at + i] !== memory.u8[name + i]) return false
  return [32, 44].includes(memory.u8[at + bytes]!)
}

/** Whether the column's key stands there, whatever its separator is. */
function isNamed(memory: SharedMemory, at: number, column: number): boolean {
  const bytes = u32(memory, column + layout.columnKeyBytes)
  const key = u32(memory, column + layout.columnKeyAddress)
  for (let i = 1; i < bytes; i++) if (memory.u8[at + i] !== memory.u8[key + i]) return false
  return true
}

function parseLine(memory: SharedMemory, start: number, end: number, template: number, state: number): Outcome {
  if (!isOfTable(memory, start, template)) return 'otherTable'
  const row = u32(memory, template + layout.templateRows)
  if (row >= u32(memory, template + layout.templateMaxRows)) return 'full'
  const columnsAt = u32(memory, template + layout.templateColumnsAt)
  const fieldsAt = u32(memory, template + layout.templateFieldsAt)
  const columns = Array.from(
    { length: u32(memory, template + layout.templateColumns) },
    (_, index) => columnsAt + index * ilpColumnBytes,
  )
  const seen = new Set<number>()
  let at = start + u32(memory, template + layout.templateNameBytes)
  let inFields = false
  while (seen.size === 0 || !(memory.u8[at] === 10 || memory.u8[at] === 13 || (memory.u8[at] === 32 && inFields))) {
    if (memory.u8[at] === 32) inFields = true
    else if (memory.u8[at] !== 44) return 'odd'
    const column = columns.find((c) => c >= fieldsAt === inFields && !seen.has(c) && isNamed(memory, at, c))
    if (column === undefined) return 'odd'
    seen.add(column)
    const outcome = parseValue(memory, at + u32(memory, column + layout.columnKeyBytes), end, column, row)
    if (outcome === 'needDictionary') {
      memory.u32[(state + layout.stateStoppedColumn) >>> 2] = columns.indexOf(column)
      memory.u32[(state + layout.stateStoppedBytes) >>> 2] = wordBytes(
        memory,
        at + u32(memory, column + layout.columnKeyBytes),
      )
    }
    if (typeof outcome === 'string') return outcome
    if (outcome >= end) return 'odd'
    at = outcome
  }
  const outcome = parseLineEnd(memory, at, template, state, row)
  if (typeof outcome === 'string') return outcome
  for (const column of columns) {
    if (seen.has(column)) memory.u32[(column + layout.columnPresent) >>> 2] = 1
    else storeNull(memory, column, row)
  }
  return outcome
}

function storeNull(memory: SharedMemory, column: number, row: number): void {
  const kind = u32(memory, column + layout.columnKind)
  const values = u32(memory, column + layout.columnValues)
  switch (kind) {
    case ilpKinds.boolean:
    case ilpKinds.i8:
      memory.i8[values + row] = 0
      return
    case ilpKinds.i16:
      memory.i16[(values >>> 1) + row] = 0
      return
    case ilpKinds.symbol:
      memory.i32[(values >>> 2) + row] = -1
      return
    case ilpKinds.i32:
      memory.i32[(values >>> 2) + row] = -0x8000_0000
      return
    case ilpKinds.f32:
      memory.f32[(values >>> 2) + row] = Number.NaN
      return
    case ilpKinds.f64:
      memory.f64[(values >>> 3) + row] = Number.NaN
      return
    case ilpKinds.text:
    case ilpKinds.array:
      memory.i32.set([0, -1], (values >>> 2) + row * 2)
      return
    default:
      memory.i64[(values >>> 3) + row] = -(2n ** 63n)
  }
}

function parseValue(memory: SharedMemory, at: number, end: number, column: number, row: number): Outcome {
  const kind = u32(memory, column + layout.columnKind)
  const values = u32(memory, column + layout.columnValues)
  switch (kind) {
    case ilpKinds.symbol:
      return parseSymbol(memory, at, u32(memory, column + layout.columnDictionary), values + row * 4)
    case ilpKinds.boolean: {
      const word = wordPattern.exec(latin(memory, at, 6))
      if (word === null) return 'odd'
      memory.u8[values + row] = word[1] === undefined ? 1 : 0
      return at + word[0].length
    }
    case ilpKinds.f32:
    case ilpKinds.f64:
      return parseNumber(memory, at, kind, values, row)
    case ilpKinds.text:
      return parseText(memory, at, values + row * 8)
    case ilpKinds.array:
      return parseArray(memory, at, end, values + row * 8)
    case ilpKinds.micros:
    case ilpKinds.nanos:
    case ilpKinds.millis:
      return parseTime(memory, at, kind, values + row * 8)
    default:
      return parseInteger(memory, at, kind, values, row)
  }
}

function parseSymbol(memory: SharedMemory, at: number, dictionary: number, out: number): Outcome {
  const bytes = wordBytes(memory, at)
  if (bytes === 0) return 'odd'
  const id = internSymbol(memory, dictionary, at, bytes)
  if (id === symbolLayout.full) return 'needDictionary'
  if (id === symbolLayout.invalid) return 'odd'
  memory.i32[out >>> 2] = id
  return at + bytes
}

/** Digits with an optional sign; at most 19 of them, and within 64 bits. */
function integerAt(memory: SharedMemory, at: number): { value: bigint; end: number; negative: boolean } | null {
  const negative = memory.u8[at] === 45
  const digits = /^\d+/.exec(latin(memory, at + (negative ? 1 : 0), 24))
  if (digits === null || digits[0].length > 19 || BigInt(digits[0]) > longMax) return null
  const value = BigInt(digits[0])
  return { value: negative ? -value : value, end: at + (negative ? 1 : 0) + digits[0].length, negative }
}

function parseInteger(memory: SharedMemory, at: number, kind: number, values: number, row: number): Outcome {
  const found = integerAt(memory, at)
  if (found === null || memory.u8[found.end] !== 105) return 'odd'
  const { value, end } = found
  if (kind === ilpKinds.i64) {
    memory.i64[(values + row * 8) >>> 3] = value
    return end + 1
  }
  const high = kind === ilpKinds.i8 ? 127n : kind === ilpKinds.i16 ? 32767n : 2147483647n
  if (value > high || value < (kind === ilpKinds.i32 ? -high : -high - 1n)) return 'odd'
  if (kind === ilpKinds.i8) memory.i8[values + row] = Number(value)
  else if (kind === ilpKinds.i16) memory.i16[(values >>> 1) + row] = Number(value)
  else memory.i32[(values >>> 2) + row] = Number(value)
  return end + 1
}

function parseNumber(memory: SharedMemory, at: number, kind: number, values: number, row: number): Outcome {
  const found = numberAt(memory, at)
  if (found === null) return 'odd'
  if (kind === ilpKinds.f64) {
    memory.f64[(values >>> 3) + row] = found.value
    return found.end
  }
  if (Math.abs(Math.fround(found.value)) === Infinity && Math.abs(found.value) !== Infinity) return 'odd'
  memory.f32[(values >>> 2) + row] = found.value
  return found.end
}

function numberAt(memory: SharedMemory, at: number): { value: number; end: number } | null {
  if (memory.u8[at] === 61 && memory.u8[at + 1] === 16) {
    const bytes = memory.u8.slice(at + 2, at + 10)
    return { value: new DataView(bytes.buffer).getFloat64(0, true), end: at + 10 }
  }
  const integer = integerAt(memory, at)
  if (integer !== null && memory.u8[integer.end] === 105) return { value: Number(integer.value), end: integer.end + 1 }
  const lineBytes = memory.u8.indexOf(10, at) - at
  const text = numberPattern.exec(latin(memory, at, lineBytes))?.[0]
  if (text === undefined || /[eEi]/.test(String.fromCharCode(memory.u8[at + text.length]!))) return null
  const digits = text.replace(/[eE].*/, '').replace(/[-.]/g, '')
  if (digits.length > 19 && digits.replace(/^0+/, '').length > 19) return null
  const value = Number(text)
  return Number.isFinite(value) ? { value, end: at + text.length } : null
}

function parseTime(memory: SharedMemory, at: number, kind: number, out: number): Outcome {
  const found = integerAt(memory, at)
  if (found === null) return 'odd'
  const unit = { 116: 1000n, 110: 1n, 105: 0n }[memory.u8[found.end]!]
  if (unit === undefined) return 'odd'
  const target = kind === ilpKinds.nanos ? 1n : kind === ilpKinds.micros ? 1000n : 1_000_000n
  const from = unit === 0n ? target : unit
  const nanos = found.value * from
  if (found.negative && nanos % target !== 0n) return 'odd'
  const value = nanos / target
  if (value > longMax || value < -longMax) return 'odd'
  memory.i64[out >>> 3] = value
  return found.end + 1
}

function parseText(memory: SharedMemory, at: number, out: number): Outcome {
  if (memory.u8[at] !== 34) return 'odd'
  let bytes = 0
  for (;;) {
    const byte = memory.u8[at + 1 + bytes]
    if (byte === 34) break
    if (byte === 92 || byte === 10) return 'odd'
    bytes++
  }
  if (!validText(memory, at + 1, bytes)) return 'odd'
  memory.u32[out >>> 2] = at + 1
  memory.u32[(out + 4) >>> 2] = bytes
  return at + bytes + 2
}

function parseArray(memory: SharedMemory, at: number, end: number, out: number): Outcome {
  const dimensions = memory.u8[at + 3]!
  if (at + 4 > end || memory.u8[at] !== 61 || memory.u8[at + 1] !== 14 || memory.u8[at + 2] !== 10) return 'odd'
  if (dimensions < 1 || dimensions > 32 || at + 4 + dimensions * 4 > end) return 'odd'
  const header = new DataView(memory.u8.slice(at + 4, at + 4 + dimensions * 4).buffer)
  let values = 1
  for (let i = 0; i < dimensions; i++) {
    values *= header.getUint32(i * 4, true)
    if (values > 0x10000000) return 'odd'
  }
  const bytes = 1 + dimensions * 4 + values * 8
  if (at + 3 + bytes >= end) return 'odd'
  memory.u32[out >>> 2] = at + 3
  memory.u32[(out + 4) >>> 2] = bytes
  return at + 3 + bytes
}

function parseLineEnd(memory: SharedMemory, start: number, template: number, state: number, row: number): Outcome {
  const target = u32(memory, template + layout.templateNanos) === 1 ? 1n : 1000n
  let nanos = memory.i64[(state + layout.stateNowMicros) >>> 3]! * 1000n
  let at = start
  if (memory.u8[at] === 32) {
    const found = integerAt(memory, at + 1)
    if (found === null || memory.u8[at + 1] === 45) return 'odd'
    at = found.end
    const suffix = { 116: 1000n, 110: 1n }[memory.u8[at]!]
    if (suffix !== undefined) at++
    const unit = memory.i64[(state + layout.stateUnitNanos) >>> 3]!
    nanos = found.value * (suffix ?? (unit === 0n ? guessedUnit(found.value) : unit))
  } else if (memory.u8[at] === 10 && memory.u8[at - 1] === 13) return 'odd'
  if (nanos / target > longMax) return 'odd'
  if (memory.u8[at] === 13) at++
  if (memory.u8[at] !== 10) return 'odd'
  putTimestamp(memory, template, row, nanos / target)
  return at + 1
}

function guessedUnit(value: bigint): bigint {
  const unit = [1_000_000_000n, 1_000_000n, 1000n].find((nanos) => value * nanos < 5n * 10n ** 18n)
  return unit ?? 1n
}

function putTimestamp(memory: SharedMemory, template: number, row: number, ts: bigint): void {
  const at = (template + 32) >>> 3
  memory.i64[(u32(memory, template + layout.templateTimestamps) >>> 3) + row] = ts
  if (ts < memory.i64[at + 2]!) memory.u32[(template + layout.templateSorted) >>> 2] = 0
  memory.i64[at + 2] = ts
  if (ts < memory.i64[at]!) memory.i64[at] = ts
  if (ts > memory.i64[at + 1]!) memory.i64[at + 1] = ts
  memory.u32[(template + layout.templateRows) >>> 2] = row + 1
}
