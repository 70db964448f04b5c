// The SQL function that formats its arguments as the text of a row, `(1,"a b",)`. It implements row values in a select
// list (`select row(a, b)`), which clients of PostgreSQL receive in this form, because this server has no row type.

import { dataType } from '../../../types/column-types.js'
import { wireForm } from '../../../types/pg-encode-value.js'
import type { ScalarFunction } from '../function-types.js'

/** NULL is empty; a field with special characters is quoted. */
function field(text: string | null): string {
  if (text === null) return ''
  return text === '' || /[\s"\\(),]/.test(text) ? `"${text.replace(/["\\]/g, '$&$&')}"` : text
}

export const rowFunctions: readonly ScalarFunction[] = [
  {
    name: 'row_text',
    takes: ['ANY'],
    more: 'ANY',
    gives: 'STRING',
    description:
      "A row in PostgreSQL's text format; implements `row(a, b)` and `select t from t` for clients of PostgreSQL.",
    example: ["row_text(1, 'a b', null, '')", '(1,"a b",,"")'],
    seesNull: true,
    eval: (args, { argTypes }) => {
      const fields = args.map((value, index) => wireForm(argTypes[index] ?? dataType('STRING'), false)(value))
      return `(${fields.map((text) => field(text === null ? null : String(text))).join(',')})`
    },
  },
]
