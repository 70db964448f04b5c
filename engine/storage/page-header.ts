// Headers of pages of a part, in Thrift's compact encoding: a field is a byte (its distance from the last field << 4 |
// its type: 5 = i32, 12 = structure), then the value, i32 as a zigzag varint; a zero ends a structure.
//
//   PageHeader            1 type | 2 uncompressed bytes | 3 compressed bytes | 4 crc | 5 or 7 the structure of the kind
//   DataPageHeader        1 values | 2 encoding | 3 encoding of definition levels | 4 of repetition levels    (field 5)
//   DictionaryPageHeader  1 values | 2 encoding                                                              (field 7)
//
// The library's writer makes the same bytes. It calls `new Buffer` for each of them, which walks the stack to see who
// does: flushes spent a tenth of their time there.

import { encodings } from './parquet-types.js'

export interface PageHeader {
  readonly kind: 'data' | 'dictionary'
  /** NULLs included. */
  readonly values: number
  readonly encoding: number
  readonly rawBytes: number
  readonly bytes: number
  /** Of the bytes, unsigned. */
  readonly crc: number
}

const headerBytesMax = 64
const kinds = { data: { type: 0, field: 5 }, dictionary: { type: 2, field: 7 } } as const
const nextI32 = 0x15
const structure = 12

export function encodePageHeader({ kind, values, encoding, rawBytes, bytes, crc }: PageHeader): Uint8Array {
  const { type, field } = kinds[kind]
  const target = new Uint8Array(headerBytesMax)
  let at = 0
  for (const value of [type, rawBytes, bytes, crc]) at = putI32(target, at, value)
  target[at++] = ((field - 4) << 4) | structure
  at = putI32(target, putI32(target, at, values), encoding)
  if (kind === 'data') at = putI32(target, putI32(target, at, encodings.rle), encodings.rle)
  // The end of the inner structure and of the outer one: zeros already.
  return target.subarray(0, at + 2)
}

function putI32(target: Uint8Array, at: number, value: number): number {
  target[at++] = nextI32
  let rest = ((value << 1) ^ (value >> 31)) >>> 0
  for (; rest > 127; rest >>>= 7) target[at++] = (rest & 127) | 128
  target[at++] = rest
  return at
}
