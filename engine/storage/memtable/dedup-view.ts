// Deduplication on read (DEDUP UPSERT KEYS): finds the rows that readers must skip because a row committed later has
// the same keys. It compares the runs of a table, which readers see separately: parts (Parquet files) and memtables.
// Duplicates within one memtable are marked by the writer, and those in parts disappear at their next compaction.
//
// Runs that do not overlap in time cost nothing, because rows with equal keys have equal timestamps. If a block or
// page overlaps later runs, a hash table is built over its keys and probed with their rows, when the reader first
// asks which of its rows are superseded.
//
// Invariant: the runs (Run[]) are in commit order, so of several rows with equal keys the row of the last run is the
// current one. With DEDUP SKIP it is the row of the first run. Names and comments below describe the case without SKIP.
// Runs that were stored before DEDUP was declared supersede no rows. Rows of one run are not compared with each other.
// A compaction that joins a run from before with a later one includes all runs that overlap them.

import { visibleTransaction } from '../../memory/column-layout.js'
import type { SharedMemory } from '../../memory/shared-memory.js'
import { precedesDedup, type TableSchema, type TableSnapshot, type TableVersion } from '../schema/schema.js'
import { hashRow, type KeyColumn, keyColumnsAt, nullBytes, sameRow } from './key-columns.js'

/** A block or page of rows, as in exec/scan/morsels.ts. */
export interface DedupMorsel {
  /** Id of the part or memtable. */
  readonly source: number
  readonly rows: number
  /** Bounds of the designated timestamp (conservative). */
  readonly minTs: bigint
  readonly maxTs: bigint
  readonly superseded: number
  readonly visibleRows: number
  /** Whether these columns can be read now; if not, they are requested from the object store. */
  ready(columnIds: readonly number[]): boolean
  column(columnId: number): number
  release(): void
}

export interface DedupRun<Morsel extends DedupMorsel> {
  readonly morsels: readonly Morsel[]
  /** Id of the memtable; -1 for a part. */
  readonly memtable: number
  readonly minTs: bigint
  readonly maxTs: bigint
}

/** Allocates memory for marks. */
export interface MarkArena {
  take(bytes: number): number
  give(address: number): void
}

export interface DedupTools {
  readonly memory: SharedMemory
  readonly arena: MarkArena
  readonly schema: TableSchema
}

export interface MorselTools<Morsel extends DedupMorsel> {
  readonly version: TableVersion
  /** A copy of the morsel with some members replaced. */
  readonly changed: (morsel: Morsel, changes: Partial<DedupMorsel>) => Morsel
}

/** Whether row counts and statistics of parts and memtables may count rows that readers do not see. */
export function mayHaveDuplicates({ version, visibleRows }: TableSnapshot): boolean {
  if (version.removals !== undefined) return true
  if (version.schema.dedupKeys.length === 0) return false
  return visibleRows.some((rows) => rows > 0) || overlapping(version.parts).size > 0
}

/**
 * Returns the runs with superseded rows marked. `again` returns the same runs with morsels of their own, because the
 * caller may use a morsel while other morsels are compared with it.
 */
export function withoutDuplicates<Morsel extends DedupMorsel, Run extends DedupRun<Morsel>>(
  runs: readonly Run[],
  again: () => readonly Run[],
  tools: DedupTools & MorselTools<Morsel>,
): Run[] {
  const meeting = overlapping(runs)
  if (meeting.size === 0) return [...runs]
  const others = again()
  const skips = tools.schema.dedupSkips === true
  const isOld = beforeDedup(tools)
  return runs.map((run, index) => {
    if (!meeting.has(index)) return run
    if (skips && isOld(run)) return run
    const later = others.filter((other, at) => {
      const mayMeet = (skips ? at < index : at > index) && meeting.has(at) && meet(run, other)
      return mayMeet && (skips || !isOld(other))
    })
    if (later.length === 0) return run
    const morsels = later.flatMap((other) => other.morsels)
    return { ...run, morsels: run.morsels.map((morsel) => markedMorsel(morsel, morsels, tools)) }
  })
}

/** Tells whether the rows of a run were stored before DEDUP was declared. */
function beforeDedup({
  memory,
  schema,
  version,
}: DedupTools & { readonly version: TableVersion }): (run: DedupRun<DedupMorsel>) => boolean {
  if (schema.dedupAfter === undefined) return () => false
  const isOld = (transaction: number): boolean => precedesDedup(schema, transaction)
  const parts = new Set(version.parts.filter(({ maxTxn }) => isOld(maxTxn)).map(({ id }) => id))
  const memtables = new Map(version.memtables.map(({ id, address }) => [id, address]))
  return ({ memtable, morsels }) => {
    const address = memtables.get(memtable)
    if (address !== undefined) return isOld(visibleTransaction(memory, address))
    return morsels[0] !== undefined && parts.has(morsels[0].source)
  }
}

interface Span {
  readonly minTs: bigint
  readonly maxTs: bigint
}

function meet(x: Span, y: Span): boolean {
  return x.minTs <= y.maxTs && y.minTs <= x.maxTs
}

/** Indexes of the spans that overlap another one. */
function overlapping(spans: readonly Span[]): Set<number> {
  const order = spans.map((_, index) => index)
  const from = (index: number): bigint => (spans[index] as Span).minTs
  order.sort((x, y) => (from(x) < from(y) ? -1 : from(x) > from(y) ? 1 : 0))
  const found = new Set<number>()
  let furthest = order[0]
  for (const index of order.slice(1)) {
    const reach = (spans[furthest as number] as Span).maxTs
    if (from(index) <= reach) found.add(index).add(furthest as number)
    if ((spans[index] as Span).maxTs > reach) furthest = index
  }
  return found
}

function markedMorsel<Morsel extends DedupMorsel>(
  morsel: Morsel,
  others: readonly Morsel[],
  tools: DedupTools & MorselTools<Morsel>,
): Morsel {
  const later = others.filter((other) => meet(morsel, other))
  if (later.length === 0) return morsel
  let marks: { readonly address: number; readonly own: boolean } | null = null
  return tools.changed(morsel, {
    ready: (columnIds) => {
      if (marks !== null) return morsel.ready(columnIds)
      const { dedupKeys } = tools.schema
      // All of them are asked, so that all are requested at once.
      const compared = [...later.map((other) => other.ready(dedupKeys)), morsel.ready([...columnIds, ...dedupKeys])]
      return compared.every((isReady) => isReady)
    },
    // Mark 1 means superseded by the first row, which every reader of the morsel sees.
    visibleRows: Math.max(1, morsel.visibleRows),
    get superseded(): number {
      marks ??= findRepeats(morsel, later, tools)
      return marks.address
    },
    release: () => {
      if (marks?.own === true) tools.arena.give(marks.address)
      marks = null
      morsel.release()
    },
  })
}

/** The morsel's own marks, or a copy of them that includes the superseded rows. */
function findRepeats(
  morsel: DedupMorsel,
  later: readonly DedupMorsel[],
  tools: DedupTools,
): { readonly address: number; readonly own: boolean } {
  const dead = duplicateRows(morsel, later, tools)
  if (dead.length === 0) return { address: morsel.superseded, own: false }
  const { memory, arena } = tools
  const address = arena.take(morsel.rows * 4)
  const first = address >>> 2
  if (morsel.superseded === 0) memory.u32.fill(0, first, first + morsel.rows)
  else memory.u8.copyWithin(address, morsel.superseded, morsel.superseded + morsel.rows * 4)
  for (const row of dead) memory.u32[first + row] = 1
  return { address, own: true }
}

/** Rows of the morsel whose keys occur in later morsels. */
export function duplicateRows(morsel: DedupMorsel, later: readonly DedupMorsel[], tools: DedupTools): number[] {
  const nulls = tools.arena.take(nullBytes)
  try {
    const keys = new KeyTable(tools.memory, keyColumns(morsel, tools, nulls), morsel.rows)
    const dead: number[] = []
    for (const other of later) {
      keys.probe(keyColumns(other, tools, nulls), other.rows, morsel, dead)
      other.release()
    }
    return dead
  } finally {
    tools.arena.give(nulls)
  }
}

/** The key columns, with the designated timestamp first. */
function keyColumns(morsel: DedupMorsel, { memory, schema }: DedupTools, nulls: number): KeyColumn[] {
  const ids = [schema.timestampId, ...schema.dedupKeys.filter((id) => id !== schema.timestampId)]
  return keyColumnsAt(memory, schema, ids, nulls, (id) => morsel.column(id))
}

/** A hash table from the keys of a morsel to its rows. */
class KeyTable {
  private readonly memory: SharedMemory
  private readonly columns: readonly KeyColumn[]
  /** Number + 1 of the last row with a key; 0 is free. */
  private readonly slots: Int32Array
  private readonly hashes: Int32Array
  /** Number + 1 of the row before with the same key: rows that precede DEDUP may have it. */
  private readonly earlier: Int32Array
  /** Of the last row with a key: whether its rows were found. */
  private readonly isFound: Uint8Array

  constructor(memory: SharedMemory, columns: readonly KeyColumn[], rows: number) {
    this.memory = memory
    this.columns = columns
    const slotCount = 2 ** Math.max(4, 33 - Math.clz32(rows))
    this.slots = new Int32Array(slotCount)
    this.hashes = new Int32Array(rows)
    this.earlier = new Int32Array(rows)
    this.isFound = new Uint8Array(rows)
    for (let row = 0; row < rows; row++) {
      const hash = hashRow(memory, columns, row)
      const at = this.#slotOf(hash, columns, row)
      this.hashes[row] = hash
      this.earlier[row] = this.slots[at]!
      this.slots[at] = row + 1
    }
  }

  /** Adds to `into` the rows whose keys equal those of another morsel's rows within the time span. */
  probe(others: readonly KeyColumn[], count: number, span: Span, into: number[]): void {
    const { memory, slots, earlier, isFound } = this
    const words = (others[0] as KeyColumn).address >>> 2
    // Both sides are rounded to doubles in the same way, so no row is missed and at most a few extra ones are probed.
    const [min, max] = [Number(span.minTs), Number(span.maxTs)]
    for (let other = 0; other < count; other++) {
      const ts = memory.i32[words + other * 2 + 1]! * 2 ** 32 + memory.u32[words + other * 2]!
      if (ts < min || ts > max) continue
      const last = slots[this.#slotOf(hashRow(memory, others, other), others, other)]!
      if (last === 0 || isFound[last - 1] === 1) continue
      isFound[last - 1] = 1
      for (let row = last; row !== 0; row = earlier[row - 1]!) into.push(row - 1)
    }
  }

  /** The slot of the rows with the same key as this one, or the free one for them. */
  #slotOf(hash: number, columns: readonly KeyColumn[], row: number): number {
    const { slots, hashes } = this
    const mask = slots.length - 1
    let at = hash & mask
    for (; slots[at] !== 0; at = (at + 1) & mask) {
      const known = slots[at]! - 1
      if (hashes[known] === hash && sameRow(this.memory, this.columns, known, columns, row)) break
    }
    return at
  }
}
