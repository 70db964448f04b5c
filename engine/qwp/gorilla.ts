// Decodes timestamps that are stored as differences of differences, as in Facebook's time-series store Gorilla: where
// timestamps have equal distances, each takes one bit.
//
//   t[0] i64 | t[1] i64 | a code for each further value; bits are read from the lowest one on
//
//   0                 the same difference as before           10    changed by 7 bits, signed
//   110               changed by 9 bits                       1110  by 12 bits
//   1111              by 32 bits                              (prefixes are written in reading order)
//
// Values are 64 bits wide; here they are pairs of 32-bit words. Differences are doubles, exact below 2^53: larger ones
// take a path of bigints.

const exactMax = 2 ** 53
const word = 2 ** 32
const peekedBits = 25

/** Writes `count` values to `words` from index `to` on. The bytes are checked; four after them may be read, and are ignored. */
export function decodeGorilla(
  u8: Uint8Array,
  view: DataView,
  at: number,
  count: number,
  words: Uint32Array,
  to: number,
): void {
  for (let index = 0; index < Math.min(count, 2); index++) {
    words[to + index * 2] = view.getUint32(at + index * 8, true)
    words[to + index * 2 + 1] = view.getUint32(at + index * 8 + 4, true)
  }
  if (count < 3) return
  const first = view.getBigInt64(at, true)
  const difference = BigInt.asIntN(64, view.getBigInt64(at + 8, true) - first)
  const delta = Number(difference)
  if (Math.abs(delta) + (count - 2) * 2 ** 31 >= exactMax) {
    decodeLarge(u8, at + 16, count, first + difference, difference, words, to)
    return
  }
  decodeExact(u8, at + 16, count, delta, words, to)
}

function decodeExact(u8: Uint8Array, from: number, count: number, delta: number, words: Uint32Array, to: number): void {
  let low = words[to + 2]!
  let high = words[to + 3]!
  let bit = 0
  let step = delta
  let stepHigh = Math.floor(step / word)
  let stepLow = step - stepHigh * word
  const end = to + count * 2
  for (let out = to + 4; out < end; ) {
    const code = peek(u8, from, bit)
    let same = equalSteps(code)
    if (same > 0) bit += same
    else {
      step += changeOf(u8, from, bit, code)
      bit += gorillaBits(code)
      stepHigh = Math.floor(step / word)
      stepLow = step - stepHigh * word
      same = 1
    }
    for (; same > 0 && out < end; same--, out += 2) {
      low += stepLow
      high += stepHigh
      if (low >= word) {
        low -= word
        high++
      }
      words[out] = low
      words[out + 1] = high
    }
  }
}

/** Where the codes of `count` values end that begin at `at`, or -1: beyond `end`. */
export function gorillaEnd(u8: Uint8Array, at: number, end: number, count: number): number {
  const last = (end - at) * 8
  let bit = 0
  for (let index = 0; index < count; ) {
    if (bit >= last) return -1
    const code = peek(u8, at, bit)
    const same = Math.min(equalSteps(code), count - index)
    bit += same > 0 ? same : gorillaBits(code)
    index += same > 0 ? same : 1
  }
  return bit > last ? -1 : at + Math.ceil(bit / 8)
}

function decodeLarge(
  u8: Uint8Array,
  from: number,
  count: number,
  second: bigint,
  delta: bigint,
  words: Uint32Array,
  to: number,
): void {
  let bit = 0
  let step = delta
  let value = second
  for (let out = to + 4; out < to + count * 2; out += 2) {
    const code = peek(u8, from, bit)
    if ((code & 1) !== 0) step += BigInt(changeOf(u8, from, bit, code))
    bit += gorillaBits(code)
    value = BigInt.asUintN(64, value + step)
    words[out] = Number(value & 0xffff_ffffn)
    words[out + 1] = Number(value >> 32n)
  }
}

/** How many codes of equal steps the bits begin with; at most `peekedBits`. */
function equalSteps(code: number): number {
  return code === 0 ? peekedBits : Math.min(peekedBits, 31 - Math.clz32(code & -code))
}

/** At least `peekedBits` bits from the position on. */
function peek(u8: Uint8Array, from: number, bit: number): number {
  const at = from + (bit >>> 3)
  return (u8[at]! | (u8[at + 1]! << 8) | (u8[at + 2]! << 16) | (u8[at + 3]! << 24)) >>> (bit & 7)
}

/** Length of the code that begins with the lowest bit. */
function gorillaBits(code: number): number {
  if ((code & 1) === 0) return 1
  if ((code & 2) === 0) return 9
  if ((code & 4) === 0) return 12
  return (code & 8) === 0 ? 16 : 36
}

function changeOf(u8: Uint8Array, from: number, bit: number, code: number): number {
  if ((code & 2) === 0) return (code << 23) >> 25
  if ((code & 4) === 0) return (code << 20) >> 23
  if ((code & 8) === 0) return (code << 16) >> 20
  const low = peek(u8, from, bit + 4) & 0xffff
  return low | (peek(u8, from, bit + 20) << 16)
}
