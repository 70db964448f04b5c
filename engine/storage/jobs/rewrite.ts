// The job that performs UPDATE, DELETE and changes of a column's type: it writes a new version of each part (Parquet
// file) in which the statement changes a row. The job publishes nothing: the writer replaces all these parts by one
// record of the manifest (the list of all files), so the change is atomic.
//
// The job runs a query (the program) over one part at a time. The first output column of the query is the number of the
// row to change within the part (rowNumberId). The new values of the assigned columns follow, except for DELETE, and
// then the values for RETURNING.
//
// New versions do not contain rows that upserts have removed. In DEDUP tables, they do not contain rows that a later
// part (DEDUP SKIP: an earlier one) supersedes either: otherwise these would count as changed, or an update of the keys
// would make them visible again. A part with such rows is rewritten even if the statement changes no row of it.

import { assert } from '../../base/assert.js'
import { budgets } from '../../memory/budgets.js'
import type { SharedMemory } from '../../memory/shared-memory.js'
import { type DataType, isVariable, widthOf } from '../../types/column-types.js'
import type { Value } from '../../types/value.js'
import { type DedupMorsel, duplicateRows } from '../memtable/dedup-view.js'
import { marksOf } from '../memtable/removed-rows.js'
import type { PartAccess, PartHandle } from '../part/part-access.js'
import { Scratch } from '../part/part-scratch.js'
import { writePart } from '../part/part-writer.js'
import { type PartDescriptor, precedesDedup, type TableSnapshot } from '../schema/schema.js'
import { type CompactionTools, inCommitOrder } from './compaction.js'
import type { Job, JobResult, RewriteProgram } from './messages.js'
import {
  type JobSteps,
  partTools,
  StorageJob,
  symbolStrings,
  untilReadable,
  withArena,
  writerBytes,
} from './part-job.js'
import { type AssignedColumn, ChangeList, requireReturnable, SymbolIds } from './rewrite-changes.js'
import { rewriteSource } from './rewrite-source.js'

/** Column id by which a program's scan of the target table requests row numbers (LONG). */
export const rowNumberId = -2

/** Runs programs; implemented in engine/exec/run. */
export type RunProgram = (program: RewriteProgram, target: TableSnapshot, changes: ChangeList) => JobSteps<void>

export interface RewriteTools extends CompactionTools {
  readonly run: RunProgram
}

type Rewrite = Job & { readonly kind: 'rewrite' }

export function createRewriteJob(tools: RewriteTools, job: Rewrite): StorageJob {
  return new StorageJob(rewrite(tools, job))
}

function* rewrite(tools: RewriteTools, job: Rewrite): JobSteps<JobResult> {
  const assigned = assignedColumns(job)
  const symbols = symbolsOf(tools, job, assigned)
  if (symbols.size > 0) {
    const newSymbols = yield* missingSymbols(tools, job, assigned, symbols)
    if (newSymbols.length > 0) return { parts: [], newSymbols }
  }
  const done = {
    parts: [] as PartDescriptor[],
    replaced: [] as number[],
    rows: 0,
    returned: [] as (readonly Value[])[],
  }
  let finished = false
  try {
    for (const [index, part] of job.parts.entries()) {
      const bytes = arenaBytes(tools, job, part, assigned)
      const outcome = yield* withArena(tools, budgets.queries, bytes, (scratch) => {
        const changes = new ChangeList(scratch, assigned, symbols)
        return rewritePart(tools, job, part, { scratch, changes, partId: job.firstPartId + index })
      })
      if (outcome === null) continue
      done.replaced.push(part.id)
      done.rows += outcome.rows
      for (const row of outcome.returned) done.returned.push(row)
      requireReturnable(done.returned.length)
      if (outcome.part !== null) done.parts.push(outcome.part)
    }
    finished = true
    return done
  } finally {
    // No manifest names the parts of an unfinished rewrite.
    if (!finished) for (const { file } of done.parts) removeFile(tools, file)
  }
}

function removeFile({ files, directory }: RewriteTools, file: string): void {
  const path = `${directory}/${file}`
  if (files.exists(path)) files.remove(path)
}

function assignedColumns({ program, schema }: Rewrite): AssignedColumn[] {
  return (program?.assigned ?? []).map((id) => {
    const type = schema.columns[id]?.type as DataType
    return { id, type }
  })
}

function symbolsOf(
  { memory }: RewriteTools,
  { version }: Rewrite,
  assigned: readonly AssignedColumn[],
): Map<number, SymbolIds> {
  const dictionaries = new Map(version.dictionaries)
  const symbolic = assigned.filter(({ type }) => type.name === 'SYMBOL')
  return new Map(symbolic.map(({ id }) => [id, new SymbolIds(memory, dictionaries.get(id) ?? 0)] as const))
}

/** Runs the program over all parts to find strings that the table's dictionaries lack. */
function* missingSymbols(
  tools: RewriteTools,
  { program, version, parts }: Rewrite,
  assigned: readonly AssignedColumn[],
  symbols: ReadonlyMap<number, SymbolIds>,
): JobSteps<(readonly [number, readonly string[]])[]> {
  if (program === null) return []
  for (const part of parts) {
    const scratch = new Scratch(tools.memory, tools.allocator, budgets.queries)
    try {
      yield* tools.run(program, snapshotOf(version, part), new ChangeList(scratch, assigned, symbols))
    } finally {
      scratch.release()
    }
  }
  return [...symbols].flatMap(([id, { missing }]) => (missing.size === 0 ? [] : [[id, [...missing]] as const]))
}

/** The target table as the program sees it: a version with only this part. */
function snapshotOf(version: Rewrite['version'], part: PartDescriptor): TableSnapshot {
  return { version: { ...version, parts: [part], memtables: [] }, visibleRows: [] }
}

function arenaBytes(
  { allocator }: RewriteTools,
  { schema }: Rewrite,
  { rows }: PartDescriptor,
  assigned: readonly AssignedColumn[],
): number {
  const perRow = assigned.reduce((sum, { type }) => sum + widthOf(type) + (isVariable(type) ? 64 : 0), 4)
  const wanted = rows * perRow * 2 + writerBytes(schema, rows) + 2 * 1024 * 1024
  return Math.min(wanted, allocator.limit(budgets.queries) / 2)
}

interface PartWork {
  readonly scratch: Scratch
  readonly changes: ChangeList
  readonly partId: number
}

interface RewrittenPart {
  readonly rows: number
  readonly returned: readonly (readonly Value[])[]
  /** Null: no rows are left. */
  readonly part: PartDescriptor | null
}

/** Rewrites a part; returns null if nothing changes in it. */
function* rewritePart(
  tools: RewriteTools,
  { program, version, schema }: Rewrite,
  part: PartDescriptor,
  { scratch, changes, partId }: PartWork,
): JobSteps<RewrittenPart | null> {
  const later = otherParts(version, part)
  if (later.length > 0) yield* untilReadable(tools.parts, [part, ...later], version)
  const dead = new Set(deadRows(tools, version, part, later))
  yield
  if (program !== null) yield* tools.run(program, snapshotOf(version, part), changes)
  changes.finish(dead)
  if (changes.count === 0 && dead.size === 0) return null
  const returned = changes.returnedRows()
  yield* untilReadable(tools.parts, [part], version)
  const handle = tools.parts.open(part, version)
  const retained = retainedRows(tools, handle, program?.action === 'delete' ? changes : null, dead)
  if (retained?.length === 0) return { rows: changes.count, returned, part: null }
  const overlay = program?.action === 'update' && changes.count > 0 ? changes : null
  const { memory, parts } = tools
  const symbol = symbolStrings(memory, version)
  const source = rewriteSource({ memory, parts, scratch, handle, changes: overlay, retained, symbol })
  try {
    const { partition, minTxn, maxTxn } = part
    const written = yield* writePart(partTools(tools, scratch), { schema, source, partId, partition, minTxn, maxTxn })
    return { rows: changes.count, returned, part: written }
  } finally {
    source.release()
  }
}

/** Row numbers that are kept; null if all are. */
function retainedRows(
  { memory }: RewriteTools,
  { rows }: PartHandle,
  deleted: ChangeList | null,
  dead: ReadonlySet<number>,
): Uint32Array | null {
  if (dead.size === 0 && (deleted === null || deleted.count === 0)) return null
  const gone = new Uint8Array(rows)
  for (const row of dead) gone[row] = 1
  if (deleted !== null) {
    const first = deleted.rows >>> 2
    for (let at = 0; at < deleted.count; at++) gone[memory.u32[first + at]!] = 1
  }
  const retained = new Uint32Array(rows)
  let count = 0
  for (let row = 0; row < rows; row++) if (gone[row] === 0) retained[count++] = row
  return retained.subarray(0, count)
}

/** Parts that may have rows which supersede rows of the part. */
function otherParts({ schema, parts }: Rewrite['version'], part: PartDescriptor): readonly PartDescriptor[] {
  if (schema.dedupKeys.length === 0) return []
  const ordered = inCommitOrder(parts)
  const place = ordered.findIndex(({ id }) => id === part.id)
  assert(place >= 0, 'S2: a rewritten part belongs to the table')
  const isOld = ({ maxTxn }: PartDescriptor): boolean => precedesDedup(schema, maxTxn)
  const skips = schema.dedupSkips === true
  if (skips && isOld(part)) return []
  const others = skips ? ordered.slice(0, place) : ordered.slice(place + 1).filter((other) => !isOld(other))
  return others.filter((other) => other.minTs <= part.maxTs && part.minTs <= other.maxTs)
}

/** Rows of the part that upserts have removed, or that a later part supersedes because it has the same keys. */
function* deadRows(
  tools: RewriteTools,
  version: Rewrite['version'],
  part: PartDescriptor,
  later: readonly PartDescriptor[],
): Generator<number> {
  yield* removedRows(tools.memory, version, part)
  yield* repeatedKeys(tools, version, part, later)
}

function* removedRows(
  { u32 }: SharedMemory,
  version: Rewrite['version'],
  { id, rows }: PartDescriptor,
): Generator<number> {
  const first = marksOf(version, id) >>> 2
  if (first !== 0) for (let row = 0; row < rows; row++) if (u32[first + row] !== 0) yield row
}

function repeatedKeys(
  tools: RewriteTools,
  version: Rewrite['version'],
  part: PartDescriptor,
  later: readonly PartDescriptor[],
): number[] {
  const { schema } = version
  if (later.length === 0) return []
  const { memory, allocator, parts } = tools
  const arena = {
    take: (bytes: number) => allocator.allocateOrThrow(bytes, budgets.queries),
    give: (address: number) => allocator.free(address),
  }
  const others = later.flatMap((other) => morselsOf(parts, parts.open(other, version)))
  const dead: number[] = []
  const handle = parts.open(part, version)
  for (const [page, morsel] of morselsOf(parts, handle).entries()) {
    const first = handle.firstRows[page]!
    const meeting = others.filter((other) => other.minTs <= morsel.maxTs && morsel.minTs <= other.maxTs)
    if (meeting.length > 0) {
      for (const row of duplicateRows(morsel, meeting, { memory, arena, schema })) dead.push(first + row)
    }
    morsel.release()
  }
  return dead
}

function morselsOf(parts: PartAccess, handle: PartHandle): DedupMorsel[] {
  return Array.from({ length: handle.pageCount }, (_, page): DedupMorsel => {
    let pinned: number[] = []
    return {
      source: handle.descriptor.id,
      rows: handle.firstRows[page + 1]! - handle.firstRows[page]!,
      minTs: handle.minTs[page]!,
      maxTs: handle.maxTs[page]!,
      superseded: 0,
      visibleRows: 0,
      ready: (columnIds) => parts.ready(handle, columnIds, page),
      column: (columnId) => {
        const address = parts.pin(handle, columnId, page)
        pinned.push(address)
        return address
      },
      release: () => {
        for (const address of pinned) parts.unpin(address)
        pinned = []
      },
    }
  })
}
