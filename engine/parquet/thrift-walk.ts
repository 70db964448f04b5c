// ThriftWalk: walks through the Thrift structures (compact encoding) of a Parquet file that another program wrote,
// field by field and without allocating memory. The library that decodes such structures allocates whatever a length in
// the file says. So a structure is walked through first, which rejects lengths of lists and strings that exceed the
// bytes available.
//
//   structure   fields, then a zero byte
//   field       distance to the last field's id << 4 | type, or (distance 0) the type and the id as a zigzag varint
//   types       1 2 boolean (no bytes within a structure, one in a list) | 3 byte | 4 5 6 integers as varints | 7
//               double | 8 length and bytes | 9 10 list, set | 11 map | 12 structure
//   list        size << 4 | type of the elements; a size above 14 follows as a varint

/** `short`: the input ends within a value; otherwise it is not valid Thrift. */
export class ThriftError extends Error {
  readonly short: boolean

  constructor(short: boolean) {
    super(short ? 'the structure is cut off' : 'the structure is damaged')
    this.name = 'ThriftError'
    this.short = short
  }
}

export const thriftTypes = { list: 9, structure: 12 } as const

const depthMax = 24
/** Maximal elements of a list within a structure that is decoded as a whole. */
const listMax = 65_536

export class ThriftWalk {
  readonly #bytes: Uint8Array
  at: number

  constructor(bytes: Uint8Array, at = 0) {
    this.#bytes = bytes
    this.at = at
  }

  /**
   * Visits the fields of a structure; if a callback does not advance, the value is skipped. A callback returns false to
   * stop.
   */
  fields(visit: (id: number, type: number) => boolean): void {
    for (let id = 0; ; ) {
      const head = this.#byte()
      if (head === 0) return
      id = head >>> 4 === 0 ? this.#shortId() : id + (head >>> 4)
      const before = this.at
      if (!visit(id, head & 15)) return
      if (this.at === before) this.skip(head & 15)
    }
  }

  /** The header of a list; each of its elements has at least one byte. */
  list(max = listMax): { readonly type: number; readonly count: number } {
    const head = this.#byte()
    const count = head >>> 4 === 15 ? this.#varint() : head >>> 4
    if (count > this.#bytes.length - this.at) throw new ThriftError(true)
    if (count > max) throw new ThriftError(false)
    return { type: head & 15, count }
  }

  /** The bytes from here to the end of a structure. */
  structure(): Uint8Array {
    const from = this.at
    this.skip(thriftTypes.structure)
    return this.#bytes.subarray(from, this.at)
  }

  /** A signed integer of up to 64 bits. */
  integer(): bigint {
    let value = 0n
    for (let shift = 0n; shift < 70n; shift += 7n) {
      const byte = this.#byte()
      value |= BigInt(byte & 127) << shift
      if (byte < 128) return BigInt.asIntN(64, (value >> 1n) ^ -(value & 1n))
    }
    throw new ThriftError(false)
  }

  skip(type: number, depth = 0, inList = false): void {
    if (depth > depthMax) throw new ThriftError(false)
    switch (type) {
      case 1:
      case 2:
        if (inList) this.#move(1)
        break
      case 3:
        this.#move(1)
        break
      case 4:
      case 5:
      case 6:
        this.#varint(10)
        break
      case 7:
        this.#move(8)
        break
      case 8:
        this.#move(this.#varint())
        break
      case 9:
      case 10:
        this.#skipList(depth)
        break
      case 11:
        this.#skipMap(depth)
        break
      case 12:
        this.#skipStructure(depth)
        break
      default:
        throw new ThriftError(false)
    }
  }

  #skipList(depth: number): void {
    const { type, count } = this.list()
    for (let i = 0; i < count; i++) this.skip(type, depth + 1, true)
  }

  #skipStructure(depth: number): void {
    for (;;) {
      const head = this.#byte()
      if (head === 0) return
      if (head >>> 4 === 0) this.#shortId()
      this.skip(head & 15, depth + 1)
    }
  }

  #skipMap(depth: number): void {
    const count = this.#varint()
    if (count === 0) return
    if (count > listMax) throw new ThriftError(false)
    const types = this.#byte()
    for (let i = 0; i < count; i++) {
      this.skip(types >>> 4, depth + 1, true)
      this.skip(types & 15, depth + 1, true)
    }
  }

  #shortId(): number {
    const value = this.#varint()
    return (value >>> 1) ^ -(value & 1)
  }

  /** Values above 2^32 occur only when they are skipped. */
  #varint(bytesMax = 5): number {
    let value = 0
    for (let i = 0; i < bytesMax; i++) {
      const byte = this.#byte()
      value += (byte & 127) * 2 ** (i * 7)
      if (byte < 128) return value
    }
    throw new ThriftError(false)
  }

  #byte(): number {
    const byte = this.#bytes[this.at]
    if (byte === undefined) throw new ThriftError(true)
    this.at++
    return byte
  }

  #move(bytes: number): void {
    if (bytes > this.#bytes.length - this.at) throw new ThriftError(true)
    this.at += bytes
  }
}
