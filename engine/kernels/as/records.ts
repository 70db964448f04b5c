// WebAssembly kernel that converts JSON records to line protocol. engine/kernels/records.ts defines the interface and
// the structures.
//
// A record is read in one pass: each key is compared with the one at the same place of the preceding record, and values
// are copied to their places in the line. Unusual records are left to the caller.

import * as layout from '../records-layout'

/** Memory of the kernel in the STATE: the digits of a timestamp, then the stack of open objects. */
const statePrivate = 64
/** Predictions in a FIELD, from the previous record: the FIELD that followed, and the first FIELD of this object. */
const fieldNext = 24
const fieldFirst = 28

const ok: i32 = 0
const other: i32 = 1
const full: i32 = 2

const valueAction: u32 = 0
const symbolAction: u32 = 1
const doubleAction: u32 = 2
const timeAction: u32 = 3
const timestampAction: u32 = 4

const depthMax: u32 = 16
const fieldBytes: usize = 64
/** What a value needs besides its name and text, overshooting copies included. */
const slack: usize = 64

let state: usize = 0
let root: usize = 0
/** State of the current record: the line, its fields, and the digits of its timestamp. */
let line: usize = 0
let lineEnd: usize = 0
let fields: usize = 0
let fieldsStart: usize = 0
let fieldsEnd: usize = 0
let stamp: usize = 0
let stampBytes: usize = 0
let isFull: bool = false

@inline
function copy(target: usize, source: usize, bytes: usize): void {
  for (let i: usize = 0; i < bytes; i += 16) v128.store(target + i, v128.load(source + i))
}

@inline
function blanks(at: usize): usize {
  let byte = load<u8>(at)
  while (byte == 32 || byte == 10 || byte == 13 || byte == 9) byte = load<u8>(++at)
  return at
}

/** The first byte that needs attention: a quote, a backslash or a control character. */
@inline
function textEnd(at: usize): usize {
  for (;;) {
    const x = v128.load(at)
    const special = v128.or(i8x16.eq(x, i8x16.splat(34)), i8x16.eq(x, i8x16.splat(92)))
    const stops = i8x16.bitmask(v128.or(special, i8x16.lt_u(x, i8x16.splat(32))))
    if (stops) return at + <usize>ctz(stops)
    at += 16
  }
  return at
}

/** Whether a word of line protocol needs escapes, for a blank, a comma or an equals sign. */
@inline
function isPlainWord(at: usize, end: usize): bool {
  for (; at < end; at += 16) {
    const x = v128.load(at)
    const blank = v128.or(i8x16.eq(x, i8x16.splat(32)), i8x16.eq(x, i8x16.splat(44)))
    let stops: u32 = i8x16.bitmask(v128.or(blank, i8x16.eq(x, i8x16.splat(61))))
    if (end - at < 16) stops &= (1 << <u32>(end - at)) - 1
    if (stops) return false
  }
  return true
}

/** Appends `,name=text` to the line. */
function symbol(nameAt: usize, nameBytes: usize, at: usize, end: usize): bool {
  const bytes = end - at
  if (bytes == 0) return true
  if (line + nameBytes + bytes * 2 + slack > lineEnd) {
    isFull = true
    return false
  }
  store<u8>(line, 44)
  copy(line + 1, nameAt, nameBytes)
  line += 1 + nameBytes
  if (isPlainWord(at, end)) {
    copy(line, at, bytes)
    line += bytes
    return true
  }
  for (; at < end; at++) {
    const byte = load<u8>(at)
    if (byte == 32 || byte == 44 || byte == 61) store<u8>(line++, 92)
    store<u8>(line++, byte)
  }
  return true
}

/** Starts a field: a comma unless it is the first, and `name=`. */
@inline
function begin(nameAt: usize, nameBytes: usize, bytes: usize): bool {
  if (fields + nameBytes + bytes + slack > fieldsEnd) return false
  if (fields > fieldsStart) store<u8>(fields++, 44)
  copy(fields, nameAt, nameBytes)
  fields += nameBytes
  return true
}

/** Appends `name="text"`. */
@inline
function text(nameAt: usize, nameBytes: usize, at: usize, end: usize): bool {
  const bytes = end - at
  if (!begin(nameAt, nameBytes, bytes)) return false
  store<u8>(fields, 34)
  copy(fields + 1, at, bytes)
  store<u8>(fields + 1 + bytes, 34)
  fields += bytes + 2
  return true
}

/** Appends `name=word` and a suffix unless it is 0. */
@inline
function word(field: usize, at: usize, end: usize, suffix: u8): bool {
  const bytes = end - at
  if (!begin(load<u32>(field, layout.fieldName), load<u32>(field, layout.fieldNameBytes), bytes)) return false
  copy(fields, at, bytes)
  fields += bytes
  if (suffix) store<u8>(fields++, suffix)
  return true
}

@inline
function isDigit(at: usize): bool {
  return load<u8>(at) - 48 < 10
}

function digits(at: usize, count: i32): i32 {
  let value = 0
  for (let i = 0; i < count; i++) {
    if (!isDigit(at + i)) return -1
    value = value * 10 + <i32>load<u8>(at + i) - 48
  }
  return value
}

/** Parses yyyy-MM-dd(T| )HH:mm:ss[.f{1,9}][Z] to microseconds since the epoch; negative if it has another form. */
function isoMicros(at: usize, end: usize): i64 {
  if (end - at < 19) return -1
  const year = digits(at, 4)
  const month = digits(at + 5, 2)
  const day = digits(at + 8, 2)
  const hour = digits(at + 11, 2)
  const minute = digits(at + 14, 2)
  const second = digits(at + 17, 2)
  if (load<u8>(at + 4) != 45 || load<u8>(at + 7) != 45 || load<u8>(at + 13) != 58 || load<u8>(at + 16) != 58) return -1
  if (load<u8>(at + 10) != 84 && load<u8>(at + 10) != 32) return -1
  if (year < 1970 || month < 1 || month > 12 || day < 1 || day > 28 + lateDays(year, month)) return -1
  if (hour < 0 || hour > 23 || minute < 0 || minute > 59 || second < 0 || second > 59) return -1
  let micros: i64 = 0
  let rest = at + 19
  if (rest < end && load<u8>(rest) == 46) {
    let unit: i64 = 100_000
    const first = ++rest
    for (; rest < end && isDigit(rest); rest++) {
      micros += <i64>(load<u8>(rest) - 48) * unit
      unit /= 10
    }
    if (rest == first || rest - first > 9) return -1
  }
  if (rest < end && load<u8>(rest) == 90) rest++
  if (rest != end) return -1
  const seconds = <i64>(hour * 3600 + minute * 60 + second) + <i64>epochDays(year, month, day) * 86400
  return seconds * 1_000_000 + micros
}

/** Number of days of the month above 28. */
function lateDays(year: i32, month: i32): i32 {
  if (month == 2) return (year & 3) == 0 && (year % 100 != 0 || year % 400 == 0) ? 1 : 0
  return month == 4 || month == 6 || month == 9 || month == 11 ? 2 : 3
}

function epochDays(year: i32, month: i32, day: i32): i32 {
  const y = month <= 2 ? year - 1 : year
  const era = y / 400
  const yearOfEra = y - era * 400
  const dayOfYear = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1
  return era * 146097 + yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear - 719468
}

/** Writes the number in decimal; returns the address after it. */
function print(target: usize, value: u64): usize {
  let bytes: usize = 1
  for (let rest = value / 10; rest > 0; rest /= 10) bytes++
  for (let at = target + bytes; at > target; value /= 10) store<u8>(--at, 48 + <u8>(value % 10))
  return target + bytes
}

/** Sets the line's designated timestamp. */
function stampMicros(micros: i64): void {
  const end = print(stamp, micros)
  store<u8>(end, 116)
  stampBytes = end + 1 - stamp
}

function stampDigits(at: usize, bytes: usize): bool {
  const units = load<u32>(state, layout.stateUnits)
  const auto: u32 = bytes <= 10 ? 9 : bytes <= 13 ? 6 : bytes <= 16 ? 3 : 0
  const zeros: usize = units == 0 ? auto : units == 1 ? 9 : units == 2 ? 6 : units == 3 ? 3 : 0
  // Nanoseconds have 19 digits; those that begin with 9 may overflow.
  if (bytes + zeros > 19 || (bytes + zeros == 19 && load<u8>(at) == 57) || load<u8>(at) == 48) return false
  for (let i: usize = 0; i < bytes; i++) store<u8>(stamp + i, load<u8>(at + i))
  for (let i: usize = 0; i < zeros; i++) store<u8>(stamp + bytes + i, 48)
  store<u8>(stamp + bytes + zeros, 110)
  stampBytes = bytes + zeros + 1
  return true
}

/**
 * Processes a string from its first character on. Returns the address after its closing quote; 0 if it is not
 * supported.
 */
function textValue(field: usize, at: usize): usize {
  const end = textEnd(at)
  if (load<u8>(end) != 34) return 0
  const action = load<u32>(field, layout.fieldAction)
  if (action == valueAction || action == doubleAction) {
    return text(load<u32>(field, layout.fieldName), load<u32>(field, layout.fieldNameBytes), at, end) ? end + 1 : 0
  }
  if (action == symbolAction) return symbol(load<u32>(field, layout.fieldName), load<u32>(field, layout.fieldNameBytes), at, end) ? end + 1 : 0
  if (load<u32>(state, layout.stateIso) == 0 || (action != timeAction && action != timestampAction)) return 0
  const micros = isoMicros(at, end)
  if (micros < 0) return 0
  if (action == timestampAction) {
    stampMicros(micros)
    return end + 1
  }
  if (!begin(load<u32>(field, layout.fieldName), load<u32>(field, layout.fieldNameBytes), 24)) return 0
  fields = print(fields, micros)
  store<u8>(fields++, 116)
  return end + 1
}

/** Returns the address after the number; 0 if it is invalid or not supported. */
function numberValue(field: usize, start: usize): usize {
  let at = start
  if (load<u8>(at) == 45) at++
  const whole = at
  if (load<u8>(at) == 48) at++
  else while (isDigit(at)) at++
  const wholeBytes = at - whole
  if (wholeBytes == 0) return 0
  let integer = true
  if (load<u8>(at) == 46) {
    integer = false
    const fraction = ++at
    while (isDigit(at)) at++
    if (at == fraction) return 0
  }
  if ((load<u8>(at) | 32) == 101) {
    integer = false
    at++
    if (load<u8>(at) == 43 || load<u8>(at) == 45) at++
    const exponent = at
    while (isDigit(at)) at++
    if (at == exponent) return 0
  }
  const action = load<u32>(field, layout.fieldAction)
  if (action == symbolAction) return symbol(load<u32>(field, layout.fieldName), load<u32>(field, layout.fieldNameBytes), start, at) ? at : 0
  if (action == timestampAction) return integer && whole == start && stampDigits(start, wholeBytes) ? at : 0
  if (action == doubleAction || (action == valueAction && !integer)) return word(field, start, at, 0) ? at : 0
  return action == valueAction && wholeBytes <= 18 && word(field, start, at, 105) ? at : 0
}

/** Processes true, false or null. */
function literalValue(field: usize, at: usize): usize {
  const four = load<u32>(at)
  const action = load<u32>(field, layout.fieldAction)
  const isTrue = four == 0x65757274
  if (four == 0x6c6c756e) return action > timeAction ? 0 : at + 4
  if (!isTrue && (four != 0x736c6166 || load<u8>(at + 4) != 101)) return 0
  const end = at + (isTrue ? 4 : 5)
  if (action == symbolAction) return symbol(load<u32>(field, layout.fieldName), load<u32>(field, layout.fieldNameBytes), at, end) ? end : 0
  if (action > timeAction) return 0
  return word(field, at, at + 1, 0) ? end : 0
}

/** Whether the key is that of the field, in that object. */
@inline
function fits(field: usize, at: usize, parent: usize): bool {
  if (load<u32>(field, layout.fieldParent) != <u32>parent) return false
  const same = i8x16.eq(v128.and(v128.load(at), v128.load(field, layout.fieldMask)), v128.load(field, layout.fieldKeyHead))
  if (i8x16.bitmask(same) != 0xffff) return false
  const bytes: usize = load<u32>(field, layout.fieldKeyBytes)
  const key: usize = load<u32>(field, layout.fieldKey)
  for (let i: usize = 16; i < bytes; i++) if (load<u8>(at + i) != load<u8>(key + i)) return false
  return true
}

/** Finds the field of a key. `last`: the preceding field in the object, 0 for none. Returns 0 if the key is unknown. */
function fieldAt(at: usize, parent: usize, last: usize): usize {
  const predicted: usize = last ? load<u32>(last, fieldNext) : load<u32>(parent, fieldFirst)
  if (predicted && fits(predicted, at, parent)) return predicted
  const count: usize = load<u32>(state, layout.stateFieldCount)
  for (let i: usize = 1; i < count; i++) {
    const field = root + i * fieldBytes
    if (!fits(field, at, parent)) continue
    if (last) store<u32>(last, <u32>field, fieldNext)
    else store<u32>(parent, <u32>field, fieldFirst)
    return field
  }
  return 0
}

/**
 * Processes an object after its opening brace; returns the address after the outermost closing one, 0 if not supported.
 */
function members(start: usize): usize {
  const stack = state + statePrivate + 64
  let depth: u32 = 0
  let parent = root
  let last: usize = 0
  let at = blanks(start)
  let open = load<u8>(at) != 125
  for (;;) {
    if (open) {
      const field = fieldAt(at, parent, last)
      if (!field) return 0
      at = blanks(at + load<u32>(field, layout.fieldKeyBytes))
      if (load<u8>(at) != 58) return 0
      at = blanks(at + 1)
      const first = load<u8>(at)
      if (first == 123) {
        if (depth == depthMax) return 0
        store<u32>(stack + (<usize>depth << 3), <u32>parent)
        store<u32>(stack + (<usize>depth << 3), <u32>field, 4)
        depth++
        parent = field
        last = 0
        at = blanks(at + 1)
        open = load<u8>(at) != 125
        continue
      }
      if (first == 34) at = textValue(field, at + 1)
      else if (first == 45 || first - 48 < 10) at = numberValue(field, at)
      else at = literalValue(field, at)
      if (!at) return 0
      last = field
      at = blanks(at)
    }
    const next = load<u8>(at)
    if (next == 44) {
      at = blanks(at + 1)
      open = true
    } else if (next == 125) {
      at = blanks(at + 1)
      if (depth == 0) return at
      depth--
      parent = load<u32>(stack + (<usize>depth << 3))
      last = load<u32>(stack + (<usize>depth << 3), 4)
      open = false
    } else return 0
  }
  return 0
}

function keyValue(record: usize): bool {
  const bytes = load<i32>(record, layout.recordKeyBytes)
  const mode = load<u32>(state, layout.stateKeyMode)
  if (bytes < 0 || mode == 0) return true
  const at: usize = load<u32>(record, layout.recordKey)
  const end = textEnd(at)
  if (end < at + <usize>bytes) return false
  const nameAt: usize = load<u32>(state, layout.stateKeyName)
  const nameBytes: usize = load<u32>(state, layout.stateKeyNameBytes)
  return mode == 1 ? text(nameAt, nameBytes, at, at + <usize>bytes) : symbol(nameAt, nameBytes, at, at + <usize>bytes)
}

/** Writes the record's line at `out`; `line` is its end then. */
function record(record: usize, out: usize): i32 {
  const end: usize = load<u32>(record, layout.recordValue) + load<u32>(record, layout.recordValueBytes)
  const tableBytes: usize = load<u32>(record, layout.recordTableBytes)
  const at = blanks(load<u32>(record, layout.recordValue))
  if (load<u8>(at) != 123) return other
  if (out + tableBytes + slack > lineEnd) return full
  copy(out, load<u32>(record, layout.recordTable), tableBytes)
  line = out + tableBytes
  fields = fieldsStart
  stampBytes = 0
  if (!keyValue(record) || members(at + 1) != end) return other
  if (load<u32>(state, layout.stateNative)) {
    const ms = load<f64>(record, layout.recordMillis)
    if (!(ms > 0 && ms < 9.0e12)) return other
    stampBytes = print(stamp, <u64>ms * 1_000_000) + 1 - stamp
    store<u8>(stamp + stampBytes - 1, 110)
  }
  const bytes = fields - fieldsStart
  if (bytes == 0 && line == out + tableBytes) return other
  if (line + bytes + slack > lineEnd) return full
  if (bytes) {
    store<u8>(line, 32)
    copy(line + 1, fieldsStart, bytes)
    line += 1 + bytes
  }
  if (stampBytes) {
    store<u8>(line, 32)
    copy(line + 1, stamp, stampBytes)
    line += 1 + stampBytes
  }
  store<u8>(line++, 10)
  return ok
}

export function encodeRecords(address: usize): i32 {
  state = address
  root = load<u32>(state, layout.stateFields)
  lineEnd = load<u32>(state, layout.stateOutEnd)
  fieldsStart = load<u32>(state, layout.stateScratch)
  fieldsEnd = load<u32>(state, layout.stateScratchEnd)
  stamp = state + statePrivate
  const count = load<u32>(state, layout.stateCount)
  let out: usize = load<u32>(state, layout.stateOut)
  let code = ok
  let index = load<u32>(state, layout.stateIndex)
  for (; index < count; index++) {
    isFull = false
    code = record(load<u32>(state, layout.stateRecords) + (<usize>index << 5), out)
    if (code != ok) break
    out = line
  }
  store<u32>(state, index, layout.stateIndex)
  store<u32>(state, <u32>out, layout.stateOut)
  return code == other && isFull ? full : code
}
