// Parses the parameters of a Bind message lazily: keeps offsets into its bytes and reads values when they are
// needed.
//
//   count:int16 format:int16* count:int16 (bytes:int32 value)* count:int16 format:int16*

import { NetworkError } from '../../../engine/base/errors.js'
import type { BoundParameters } from '../../../engine/engine.js'
import { PgError } from './sqlstate.js'

const noBytes = Buffer.alloc(0)
const noPlaces = new Int32Array(0)
const allText: readonly number[] = []
const allBinary: readonly number[] = [1]

export const noParameters: BoundParameters = {
  count: 0,
  bytes: noBytes,
  starts: noPlaces,
  ends: noPlaces,
  isBinary: () => false,
}

class Places implements BoundParameters {
  readonly count: number
  bytes: Buffer
  readonly starts: Int32Array
  readonly ends: Int32Array
  formats: readonly number[]

  constructor(bytes: Buffer, count: number, formats: readonly number[]) {
    this.bytes = bytes
    this.count = count
    this.starts = new Int32Array(count)
    this.ends = new Int32Array(count)
    this.formats = formats
  }

  isBinary(index: number): boolean {
    const { formats } = this
    return (formats.length === 1 ? formats[0] : formats[index]) === 1
  }
}

/** Remembers the formats of a statement's last Bind, because drivers repeat the same ones. */
export class BindMemory {
  /** Encoded formats. */
  #bytes: Buffer = noBytes
  #formats: readonly number[] = allText
  #places: Places | null = null

  /** `at`: offset of the `count` formats. */
  formats(bytes: Buffer, at: number, count: number): readonly number[] {
    if (count < 2) return formatsAt(bytes, at, count)
    if (this.#formats.length === count && sameBytes(this.#bytes, bytes, at)) return this.#formats
    this.#formats = formatsAt(bytes, at, count)
    this.#bytes = Buffer.from(bytes.subarray(at, at + count * 2))
    return this.#formats
  }

  /** `reuse`: the previous result may be overwritten. */
  places(bytes: Buffer, count: number, formats: readonly number[], reuse: boolean): Places {
    const places = this.#places
    if (!reuse) return new Places(bytes, count, formats)
    if (places?.count === count) {
      places.bytes = bytes
      places.formats = formats
      return places
    }
    this.#places = new Places(bytes, count, formats)
    return this.#places
  }
}

function sameBytes(known: Buffer, bytes: Buffer, at: number): boolean {
  for (let index = 0; index < known.length; index++) if (known[index] !== bytes[at + index]) return false
  return true
}

/** Result formats, as in PgEncoding. */
export interface BoundFields {
  readonly bound: BoundParameters
  readonly binary: readonly boolean[]
}

const textResults: readonly boolean[] = []
const binaryResults: readonly boolean[] = [true]

/** Parses what follows the two names of the message. `reuse`: the memory's previous result may be overwritten. */
export function readBound(bytes: Buffer, start: number, end: number, memory: BindMemory, reuse: boolean): BoundFields {
  const formatCount = countAt(bytes, start, end, 2)
  const formats = memory.formats(bytes, start + 2, formatCount)
  let at = start + 2 + formatCount * 2
  const parameters = countAt(bytes, at, end, 4)
  at += 2
  if (formats.length > 1 && formats.length !== parameters) {
    throw new PgError('08P01', `bind message has ${formats.length} parameter formats but ${parameters} parameters`)
  }
  const bound = parameters === 0 ? noParameters : memory.places(bytes, parameters, formats, reuse)
  const { starts, ends } = bound
  for (let index = 0; index < parameters; index++) {
    if (at + 4 > end) throw tooShort()
    const length = bytes.readInt32BE(at)
    at += 4
    if (length > end - at) throw tooShort()
    starts[index] = at
    ends[index] = length < 0 ? -1 : at + length
    if (length > 0) at += length
  }
  const resultCount = countAt(bytes, at, end, 2)
  const results = formatsAt(bytes, at + 2, resultCount)
  at += 2 + resultCount * 2
  if (at !== end) throw new NetworkError('the message is longer than its fields')
  const binary =
    results === allText ? textResults : results === allBinary ? binaryResults : results.map((format) => format === 1)
  return { bound, binary }
}

/** Reads a count of items that take at least `size` bytes each. */
function countAt(bytes: Buffer, at: number, end: number, size: number): number {
  if (at + 2 > end) throw tooShort()
  const value = bytes.readUInt16BE(at)
  if (at + 2 + value * size > end) throw tooShort()
  return value
}

function formatsAt(bytes: Buffer, at: number, count: number): readonly number[] {
  if (count === 0) return allText
  if (count === 1 && bytes.readInt16BE(at) === 1) return allBinary
  return Array.from({ length: count }, (_, index) => {
    const format = bytes.readInt16BE(at + index * 2)
    if (format !== 0 && format !== 1) throw new PgError('22023', `unsupported format code: ${format}`)
    return format
  })
}

function tooShort(): NetworkError {
  return new NetworkError('the message is shorter than its fields')
}
