// Finds the matches for a batch of the probe side of a join: pairs of row numbers with equal keys. It looks the keys up
// in the table that was built from the other side, which is a list by key code (join-build.ts), an array indexed by
// key, or hash buckets (join-buckets.ts).

import { hashKinds } from '../../kernels/aggregate.js'
import { bucketsBytes, expandStateBytes, writeBuckets } from '../../kernels/join.js'
import type { ExecContext } from '../batch/context.js'
import { batchRowsMax, type Vector } from '../batch/vector.js'
import type { Buckets, Listing } from './join-built.js'
import type { JoinColumns } from './join-columns.js'
import type { JoinKeys } from './join-keys.js'

export interface Pairing {
  readonly probeRows: number
  readonly buildRows: number
  readonly rowsMax: number
}

export interface Matches {
  /** Whether next() may return pairs with different keys, which verify() drops. */
  readonly verifies: boolean
  begin(keys: readonly Vector[], rows: number): void
  /** Writes the next pairs; returns how many. Fewer than rowsMax only at the end. */
  next(mode: number): number
  /** Drops pairs whose keys differ, in place; returns how many are left. */
  verify(count: number): number
}

export function codeMatches(context: ExecContext, listing: Listing, keys: JoinKeys, pairing: Pairing): Matches {
  const { arena, memory, kernels } = context
  const { starts, codeCount, list } = listing
  const { probeRows, buildRows, rowsMax } = pairing
  const codes = arena.take(batchRowsMax * 4)
  const state = arena.keep(expandStateBytes)
  let rows = 0
  return {
    verifies: false,
    begin: (vectors, count) => {
      rows = count
      keys.number(vectors, rows, codes)
      memory.u32.fill(0, state >>> 2, (state + expandStateBytes) >>> 2)
    },
    next: (mode) =>
      kernels.join.expand(state, codes, rows, starts, codeCount, list, mode, probeRows, buildRows, rowsMax),
    verify: (count) => count,
  }
}

/** A row has at most one match in an array indexed by key. */
function rangeMatches(
  { arena, memory, kernels }: ExecContext,
  range: number,
  keys: JoinColumns,
  { probeRows, buildRows, rowsMax }: Pairing,
): Matches {
  const state = arena.keep(expandStateBytes)
  let rows = 0
  let values = 0
  return {
    verifies: false,
    begin: (vectors, count) => {
      rows = count
      values = keys.values(vectors, rows)[0] as number
      memory.u32.fill(0, state >>> 2, (state + expandStateBytes) >>> 2)
    },
    next: (mode) =>
      kernels.join.matchRange(state, range, keys.width, values, rows, mode, probeRows, buildRows, rowsMax),
    verify: (count) => count,
  }
}

export function bucketMatches(context: ExecContext, buckets: Buckets, keys: JoinColumns, pairing: Pairing): Matches {
  const { arena, memory, kernels } = context
  if (buckets.range !== 0) return rangeMatches(context, buckets.range, keys, pairing)
  const { probeRows, buildRows, rowsMax } = pairing
  const state = arena.keep(expandStateBytes)
  const table = buckets.table === 0 ? emptyTable(context, keys) : buckets.table
  let rows = 0
  let values: number[] = []
  let hashes = 0
  return {
    verifies: !keys.exact,
    begin: (vectors, count) => {
      rows = count
      values = keys.values(vectors, rows)
      hashes = keys.hashes(values, rows)
      memory.u32.fill(0, state >>> 2, (state + expandStateBytes) >>> 2)
    },
    next: (mode) => {
      const words = keys.exact ? (values[0] as number) : hashes
      return kernels.join.matchKeys(state, table, hashes, words, rows, mode, probeRows, buildRows, rowsMax)
    },
    verify: (count) =>
      keys.exact
        ? count
        : keys.columns.reduce((left, { kind }, index) => {
            const [probe, build] = [values[index] as number, buckets.keys[index] ?? 0]
            return kernels.join.keepEqual(hashKinds[kind], probe, build, probeRows, buildRows, left)
          }, count),
  }
}

function emptyTable({ arena, memory }: ExecContext, { width }: JoinColumns): number {
  const starts = arena.keep(64)
  const table = arena.keep(bucketsBytes)
  memory.u32.fill(0, starts >>> 2, (starts >>> 2) + 2)
  writeBuckets(memory, table, { starts, mask: 0, list: starts, stored: starts, width })
  return table
}
