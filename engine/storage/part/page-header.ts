// Encodes Parquet page headers, for parts (the Parquet files of tables) and exported files, in Thrift's compact
// protocol: a field is a byte (its distance from the last field << 4 | its type: 5 = i32, 12 = structure), then the
// value, i32 as a zigzag varint. A zero ends a structure.
//
//   PageHeader            1 type | 2 uncompressed bytes | 3 compressed bytes | 4 crc | then the structure of the kind
//   DataPageHeader        1 values | 2 encoding | 3 encoding of definition levels | 4 of repetition levels    (field 5)
//   DictionaryPageHeader  1 values | 2 encoding                                                              (field 7)
//   DataPageHeaderV2      1 values | 2 nulls | 3 rows | 4 encoding | 5 bytes of definition levels
//                         | 6 of repetition levels | 7 values are compressed (type 1: true, 2: false)      (field 8)
//
// Hand-written, so that writing pages does not load the large generated Thrift library.

import { assert } from '../../base/assert.js'
import { encodings } from './parquet-types.js'

export interface PageHeader {
  readonly kind: 'data' | 'dictionary' | SecondHeader
  /** Number of values, including NULLs. */
  readonly values: number
  readonly encoding: number
  readonly rawBytes: number
  readonly bytes: number
  /** CRC-32 of the page's bytes, unsigned. */
  readonly crc: number
}

/** Fields of a data page in version 2. */
interface SecondHeader {
  readonly nulls: number
  readonly rows: number
  readonly definitionBytes: number
  readonly repetitionBytes: number
  /** False if the values are stored uncompressed. */
  readonly compressed: boolean
}

const headerBytesMax = 96
const kinds = { data: { type: 0, field: 5 }, dictionary: { type: 2, field: 7 }, second: { type: 3, field: 8 } } as const
const nextI32 = 0x15
const nextTrue = 0x11
const nextFalse = 0x12
const structure = 12

export function encodePageHeader({ kind, values, encoding, rawBytes, bytes, crc }: PageHeader): Uint8Array {
  const second = typeof kind === 'string' ? null : kind
  const { type, field } = kinds[typeof kind === 'string' ? kind : 'second']
  const target = new Uint8Array(headerBytesMax)
  let at = 0
  for (const value of [type, rawBytes, bytes, crc]) at = putI32(target, at, value)
  target[at++] = ((field - 4) << 4) | structure
  at = putI32(target, at, values)
  if (second !== null) for (const value of [second.nulls, second.rows]) at = putI32(target, at, value)
  at = putI32(target, at, encoding)
  if (second !== null) {
    for (const value of [second.definitionBytes, second.repetitionBytes]) at = putI32(target, at, value)
    target[at++] = second.compressed ? nextTrue : nextFalse
  }
  if (kind === 'data') at = putI32(target, putI32(target, at, encodings.rle), encodings.rle)
  assert(at + 2 <= headerBytesMax, 'K2: a page header has its room')
  // The two zero bytes that end the inner and the outer structure are already there.
  return target.subarray(0, at + 2)
}

function putI32(target: Uint8Array, at: number, value: number): number {
  target[at++] = nextI32
  let rest = ((value << 1) ^ (value >> 31)) >>> 0
  for (; rest > 127; rest >>>= 7) target[at++] = (rest & 127) | 128
  target[at++] = rest
  return at
}
