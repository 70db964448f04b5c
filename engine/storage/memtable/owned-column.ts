// Copies a column of a batch into memory of its own. The builders of columns return views of memory that they overwrite
// with the next rows, so a batch that must live longer needs a copy.

import type { PackedColumn } from '../jobs/messages.js'

export function ownedColumn(values: PackedColumn): PackedColumn {
  const copy = (bytes: Uint8Array): Uint8Array => Uint8Array.prototype.slice.call(bytes)
  if (values.kind === 'fixed') return { ...values, bytes: copy(values.bytes) }
  if (values.kind === 'strings') return { ...values, lengths: values.lengths.slice(), bytes: copy(values.bytes) }
  return { ...values, ids: values.ids.slice(), strings: copy(values.strings) }
}
