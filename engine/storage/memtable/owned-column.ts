// Copies a packed column whose bytes belong to a builder, which reuses that memory for the next rows.

import type { PackedColumn } from '../jobs/messages.js'

export function ownedColumn(values: PackedColumn): PackedColumn {
  const copy = (bytes: Uint8Array): Uint8Array => Uint8Array.prototype.slice.call(bytes)
  if (values.kind === 'fixed') return { ...values, bytes: copy(values.bytes) }
  if (values.kind === 'texts') return { ...values, lengths: values.lengths.slice(), bytes: copy(values.bytes) }
  return { ...values, ids: values.ids.slice(), texts: copy(values.texts) }
}
