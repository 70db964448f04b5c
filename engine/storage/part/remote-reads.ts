// Before a scan reads pages of a remote part (a Parquet file whose rows are only in the object store), determines which
// blocks of the part contain them, and requests those that are not on this disk. As a column's pages are adjacent in
// the part, the pages that the scan will read next are requested together with those that it needs now.

import { assert } from '../../base/assert.js'
import type { PartHandle } from './part-access.js'
import { pageAt } from './part-index.js'
import { OpenedPart } from './part-opened.js'
import type { RemoteBlocks } from './remote-blocks.js'
import type { Sidecar } from './sidecar.js'

const MIB = 1024 * 1024
/** Bytes of one column that are requested ahead, and of all columns together. */
const columnAheadBytes = 4 * MIB
const aheadBytes = 64 * MIB

/**
 * Whether the page of these columns can be read; otherwise it is requested. Throws ResourceError if that has failed.
 */
export function pagesReady(
  blocks: RemoteBlocks,
  part: PartHandle,
  columnIds: readonly number[],
  page: number,
): boolean {
  if (!(part instanceof OpenedPart) || part.sidecar === null) return true
  const { sidecar, index, descriptor, pageCount } = part
  assert(page < pageCount, 'F2: a page of the part is read')
  const [wanted, ahead] = [new Set<number>(), new Set<number>()]
  const aheadMax = Math.min(columnAheadBytes, aheadBytes / Math.max(1, columnIds.length))
  for (const columnId of columnIds) {
    const column = index.columns.get(columnId)
    if (column === undefined) continue
    addBlocks(sidecar, pageAt(column, page), wanted)
    for (let next = page + 1, bytes = 0; next < pageCount && bytes < aheadMax; next++) {
      const place = pageAt(column, next)
      addBlocks(sidecar, place, ahead)
      bytes += place.bytes
    }
  }
  return blocks.ready({ id: descriptor.id, sidecar }, wanted, ahead)
}

/** The same for all of a part. */
export function partReady(blocks: RemoteBlocks, part: PartHandle): boolean {
  if (!(part instanceof OpenedPart) || part.sidecar === null) return true
  const { sidecar, descriptor } = part
  return blocks.ready({ id: descriptor.id, sidecar }, sidecar.blocks.keys())
}

function addBlocks(
  { blockBytes }: Sidecar,
  { offset, headerBytes, bytes }: { readonly offset: number; readonly headerBytes: number; readonly bytes: number },
  into: Set<number>,
): void {
  const first = offset + headerBytes
  const last = Math.max(first, first + bytes - 1)
  for (let block = Math.floor(first / blockBytes); block <= Math.floor(last / blockBytes); block++) into.add(block)
}
