// Serialises the generated Thrift structures of Parquet in Thrift's compact protocol.
//
//   structure   fields | 0
//   field       (distance from the last field's id << 4 | type), or type and the id as a zigzag varint when the
//               distance is none of 1 to 15 | value; a BOOLEAN's type is its value
//   list        (count << 4 | type), or 0xf0 | type and the count as a varint from 15 on | elements
//
// It replaces the library's writer, which produces the same bytes but creates them by the slow `new Buffer`: with that,
// an export spent more time on Thrift than on compression.

import { assert } from '../../base/assert.js'

/** Types of the Thrift API mapped to those of the encoding. */
const compactTypes: Readonly<Record<number, number>> = {
  2: 1, // BOOLEAN, the type of true
  3: 3, // byte
  4: 7, // double
  6: 4, // i16
  8: 5, // i32
  10: 6, // i64
  11: 8, // binary and string
  12: 12, // structure
  13: 11, // map
  14: 10, // set
  15: 9, // list
}
const truth = { yes: 1, no: 2 }
const shortListMax = 14
const shortDistanceMax = 15
/** Integers are limited so that twice the value, as in zigzag encoding, is exact. */
const integersEnd = 2 ** 52
const varintBytesMax = 8
const firstBytes = 1024

export class ThriftWriter {
  #bytes = Buffer.allocUnsafe(firstBytes)
  #at = 0
  #lastField = 0
  readonly #lastFields: number[] = []
  /** Id of a BOOLEAN field whose value, which is part of the field header, is still to be written; -1 if none. */
  #booleanField = -1

  /** The serialised bytes. */
  done(): Buffer {
    assert(this.#lastFields.length === 0, 'F2: every structure of a footer is closed')
    return this.#bytes.subarray(0, this.#at)
  }

  writeStructBegin(): void {
    this.#lastFields.push(this.#lastField)
    this.#lastField = 0
  }

  writeStructEnd(): void {
    this.#lastField = this.#lastFields.pop() as number
  }

  writeFieldBegin(_name: string, type: number, id: number): void {
    const compact = compactOf(type)
    if (compact === truth.yes) this.#booleanField = id
    else this.#field(compact, id)
  }

  writeFieldEnd(): void {}

  writeFieldStop(): void {
    this.#byte(0)
  }

  writeListBegin(type: number, count: number): void {
    const compact = compactOf(type)
    if (count <= shortListMax) this.#byte((count << 4) | compact)
    else {
      this.#byte(0xf0 | compact)
      this.#varint(count)
    }
  }

  writeListEnd(): void {}

  writeBool(value: boolean): void {
    const compact = value ? truth.yes : truth.no
    if (this.#booleanField < 0) this.#byte(compact)
    else this.#field(compact, this.#booleanField)
    this.#booleanField = -1
  }

  writeByte(value: number): void {
    this.#byte(value & 255)
  }

  writeI16(value: number): void {
    this.writeI32(value)
  }

  writeI32(value: number): void {
    this.#varint(((value << 1) ^ (value >> 31)) >>> 0)
  }

  writeI64(value: number | { valueOf(): number }): void {
    const number = Number(value)
    assert(Math.abs(number) < integersEnd, 'F2: a number of a Parquet footer is exact')
    this.#varint(number < 0 ? -number * 2 - 1 : number * 2)
  }

  writeDouble(value: number): void {
    this.#room(8)
    this.#at = this.#bytes.writeDoubleLE(value, this.#at)
  }

  writeString(value: string): void {
    this.writeBinary(Buffer.from(value, 'utf8'))
  }

  writeBinary(value: Uint8Array): void {
    this.#varint(value.length)
    this.#room(value.length)
    this.#bytes.set(value, this.#at)
    this.#at += value.length
  }

  #field(compact: number, id: number): void {
    const distance = id - this.#lastField
    this.#lastField = id
    if (distance > 0 && distance <= shortDistanceMax) this.#byte((distance << 4) | compact)
    else {
      this.#byte(compact)
      this.writeI32(id)
    }
  }

  #byte(value: number): void {
    this.#room(1)
    this.#bytes[this.#at++] = value
  }

  #varint(value: number): void {
    this.#room(varintBytesMax)
    assert(value >= 0, 'F2: a varint is not negative')
    let rest = value
    for (; rest > 127; rest = Math.floor(rest / 128)) this.#bytes[this.#at++] = (rest % 128) | 128
    this.#bytes[this.#at++] = rest
  }

  #room(bytes: number): void {
    if (this.#at + bytes <= this.#bytes.length) return
    const larger = Buffer.allocUnsafe(Math.max(this.#bytes.length * 2, this.#at + bytes))
    this.#bytes.copy(larger, 0, 0, this.#at)
    this.#bytes = larger
  }
}

function compactOf(type: number): number {
  const compact = compactTypes[type]
  assert(compact !== undefined, 'F2: the structures of the Parquet format have values of known types only')
  return compact
}
