// Operator: a whole table as row groups of a Parquet file, made by several threads. A chunk is so many rows of the table in
// its order, a whole number of row groups; the lead places what comes in the order of the chunks.
//
// Only tables whose pieces follow each other in time are exported so, which stored ones do: then the number of a row says
// where it lies. A thread holds a few chunks that the file has not taken yet and no more, so a slow reader stops all.

import type { Plan, PlanColumn } from '../plan/plan.js'
import type { ExecContext } from './context.js'
import { type ExportedGroup, GroupEncoder, packGroups, unpackGroups } from './encode-parquet-group.js'
import type { ParquetEncoding } from './parquet-encoding.js'
import { covers, type Piece } from './pieces.js'
import type { QuerySpace } from './query-space.js'
import { type ScanShape, SliceReader, scanShape } from './scan-slices.js'
import { type ChunkWorker, LeadRun, type ShareDetails } from './share.js'
import { listPieces, pickPieces } from './share-pieces.js'
import { soloSharing } from './share-solo.js'
import { batchRowsMax, type Operator, type Pull, type Vector } from './vector.js'
import { scanRuns } from './zones.js'

/** Larger ones are more than a chunk should hold. */
const chunkRowsMax = 4 * 1024 * 1024
/** Chunks that a helper holds until the lead has taken them. */
const heldMax = 2

/** The scan whose rows are exported, and which of its columns. */
interface WholeScan {
  readonly shape: ScanShape
  readonly columns: readonly PlanColumn[]
}

/** undefined: rows are filtered or computed, or do not lie in their order. `give` hears of groups before their rows do. */
export function sharedExport(
  context: ExecContext,
  plan: Plan,
  encoding: ParquetEncoding,
  give: (group: ExportedGroup) => void,
): Operator | undefined {
  const sharing = context.sharing ?? soloSharing(context.space)
  // Small row groups are made many at a time.
  const chunkRows = encoding.rowGroupRows * Math.ceil(sharing.chunkRowsMin / encoding.rowGroupRows)
  const whole = chunkRows > chunkRowsMax ? undefined : wholeScan(context, plan)
  const pieces = whole === undefined ? undefined : piecesInOrder(context, plan, whole.shape)
  if (whole === undefined || pieces === undefined) return undefined
  const rows = pieces.reduce((sum, piece) => sum + piece.rows, 0)
  if (rows <= chunkRows && !pieces.some(isWorthTaking)) return undefined
  const worker = new GroupChunks(context, { ...whole, pieces, chunkRows, encoding, packed: false })
  const counted: number[] = []
  const lead = new LeadRun(context.memory, sharing, {
    plan,
    worker,
    chunks: Math.ceil(rows / chunkRows),
    details: () => ({ pieces: listPieces(pieces), chunkPieces: chunkRows, counts: null }),
    merge: (result) => {
      for (const group of worker.own(result) ?? unpackGroups(context.memory, result)) {
        give(group)
        counted.push(group.rows)
      }
    },
  })
  const pull = (): Pull => {
    const done = counted.shift()
    if (done !== undefined) return { rows: done, vectors: [] }
    const outcome = lead.step()
    if (outcome === 'done') return null
    return outcome === 'waiting' ? 'waiting' : 'working'
  }
  return { pull }
}

/** What a helper does for it; `chunkPieces` are rows here. */
export function helpExport(
  context: ExecContext,
  plan: Plan,
  encoding: ParquetEncoding,
  { pieces: told, chunkPieces }: ShareDetails,
): ChunkWorker | undefined {
  const whole = wholeScan(context, plan)
  if (whole === undefined) return undefined
  const candidates = scanRuns(context, whole.shape).flatMap((run) => run.pieces)
  const pieces = pickPieces(candidates, told)
  if (pieces === undefined) return undefined
  return new GroupChunks(context, { ...whole, pieces, chunkRows: chunkPieces, encoding, packed: true })
}

function wholeScan(context: ExecContext, plan: Plan): WholeScan | undefined {
  if (plan.kind === 'scan') {
    if (plan.filter !== null || plan.order === 'descending') return undefined
    const shape = scanShape(context, plan)
    return shape.snapshot.version.schema.dedupKeys.length > 0 ? undefined : { shape, columns: plan.columns }
  }
  if (plan.kind !== 'project') return undefined
  const below = wholeScan(context, plan.input)
  if (below === undefined) return undefined
  const { columnIds, types } = below.shape
  const picked = plan.expressions.map((expression) => (expression.kind === 'column' ? expression.index : -1))
  if (picked.includes(-1)) return undefined
  const shape = {
    ...below.shape,
    columnIds: picked.map((index) => columnIds[index] as number),
    types: picked.map((index) => types[index] as (typeof types)[number]),
  }
  return { shape, columns: plan.columns }
}

/** Pieces of a table one behind the other; undefined when they overlap, or hold other rows as well. */
function piecesInOrder(context: ExecContext, plan: Plan, shape: ScanShape): Piece[] | undefined {
  const commits = scanRuns(context, shape).flatMap((run) => run.pieces)
  if (commits.some((piece) => !covers(shape.ranges, piece.minTs, piece.maxTs))) return undefined
  const scan = plan.kind === 'project' ? plan.input : plan
  const timed = shape.snapshot.version.schema.timestampId >= 0
  if (!timed || (scan.kind === 'scan' && scan.order === 'any')) return commits
  const numbered = commits.map((piece, commit) => ({ piece, commit }))
  numbered.sort((x, y) =>
    x.piece.minTs < y.piece.minTs ? -1 : x.piece.minTs > y.piece.minTs ? 1 : x.commit - y.commit,
  )
  const follows = numbered.every(({ piece, commit }, index) => {
    const before = numbered[index - 1]
    if (!piece.sorted) return false
    if (before === undefined || before.piece.maxTs < piece.minTs) return true
    // Equal timestamps come in the order of commits.
    return before.piece.maxTs === piece.minTs && before.commit < commit
  })
  return follows ? numbered.map(({ piece }) => piece) : undefined
}

/** Smaller pages would make an export of small pages. */
const storedRowsMin = 16_384

function isWorthTaking({ source, rows }: Piece): boolean {
  return source >= 0 && rows >= storedRowsMin
}

interface ChunkOptions extends WholeScan {
  readonly pieces: readonly Piece[]
  readonly chunkRows: number
  readonly encoding: ParquetEncoding
  /** Results are for another thread. */
  readonly packed: boolean
}

class GroupChunks implements ChunkWorker {
  readonly heldMax = heldMax
  readonly #context: ExecContext
  readonly #options: ChunkOptions
  /** First row of each piece. */
  readonly #firsts: readonly number[]
  readonly #reader: SliceReader
  /** The memory of what each result names. */
  readonly #results = new Map<number, readonly QuerySpace[]>()
  readonly #own = new Map<number, readonly ExportedGroup[]>()
  #space: QuerySpace | null = null
  #encoder: GroupEncoder | null = null
  #groups: ExportedGroup[] = []
  #piece = 0
  #row = 0
  #rowEnd = 0
  /** Of a piece that is taken column by column; -1 = it is not. */
  #column = -1

  constructor(context: ExecContext, options: ChunkOptions) {
    this.#context = context
    this.#options = options
    this.#reader = new SliceReader(context, options.shape)
    let first = 0
    this.#firsts = options.pieces.map(({ rows }) => {
      first += rows
      return first - rows
    })
    this.#rowEnd = first
    context.onEnd(() => {
      this.#abandon()
      for (const result of [...this.#results.keys()]) this.recycle(result)
    })
  }

  begin(chunk: number): void {
    this.#abandon()
    const { chunkRows, encoding, columns, pieces } = this.#options
    const space = this.#context.space.child()
    this.#space = space
    this.#encoder = new GroupEncoder(encoding, { ...this.#context, space }, columns, (group) =>
      this.#groups.push(group),
    )
    const rows = (this.#firsts[pieces.length - 1] ?? 0) + (pieces[pieces.length - 1]?.rows ?? 0)
    this.#row = chunk * chunkRows
    this.#rowEnd = Math.min(rows, this.#row + chunkRows)
    this.#piece = 0
    while (this.#row >= (this.#firsts[this.#piece + 1] ?? rows)) this.#piece++
  }

  step(): boolean {
    const piece = this.#options.pieces[this.#piece]
    if (piece === undefined || this.#row >= this.#rowEnd) return false
    const from = this.#row - (this.#firsts[this.#piece] as number)
    if (this.#column >= 0 || (from === 0 && this.#isWhole(piece))) this.#takeColumn(piece)
    else {
      const count = Math.min(batchRowsMax, piece.rows - from, this.#rowEnd - this.#row)
      this.#encoder?.rows(this.#reader.vectors(piece, from, null), 0, count)
      this.#advance(piece, from, count)
    }
    return this.#row < this.#rowEnd
  }

  #isWhole(piece: Piece): boolean {
    const room = Math.min(this.#encoder?.room ?? 0, this.#rowEnd - this.#row)
    return isWorthTaking(piece) && piece.rows <= room
  }

  #takeColumn(piece: Piece): void {
    const { shape } = this.#options
    const index = Math.max(0, this.#column)
    this.#encoder?.column(index, {
      stored: piece.stored(shape.columnIds[index] as number),
      dictionary: this.#reader.dictionaryOf(index),
      rows: piece.rows,
      vector: () => this.#reader.vectors(piece, 0, [index], true)[index] as Vector,
    })
    this.#column = index + 1
    if (this.#column < shape.columnIds.length) return
    this.#column = -1
    this.#encoder?.endPiece(piece.rows)
    this.#advance(piece, 0, piece.rows)
  }

  #advance(piece: Piece, from: number, count: number): void {
    this.#row += count
    if (from + count === piece.rows || this.#row === this.#rowEnd) piece.release()
    if (from + count === piece.rows) this.#piece++
  }

  result(): number {
    this.#encoder?.end()
    const groups = this.#groups
    this.#groups = []
    this.#abandon()
    const space = this.#context.space.child()
    const { memory } = this.#context
    const result = this.#options.packed ? packGroups(memory, space, groups) : space.take(64)
    this.#results.set(result, [space, ...groups.flatMap(({ space: bodies }) => bodies ?? [])])
    if (!this.#options.packed) this.#own.set(result, groups)
    return result
  }

  /** Groups that were made here and are not packed. */
  own(result: number): readonly ExportedGroup[] | undefined {
    return this.#own.get(result)
  }

  recycle(result: number): void {
    for (const space of this.#results.get(result) ?? []) space.freeAll()
    this.#results.delete(result)
    this.#own.delete(result)
  }

  #abandon(): void {
    this.#options.pieces[this.#piece]?.release()
    for (const { space } of this.#groups) space?.freeAll()
    this.#encoder?.abandon()
    this.#space?.freeAll()
    this.#space = null
    this.#encoder = null
    this.#column = -1
    this.#groups = []
  }
}
