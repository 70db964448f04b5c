// Splits a compaction, the job that joins several Parquet files (parts), into time slices of about a given number of
// rows, so that its memory does not depend on the size of the parts. Each slice becomes one part. Rows with equal
// timestamps are always in one slice, because deduplication compares the keys of rows with equal timestamps. Without a
// designated timestamp there is one slice.

import { assert } from '../../base/assert.js'
import type { PartAccess, PartHandle } from '../part/part-access.js'
import type { JobTools } from './part-job.js'

/** A range of rows of one part that belongs to a slice. */
export interface CompactionInput {
  readonly handle: PartHandle
  readonly first: number
  readonly rows: number
}

interface SliceTools extends JobTools {
  readonly parts: PartAccess
}

/** The slices in time order, about `rowsMax` rows each; one slice if there are fewer rows or no timestamp. */
export function sliceInputs(
  tools: SliceTools,
  handles: readonly PartHandle[],
  timestampId: number,
  rowsMax: number,
): CompactionInput[][] {
  const bounds = timestampId < 0 ? [] : sliceBounds(handles, rowsMax)
  let begins = handles.map(() => 0)
  const slices: CompactionInput[][] = []
  for (const bound of [...bounds, null]) {
    const ends = handles.map((handle) => (bound === null ? handle.rows : rowsBefore(tools, handle, timestampId, bound)))
    slices.push(
      handles.map((handle, input) => {
        const first = begins[input] as number
        assert((ends[input] as number) >= first, 'T1: slices follow each other in time')
        return { handle, first, rows: (ends[input] as number) - first }
      }),
    )
    begins = ends
  }
  return slices
}

/** Upper bound of the number of slices: a slice and the first page of the next one have more than `rowsMax` rows. */
export function slicesMax(rows: number, rowsMax: number): number {
  return 2 * Math.ceil(rows / rowsMax) + 1
}

/** Timestamps at which a new slice begins: first timestamps of pages, spaced by the row limit of a slice. */
function sliceBounds(handles: readonly PartHandle[], rowsMax: number): bigint[] {
  const pages = handles.flatMap((handle) =>
    Array.from({ length: handle.pageCount }, (_, page) => ({
      minTs: handle.minTs[page]!,
      rows: handle.firstRows[page + 1]! - handle.firstRows[page]!,
    })),
  )
  pages.sort((x, y) => (x.minTs < y.minTs ? -1 : x.minTs > y.minTs ? 1 : 0))
  const bounds: bigint[] = []
  let rows = 0
  let last = pages[0]?.minTs
  for (const page of pages) {
    if (rows + page.rows > rowsMax && last !== undefined && page.minTs > last) {
      bounds.push(page.minTs)
      last = page.minTs
      rows = 0
    }
    rows += page.rows
  }
  return bounds
}

/** Number of rows of the part with a timestamp below the bound. */
function rowsBefore({ parts, kernels }: SliceTools, handle: PartHandle, timestampId: number, bound: bigint): number {
  for (let page = 0; page < handle.pageCount; page++) {
    if (handle.maxTs[page]! < bound) continue
    const first = handle.firstRows[page]!
    if (handle.minTs[page]! >= bound) return first
    const address = parts.pin(handle, timestampId, page)
    try {
      return first + kernels.sort.lowerBound(address, 0, handle.firstRows[page + 1]! - first, bound)
    } finally {
      parts.unpin(address)
    }
  }
  return handle.rows
}
