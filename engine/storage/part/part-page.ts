// Encodes one page of one column of a Parquet file: NULLs become definition levels, and the other values are moved
// together, converted to their Parquet type and encoded. Also estimates, on the first page of a column, which encoding
// makes it smallest.

import { assert, unreachable } from '../../base/assert.js'
import type { ParquetKernel } from '../../kernels/parquet.js'
import type { ColumnStorage } from '../schema/schema.js'
import { compressPage, type PageCodec } from './parquet-codec.js'
import { type ColumnMapping, encodings, widenKindOf } from './parquet-types.js'
import type { Scratch } from './part-scratch.js'

export type BodyEncoding = 'plain' | 'plainText' | 'boolean' | 'delta' | 'deltaLength' | 'byteStreamSplit'

export const encodingOfBody: Readonly<Record<BodyEncoding, number>> = {
  plain: encodings.plain,
  plainText: encodings.plain,
  boolean: encodings.plain,
  delta: encodings.delta,
  deltaLength: encodings.deltaLength,
  byteStreamSplit: encodings.byteStreamSplit,
}

/** The non-null values of a page in their form on disk (strings: entries). */
export interface PreparedPage {
  readonly rows: number
  readonly present: number
  readonly values: number
  /** Address of one bit per row, 1 = present; undefined if all or none are. */
  readonly bits: number
}

export interface PageTools {
  readonly kernel: ParquetKernel
  readonly scratch: Scratch
  readonly mapping: ColumnMapping
  /** What PARQUET(..) of the column says. */
  readonly storage?: ColumnStorage | undefined
}

/** `values`: address in memory layout; 0 if all are null (or zero). `bits`: target for one presence bit per row. */
export function preparePage(tools: PageTools, values: number, rows: number, bits: number): PreparedPage {
  const { kernel, scratch, mapping } = tools
  const width = mapping.memoryBytes
  if (values === 0) {
    if (mapping.optional) return { rows, present: 0, values: 0, bits }
    const zeros = scratch.room('converted', rows * 4)
    scratch.memory.u8.fill(0, zeros, zeros + rows * 4)
    return { rows, present: rows, values: zeros, bits }
  }
  const present = mapping.optional ? kernel.presence(values, rows, mapping.nullKind, bits) : rows
  assert(present <= rows, 'K3: a kernel counts no more values than there are')
  let packed = values
  if (present < rows) {
    packed = scratch.room('packed', rows * width)
    kernel.compact(values, rows, width, bits, packed)
  }
  return { rows, present, values: convert(tools, packed, present), bits }
}

function convert({ kernel, scratch, mapping }: PageTools, values: number, count: number): number {
  const { conversion, memoryBytes } = mapping
  switch (conversion) {
    case 'i8':
    case 'i16':
    case 'u16': {
      const target = scratch.room('converted', count * 4)
      kernel.widen(values, count, widenKindOf[conversion], target)
      return target
    }
    case 'reverse': {
      const target = scratch.room('converted', count * memoryBytes)
      kernel.reverseBytes(values, count, memoryBytes, target)
      return target
    }
    case 'none':
    case 'boolean':
    case 'symbol':
    case 'text':
      return values
    default:
      return unreachable(conversion)
  }
}

/** Writes the definition levels with their length; returns their size in bytes. */
export function writeLevels(memory: Uint8Array, page: PreparedPage, target: number): number {
  let at = target + 4
  const putVarint = (value: number) => {
    let rest = value
    for (; rest > 127; rest >>>= 7) memory[at++] = (rest & 127) | 128
    memory[at++] = rest
  }
  if (page.present === page.rows || page.present === 0) {
    putVarint(page.rows * 2)
    memory[at++] = page.present === 0 ? 0 : 1
  } else {
    const groups = (page.rows + 7) >>> 3
    putVarint(groups * 2 + 1)
    memory.copyWithin(at, page.bits, page.bits + groups)
    at += groups
  }
  const bytes = at - target - 4
  for (let byte = 0; byte < 4; byte++) memory[target + byte] = (bytes >>> (byte * 8)) & 255
  return at - target
}

/** Upper bound of the size of a body, without strings. */
export function bodyBytesMax(mapping: ColumnMapping, rows: number): number {
  return rows * Math.max(10, mapping.memoryBytes) + 1024
}

/** Encodes the non-null values; returns the size of the body in bytes. */
export function writeBody(tools: PageTools, encoding: BodyEncoding, page: PreparedPage, target: number): number {
  const { kernel, scratch, mapping } = tools
  const { present, values } = page
  const width = mapping.diskBytes
  switch (encoding) {
    case 'plain':
      assert(width > 0, 'R1: a plain page has values of fixed width')
      scratch.memory.copy(target, values, values + present * width)
      return present * width
    case 'plainText':
      return kernel.plainStrings(values, present, target)
    case 'boolean':
      kernel.packBooleans(values, present, target)
      return (present + 7) >>> 3
    case 'delta':
      return width === 8 ? kernel.deltaEncode64(values, present, target) : kernel.deltaEncode32(values, present, target)
    case 'byteStreamSplit':
      kernel.splitBytes(values, present, width, target)
      return present * width
    case 'deltaLength': {
      const lengths = scratch.room('lengths', present * 4)
      const bytes = kernel.textLengths(values, present, lengths)
      const head = kernel.deltaEncode32(lengths, present, target)
      kernel.textBytes(values, present, target + head)
      return head + bytes
    }
    default:
      return unreachable(encoding)
  }
}

/** Bytes of all strings of the page; 0 for other columns. */
export function textBytesOf({ kernel, scratch, mapping }: PageTools, page: PreparedPage): number {
  if (mapping.conversion !== 'text') return 0
  return kernel.textLengths(page.values, page.present, scratch.room('lengths', page.present * 4))
}

export interface Trial {
  readonly encoding: BodyEncoding
  readonly codec: PageCodec
  readonly bytes: number
}

/**
 * A compressed page must be smaller than this share of its size to be worth the time of its readers. The share is lower
 * for plain and split bytes: these decode about as fast as memory is copied, and decompression takes several times as
 * long.
 */
const codecGains: Readonly<Record<BodyEncoding, number>> = {
  plain: 0.5,
  plainText: 0.5,
  byteStreamSplit: 0.5,
  boolean: 0.85,
  delta: 0.85,
  deltaLength: 0.85,
}
/** An encoding replaces one that decodes faster only if it is smaller than this share of it. */
const encodingGain = 0.75

/** Number of values that are tried; more than the window of the codec. */
const trialValues = 16_384

/** The best way to write the page without a dictionary, judged by its first values; `bytes` is for the whole page. */
export function bestTrial(tools: PageTools, codec: PageCodec, whole: PreparedPage): Trial {
  const present = Math.min(whole.present, trialValues)
  const trial = bestTrialOf(tools, codec, { ...whole, rows: Math.min(whole.rows, trialValues), present })
  return { ...trial, bytes: present === 0 ? trial.bytes : (trial.bytes / present) * whole.present }
}

function bestTrialOf(tools: PageTools, codec: PageCodec, page: PreparedPage): Trial {
  const target = tools.scratch.room('raw', bodyBytesMax(tools.mapping, page.rows) + textBytesOf(tools, page))
  let best: Trial | undefined
  for (const encoding of candidatesOf(tools)) {
    const bytes = writeBody(tools, encoding, page, target)
    const trial = withCodec(tools, codec, encoding, target, bytes)
    if (best === undefined || trial.bytes < best.bytes * encodingGain) best = trial
  }
  assert(best !== undefined, 'F2: every column has an encoding')
  return best
}

function withCodec(tools: PageTools, codec: PageCodec, encoding: BodyEncoding, address: number, bytes: number): Trial {
  const { kernel, scratch, storage } = tools
  const packed = compressPage(kernel, scratch, codec, address, bytes, storage?.level).bytes
  if (storage?.codec !== undefined) return { encoding, codec, bytes: packed }
  return packed < bytes * codecGains[encoding] ? { encoding, codec, bytes: packed } : { encoding, codec: 'none', bytes }
}

/** The codec and size of a body, compressed if that pays. */
export function codecFor(
  tools: PageTools,
  codec: PageCodec,
  address: number,
  bytes: number,
): { readonly codec: PageCodec; readonly bytes: number } {
  return withCodec(tools, codec, 'delta', address, bytes)
}

/** In the order of decoding speed, the fastest first. */
function candidatesOf({ mapping, storage }: PageTools): readonly BodyEncoding[] {
  switch (storage?.encoding) {
    case 'delta_binary_packed':
      return ['delta']
    case 'delta_length_byte_array':
      return ['deltaLength']
    case 'plain':
      if (mapping.conversion === 'boolean') return ['boolean']
      return [mapping.conversion === 'text' ? 'plainText' : 'plain']
    default:
      return usualCandidates(mapping)
  }
}

function usualCandidates(mapping: ColumnMapping): readonly BodyEncoding[] {
  switch (mapping.physical) {
    case 'BOOLEAN':
      return ['boolean']
    case 'INT32':
    case 'INT64':
      return ['plain', 'delta']
    case 'FLOAT':
    case 'DOUBLE':
      return ['plain', 'byteStreamSplit']
    case 'FIXED':
      return ['plain']
    case 'BYTE_ARRAY':
      return ['deltaLength']
    default:
      return unreachable(mapping.physical)
  }
}
