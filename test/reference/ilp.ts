// Reference implementation, in plain TypeScript, of the WebAssembly kernel that decodes line protocol; property tests
// compare the two. The contract is in engine/kernels/ilp.ts.

import { type IlpKernel, ilpColumnBytes, ilpKinds } from '../../engine/kernels/ilp.js'
import * as layout from '../../engine/kernels/ilp-layout.js'
import * as symbolLayout from '../../engine/memory/dictionary-layout.js'
import type { SharedMemory } from '../../engine/memory/shared-memory.js'
import { findSymbol, internSymbol, rehashSymbols, validText } from './symbols.js'

export function ilpReference(memory: SharedMemory): IlpKernel {
  return {
    decode: (state) => decode(memory, state),
    intern: (dictionary, address, bytes) => internSymbol(memory, dictionary, address, bytes),
    find: (dictionary, address, bytes) => findSymbol(memory, dictionary, address, bytes),
    rehashDictionary: (dictionary) => rehashSymbols(memory, dictionary),
  }
}

/** Outcome of a value or a line: the address behind it, or what went wrong. */
type Outcome = number | 'keyDiffers' | 'odd' | 'needDictionary'

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
  let previous = u32(memory, state + layout.stateCurrent)
  if (cursor >= end) return layout.done
  if (memory.u8[end - 1] !== 10) return layout.badBlock
  memory.u32[(state + layout.stateStoppedTemplate) >>> 2] = 0
  let code: number = layout.done
  while (cursor < end) {
    const predicted = previous === 0 ? 0 : u32(memory, previous + 20)
    if (predicted !== 0 && u32(memory, predicted) >= u32(memory, predicted + 4)) {
      memory.u32[(state + layout.stateStoppedTemplate) >>> 2] = predicted
      code = layout.templateFull
      break
    }
    let template = predicted
    let next: Outcome = predicted === 0 ? 'keyDiffers' : parseLine(memory, cursor, end, predicted, state)
    if (next === 'keyDiffers') {
      const found = otherTemplate(memory, cursor, end, predicted, previous, state)
      template = found.template
      next = found.outcome
    }
    if (typeof next === 'string') {
      code = stopCode(memory, state, next)
      if (next !== 'keyDiffers') memory.u32[(state + layout.stateStoppedTemplate) >>> 2] = template
      break
    }
    previous = template
    cursor = next
  }
  memory.u32[(state + layout.stateCursor) >>> 2] = cursor
  memory.u32[(state + layout.stateCurrent) >>> 2] = previous
  return code
}

function stopCode(memory: SharedMemory, state: number, outcome: Outcome): number {
  if (outcome === 'needDictionary') return layout.dictionaryFull
  if (outcome === 'keyDiffers' && u32(memory, state + layout.stateStoppedTemplate) !== 0) return layout.templateFull
  return layout.otherLine
}

function otherTemplate(memory: SharedMemory, at: number, end: number, tried: number, previous: number, state: number) {
  const list = u32(memory, state + layout.stateTemplates)
  for (let i = 0; i < u32(memory, state + layout.stateCount); i++) {
    const template = u32(memory, list + i * 4)
    if (template === tried || !keyMatches(memory, at, u32(memory, template + layout.templateColumnsAt), 16)) continue
    if (u32(memory, template + layout.templateRows) >= u32(memory, template + layout.templateMaxRows)) {
      memory.u32[(state + layout.stateStoppedTemplate) >>> 2] = template
      continue
    }
    const outcome = parseLine(memory, at, end, template, state)
    if (outcome === 'keyDiffers') continue
    if (previous !== 0) memory.u32[(previous + 20) >>> 2] = template
    return { template, outcome }
  }
  return { template: tried, outcome: 'keyDiffers' as Outcome }
}

function keyMatches(memory: SharedMemory, at: number, column: number, bytesMax: number): boolean {
  const bytes = Math.min(bytesMax, u32(memory, column + layout.columnKeyBytes))
  const key = u32(memory, column + layout.columnKeyAddress)
  for (let i = 0; i < bytes; i++) if (memory.u8[at + i] !== memory.u8[key + i]) return false
  return true
}

function parseLine(memory: SharedMemory, start: number, end: number, template: number, state: number): Outcome {
  const row = u32(memory, template + layout.templateRows)
  const columnsAt = u32(memory, template + layout.templateColumnsAt)
  const columnsEnd = columnsAt + u32(memory, template + layout.templateColumns) * ilpColumnBytes
  let at = start
  for (let column = columnsAt; column < columnsEnd; column += ilpColumnBytes) {
    memory.u32[(state + layout.stateStoppedColumn) >>> 2] = column
    if (!keyMatches(memory, at, column, Number.MAX_SAFE_INTEGER)) return 'keyDiffers'
    const outcome = parseValue(memory, at + u32(memory, column + layout.columnKeyBytes), end, column, row)
    if (typeof outcome === 'string') return outcome
    if (outcome >= end) return 'odd'
    at = outcome
  }
  memory.u32[(state + layout.stateStoppedColumn) >>> 2] = columnsEnd
  return parseLineEnd(memory, at, template, state, row)
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
  let bytes = 0
  while (![10, 32, 44, 61, 92].includes(memory.u8[at + bytes]!)) bytes++
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
  return { value: Number(text), end: at + text.length }
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
  }
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
