// Reference implementation, in plain TypeScript, of decoders for Parquet pages written by other programs: hybrids of
// runs and bit-packed integers, bit-packed levels, and DELTA_BINARY_PACKED.

const word = 2n ** 64n

/** Reads varints from one place on; `at` is -1 once one did not end. */
class Varints {
  readonly #view: DataView
  readonly #end: number
  at: number

  constructor(view: DataView, source: number, bytes: number) {
    this.#view = view
    this.at = source
    this.#end = source + bytes
  }

  next(): bigint {
    let value = 0n
    for (let shift = 0n; this.at >= 0 && this.at < this.#end && shift < 64n; shift += 7n) {
      const byte = this.#view.getUint8(this.at++)
      value |= BigInt(byte & 127) << shift
      if (byte < 128) return value % word
    }
    this.at = -1
    return 0n
  }

  zigzag(): bigint {
    const value = this.next()
    return (value >> 1n) ^ -(value & 1n)
  }

  has(bytes: number): boolean {
    return this.at >= 0 && this.at + bytes <= this.#end
  }
}

/** `bits` bits from bit `first` on, the lowest first. */
function bitsAt(view: DataView, source: number, first: number, bits: number): bigint {
  let value = 0n
  for (let bit = 0; bit < bits; bit++) {
    const at = first + bit
    if (((view.getUint8(source + (at >>> 3)) >>> (at & 7)) & 1) === 1) value |= 1n << BigInt(bit)
  }
  return value
}

export function hybrid(
  view: DataView,
  source: number,
  bytes: number,
  count: number,
  bits: number,
  limit: number,
  target: number,
): number {
  if (bits < 0 || bits > 32 || bytes < 0) return -1
  const most = BigInt(limit >>> 0)
  const input = new Varints(view, source, bytes)
  let done = 0
  while (done < count) {
    const header = input.next()
    if (input.at < 0 || header > 0xffffffffn) return -1
    const size = Number(header >> 1n)
    const isRun = (header & 1n) === 0n
    const wanted = isRun ? (bits + 7) >>> 3 : size * bits
    if (!input.has(wanted)) return -1
    if (isRun ? size > count - done : size === 0) return -1
    const values = Math.min(isRun ? size : size * 8, count - done)
    if (!isRun && size * 8 - values > 503) return -1
    for (let i = 0; i < values; i++) {
      const value = bitsAt(view, input.at, isRun ? 0 : i * bits, bits)
      if (value > most) return -1
      view.setUint32(target + done++ * 4, Number(value), true)
    }
    input.at += wanted
  }
  return input.at - source
}

export function packedLevels(
  view: DataView,
  source: number,
  bytes: number,
  count: number,
  bits: number,
  limit: number,
  target: number,
): number {
  if (bits < 1 || bits > 32 || bytes < 0) return -1
  const needed = Math.ceil((count * bits) / 8)
  if (needed > bytes) return -1
  for (let i = 0; i < count; i++) {
    let value = 0
    for (let at = i * bits; at < (i + 1) * bits; at++)
      value = value * 2 + ((view.getUint8(source + (at >>> 3)) >>> (7 - (at & 7))) & 1)
    if (value > limit >>> 0) return -1
    view.setUint32(target + i * 4, value, true)
  }
  return needed
}

export function deltas(
  view: DataView,
  source: number,
  bytes: number,
  count: number,
  width: number,
  target: number,
): number {
  if (bytes < 0) return -1
  const input = new Varints(view, source, bytes)
  const [block, minis, total] = [input.next(), input.next(), input.next()]
  let value = input.zigzag()
  if (input.at < 0 || total !== BigInt(count)) return -1
  if (block === 0n || block > 0x100000n || minis === 0n || minis > block || block % minis !== 0n) return -1
  const size = Number(block / minis)
  if (size % 8 !== 0) return -1
  const put = (index: number): void => {
    if (width === 8) view.setBigInt64(target + index * 8, value, true)
    else view.setInt32(target + index * 4, Number(BigInt.asIntN(32, value)), true)
  }
  if (count > 0) put(0)
  let done = 1
  while (done < count) {
    const least = input.zigzag()
    if (!input.has(Number(minis))) return -1
    const widths = input.at
    input.at += Number(minis)
    for (let mini = 0; mini < Number(minis) && done < count; mini++) {
      const bits = view.getUint8(widths + mini)
      if (bits > 64 || !input.has((bits * size) / 8)) return -1
      for (let i = 0; i < size && done < count; i++) {
        value = BigInt.asIntN(64, value + least + bitsAt(view, input.at, i * bits, bits))
        put(done++)
      }
      input.at += (bits * size) / 8
    }
  }
  return input.at - source
}
