// Merges sorted runs of rows into one timestamp order: computes the order, in which rows with equal timestamps have the
// order of their runs, and gathers columns in it. A WebAssembly kernel merges up to 255 runs at once. More runs, as
// from many tiny memtable blocks, are concatenated and sorted instead.

import { sortScratchBytes } from '../../kernels/sort.js'
import type { ExecContext } from '../batch/context.js'

const kernelRunsMax = 255

/** The rows of a run that take part. */
export interface MergePart {
  /** Address of the first timestamp. */
  readonly ts: number
  readonly rows: number
}

export interface MergedRows {
  readonly rows: number
  /**
   * Gathers values of the rows [from, from + rows) of the merged order. `sources`: address of each run's first value.
   */
  gather(width: number, sources: readonly number[], from: number, rows: number, out: number): void
  free(): void
}

/** `runsMax` is a parameter for tests. */
export function mergeRows(
  context: ExecContext,
  parts: readonly MergePart[],
  descending: boolean,
  runsMax = kernelRunsMax,
): MergedRows {
  return parts.length <= runsMax
    ? mergedByKernel(context, parts, descending)
    : sortedTogether(context, parts, descending)
}

function totalOf(parts: readonly MergePart[]): number {
  return parts.reduce((sum, part) => sum + part.rows, 0)
}

function mergedByKernel(
  { arena, memory, kernels }: ExecContext,
  parts: readonly MergePart[],
  descending: boolean,
): MergedRows {
  const rows = totalOf(parts)
  const run = arena.take(rows)
  const row = arena.take(rows * 4)
  const runs = arena.take(parts.length * 16)
  parts.forEach((part, index) => {
    memory.u32.set([part.ts, part.rows, 0, 0], (runs + index * 16) >>> 2)
  })
  for (let done = 0; done < rows; ) {
    done += kernels.sort.mergeRuns(runs, parts.length, rows - done, run + done, row + done * 4)
  }
  if (descending) {
    memory.u8.subarray(run, run + rows).reverse()
    memory.u32.subarray(row >>> 2, (row >>> 2) + rows).reverse()
  }
  return {
    rows,
    gather: (width, sources, from, count, out) => {
      memory.u32.set(sources, runs >>> 2)
      kernels.sort.gatherRuns(width, runs, run + from, row + from * 4, count, out)
    },
    free: () => {
      for (const address of [run, row, runs]) arena.give(address)
    },
  }
}

/** Concatenates the runs and sorts them with a stable sort. */
function sortedTogether(
  { arena, memory, kernels }: ExecContext,
  parts: readonly MergePart[],
  descending: boolean,
): MergedRows {
  const rows = totalOf(parts)
  const ts = arena.take(rows * 8)
  const order = arena.take(rows * 4)
  const starts = new Float64Array(parts.length)
  const partOf = arena.take(rows * 4)
  let start = 0
  parts.forEach((part, index) => {
    memory.u8.copyWithin(ts + start * 8, part.ts, part.ts + part.rows * 8)
    memory.u32.fill(index, (partOf >>> 2) + start, (partOf >>> 2) + start + part.rows)
    starts[index] = start
    start += part.rows
  })
  const scratchBytes = sortScratchBytes(rows)
  const scratch = arena.take(scratchBytes)
  kernels.sort.sortPermutation(ts, rows, scratch, scratchBytes, order)
  arena.give(ts)
  arena.give(scratch)
  if (descending) memory.u32.subarray(order >>> 2, (order >>> 2) + rows).reverse()
  return {
    rows,
    gather: (width, sources, from, count, out) => {
      const { u8, u32 } = memory
      for (let at = 0; at < count; at++) {
        const place = u32[(order >>> 2) + from + at]!
        const part = u32[(partOf >>> 2) + place]!
        const source = (sources[part] as number) + (place - starts[part]!) * width
        for (let byte = 0; byte < width; byte++) u8[out + at * width + byte] = u8[source + byte]!
      }
    },
    free: () => {
      arena.give(order)
      arena.give(partOf)
    },
  }
}
