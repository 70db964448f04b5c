// The state that the scanners of CSV (scan.ts) and of COPY text (scan-text.ts) share: the position in the input, and
// the memory to which they write the address and length of each field. Also the texts of their errors.

import type { CsvKernel } from '../kernels/csv.js'
import type { SharedMemory } from '../memory/shared-memory.js'
import type { CsvShape } from './shape.js'

export const extraFields = 'the line has more values than the file has columns'
export const missingFields = 'the line has fewer values than the file has columns'

/** Whether an unquoted field represents NULL. */
export function isNullText({ memory, nullText }: CsvScan, start: number, length: number): boolean {
  if (nullText === undefined || nullText.length !== length) return false
  for (let byte = 0; byte < length; byte++) if (memory.u8[start + byte] !== nullText[byte]) return false
  return true
}

export interface CsvScan {
  readonly memory: SharedMemory
  readonly kernel: CsvKernel
  /** Address of the kernel's structure. */
  readonly state: number
  readonly delimiter: number
  readonly columns: number
  readonly rowsMax: number
  /** Address of the entries. */
  readonly entries: number
  /** Address of each row's line number, u32. */
  readonly lines: number
  readonly copyText?: boolean
  readonly skipExtra?: boolean
  /** UTF-8 of the NULL string; absent: the empty field. */
  readonly nullText?: Uint8Array
  /** Address of the first record of the last call. */
  begun: number
  /** Address of the next record; advanced by the scan. */
  at: number
  /** Line of the next record; advanced by the scan. */
  line: number
  /** Line of the last record that was scanned byte by byte. */
  recordLine: number
  /** Entries of the fields with doubled quotes in that record. */
  readonly doubled: number[]
}

/** The part of a file's shape that the scan needs. */
export function scanOptions({
  delimiter,
  copyText = false,
  skipExtra = false,
  nullText = '',
  firstLine = 1,
}: CsvShape): Pick<CsvScan, 'delimiter' | 'copyText' | 'skipExtra' | 'nullText' | 'line'> {
  const options = { delimiter, copyText, skipExtra, line: firstLine }
  return nullText === '' && !copyText ? options : { ...options, nullText: Buffer.from(nullText, 'utf8') }
}

/** The state of a scan before its first call. */
export function scanStart(): Pick<CsvScan, 'begun' | 'at' | 'recordLine' | 'doubled'> {
  return { begun: 0, at: 0, recordLine: 1, doubled: [] }
}
