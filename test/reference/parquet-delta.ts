// Reference implementation in plain TypeScript of Parquet's encoding DELTA_BINARY_PACKED: blocks of 128 deltas in 4
// miniblocks, each packed with its own bit width.

type Width = 32 | 64

const blockValues = 128
const miniValues = 32

export function deltaEncode(view: DataView, values: number, count: number, width: Width, target: number): number {
  const out = { at: target }
  const valueAt = (index: number) =>
    width === 64 ? view.getBigInt64(values + index * 8, true) : BigInt(view.getInt32(values + index * 4, true))
  putVarint(view, out, BigInt(blockValues))
  putVarint(view, out, 4n)
  putVarint(view, out, BigInt(count))
  putVarint(view, out, zigzag(count > 0 ? valueAt(0) : 0n))
  for (let block = 1; block < count; block += blockValues) {
    const deltas: bigint[] = []
    for (let i = block; i < Math.min(block + blockValues, count); i++) {
      deltas.push(BigInt.asIntN(width, valueAt(i) - valueAt(i - 1)))
    }
    putBlock(view, out, deltas, width)
  }
  return out.at - target
}

function putBlock(view: DataView, out: { at: number }, deltas: readonly bigint[], width: Width): void {
  const least = deltas.reduce(smaller)
  putVarint(view, out, zigzag(least))
  const widths = out.at
  out.at += blockValues / miniValues
  for (let mini = 0; mini < blockValues / miniValues; mini++) {
    const rests = deltas
      .slice(mini * miniValues, (mini + 1) * miniValues)
      .map((delta) => BigInt.asUintN(width, delta - least))
    const bits = rests.reduce((most, rest) => Math.max(most, bitLength(rest)), 0)
    view.setUint8(widths + mini, bits)
    putBits(view, out, rests, bits)
  }
}

function smaller(a: bigint, b: bigint): bigint {
  return a < b ? a : b
}

function bitLength(value: bigint): number {
  return value === 0n ? 0 : value.toString(2).length
}

function putBits(view: DataView, out: { at: number }, rests: readonly bigint[], bits: number): void {
  let all = 0n
  rests.forEach((rest, index) => {
    all |= rest << BigInt(index * bits)
  })
  for (let i = 0; i < bits * 4; i++) view.setUint8(out.at++, Number((all >> BigInt(i * 8)) & 255n))
}

export function deltaDecode(
  view: DataView,
  source: number,
  bytes: number,
  count: number,
  width: Width,
  target: number,
): number {
  const end = source + bytes
  const input = { at: source }
  const head = [0, 1, 2, 3].map(() => getVarint(view, input, end))
  if (head[0] !== BigInt(blockValues) || head[1] !== 4n || head[2] !== BigInt(count) || input.at > end) return -1
  let value = unzigzag(head[3] as bigint)
  const store = (index: number) => {
    if (width === 64) view.setBigInt64(target + index * 8, BigInt.asIntN(64, value), true)
    else view.setInt32(target + index * 4, Number(BigInt.asIntN(32, value)), true)
  }
  if (count > 0) store(0)
  for (let done = 1; done < count; ) {
    const least = unzigzag(getVarint(view, input, end))
    const widths = input.at
    input.at += 4
    if (input.at > end) return -1
    for (let mini = 0; mini < 4 && done < count; mini++) {
      const bits = view.getUint8(widths + mini)
      if (bits > 64 || input.at + bits * 4 > end) return -1
      for (let i = 0; i < miniValues && done < count; i++) {
        value += least + bitsAt(view, input.at, i * bits, bits)
        store(done++)
      }
      input.at += bits * 4
    }
  }
  return input.at - source
}

function bitsAt(view: DataView, source: number, bit: number, bits: number): bigint {
  let value = 0n
  for (let i = 0; i < bits; i++) {
    const at = bit + i
    value |= BigInt((view.getUint8(source + (at >>> 3)) >>> (at & 7)) & 1) << BigInt(i)
  }
  return value
}

function putVarint(view: DataView, out: { at: number }, value: bigint): void {
  let rest = value
  for (; rest > 127n; rest >>= 7n) view.setUint8(out.at++, Number(rest & 127n) | 128)
  view.setUint8(out.at++, Number(rest))
}

/** Puts the position behind the end of all bytes when the number does not end. */
function getVarint(view: DataView, input: { at: number }, end: number): bigint {
  let value = 0n
  for (let shift = 0n; shift < 64n && input.at < end; shift += 7n) {
    const byte = view.getUint8(input.at++)
    value |= BigInt(byte & 127) << shift
    if (byte < 128) return BigInt.asUintN(64, value)
  }
  input.at = Number.POSITIVE_INFINITY
  return 0n
}

function zigzag(value: bigint): bigint {
  return BigInt.asUintN(64, (value << 1n) ^ (value >> 63n))
}

function unzigzag(value: bigint): bigint {
  return (value >> 1n) ^ -(value & 1n)
}
