// Reference implementation, in plain TypeScript, of the WebAssembly kernel that encodes rows as JSON, CSV, JSON lines
// and DataRow messages (encode-pg.ts); property tests compare the two. The contract is in engine/kernels/encode.ts.

import {
  type EncodeKernel,
  type EncodeKind,
  encodeColumnBytes,
  encodeFlags,
  encodeKinds,
} from '../../engine/kernels/encode.js'
import type { SharedMemory } from '../../engine/memory/shared-memory.js'
import { pgRow } from './encode-pg.js'
import { type Form, type Rendered, render } from './encode-values.js'

export function encodeReference(memory: SharedMemory): EncodeKernel {
  return { encode: (state) => encode(memory, state) }
}

function encode(memory: SharedMemory, state: number): number {
  const word = state >>> 2
  const [columns = 0, count = 0, from = 0, to = 0, start = 0, outEnd = 0, flags = 0, delimiter = 0] = memory.u32.slice(
    word,
    word + 8,
  )
  const form: Form = {
    json: (flags & encodeFlags.json) !== 0,
    quoteLong: (flags & encodeFlags.quoteLargeNumbers) !== 0,
    delimiter: String.fromCharCode(delimiter),
  }
  const index = memory.u32[word + 10]!
  const pg = (flags & encodeFlags.pg) !== 0
  let out = start
  let row = from
  memory.u32[word + 8] = 0
  for (; row < to; row++) {
    const at = index === 0 ? row : memory.u32[(index >>> 2) + row]!
    const cells = pg
      ? []
      : Array.from({ length: count }, (_, c) => cell(memory, columns + c * encodeColumnBytes, at, form))
    const comma = memory.u32[word + 9] === 1 ? ',' : ''
    const lines = (flags & encodeFlags.lines) !== 0
    const text = lines
      ? `${cells.map((value, c) => label(memory, columns + c * encodeColumnBytes) + value).join('')}}\n`
      : form.json
        ? `${comma}[${cells.join(',')}]`
        : `${cells.join(form.delimiter)}\r\n`
    const bytes = pg ? pgRow(memory, columns, count, at, delimiter) : Buffer.from(text)
    if (out + bytes.length > outEnd) {
      memory.u32[word + 8] = bytes.length
      break
    }
    memory.u8.set(bytes, out)
    memory.u32[word + 9] = 1
    out += bytes.length
  }
  memory.u32[word + 2] = row
  memory.u32[word + 4] = out
  return row - from
}

function label(memory: SharedMemory, column: number): string {
  const start = memory.u32[(column + 16) >>> 2]!
  const bytes = memory.u32[(column + 20) >>> 2]!
  return Buffer.from(memory.u8.slice(start, start + bytes)).toString('utf8')
}

function cell(memory: SharedMemory, column: number, row: number, form: Form): string {
  const word = column >>> 2
  const kind = memory.u32[word] as EncodeKind
  const values = memory.u32[word + 1]!
  const rendered =
    values === 0 ? missing(kind) : render(memory, kind, values, row, memory.u32[word + 2]!, memory.u32[word + 3]!, form)
  if (rendered === null) return form.json ? (kind === encodeKinds.long256 ? '""' : 'null') : ''
  if (kind === encodeKinds.char) return character(rendered.text, form)
  if (rendered.style === 'bare') return rendered.text
  if (!form.json) return `"${rendered.text.replaceAll('"', '""')}"`
  return rendered.style === 'text' ? JSON.stringify(rendered.text) : `"${rendered.text}"`
}

function character(text: string, form: Form): string {
  if (form.json) return JSON.stringify(text)
  return /["\r\n]/.test(text) || text === form.delimiter ? `"${text.replaceAll('"', '""')}"` : text
}

function missing(kind: EncodeKind): Rendered | null {
  if (kind === encodeKinds.boolean) return { text: 'false', style: 'bare' }
  if (kind === encodeKinds.char) return { text: '', style: 'text' }
  return kind < encodeKinds.char ? { text: '0', style: 'bare' } : null
}
