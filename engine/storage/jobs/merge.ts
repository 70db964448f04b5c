// Merge: parts of one partition that follow each other in transaction order become one. The policy, and the job.
//
// Policy: walking from the newest part to older ones, a part joins while it is at most sizeRatio times what has been
// gathered; mergePartsMin parts make a merge. So every row is rewritten about log(rows) times, and a partition keeps few
// parts. Siblings (parts of one flush, cut because a part has a size limit) have the same transactions and stay as they
// are. Parts of DEDUP tables that overlap in time are merged as soon as possible, whatever their size: readers have to
// look for superseded rows in them. What is too large for one part is merged slice by slice, each a part of its own;
// such a set waits until it has the rows of mergePartsMin commits, because every slice is written anew.
//
// Large parts that follow each other in time stay as they are: readers go from one to the next, and joining them would
// save files and nothing else. Rows that come in order are so written once, when they are flushed.
//
// A merge takes memory from the queries' budget: the flush arena is for flushes alone, which ingest waits for.

import { assert } from '../../base/assert.js'
import { pageRowsMax } from '../../base/limits.js'
import { budgets } from '../../memory/budgets.js'
import type { PartAccess } from '../part/part-access.js'
import type { Scratch } from '../part/part-scratch.js'
import { type PartInput, writePart } from '../part/part-writer.js'
import type { PartDescriptor, TableVersion } from '../schema/schema.js'
import { dedupChoices } from './merge-dedup.js'
import { mergeChoices, mergeSource } from './merge-rows.js'
import { type MergeInput, sliceInputs, slicesMax } from './merge-slices.js'
import type { Job, JobResult } from './messages.js'
import { type JobTools, partTools, StorageJob, withArena, writerBytes } from './part-job.js'

export interface MergePolicy {
  /** Rows of a part that a merge writes. */
  readonly mergeRowsMax: number
  /** So many parts of like size are joined. */
  readonly mergePartsMin: number
}

export const mergePolicy: MergePolicy = { mergeRowsMax: 1 << 22, mergePartsMin: 4 }
/** Parts of one merge: the job names them in 7 bits. */
const mergePartsMax = 100
const sizeRatio = 1.5
/** Parts follow each other in time when they overlap by less than this fraction (a third) of the shorter one. */
const overlapFraction = 3n

/** Parts that are worth joining, in transaction order; undefined when there are none. `busy` parts are left alone. */
export function chooseMerge(
  version: TableVersion,
  busy: ReadonlySet<number>,
  policy: MergePolicy = mergePolicy,
): readonly PartDescriptor[] | undefined {
  const byPartition = new Map<string, PartDescriptor[]>()
  for (const part of version.parts) {
    const known = byPartition.get(part.partition)
    if (known === undefined) byPartition.set(part.partition, [part])
    else known.push(part)
  }
  const dedup = version.schema.dedupKeys.length > 0
  for (const parts of byPartition.values()) {
    const ordered = inCommitOrder(parts)
    const chosen = (dedup ? chooseOverlapping(ordered, busy, policy) : undefined) ?? chooseTier(ordered, busy, policy)
    if (chosen !== undefined) return chosen
  }
  return undefined
}

export function inCommitOrder(parts: readonly PartDescriptor[]): PartDescriptor[] {
  return [...parts].sort((x, y) => x.minTxn - y.minTxn || x.id - y.id)
}

function chooseTier(
  parts: readonly PartDescriptor[],
  busy: ReadonlySet<number>,
  { mergePartsMin, mergeRowsMax }: MergePolicy,
): readonly PartDescriptor[] | undefined {
  for (let newest = parts.length - 1; newest >= mergePartsMin - 1; newest--) {
    let oldest = newest + 1
    let rows = 0
    while (oldest > 0 && newest - oldest < mergePartsMax - 1) {
      const next = parts[oldest - 1] as PartDescriptor
      if (busy.has(next.id) || isSibling(parts, oldest - 1) || rows + next.rows > mergeRowsMax) break
      if (rows > 0 && next.rows > rows * sizeRatio) break
      rows += next.rows
      oldest--
    }
    const chosen = parts.slice(oldest, newest + 1)
    if (chosen.length >= mergePartsMin && !isSettled(chosen, mergeRowsMax / mergePartsMin / 2)) return chosen
  }
  return undefined
}

/** Whether all parts are large, and follow each other in time but for some rows of concurrent senders at their ends. */
function isSettled(parts: readonly PartDescriptor[], rowsLarge: number): boolean {
  return parts.every((part, index) => {
    const before = parts[index - 1]
    if (part.rows < rowsLarge) return false
    if (before === undefined || part.minTs >= before.maxTs) return true
    const overlap = (before.maxTs - part.minTs) * overlapFraction
    return overlap < before.maxTs - before.minTs && overlap < part.maxTs - part.minTs
  })
}

/** Whether a neighbour holds rows of the same transactions. */
function isSibling(parts: readonly PartDescriptor[], index: number): boolean {
  const part = parts[index] as PartDescriptor
  const [before, after] = [parts[index - 1], parts[index + 1]]
  return (before !== undefined && before.maxTxn >= part.minTxn) || (after !== undefined && after.minTxn <= part.maxTxn)
}

/**
 * The newest part that overlaps an older one, with all that overlap them. What lies between in transaction order but not
 * in time may stay: no row of it can meet one of theirs. Sets that make several parts wait until it is worth while.
 */
function chooseOverlapping(
  parts: readonly PartDescriptor[],
  busy: ReadonlySet<number>,
  { mergePartsMin, mergeRowsMax }: MergePolicy,
): readonly PartDescriptor[] | undefined {
  for (let newest = parts.length - 1; newest > 0; newest--) {
    const chosen = new Set([parts[newest] as PartDescriptor])
    for (let grown = true; grown; ) {
      const size = chosen.size
      for (const part of parts) if ([...chosen].some((other) => overlap(part, other))) chosen.add(part)
      grown = chosen.size > size
    }
    // The newest ones: an older part that overlaps them is behind or before all of them.
    const ordered = inCommitOrder([...chosen]).slice(-mergePartsMax)
    const rows = ordered.reduce((sum, part) => sum + part.rows, 0)
    const commits = new Set(ordered.map(({ minTxn }) => minTxn)).size
    const worthwhile = rows <= mergeRowsMax || commits >= mergePartsMin
    if (ordered.length > 1 && worthwhile && !ordered.some(({ id }) => busy.has(id))) return ordered
  }
  return undefined
}

function overlap(x: PartDescriptor, y: PartDescriptor): boolean {
  return x.minTs <= y.maxTs && y.minTs <= x.maxTs
}

type Merge = Job & { readonly kind: 'merge' }

export interface MergeTools extends JobTools {
  readonly parts: PartAccess
}

export function createMergeJob(tools: MergeTools, job: Merge): StorageJob {
  assert(job.parts.length > 0, 'S2: a merge has parts')
  assert(job.parts.length <= mergePartsMax, 'K2: a merge has at most mergePartsMax parts')
  const all = job.parts.reduce((sum, part) => sum + part.rows, 0)
  // A slice is cut at pages: each input may bring one more.
  const rows = Math.min(all, job.sliceRows + job.parts.length * pageRowsMax)
  // First the timestamps of all rows, then the buffers of the writer; one byte a row stays.
  const bytes = rows + Math.max(rows * 8 + 512 * 1024, writerBytes(job.version.schema, rows)) + 4 * 1024 * 1024
  return new StorageJob(withArena(tools, budgets.queries, bytes, (scratch) => merge(tools, job, scratch)))
}

/** Parts that a merge of so many rows may make. */
export function mergedPartsMax(parts: readonly PartDescriptor[], sliceRows: number): number {
  return slicesMax(
    parts.reduce((sum, { rows }) => sum + rows, 0),
    sliceRows,
  )
}

function* merge(tools: MergeTools, job: Merge, scratch: Scratch): Generator<undefined, JobResult> {
  const { version, firstPartId, sliceRows } = job
  const { schema } = version
  const inputs = inCommitOrder(job.parts)
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
      assert(parts.length < mergedPartsMax(inputs, sliceRows), 'S3: a merge stays within its part ids')
      parts.push(yield* mergeSlice(tools, version, scratch, slice, { ...names, partId }))
    }
    finished = true
    return { parts }
  } finally {
    // Parts of an unfinished merge are nobody's.
    if (!finished) for (const { file } of parts) tools.files.remove(`${tools.directory}/${file}`)
  }
}

function* mergeSlice(
  tools: MergeTools,
  version: TableVersion,
  scratch: Scratch,
  slice: readonly MergeInput[],
  names: Omit<PartInput, 'source'>,
): Generator<undefined, PartDescriptor> {
  const { schema } = version
  let choices = yield* mergeChoices(tools, scratch, slice, schema.timestampId)
  assert(choices.count === slice.reduce((sum, { rows }) => sum + rows, 0), 'S2: a merge takes every row')
  if (schema.dedupKeys.length > 0) choices = yield* dedupChoices(tools, scratch, slice, schema, choices)
  const source = mergeSource(tools, scratch, slice, version, choices)
  try {
    return yield* writePart(partTools(tools, scratch), { ...names, source })
  } finally {
    source.release()
  }
}
