// FlatWriter: serialises the metadata of Arrow messages in the FlatBuffers format, as far as Arrow needs it: tables,
// vectors and strings. It writes from the end of the buffer to its beginning, because an object can refer only to
// objects that have been written already. Offsets therefore count from the end of the buffer.

const firstBytes = 1024

export class FlatWriter {
  #bytes: Buffer = Buffer.alloc(firstBytes)
  /** Start of the last thing written. */
  #head = firstBytes
  /** Of the current table: the offset of each field, 0 = absent; and the end of the table. */
  #fields: number[] = []
  #tableEnd = 0

  get offset(): number {
    return this.#bytes.length - this.#head
  }

  beginTable(fields: number): void {
    this.#fields = new Array<number>(fields).fill(0)
    this.#tableEnd = this.offset
  }

  int8(field: number, value: number): void {
    this.#room(1)
    this.#bytes.writeInt8(value, this.#head)
    this.#fields[field] = this.offset
  }

  int16(field: number, value: number): void {
    this.#room(2)
    this.#bytes.writeInt16LE(value, this.#head)
    this.#fields[field] = this.offset
  }

  int32(field: number, value: number): void {
    this.#room(4)
    this.#bytes.writeInt32LE(value, this.#head)
    this.#fields[field] = this.offset
  }

  int64(field: number, value: number): void {
    this.#room(8)
    this.#bytes.writeBigInt64LE(BigInt(value), this.#head)
    this.#fields[field] = this.offset
  }

  /** `target`: result of endTable(), text() or a vector method. */
  reference(field: number, target: number): void {
    this.#putReference(target)
    this.#fields[field] = this.offset
  }

  endTable(): number {
    // The distance to the vtable, which is set below.
    this.#room(4)
    const table = this.offset
    for (let field = this.#fields.length - 1; field >= 0; field--) {
      const place = this.#fields[field] as number
      this.#put16(place === 0 ? 0 : table - place)
    }
    this.#put16(table - this.#tableEnd)
    this.#put16(4 + this.#fields.length * 2)
    this.#bytes.writeInt32LE(this.offset - table, this.#bytes.length - table)
    return table
  }

  text(value: string): number {
    const bytes = Buffer.from(value, 'utf8')
    this.#room(4, bytes.length + 1)
    this.#head -= bytes.length + 1 - 4
    this.#bytes[this.#head + bytes.length] = 0
    bytes.copy(this.#bytes, this.#head)
    return this.#length(bytes.length)
  }

  references(targets: readonly number[]): number {
    this.#room(4, targets.length * 4)
    this.#head += 4
    for (let index = targets.length - 1; index >= 0; index--) this.#putReference(targets[index] as number)
    return this.#length(targets.length)
  }

  /** A vector of structures of two i64. */
  pairs(pairs: readonly (readonly [number, number])[]): number {
    this.#room(8, pairs.length * 16)
    this.#head += 8
    for (let index = pairs.length - 1; index >= 0; index--) {
      const [first, second] = pairs[index] as readonly [number, number]
      this.#grow(16)
      this.#head -= 16
      this.#bytes.writeBigInt64LE(BigInt(first), this.#head)
      this.#bytes.writeBigInt64LE(BigInt(second), this.#head + 8)
    }
    return this.#length(pairs.length)
  }

  finish(root: number): Buffer {
    this.#room(8, 4)
    this.#head += 4
    this.#bytes.writeUInt32LE(this.offset - root, this.#head)
    return Buffer.from(this.#bytes.subarray(this.#head))
  }

  #length(count: number): number {
    this.#room(4)
    this.#bytes.writeUInt32LE(count, this.#head)
    return this.offset
  }

  #putReference(target: number): void {
    this.#room(4)
    this.#bytes.writeUInt32LE(this.offset - target, this.#head)
  }

  #put16(value: number): void {
    this.#grow(2)
    this.#head -= 2
    this.#bytes.writeUInt16LE(value, this.#head)
  }

  /** Makes room for `bytes`, aligned to their size once `after` more bytes have been written. */
  #room(bytes: number, after = 0): void {
    this.#grow(bytes * 2 + after)
    const padding = -(this.offset + after + bytes) & (bytes - 1)
    this.#bytes.fill(0, this.#head - padding, this.#head)
    this.#head -= padding + bytes
  }

  #grow(bytes: number): void {
    if (this.#head >= bytes) return
    const larger = Buffer.alloc((this.#bytes.length + bytes) * 2)
    const head = larger.length - this.offset
    this.#bytes.copy(larger, head, this.#head)
    this.#bytes = larger
    this.#head = head
  }
}
