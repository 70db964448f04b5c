// Encodes values in each encoding of Parquet (plain, deltas, byte streams, ..), for the tests' own Parquet writer.

/** As a physical type has them: INT96, BYTE_ARRAY and FIXED_LEN_BYTE_ARRAY as bytes. */
export type Raw = number | bigint | boolean | Buffer

export function valuesIn(encoding: number, physical: number, values: readonly Raw[]): Buffer {
  switch (encoding) {
    case 0:
      return plain(physical, values)
    case 3: {
      const runs = runsOf(values.map(Number), 1)
      const length = Buffer.alloc(4)
      length.writeUInt32LE(runs.length)
      return Buffer.concat([length, runs])
    }
    case 5:
      return deltas(
        values.map((value) => BigInt(value as bigint | number)),
        physical === 1 ? 32 : 64,
      )
    case 6:
      return deltaLengths(values as readonly Buffer[])
    case 7:
      return deltaStrings(values as readonly Buffer[])
    case 9:
      return streams(physical, values)
    default:
      throw new Error(`no such encoding [encoding=${encoding}]`)
  }
}

function plain(physical: number, values: readonly Raw[]): Buffer {
  if (physical === 0) {
    const bytes = Buffer.alloc(Math.ceil(values.length / 8))
    values.forEach((value, index) => {
      if (value === true) bytes[index >>> 3] = (bytes[index >>> 3] ?? 0) | (1 << (index & 7))
    })
    return bytes
  }
  return Buffer.concat(
    values.flatMap((value) => (physical === 6 ? lengthAndBytes(value as Buffer) : one(physical, value))),
  )
}

function one(physical: number, value: Raw): Buffer {
  if (Buffer.isBuffer(value)) return value
  const bytes = Buffer.alloc(physical === 1 || physical === 4 ? 4 : 8)
  if (physical === 1) bytes.writeInt32LE(Number(value))
  else if (physical === 2) bytes.writeBigInt64LE(BigInt(value))
  else if (physical === 4) bytes.writeFloatLE(Number(value))
  else bytes.writeDoubleLE(Number(value))
  return bytes
}

function lengthAndBytes(value: Buffer): Buffer[] {
  const length = Buffer.alloc(4)
  length.writeUInt32LE(value.length)
  return [length, value]
}

/** The hybrid of runs and bit packing. */
export function runsOf(values: readonly number[], width: number): Buffer {
  const parts: Buffer[] = []
  for (let from = 0; from < values.length; ) {
    let run = 1
    while (from + run < values.length && values[from + run] === values[from]) run++
    if (run >= 8) {
      const value = Buffer.alloc(Math.ceil(width / 8))
      if (value.length > 0) value.writeUIntLE(values[from] ?? 0, 0, value.length)
      parts.push(varint(BigInt(run * 2)), value)
      from += run
    } else {
      const group = values.slice(from, from + 8)
      parts.push(varint(3n), packed([...group, ...Array(8 - group.length).fill(0)].map(BigInt), width))
      from += 8
    }
  }
  return Buffer.concat(parts)
}

function packed(values: readonly bigint[], width: number): Buffer {
  let all = 0n
  values.forEach((value, index) => {
    all |= BigInt.asUintN(width, value) << BigInt(index * width)
  })
  const bytes = Buffer.alloc((values.length * width) / 8)
  for (let i = 0; i < bytes.length; i++) bytes[i] = Number((all >> BigInt(i * 8)) & 255n)
  return bytes
}

function varint(value: bigint): Buffer {
  const bytes: number[] = []
  let rest = value
  for (; rest > 127n; rest >>= 7n) bytes.push(Number(rest & 127n) | 128)
  return Buffer.from([...bytes, Number(rest)])
}

function zigzag(value: bigint): Buffer {
  return varint(BigInt.asUintN(64, (value << 1n) ^ (value >> 63n)))
}

const blockValues = 256
const miniValues = 32

/** In blocks of 256, which are other ones than the server writes. */
function deltas(values: readonly bigint[], bits: number): Buffer {
  const parts = [varint(BigInt(blockValues)), varint(BigInt(blockValues / miniValues)), varint(BigInt(values.length))]
  parts.push(zigzag(values[0] ?? 0n))
  const steps = values.slice(1).map((value, index) => BigInt.asIntN(bits, value - (values[index] ?? 0n)))
  for (let from = 0; from < steps.length; from += blockValues) {
    const block = steps.slice(from, from + blockValues)
    const least = block.toSorted((one, other) => Number(one > other) - Number(one < other))[0] ?? 0n
    const minis = Array.from({ length: blockValues / miniValues }, (_, mini) =>
      block.slice(mini * miniValues, (mini + 1) * miniValues).map((step) => BigInt.asUintN(bits, step - least)),
    )
    const widths = minis.map((mini) => Math.max(0, ...mini.map((step) => step.toString(2).replace(/^0$/, '').length)))
    parts.push(zigzag(least), Buffer.from(widths))
    minis.forEach((mini, index) => {
      if (mini.length > 0)
        parts.push(packed([...mini, ...Array(miniValues - mini.length).fill(0n)], widths[index] ?? 0))
    })
  }
  return Buffer.concat(parts)
}

function deltaLengths(values: readonly Buffer[]): Buffer {
  return Buffer.concat([
    deltas(
      values.map(({ length }) => BigInt(length)),
      32,
    ),
    ...values,
  ])
}

function deltaStrings(values: readonly Buffer[]): Buffer {
  const prefixes = values.map((value, index) => {
    const before = values[index - 1] ?? Buffer.alloc(0)
    let same = 0
    while (same < value.length && same < before.length && value[same] === before[same]) same++
    return same
  })
  const suffixes = values.map((value, index) => value.subarray(prefixes[index]))
  return Buffer.concat([deltas(prefixes.map(BigInt), 32), deltaLengths(suffixes)])
}

function streams(physical: number, values: readonly Raw[]): Buffer {
  const all = plain(physical, values)
  const width = values.length === 0 ? 0 : all.length / values.length
  const bytes = Buffer.alloc(all.length)
  for (let i = 0; i < all.length; i++) bytes[(i % width) * values.length + Math.floor(i / width)] = all[i] ?? 0
  return bytes
}
