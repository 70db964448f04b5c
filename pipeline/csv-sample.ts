// Parses the beginning of a CSV file into records, from which csv-detect.ts detects header and column types. The only
// module that uses csv-parse. Runs on the main thread, since the sample is small.

import { createRequire } from 'node:module'
import { tableColumnsMax } from '../engine/base/limits.js'
import { ImportError } from './import-schema.js'

const sampleBytesMax = 64 * 1024
const recordsMax = 1000
/** A header cannot be detected with fewer records. */
const recordsMin = 3
/** Limit of a sample with long records. */
export const longSampleBytesMax = 16 * 1024 * 1024
const delimiterLineBytesMax = 16
const delimiters = [',', '\t', ';', '|'] as const

export interface Sample {
  readonly delimiter: string
  readonly records: readonly (readonly string[])[]
  /** The first line of each record, from 1. */
  readonly lines: readonly number[]
}

/**
 * Takes the smallest sufficient sample from the beginning of a file, or the whole file (`whole`). Returns null when
 * more bytes are needed. `delimiter` null: detect.
 */
export function sampleOf(bytes: Buffer, whole: boolean, delimiter: string | null): Sample | null {
  const usual = bytes.subarray(0, sampleBytesMax)
  refuseForeign(usual)
  const sample = readSample(usual, whole && usual.length === bytes.length, delimiter)
  if (sample.records.length >= recordsMin || (whole && usual.length === bytes.length)) return sample
  if (!whole && bytes.length < longSampleBytesMax) return null
  return readSample(bytes.subarray(0, longSampleBytesMax), whole && bytes.length <= longSampleBytesMax, delimiter)
}

/** Parses a first line that names the delimiter for Excel: `sep=;`, also quoted. */
export function delimiterLine(bytes: Buffer): { readonly delimiter: string; readonly bytes: number } | null {
  // Only a byte order mark may precede it; a line end or the end of the file must follow.
  const found = /^(?:\u00ef\u00bb\u00bf)?("?)sep=([^"\r\n\u0080-\uffff])\1(?:\r?\n|\r?$)/i.exec(
    bytes.subarray(0, delimiterLineBytesMax).toString('latin1'),
  )
  return found === null ? null : { delimiter: found[2] ?? ',', bytes: found[0].length }
}

/** Rejects UTF-16 and CR line ends, which would parse as one long line. */
function refuseForeign(bytes: Buffer): void {
  const mark = bytes.length > 1 ? bytes.readUInt16LE(0) : 0
  if (mark === 0xfeff || mark === 0xfffe) throw new ImportError('the file is UTF-16, expected UTF-8')
  if (bytes.includes(0x0a) || !bytes.includes(0x0d)) return
  const unquoted = bytes.toString('latin1').replace(/"[^"]*"/g, '')
  if (/\r[^\r]/.test(unquoted)) throw new ImportError('lines end with CR, expected LF or CRLF')
}

/** `whole`: the sample is the whole file; otherwise its last line may be cut. */
function readSample(bytes: Buffer, whole: boolean, delimiter: string | null): Sample {
  const text = (whole ? bytes : bytes.subarray(0, bytes.lastIndexOf(0x0a) + 1 || bytes.length)).toString('utf8')
  const chosen = delimiter ?? findDelimiter(text)
  return { delimiter: chosen, ...recordsOf(text, chosen) }
}

const markBeforeQuote = /^\ufeff(?=")/

function recordsOf(text: string, delimiter: string): { records: string[][]; lines: number[] } {
  // Loaded on first use, so that it does not slow the start of the server.
  const { parse } = createRequire(import.meta.url)('csv-parse/sync') as typeof import('csv-parse/sync')
  let records: string[][]
  let lines: number[] = []
  let twice = 0
  try {
    records = parse(text.replace(markBeforeQuote, ''), {
      // Keeps a byte order mark except before a quote, because it distinguishes a name from a single character.
      ...{ delimiter, quote: '"', record_delimiter: ['\r\n', '\n'] },
      ...{ relax_column_count: true, relax_quotes: true, skip_empty_lines: true, to: recordsMax },
      on_record: (record: string[], { lines: last }: { readonly lines: number }) => {
        const strings = record.join(' ')
        // The parser counts a CRLF within quotes as two lines.
        twice += strings.split('\r\n').length - 1
        lines.push(last - twice - (strings.split('\n').length - 1))
        return record
      },
    })
  } catch {
    // An unclosed quote: falls back to splitting lines; the decoder will report the position.
    const written = text.split(/\r?\n/)
    lines = [...written.keys()].filter((index) => written[index] !== '').slice(0, recordsMax)
    const fields = (line: string): string[] => line.split(delimiter, tableColumnsMax)
    records = lines.map((index) => fields(written[index] ?? '').map((field) => field.replace(/^"|"$/g, '')))
    return { records, lines: lines.map((index) => index + 1) }
  }
  // A megabyte of commas would otherwise create a million columns with statistics.
  if ((records[0]?.length ?? 0) > tableColumnsMax) throw new ImportError(`too many columns [max=${tableColumnsMax}]`)
  return { records, lines }
}

/** Chooses the delimiter that splits the most lines into the same number (>1) of fields; a comma when none does. */
function findDelimiter(text: string): string {
  let best = ','
  let bestScore = 0
  for (const delimiter of delimiters) {
    const counts = new Map<number, number>()
    const { records } = recordsOf(text.slice(0, 16_384), delimiter)
    for (const { length } of records) counts.set(length, (counts.get(length) ?? 0) + 1)
    const [width = 1, lines = 0] = [...counts].sort((x, y) => y[1] - x[1])[0] ?? []
    const score = width > 1 ? lines / records.length + Math.min(width, 100) / 10_000 : 0
    if (score > bestScore) {
      best = delimiter
      bestScore = score
    }
  }
  return best
}
