// Where a scan of a CSV file is, and the words in which both ways of scanning refuse a line.

import type { CsvKernel } from '../kernels/csv.js'
import type { SharedMemory } from '../memory/shared-memory.js'
import type { CsvShape } from './shape.js'

export const extraFields = 'the line has more values than the file has columns'
export const missingFields = 'the line has fewer values than the file has columns'

/** Whether a field without quotes stands for NULL. */
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
  /** Address of the line of each row, u32. */
  readonly lines: number
  readonly copyText?: boolean
  readonly skipExtra?: boolean
  /** UTF-8 of what stands for NULL; absent: the empty field does. */
  readonly nullText?: Uint8Array
  /** Address of the first record of the last call. */
  begun: number
  /** Address of the next record; moved. */
  at: number
  /** Line of the next record; moved. */
  line: number
}

/** What of the shape of a file its scan needs. */
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
