// Finds the lines of rows that the writer refuses after decoding, because the table has an enforced key and already
// contains a row with the same key. The decoder counts rows only per table, so the lines are parsed again, up to the
// last refused row. Refusals are rare, and the lines are still in the ingest ring (the shared buffer of requests).

import type { RefusedRow } from '../storage/writer/row-decoder.js'
import type { ParsedLine } from './line.js'
import { parseLine } from './parse-line.js'

/** Whole lines that were decoded. */
export interface DecodedLines {
  readonly bytes: Uint8Array
  readonly start: number
  readonly end: number
  /** Number of the first line in its request. */
  readonly firstLine: number
  /** Numbers of lines that produced no row. */
  readonly bad: ReadonlySet<number>
}

export interface RefusedLine {
  readonly line: number
  readonly start: number
  readonly end: number
  readonly refused: RefusedRow
}

/** `tableOf`: the table of a parsed line, as it is stored. The result is in the order of the lines. */
export function refusedLines(
  { bytes, start, end, firstLine, bad }: DecodedLines,
  refused: readonly RefusedRow[],
  line: ParsedLine,
  tableOf: (line: ParsedLine) => RefusedRow['table'] | undefined,
): RefusedLine[] {
  const wanted = new Map(refused.map((row) => [`${row.table.id} ${row.row}`, row]))
  const rows = new Map<number, number>()
  const found: RefusedLine[] = []
  for (let at = start, number = firstLine; at < end && found.length < refused.length; number++) {
    const from = at
    parseLine(bytes, from, end, line)
    at = line.next
    const table = line.outcome === 'blank' || bad.has(number) ? undefined : tableOf(line)
    if (table === undefined) continue
    const row = rows.get(table.id) ?? 0
    rows.set(table.id, row + 1)
    const match = wanted.get(`${table.id} ${row}`)
    if (match !== undefined) found.push({ line: number, start: from, end: at, refused: match })
  }
  return found
}
