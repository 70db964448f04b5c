// Grace hash partitioning: executes an operator whose state outgrows the memory. It writes the rows of the operator's
// inputs to partitions by the hash of their keys, then computes the result of one partition after the other. If the
// order of the result matters, it also writes the results of the partitions to temporary files, and merges them by rank
// (the number of a row in the input).

import type { Plan, SampleSpan } from '../../sql/plan/plan.js'
import { SpanFinder } from '../aggregate/sample-span.js'
import type { ExecContext } from '../batch/context.js'
import type { RunFile } from '../batch/run-file.js'
import { isBatch, type Operator, type Pull } from '../batch/vector.js'
import { compileVector } from '../expression/expression.js'
import type { Steps } from '../join/join-build.js'
import { isAscending } from '../join/join-sides.js'
import { SortRuns } from '../sort/sort-runs.js'
import { Attempt } from './attempt.js'
import { KeyHashes } from './key-hashes.js'
import { PartitionedRows, partitionCount } from './partitioned-rows.js'
import type { SpillInput, SpillShape } from './spill-shape.js'
import {
  contextWith,
  nextWorkingId,
  pick,
  rankColumn,
  rowsOfFile,
  skipping,
  type Working,
  workingPlan,
} from './stored-rows.js'

export type Build = (context: ExecContext, plan: Plan) => Operator

/** Rows are partitioned no further from this level on. */
export const spillLevelsMax = 8
/** A partition with more than this fraction of the rows was hardly divided, most likely because it has one key. */
const undividedShare = 0.9
/** Such a partition counts as so many levels: twice in a row is the end. */
export const undividedLevels = spillLevelsMax / 2

/** An input of the operator, written to partitions. */
interface SpilledInput extends SpillInput, Written {}

interface Written {
  readonly written: PartitionedRows
  /** The span of all rows, if the operator asks for it. */
  readonly span: SampleSpan | undefined
}

/** `skip`: rows of the result that were already returned. */
export function* spilledSteps(context: ExecContext, shape: SpillShape, build: Build, skip: number): Steps {
  const inputs: SpilledInput[] = []
  for (const input of shape.inputs) inputs.push({ ...input, ...(yield* partitioned(context, input, build)) })
  const partitions = new Partitions(context, shape, inputs, build)
  context.profile?.note(`${partitionCount} partitions on disk`)
  if (shape.order === null) {
    for (let index = 0; index < partitionCount; index++) yield* partitions.results(index)
    return
  }
  const runs = new SortRuns(context, { columns: partitions.plan.columns, keys: shape.order, limit: null })
  for (let index = 0; index < partitionCount; index++) yield* written(runs, partitions.results(index))
  if (!runs.isEmpty) yield* skipping(merged(runs, shape.output), skip)
}

/** Writes the rows of an input to partitions. */
function* partitioned(
  context: ExecContext,
  { plan, keys, comparedAs, ranking, sample }: SpillInput,
  build: Build,
): Generator<'working' | 'waiting', Written, undefined> {
  const arena = context.arena.child()
  const own = { ...context, arena }
  const evaluators = keys.map((key) => compileVector(key, own))
  const hashes = new KeyHashes(
    own,
    keys.map(({ type }) => type),
    comparedAs,
  )
  // Another seed at each level divides the rows of a partition again.
  const seed = Math.imul((context.spillLevel ?? 0) + 1, 0x9e37_79b1) >>> 0
  const types = plan.columns.map(({ type }) => type)
  const rows = new PartitionedRows(own, types, ranking, (batch) =>
    hashes.of(
      evaluators.map((evaluate) => evaluate(batch)),
      batch.rows,
      seed,
    ),
  )
  const input = new Attempt(context, (inner) => build(inner, plan))
  const span = sample === undefined ? null : new SpanFinder(context, sample)
  for (let batch = input.pull(); batch !== null; batch = input.pull()) {
    if (isBatch(batch)) {
      span?.add(batch)
      rows.add(batch)
    }
    yield batch === 'waiting' ? batch : 'working'
  }
  rows.complete()
  while (!input.release()) yield 'waiting'
  arena.freeAll()
  return { written: rows, span: span?.span }
}

/** The partitions of an operator's inputs. */
class Partitions {
  readonly plan: Plan
  readonly #context: ExecContext
  readonly #inputs: readonly SpilledInput[]
  readonly #build: Build
  readonly #firstId: number
  readonly #rows: number

  constructor(context: ExecContext, shape: SpillShape, inputs: readonly SpilledInput[], build: Build) {
    this.#context = context
    this.#inputs = inputs
    this.#build = build
    this.#rows = inputs.reduce((sum, { written: { rows } }) => sum + rows, 0)
    this.#firstId = nextWorkingId(context)
    this.plan = shape.over(
      inputs.map(({ plan, ranking }, index) =>
        workingPlan(this.#firstId - index, ranking === 'none' ? plan.columns : [...plan.columns, rankColumn]),
      ),
      inputs[0]?.span,
    )
  }

  /** Computes the result of a partition, and deletes its files. */
  *results(index: number): Steps {
    const files = this.#inputs.map(({ written }) => written.files[index] ?? null)
    if (files.every((file) => file === null)) return
    const result = new Attempt(this.#contextOf(files), (own) => this.#build(own, this.plan))
    for (let batch = result.pull(); batch !== null; batch = result.pull()) yield batch
    result.release()
    for (const file of files) file?.close()
  }

  #contextOf(files: readonly (RunFile | null)[]): ExecContext {
    const context = this.#context
    const working = this.#inputs.map(({ plan, ranking }, index) => {
      const order = {
        unordered: ranking === 'none',
        isAscending: (column: number) => column < plan.columns.length && isAscending(context, plan, column),
      }
      return [this.#firstId - index, rowsOfFile(files[index] ?? null, order)] as const
    })
    const rows = working.reduce((sum, [, stored]) => sum + stored.rows, 0)
    const levels = rows > this.#rows * undividedShare ? undividedLevels : 1
    return { ...contextWith(context, working), spillLevel: (context.spillLevel ?? 0) + levels }
  }
}

/** Writes the batches as a run. */
export function* written(runs: SortRuns, results: Steps): Working<void> {
  let run: RunFile | null = null
  for (const pulled of results) {
    if (isBatch(pulled)) {
      run ??= runs.begin()
      run.append(pulled)
    }
    yield pulled === 'waiting' ? pulled : 'working'
  }
}

/** Merges the results of the partitions, and drops the ranks. */
function* merged(runs: SortRuns, output: readonly number[]): Steps {
  runs.merge()
  for (let pulled: Pull = runs.next(); pulled !== null; pulled = runs.next())
    yield isBatch(pulled) ? { rows: pulled.rows, vectors: pick(pulled.vectors, output) } : pulled
}
