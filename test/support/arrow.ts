// Reader of Arrow IPC streams for tests: returns the rows. The caller names the types of the columns.

import { assert } from '../../engine/base/assert.js'

export type ArrowForm = 'text' | 'i32' | 'i64' | 'f64'
type ArrowValue = string | number | bigint | null

/** Throws when a message does not end where it says, or the stream has no end. */
export function readArrow(stream: Buffer, forms: readonly ArrowForm[]): ArrowValue[][] {
  const rows: ArrowValue[][] = []
  for (let at = 0; ; ) {
    assert(stream.readUInt32LE(at) === 0xffff_ffff, 'a message begins here')
    const metadataBytes = stream.readInt32LE(at + 4)
    at += 8
    if (metadataBytes === 0) {
      assert(at === stream.length, 'nothing follows the end')
      return rows
    }
    const message = tableAt(stream, at + stream.readUInt32LE(at))
    const body = at + metadataBytes
    at = body + Number(stream.readBigInt64LE(message(3)))
    const header = message(2)
    if (stream[message(1)] === 3)
      rows.push(...readBatch(stream, tableAt(stream, header + stream.readUInt32LE(header)), body, forms))
  }
}

/** Places of the fields of a table by their numbers. */
function tableAt(stream: Buffer, table: number): (field: number) => number {
  const fields = table - stream.readInt32LE(table)
  return (field) => table + stream.readUInt16LE(fields + 4 + field * 2)
}

function readBatch(
  stream: Buffer,
  batch: (field: number) => number,
  body: number,
  forms: readonly ArrowForm[],
): ArrowValue[][] {
  const count = Number(stream.readBigInt64LE(batch(0)))
  const list = batch(2) + stream.readUInt32LE(batch(2)) + 4
  let next = 0
  const buffer = (): Buffer => {
    const place = list + next++ * 16
    const from = body + Number(stream.readBigInt64LE(place))
    return stream.subarray(from, from + Number(stream.readBigInt64LE(place + 8)))
  }
  const columns = forms.map((form): ((row: number) => ArrowValue) => {
    const valid = buffer()
    const values = buffer()
    const strings = form === 'text' ? buffer() : values
    const read = (row: number): ArrowValue => {
      if (form === 'text') return strings.toString('utf8', values.readInt32LE(row * 4), values.readInt32LE(row * 4 + 4))
      if (form === 'f64') return values.readDoubleLE(row * 8)
      return form === 'i32' ? values.readInt32LE(row * 4) : values.readBigInt64LE(row * 8)
    }
    const isThere = (row: number): boolean => valid.length === 0 || ((valid[row >>> 3]! >>> (row & 7)) & 1) === 1
    return (row) => (isThere(row) ? read(row) : null)
  })
  return Array.from({ length: count }, (_, row) => columns.map((column) => column(row)))
}
