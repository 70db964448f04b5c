// Which results are rows as bytes (encoded-rows.ts), and who makes them.

import type { Encoding } from '../run/messages.js'
import { ArrowRows } from './encode-arrow.js'
import { isTextEncoding, type TextForm, TextRows, textFormOf } from './encode-text.js'
import type { EncodedRows, RowOptions } from './encoded-rows.js'

export type RowForm = TextForm | 'arrow'

export function rowFormOf(encoding: Encoding): RowForm | undefined {
  if (encoding.kind === 'arrow') return 'arrow'
  return isTextEncoding(encoding) ? textFormOf(encoding) : undefined
}

/** `any`: rows precede. */
export function encodedRows(options: RowOptions, form: RowForm, any = false): EncodedRows {
  return form === 'arrow' ? new ArrowRows(options) : new TextRows(options, form, any)
}
