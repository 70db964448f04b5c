// Builds the lookup table of a join whose keys have been mapped to consecutive numbers (codes, see join-keys.ts):
// buffers all rows of one side, and lists the row numbers of each code by a counting sort. Also contains operatorOf(),
// which turns a generator into an operator.

import type { DataType } from '../../types/column-types.js'
import type { ExecContext } from '../batch/context.js'
import { RowBuffer } from '../batch/row-buffer.js'
import { batchRowsMax, isBatch, type Operator, type Pull, type Vector } from '../batch/vector.js'
import type { Listing } from './join-built.js'
import { codeType, type JoinKeys } from './join-keys.js'
import { nullVectors } from './join-pairs.js'

/** An operator written as a generator of pull() results. */
export type Steps = Generator<Exclude<Pull, null>, void, undefined>

export function operatorOf(steps: Steps): Operator {
  return {
    pull: () => {
      const { done, value } = steps.next()
      return done === true ? null : value
    },
  }
}

/** Rows counted or listed in a step. */
const stepRows = 262_144

/** Reads the input to its end and lists its rows by code. */
export function* buildListing(
  context: ExecContext,
  input: Operator,
  types: readonly DataType[],
  keyColumns: readonly number[],
  keys: JoinKeys,
): Generator<'working' | 'waiting', Listing, undefined> {
  const { arena } = context
  const store = new RowBuffer(context, [...types, codeType])
  const codes = arena.take(batchRowsMax * 4)
  let base = 0
  for (;;) {
    const batch = input.pull()
    if (batch === null) break
    if (isBatch(batch)) {
      base = batch.vectors[keyColumns[0] ?? -1]?.dictionary ?? 0
      keys.number(
        keyColumns.map((index) => batch.vectors[index] as Vector),
        batch.rows,
        codes,
      )
      const added: Vector = { type: codeType, address: codes, dictionary: 0 }
      store.append({ rows: batch.rows, vectors: [...batch.vectors.slice(0, types.length), added] })
    }
    yield batch === 'waiting' ? batch : 'working'
  }
  arena.give(codes)
  const { rows } = store
  if (rows === 0) return { rows, vectors: nullVectors(context, types), codeCount: 0, starts: 0, list: 0, base }
  const codeCount = keys.size
  const { starts, list } = yield* listByCode(context, store.column(types.length).address, 0, rows, codeCount)
  return { rows, vectors: store.columns(types.length), codeCount, starts, list, base }
}

/**
 * Counting sort: the start of each code, and the row numbers by code. `order`: u32 row numbers in the order wanted
 * within a code; 0 = input order.
 */
export function* listByCode(
  { arena, memory, kernels }: ExecContext,
  codes: number,
  order: number,
  rows: number,
  codeCount: number,
): Generator<'working', { readonly starts: number; readonly list: number }, undefined> {
  const bytes = (codeCount + 1) * 4
  const starts = arena.take(bytes)
  memory.u8.fill(0, starts, starts + bytes)
  for (let from = 0; from < rows; from += stepRows) {
    kernels.join.countCodes(codes + from * 4, Math.min(stepRows, rows - from), starts)
    yield 'working'
  }
  kernels.join.startsOf(starts, codeCount)
  const cursors = arena.take(bytes)
  memory.u8.copyWithin(cursors, starts, starts + bytes)
  const list = arena.take(rows * 4)
  for (let from = 0; from < rows; from += stepRows) {
    kernels.join.listRows(codes, order, from, Math.min(rows, from + stepRows), cursors, list)
    yield 'working'
  }
  arena.give(cursors)
  return { starts, list }
}
