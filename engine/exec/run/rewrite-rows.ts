// Runs the query of an UPDATE, a DELETE or a change of a column's type over one part (Parquet file) of the table. The
// scan returns the row number with each affected row; the row numbers, new values and values of RETURNING are appended
// to a list of changes, which the job that rewrites the part applies (storage/jobs/rewrite.ts).

import { CancelledError } from '../../base/errors.js'
import type { Kernels } from '../../kernels/load.js'
import type { Allocator } from '../../memory/budgets.js'
import { isCancelFlagSet } from '../../memory/cancel-flags.js'
import type { SharedMemory } from '../../memory/shared-memory.js'
import { createRandom } from '../../sql/functions/random-generator.js'
import { listKeys, requireOneRow, type SubqueryResult } from '../../sql/functions/registry/evaluate.js'
import type { Query } from '../../sql/plan/plan.js'
import type { RewriteProgram } from '../../storage/jobs/messages.js'
import type { JobSteps } from '../../storage/jobs/part-job.js'
import { type RunProgram, rowNumberId } from '../../storage/jobs/rewrite.js'
import type { PartAccess } from '../../storage/part/part-access.js'
import type { Value } from '../../types/value.js'
import type { ExecContext } from '../batch/context.js'
import { QueryArena } from '../batch/query-arena.js'
import { newQueryState } from '../batch/query-state.js'
import { SymbolStrings, Symbols } from '../batch/symbols.js'
import { valueReader } from '../batch/values.js'
import { type Batch, isBatch, type Operator, type Vector } from '../batch/vector.js'
import { buildOperator } from '../build.js'
import { numbersOf } from './list-numbers.js'

export interface RewriteHost {
  readonly memory: SharedMemory
  readonly allocator: Allocator
  readonly kernels: Kernels
  readonly parts: PartAccess
}

export function programRunner(host: RewriteHost): RunProgram {
  return function* run(program, target, changes) {
    const arena = new QueryArena(host.memory, host.allocator)
    const endings: (() => void)[] = []
    const subqueries: SubqueryResult[] = []
    try {
      const context = contextOf(host, program, arena, subqueries, (release) => endings.push(release))
      const whole = { ...context, snapshots: [target, ...program.snapshots] }
      context.alive()
      for (const subquery of program.query.subqueries) subqueries.push(yield* runSubquery(whole, subquery))
      for (const { rows, vectors, isWaiting } of batches(buildOperator(whole, program.query.plan))) {
        const [numbers, ...values] = vectors
        if (rows > 0 && numbers !== undefined) {
          changes.append(rows, numbers.address, values)
          const returned = values.slice(values.length - program.returned)
          if (returned.length > 0)
            changes.appendReturned(
              rows,
              numbers.address,
              returned.map((vector) => valueReader(whole.memory, whole.strings, vector)),
            )
        }
        yield isWaiting ? 'fetching' : undefined
        context.alive()
      }
    } finally {
      for (const release of endings) release()
      arena.freeAll()
    }
  }
}

function contextOf(
  { memory, kernels, parts }: RewriteHost,
  { nowMicros, stopId }: RewriteProgram,
  arena: QueryArena,
  subqueries: SubqueryResult[],
  onEnd: (release: () => void) => void,
): Omit<ExecContext, 'snapshots'> {
  const now = BigInt(nowMicros)
  const alive = (): void => {
    if (stopId !== undefined && isCancelFlagSet(memory, stopId)) throw new CancelledError()
  }
  return {
    memory,
    arena,
    state: newQueryState(arena),
    kernels,
    partAccess: numberedAccess(parts, arena),
    evaluation: { nowMicros: now, clockMicros: () => now, random: createRandom(now, 7n), user: '', alive, subqueries },
    strings: new SymbolStrings(memory),
    symbols: new Symbols(arena),
    jit: null,
    alive,
    onEnd,
  }
}

/** Access to the part, extended by a virtual column of row numbers. */
function numberedAccess(parts: PartAccess, arena: QueryArena): PartAccess {
  const own = new Set<number>()
  return {
    open: (part, version) => parts.open(part, version),
    ready: (part, columnIds, page) => parts.ready(part, columnIds, page),
    readyWhole: (part) => parts.readyWhole(part),
    pin: (part, columnId, page) => {
      if (columnId !== rowNumberId) return parts.pin(part, columnId, page)
      const first = part.firstRows[page]!
      const rows = part.firstRows[page + 1]! - first
      const address = arena.take(rows * 8)
      const { u32 } = arena.memory
      for (let row = 0, word = address >>> 2; row < rows; row++, word += 2) {
        u32[word] = first + row
        u32[word + 1] = 0
      }
      own.add(address)
      return address
    },
    unpin: (address) => {
      if (own.delete(address)) arena.give(address)
      else parts.unpin(address)
    },
    pinPacked: (part, columnId, page) => (columnId === rowNumberId ? 0 : parts.pinPacked(part, columnId, page)),
    symbolRows: (part, columnId, page, ids, from, rows, out) =>
      parts.symbolRows(part, columnId, page, ids, from, rows, out),
    pick: (packed, index, first, count, target) => parts.pick(packed, index, first, count, target),
    pinCodes: (part, columnId, page) => parts.pinCodes(part, columnId, page),
    unpack: (part, columnId, page, target, width) => parts.unpack(part, columnId, page, target, width),
    decode: () => false,
    statistics: (part, columnId, page) => parts.statistics(part, columnId, page),
    nulls: (part, columnId) => parts.nulls(part, columnId),
    keys: (part, page) => parts.keys(part, page),
    mayHold: (part, columnId, ids) => parts.mayHold(part, columnId, ids),
    symbols: (part, columnId) => parts.symbols(part, columnId),
    pinNewest: () => 0,
    keepNewest: () => {},
    stored: () => undefined,
    forget: () => {},
    goIdle: () => parts.goIdle(),
    close: () => {},
  }
}

/** The operator's batches; empty ones after work without rows, and while it waits, so that the job can yield. */
function* batches(operator: Operator): Generator<Batch & { readonly isWaiting: boolean }, void> {
  for (let pulled = operator.pull(); pulled !== null; pulled = operator.pull()) {
    const { rows, vectors } = isBatch(pulled) ? pulled : { rows: 0, vectors: [] }
    yield { rows, vectors, isWaiting: pulled === 'waiting' }
  }
}

function* runSubquery(context: ExecContext, subquery: Query['subqueries'][number]): JobSteps<SubqueryResult> {
  const { plan, mode } = subquery
  const list = numbersOf(context, subquery)
  const values: Value[] = []
  let count = 0
  for (const { rows, vectors, isWaiting } of batches(buildOperator(context, plan))) {
    count += rows
    if (mode === 'scalar') requireOneRow(count, subquery.position)
    if (rows > 0) list?.add(vectors[0] as Vector, rows)
    const wanted = list !== undefined ? 0 : mode === 'list' ? rows : values.length === 0 ? Math.min(rows, 1) : 0
    if (wanted > 0) {
      const read = valueReader(context.memory, context.strings, vectors[0] as Vector)
      for (let row = 0; row < wanted; row++) values.push(read(row))
    }
    yield isWaiting ? 'fetching' : undefined
    context.alive()
  }
  if (mode === 'exists') return { mode, exists: count > 0 }
  if (list !== undefined) return list.result()
  return mode === 'list' ? { mode, keys: listKeys(values) } : { mode, value: values[0] ?? null }
}
