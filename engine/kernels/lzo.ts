// A compressor for LZO1X, the format of Parquet's LZO codec: produces a valid stream of literals and of the matches
// that a small hash table finds. Few readers support the codec, so speed does not matter.
//
//   stream     instructions, ended by 11 00 00
//   literals   L = n - 3 in the low 4 bits (4..18 bytes), or 00, a 00 for each 255 beyond 18, the rest (never 00)
//              as the first instruction of a stream: 17 + n for up to 238 bytes
//   match      001LLLLL (length 3..33, or 20, a 00 for each 255 beyond 33, the rest), then distance - 1 in 14 bits,
//              shifted left by 2; the low 2 bits count literals that follow without an instruction of their own

const hashBits = 14
const distanceMax = 16_384
const matchBytesMin = 4
/** At most this many literals are stored within the preceding match instruction. */
const ridingMax = 3

/** The compressed bytes. */
export function lzoCompress(source: Uint8Array): Uint8Array {
  const output = new LzoOutput(source)
  const table = new Int32Array(1 << hashBits).fill(-1)
  const view = new DataView(source.buffer, source.byteOffset, source.byteLength)
  let from = 0
  for (let at = 0; at + matchBytesMin <= source.length; ) {
    const word = view.getUint32(at, true)
    const slot = Math.imul(word, 0x9e37_79b1) >>> (32 - hashBits)
    const candidate = table[slot]!
    table[slot] = at
    if (candidate < 0 || at - candidate > distanceMax || view.getUint32(candidate, true) !== word) {
      at++
      continue
    }
    let end = at + matchBytesMin
    while (end < source.length && source[end] === source[end - at + candidate]) end++
    output.literals(from, at)
    output.match(at - candidate, end - at)
    at = end
    from = end
  }
  output.literals(from, source.length)
  return output.finish()
}

class LzoOutput {
  private readonly source: Uint8Array
  private readonly target: Uint8Array
  private at = 0
  /** Position of the second byte of the last match instruction, 0 = none. */
  private riding = 0

  constructor(source: Uint8Array) {
    this.source = source
    this.target = new Uint8Array(source.length + (source.length >>> 4) + 64)
  }

  literals(from: number, to: number): void {
    const count = to - from
    if (count === 0) return
    const first = this.at === 0
    if (first && count <= 238) this.put(17 + count)
    else if (count <= ridingMax) this.target[this.riding] = this.target[this.riding]! | count
    else if (count <= 18) this.put(count - 3)
    else this.long(0, count - 18)
    this.target.set(this.source.subarray(from, to), this.at)
    this.at += count
    this.riding = 0
  }

  match(distance: number, length: number): void {
    if (length <= 33) this.put(0x20 | (length - 2))
    else this.long(0x20, length - 33)
    this.riding = this.at
    this.put(((distance - 1) << 2) & 0xff)
    this.put((distance - 1) >>> 6)
  }

  finish(): Uint8Array {
    this.target.set([0x11, 0, 0], this.at)
    return this.target.subarray(0, this.at + 3)
  }

  /** Writes an instruction followed by its length. */
  private long(instruction: number, length: number): void {
    this.put(instruction)
    let rest = length
    for (; rest > 255; rest -= 255) this.put(0)
    this.put(rest)
  }

  private put(byte: number): void {
    this.target[this.at++] = byte
  }
}
