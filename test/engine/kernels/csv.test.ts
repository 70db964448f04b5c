// Goal: the CSV kernel (WebAssembly) splits records into the same fields as the byte-by-byte scanner. Method: random
// files with regular and broken records are read with the kernel and with its reference implementation, which leaves
// every record to the scanner; fields, lines and rejections must be equal.

import { expect, test } from 'vitest'
import { scanRecords } from '../../../engine/csv/scan.js'
import type { CsvReject } from '../../../engine/csv/shape.js'
import { createRandom, type Random } from '../../support/random.js'
import { type Bench, kernelsAndReferences, testBase } from './kernel-support.js'

const { wasm, reference } = kernelsAndReferences()
const both = [wasm, reference]
const columns = 3
const rowsMax = 64

const strings = [
  'a',
  'longer text of a field',
  '1',
  '-2.5',
  '',
  '""',
  '"q"',
  '"a,b"',
  '"two\nlines"',
  '"d""q"',
  '" "',
  'é',
]
const oddStrings = ['a"b', '"x"y', '"open', '"a"b"', 'x\r', '"""', '\r']
const ends = ['\n', '\n', '\n', '\r\n', '\n\n', '\r\n\r\n']

function file(random: Random, odd: boolean): string {
  let text = ''
  for (let record = 0; record < 120; record++) {
    const width = odd && random.below(10) === 0 ? random.below(5) + 1 : columns
    const fields = Array.from({ length: width }, () => {
      const own = odd && random.below(15) === 0 ? oddStrings : strings
      return own[random.below(own.length)] as string
    })
    text += fields.join(',') + (ends[random.below(ends.length)] as string)
  }
  return random.below(2) === 0 ? text : text.trimEnd()
}

interface Scanned {
  readonly rows: (string | null)[][]
  readonly lines: number[]
  readonly rejects: CsvReject[]
}

function scanAll({ memory, kernels }: Bench, text: string, last: boolean): Scanned {
  const bytes = Buffer.from(text)
  const input = testBase
  memory.u8.set(bytes, input)
  memory.u8.fill(0x22, input + bytes.length, input + bytes.length + 128)
  const state = input + 1024 * 1024
  const [entries, lines] = [state + 4096, state + 2048]
  const scan = {
    memory,
    kernel: kernels.csv,
    state,
    delimiter: 44,
    columns,
    rowsMax,
    entries,
    lines,
    begun: input,
    at: input,
    line: 1,
    recordLine: 1,
    doubled: [],
  }
  const found: Scanned = { rows: [], lines: [], rejects: [] }
  for (let before = -1; scan.at !== before; ) {
    before = scan.at
    const rows = scanRecords(scan, input + bytes.length, last, found.rejects)
    for (let row = 0; row < rows; row++) {
      found.lines.push(memory.u32[(lines >>> 2) + row]!)
      const fields = Array.from({ length: columns }, (_, column) => {
        const word = (entries + (column * rowsMax + row) * 8) >>> 2
        const length = memory.i32[word + 1]!
        const start = memory.u32[word]!
        return length < 0 ? null : Buffer.from(memory.u8.slice(start, start + length)).toString()
      })
      found.rows.push(fields)
    }
  }
  return found
}

test.each([false, true])('files with broken records: %s', (odd) => {
  for (let seed = 0; seed < 300; seed++) {
    const text = file(createRandom(seed), odd)
    for (const last of [true, false]) {
      const [kernel, plain] = both.map((bench) => scanAll(bench, text, last))
      expect(kernel, `seed ${seed}`).toEqual(plain)
    }
  }
})

test('a quote that opens nothing spoils only its own record', () => {
  const found = both.map((bench) => scanAll(bench, `a,5" disk,c\n${'d,e,"f"\n'.repeat(50)}`, true))
  for (const { rows } of found)
    expect([rows.length, rows[0], rows[50]]).toEqual([51, ['a', '5" disk', 'c'], ['d', 'e', 'f']])
})
