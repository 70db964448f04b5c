// Reference implementation of Parquet's RLE/bit-packing hybrid encoding in plain TypeScript.

/** Shorter runs are not worth their own header. */
const runMin = 32

export function packIndexes(view: DataView, values: number, count: number, width: number, target: number): number {
  const out = { at: target }
  const valueAt = (index: number) => view.getUint32(values + index * 4, true)
  let pending = 0
  let i = 0
  while (i < count) {
    const run = runLength(valueAt, i, count)
    if (run >= runMin || (run === count - i && run > 8)) {
      putPacked(view, out, valueAt, { from: pending, to: i, width })
      putVarint(view, out, run * 2)
      for (let byte = 0; byte < (width + 7) >>> 3; byte++) view.setUint8(out.at++, (valueAt(i) >>> (byte * 8)) & 255)
      i += run
      pending = i
    } else i += 8
  }
  putPacked(view, out, valueAt, { from: pending, to: count, width })
  return out.at - target
}

function runLength(valueAt: (index: number) => number, from: number, count: number): number {
  let end = from + 1
  while (end < count && valueAt(end) === valueAt(from)) end++
  return end - from
}

interface PackedRun {
  readonly from: number
  readonly to: number
  readonly width: number
}

function putPacked(
  view: DataView,
  out: { at: number },
  valueAt: (index: number) => number,
  { from, to, width }: PackedRun,
): void {
  if (from >= to) return
  const groups = (to - from + 7) >>> 3
  putVarint(view, out, groups * 2 + 1)
  for (let byte = 0; byte < groups * width; byte++) view.setUint8(out.at + byte, 0)
  for (let i = from; i < to; i++) {
    for (let bit = 0; bit < width; bit++) {
      if (((valueAt(i) >>> bit) & 1) === 0) continue
      const at = (i - from) * width + bit
      view.setUint8(out.at + (at >>> 3), view.getUint8(out.at + (at >>> 3)) | (1 << (at & 7)))
    }
  }
  out.at += groups * width
}

function putVarint(view: DataView, out: { at: number }, value: number): void {
  let rest = value
  for (; rest > 127; rest = Math.floor(rest / 128)) view.setUint8(out.at++, (rest & 127) | 128)
  view.setUint8(out.at++, rest)
}

interface Bytes {
  readonly source: number
  readonly end: number
}

interface Values {
  readonly dictionary: number
  readonly entries: number
  readonly width: number
}

interface Run {
  readonly packed: boolean
  readonly rows: number
  readonly bytes: number
}

/** The header of a run, of which `left` rows count; null for bytes that no encoder writes. */
function runAt(view: DataView, input: { at: number }, end: number, bits: number, left: number): Run | null {
  const header = getVarint(view, input, end)
  const size = Math.floor(header / 2)
  const packed = header % 2 === 1
  const bytes = packed ? size * bits : (bits + 7) >>> 3
  if (header < 0 || size === 0 || input.at + bytes > end) return null
  return { packed, rows: Math.min(packed ? size * 8 : size, left), bytes }
}

/** Each index replaced by its value; 0, or -1 for bytes that no encoder writes. */
export function decodeIndexed(
  view: DataView,
  { source, end }: Bytes,
  count: number,
  bits: number,
  values: Values,
  target: number,
): number {
  if (bits > 32) return -1
  const input = { at: source }
  let done = 0
  while (done < count) {
    const begin = input.at
    const run = runAt(view, input, end, bits, count - done)
    if (run === null) return -1
    if (!run.packed && runSize(view, begin, end) > count - done) return -1
    for (let i = 0; i < run.rows; i++) {
      const index = bitsAt(view, input.at, run.packed ? i * bits : 0, bits)
      if (index >= values.entries) return -1
      copyValue(view, values.dictionary + index * values.width, values.width, target + done++ * values.width)
    }
    input.at += run.bytes
  }
  return 0
}

function runSize(view: DataView, at: number, end: number): number {
  return Math.floor(getVarint(view, { at }, end) / 2)
}

interface Picks {
  readonly index: number
  readonly first: number
  readonly picked: number
}

export function pickIndexed(
  view: DataView,
  { source, end }: Bytes,
  count: number,
  bits: number,
  values: Values,
  { index, first, picked }: Picks,
  target: number,
): number {
  if (bits > 32) return -1
  const input = { at: source }
  let before = 0
  let done = 0
  while (done < picked) {
    const run = runAt(view, input, end, bits, count - before)
    if (run === null || run.rows === 0) return -1
    for (; done < picked; done++) {
      const row = first + view.getUint32(index + done * 4, true) - before
      if (row < 0 || row >= run.rows) break
      const entry = bitsAt(view, input.at, run.packed ? row * bits : 0, bits)
      if (entry >= values.entries) return -1
      copyValue(view, values.dictionary + entry * values.width, values.width, target + done * values.width)
    }
    input.at += run.bytes
    before += run.rows
  }
  return 0
}

function copyValue(view: DataView, from: number, width: number, target: number): void {
  for (let byte = 0; byte < width; byte++) view.setUint8(target + byte, view.getUint8(from + byte))
}

function bitsAt(view: DataView, source: number, bit: number, bits: number): number {
  let value = 0
  for (let i = 0; i < bits; i++) {
    const at = bit + i
    value += ((view.getUint8(source + (at >>> 3)) >>> (at & 7)) & 1) * 2 ** i
  }
  return value
}

function getVarint(view: DataView, input: { at: number }, end: number): number {
  let value = 0
  for (let shift = 0; shift <= 28 && input.at < end; shift += 7) {
    const byte = view.getUint8(input.at++)
    value += (byte & 127) * 2 ** shift
    if (byte < 128) return value
  }
  return -1
}
