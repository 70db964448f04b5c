// Vectorised casts of integers, timestamps, UUIDs and IPv4 addresses to strings: a WebAssembly kernel formats a whole
// vector. Casts of other types, such as DOUBLE, are not vectorised here.

import { encodeKindOf } from '../../../kernels/encode.js'
import { type ColumnType, isSpan } from '../../../types/column-types.js'
import { type ColumnFunction, isText } from './column-function.js'

/** Types whose cast to a string equals their format in results. */
const printed: ReadonlySet<ColumnType> = new Set<ColumnType>([
  'BYTE',
  'SHORT',
  'INT',
  'LONG',
  'TIMESTAMP',
  'TIMESTAMP_NS',
  'UUID',
  'IPv4',
])
/** Maximum length of a string, and space that the kernel needs after it. */
const textBytesMax = 40
const marginBytes = 128

export const castColumn: ColumnFunction = ({ args: [value], type }, { kernels, rowsMax, allocate }) => {
  if (value === undefined || !printed.has(value.type.name) || !isText(type) || isSpan(value.type)) return undefined
  const kind = encodeKindOf(value.type)
  const outBytes = rowsMax * textBytesMax + marginBytes
  const [scratch, bytes] = [allocate(128), allocate(outBytes)]
  return {
    args: [value],
    run: (rows, [values = 0], out) => {
      kernels.number.formatColumn(kind, values, 0, rows, out, bytes, bytes + outBytes, scratch)
      return 0
    },
  }
}
