// Compaction: the policy that selects parts (immutable Parquet files of a table), and the job that joins them into
// larger ones. Usually it joins parts of one partition that are adjacent in transaction order.
//
// The policy is tiered. Starting from the newest part, an older part is added while it has at most sizeRatio times the
// rows collected so far; at least compactionPartsMin parts are compacted together. So a row is rewritten about
// log(rows) times, and a partition keeps few parts. Exceptions:
//
// - Parts of one flush that was split by the size limit of a part have the same transactions. They stay as they are.
// - In DEDUP tables, parts that overlap in time are compacted as soon as possible, whatever their size, because readers
//   must look for superseded rows in them. Parts between them that do not overlap them are left out.
// - Overlapping parts that are too large for one part are compacted in time slices, one output part for each. That
//   rewrites every slice, so it waits until at least compactionPartsMin commits have added parts.
// - Parts that are only in the object store (remote parts) stay as they are: late rows only add a local part, and
//   nothing needs to be downloaded. A compaction does not join local parts across a remote one either. When
//   remotePartsMin parts overlap in time, all of them are compacted, remote ones included.
// - Large parts (compactionRowsMax / compactionPartsMin / 2 rows or more) that hardly overlap in time are not
//   compacted: their rows are in order already, so that would only save files. Rows that arrive in order and in
//   large numbers are therefore written only once, by the flush.
// - Parts of which upserts have removed many rows are rewritten alone.
// - Parts that precede DEDUP are joined with later ones only if no other part overlaps any of them in time. Rows from
//   before DEDUP do not supersede each other, and in a joined part they could not be told from later rows.
// - A part with rows that sealed buckets of materialized views have is not joined with one that has later rows of them
//   (schema/materialized.ts).
//
// The job's memory comes from the query budget. The flush arena is reserved for flushes, because ingestion waits for
// them.

import { assert } from '../../base/assert.js'
import { pageRowsMax } from '../../base/limits.js'
import { budgets } from '../../memory/budgets.js'
import type { PartAccess } from '../part/part-access.js'
import type { Scratch } from '../part/part-scratch.js'
import { type PartInput, writePart } from '../part/part-writer.js'
import { type LateBound, overlaps } from '../schema/materialized.js'
import {
  isRemoteOnly,
  type PartDescriptor,
  precedesDedup,
  type TableSchema,
  type TableVersion,
} from '../schema/schema.js'
import { dedupChoices } from './merge-dedup.js'
import { mergeChoices, mergeSource, removedChoices } from './merge-rows.js'
import { type CompactionInput, sliceInputs, slicesMax } from './merge-slices.js'
import type { Job, JobResult } from './messages.js'
import {
  type JobSteps,
  type JobTools,
  partTools,
  StorageJob,
  untilReadable,
  withArena,
  writerBytes,
} from './part-job.js'

export interface CompactionPolicy {
  /** Maximum number of rows of a part written by a compaction. */
  readonly compactionRowsMax: number
  /** Minimum number of parts of similar size to compact. */
  readonly compactionPartsMin: number
}

export const compactionPolicy: CompactionPolicy = { compactionRowsMax: 1 << 22, compactionPartsMin: 4 }
/** Maximum number of parts of one compaction: a choice has 7 bits for the input. */
const mergePartsMax = 100
const sizeRatio = 1.5
/** A part is rewritten without its removed rows when these are more than a fourth of it. */
const removedShare = 4
/** Overlapping parts of which some are only in the object store are compacted when there are this many. */
const remotePartsMin = 8
/** Parts count as not overlapping in time if they overlap by less than this fraction (a third) of the shorter one. */
const overlapFraction = 3n
/** A job takes at most this share of the memory of queries at its start, and chooses its slices so that it suffices. */
const memoryShare = 0.75
/** Smaller slices would make parts that are too small. */
const sliceRowsMin = 1 << 19

/** Selects parts to compact, in transaction order; undefined if there are none. `busy` parts are not selected. */
export function chooseCompaction(
  version: TableVersion,
  busy: ReadonlySet<number>,
  policy: CompactionPolicy = compactionPolicy,
  bounds: readonly LateBound[] = [],
): readonly PartDescriptor[] | undefined {
  const byPartition = new Map<string, PartDescriptor[]>()
  for (const part of version.parts) {
    const known = byPartition.get(part.partition)
    if (known === undefined) byPartition.set(part.partition, [part])
    else known.push(part)
  }
  for (const parts of byPartition.values()) {
    const ordered = inCommitOrder(parts)
    const removed = chooseRemoved(ordered, busy, version, policy)
    if (removed !== undefined) return removed
    for (const side of sidesOf(bounds, ordered)) {
      const chosen = side.some(isRemoteOnly)
        ? chooseBesideRemote(side, busy, policy, version.schema)
        : chooseLocal(side, busy, policy, version.schema)
      if (chosen !== undefined) return chosen
    }
  }
  return undefined
}

/** The parts that may be joined with each other, as far as sealed buckets are concerned. */
function sidesOf(bounds: readonly LateBound[], parts: readonly PartDescriptor[]): PartDescriptor[][] {
  const touched = bounds.filter((bound) => parts.some((part) => overlaps(bound, part)))
  const cuts = [...new Set(touched.map(({ transaction }) => transaction))]
  const sides = new Map<number, PartDescriptor[]>()
  for (const part of parts) {
    const side = cuts.filter((transaction) => part.maxTxn > transaction).length
    const known = sides.get(side)
    if (known === undefined) sides.set(side, [part])
    else known.push(part)
  }
  return [...sides.values()]
}

/** Selects a part of which a quarter of the rows, or very many, are removed. */
function chooseRemoved(
  parts: readonly PartDescriptor[],
  busy: ReadonlySet<number>,
  { removals = [] }: TableVersion,
  { compactionRowsMax }: CompactionPolicy,
): readonly PartDescriptor[] | undefined {
  if (removals.length === 0) return undefined
  const counts = new Map(removals.map(([partId, , count]) => [partId, count]))
  const chosen = parts.find(({ id, rows }) => {
    const removed = counts.get(id) ?? 0
    return !busy.has(id) && (removed * removedShare > rows || removed > compactionRowsMax / removedShare)
  })
  return chosen === undefined ? undefined : [chosen]
}

function chooseLocal(
  parts: readonly PartDescriptor[],
  busy: ReadonlySet<number>,
  policy: CompactionPolicy,
  schema: TableSchema,
): readonly PartDescriptor[] | undefined {
  const overlapping = schema.dedupKeys.length > 0 ? chooseOverlapping(parts, busy, policy, schema) : undefined
  return overlapping ?? chooseTier(parts, busy, policy, schema)
}

function chooseBesideRemote(
  parts: readonly PartDescriptor[],
  busy: ReadonlySet<number>,
  policy: CompactionPolicy,
  schema: TableSchema,
): readonly PartDescriptor[] | undefined {
  const untouched = new Set([...busy, ...parts.filter(isRemoteOnly).map(({ id }) => id)])
  return chooseOverlapping(parts, busy, policy, schema, remotePartsMin) ?? chooseLocal(parts, untouched, policy, schema)
}

export function inCommitOrder(parts: readonly PartDescriptor[]): PartDescriptor[] {
  return [...parts].sort((x, y) => x.minTxn - y.minTxn || x.id - y.id)
}

function chooseTier(
  parts: readonly PartDescriptor[],
  busy: ReadonlySet<number>,
  { compactionPartsMin, compactionRowsMax }: CompactionPolicy,
  schema: TableSchema,
): readonly PartDescriptor[] | undefined {
  const isOld = ({ maxTxn }: PartDescriptor): boolean => precedesDedup(schema, maxTxn)
  for (let newest = parts.length - 1; newest >= compactionPartsMin - 1; newest--) {
    let oldest = newest + 1
    let rows = 0
    let areOld = false
    while (oldest > 0 && newest - oldest < mergePartsMax - 1) {
      const next = parts[oldest - 1] as PartDescriptor
      if (busy.has(next.id) || isSibling(parts, oldest - 1) || rows + next.rows > compactionRowsMax) break
      if (rows > 0 && (next.rows > rows * sizeRatio || isOld(next) !== areOld)) break
      areOld = isOld(next)
      rows += next.rows
      oldest--
    }
    const chosen = parts.slice(oldest, newest + 1)
    if (chosen.length >= compactionPartsMin && !isSettled(chosen, compactionRowsMax / compactionPartsMin / 2))
      return chosen
  }
  return undefined
}

/** Whether all parts are large and in time order, apart from small overlaps caused by concurrent senders. */
function isSettled(parts: readonly PartDescriptor[], rowsLarge: number): boolean {
  return parts.every((part, index) => {
    const before = parts[index - 1]
    if (part.rows < rowsLarge) return false
    if (before === undefined || part.minTs >= before.maxTs) return true
    const overlap = (before.maxTs - part.minTs) * overlapFraction
    return overlap < before.maxTs - before.minTs && overlap < part.maxTs - part.minTs
  })
}

/** Whether an adjacent part has rows of the same transactions. */
function isSibling(parts: readonly PartDescriptor[], index: number): boolean {
  const part = parts[index] as PartDescriptor
  const [before, after] = [parts[index - 1], parts[index + 1]]
  return (before !== undefined && before.maxTxn >= part.minTxn) || (after !== undefined && after.minTxn <= part.maxTxn)
}

/**
 * Selects the newest part that overlaps an older one, and all parts that overlap these, transitively. Other parts may
 * lie between them in transaction order, since no time range of theirs meets one of the selected. A set that is too
 * large for one part waits for more commits, and a set of fewer than partsMin parts for more parts.
 */
function chooseOverlapping(
  parts: readonly PartDescriptor[],
  busy: ReadonlySet<number>,
  { compactionPartsMin, compactionRowsMax }: CompactionPolicy,
  schema: TableSchema,
  partsMin = 2,
): readonly PartDescriptor[] | undefined {
  for (let newest = parts.length - 1; newest > 0; newest--) {
    const chosen = new Set([parts[newest] as PartDescriptor])
    for (let grown = true; grown; ) {
      const size = chosen.size
      for (const part of parts) if ([...chosen].some((other) => overlap(part, other))) chosen.add(part)
      grown = chosen.size > size
    }
    const ordered = cutToMax(inCommitOrder([...chosen]), schema)
    const rows = ordered.reduce((sum, part) => sum + part.rows, 0)
    const commits = new Set(ordered.map(({ minTxn }) => minTxn)).size
    const worthwhile = rows <= compactionRowsMax || commits >= compactionPartsMin
    if (ordered.length >= partsMin && worthwhile && !ordered.some(({ id }) => busy.has(id))) return ordered
  }
  return undefined
}

/**
 * If there are too many, the newest are taken: an older part precedes all of them, so the order is kept. Those that
 * precede DEDUP are joined first, as they must not be joined with others while some of them are left.
 */
function cutToMax(parts: readonly PartDescriptor[], schema: TableSchema): readonly PartDescriptor[] {
  if (parts.length <= mergePartsMax) return parts
  const old = parts.filter(({ maxTxn }) => precedesDedup(schema, maxTxn))
  return (old.length > 1 ? old : parts).slice(-mergePartsMax)
}

function overlap(x: PartDescriptor, y: PartDescriptor): boolean {
  return x.minTs <= y.maxTs && y.minTs <= x.maxTs
}

type Compaction = Job & { readonly kind: 'merge' }

export interface CompactionTools extends JobTools {
  readonly parts: PartAccess
}

export function createCompactionJob(tools: CompactionTools, job: Compaction): StorageJob {
  assert(job.parts.length > 0, 'S2: a merge has parts')
  assert(job.parts.length <= mergePartsMax, 'K2: a merge has at most mergePartsMax parts')
  const all = job.parts.reduce((sum, part) => sum + part.rows, 0)
  // Slices are cut at page boundaries, so each input may add up to one page.
  const rows = Math.min(all, job.sliceRows + job.parts.length * pageRowsMax)
  const bytes = compactionBytes(job.version.schema, rows)
  // The rest is for queries: a compaction may take many seconds. Its estimate is an upper bound.
  const bytesMax = tools.allocator.limit(budgets.queries) * memoryShare
  return new StorageJob(withArena(tools, budgets.queries, bytes, (scratch) => merge(tools, job, scratch), bytesMax))
}

/** The peak is either the timestamps of a slice or the buffers of the writer, plus one byte a row for the choices. */
function compactionBytes(schema: TableSchema, rows: number): number {
  return rows + Math.max(rows * 8 + 512 * 1024, writerBytes(schema, rows)) + 4 * 1024 * 1024
}

/**
 * The rows of a slice: `rowsMax`, or fewer if they take more than a share of the memory of queries, `limitBytes`. A job
 * that needs all of it would wait until no query runs.
 */
export function compactionSliceRows(schema: TableSchema, rowsMax: number, limitBytes: number, inputs: number): number {
  const bytesMax = limitBytes * memoryShare
  const needed = (rows: number): number => compactionBytes(schema, rows + inputs * pageRowsMax)
  let rows = rowsMax
  while (rows > sliceRowsMin && needed(rows) > bytesMax) rows = Math.ceil(rows / 2)
  return rows
}

/** Upper bound of the number of parts that compacting these parts writes. */
export function compactedPartsMax(parts: readonly PartDescriptor[], sliceRows: number): number {
  return slicesMax(
    parts.reduce((sum, { rows }) => sum + rows, 0),
    sliceRows,
  )
}

function* merge(tools: CompactionTools, job: Compaction, scratch: Scratch): JobSteps<JobResult> {
  const { version, firstPartId, sliceRows } = job
  const { schema } = version
  const inputs = inCommitOrder(job.parts)
  yield* untilReadable(tools.parts, inputs, version)
  const handles = inputs.map((part) => tools.parts.open(part, version))
  const names = {
    schema,
    partition: (inputs[0] as PartDescriptor).partition,
    minTxn: Math.min(...inputs.map(({ minTxn }) => minTxn)),
    maxTxn: Math.max(...inputs.map(({ maxTxn }) => maxTxn)),
  }
  const parts: PartDescriptor[] = []
  let finished = false
  try {
    for (const slice of sliceInputs(tools, handles, schema.timestampId, sliceRows)) {
      const partId = firstPartId + parts.length
      assert(parts.length < compactedPartsMax(inputs, sliceRows), 'S3: a merge stays within its part ids')
      const part = yield* mergeSlice(tools, version, scratch, slice, { ...names, partId })
      if (part !== null) parts.push(part)
    }
    finished = true
    return { parts }
  } finally {
    // No manifest names the parts of an unfinished compaction.
    if (!finished) for (const { file } of parts) tools.files.remove(`${tools.directory}/${file}`)
  }
}

/** Writes the part of a slice; returns null if all its rows are removed. */
function* mergeSlice(
  tools: CompactionTools,
  version: TableVersion,
  scratch: Scratch,
  slice: readonly CompactionInput[],
  names: Omit<PartInput, 'source'>,
): Generator<undefined, PartDescriptor | null> {
  const { schema } = version
  let choices = yield* mergeChoices(tools, scratch, slice, schema.timestampId)
  assert(choices.count === slice.reduce((sum, { rows }) => sum + rows, 0), 'S2: a merge takes every row')
  if (schema.dedupKeys.length > 0) choices = yield* dedupChoices(tools, scratch, slice, schema, choices)
  choices = yield* removedChoices(tools.memory, slice, version, choices)
  if (choices.rows === 0) return null
  const source = mergeSource(tools, scratch, slice, version, choices)
  try {
    return yield* writePart(partTools(tools, scratch), { ...names, source })
  } finally {
    source.release()
  }
}
