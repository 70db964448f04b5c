// The parameters of a Bind message, left where they came: places in its bytes, read when they are needed.
//
//   count:int16 format:int16* count:int16 (bytes:int32 value)* count:int16 format:int16*

import { NetworkError } from '../../engine/base/errors.js'
import type { BoundParameters } from '../../engine/engine.js'
import { PgError } from './sqlstate.js'

const noBytes = Buffer.alloc(0)
const noPlaces = new Int32Array(0)

export const noParameters: BoundParameters = {
  count: 0,
  bytes: noBytes,
  starts: noPlaces,
  ends: noPlaces,
  isBinary: () => false,
}

class Places implements BoundParameters {
  readonly count: number
  readonly bytes: Buffer
  readonly starts: Int32Array
  readonly ends: Int32Array
  readonly #formats: readonly number[]

  constructor(bytes: Buffer, count: number, formats: readonly number[]) {
    this.bytes = bytes
    this.count = count
    this.starts = new Int32Array(count)
    this.ends = new Int32Array(count)
    this.#formats = formats
  }

  isBinary(index: number): boolean {
    const formats = this.#formats
    return (formats.length === 1 ? formats[0] : formats[index]) === 1
  }
}

/** Formats of results as PgEncoding has them. */
export interface BoundFields {
  readonly bound: BoundParameters
  readonly binary: readonly boolean[]
}

const allText: readonly number[] = []
const allBinary: readonly number[] = [1]
const textResults: readonly boolean[] = []
const binaryResults: readonly boolean[] = [true]

/** What follows the two names of the message. */
export function readBound(bytes: Buffer, start: number, end: number): BoundFields {
  let at = start
  const count = (size: number): number => {
    if (at + 2 > end) throw tooShort()
    const value = bytes.readUInt16BE(at)
    at += 2
    if (at + value * size > end) throw tooShort()
    return value
  }
  const formats = formatsAt(bytes, at + 2, count(2))
  at += formatBytes(bytes, at)
  const parameters = count(4)
  if (formats.length > 1 && formats.length !== parameters) {
    throw new PgError('08P01', `bind message has ${formats.length} parameter formats but ${parameters} parameters`)
  }
  const bound = parameters === 0 ? noParameters : new Places(bytes, parameters, formats)
  for (let index = 0; index < parameters; index++) {
    if (at + 4 > end) throw tooShort()
    const length = bytes.readInt32BE(at)
    at += 4
    if (length > end - at) throw tooShort()
    bound.starts[index] = at
    bound.ends[index] = length < 0 ? -1 : at + length
    if (length > 0) at += length
  }
  const results = formatsAt(bytes, at + 2, count(2))
  at += formatBytes(bytes, at)
  if (at !== end) throw new NetworkError('the message is longer than its fields')
  const binary =
    results === allText ? textResults : results === allBinary ? binaryResults : results.map((format) => format === 1)
  return { bound, binary }
}

/** Bytes of the formats whose count has just been read. */
function formatBytes(bytes: Buffer, at: number): number {
  return bytes.readUInt16BE(at - 2) * 2
}

function formatsAt(bytes: Buffer, at: number, count: number): readonly number[] {
  if (count === 0) return allText
  if (count === 1 && bytes.readInt16BE(at) === 1) return allBinary
  return Array.from({ length: count }, (_, index) => {
    const format = bytes.readInt16BE(at + index * 2)
    if (format !== 0 && format !== 1) throw new PgError('08P01', `unsupported format code: ${format}`)
    return format
  })
}

function tooShort(): NetworkError {
  return new NetworkError('the message is shorter than its fields')
}
