// Plans that are all rows of a table in its order: then the number of a row says where it lies, and an export can be cut into
// pieces of work. Only tables whose pieces follow each other in time are read so, which stored ones do.

import type { Plan, PlanColumn } from '../plan/plan.js'
import type { ExecContext } from './context.js'
import { covers, type Piece } from './pieces.js'
import { type PageReads, type ScanShape, SliceReader, scanShape } from './scan-slices.js'
import { type PieceList, pickPieces } from './share-pieces.js'
import type { Vector } from './vector.js'
import { scanRuns } from './zones.js'

/** The scan whose rows are exported, and which of its columns. */
interface WholeScan {
  readonly shape: ScanShape
  readonly columns: readonly PlanColumn[]
}

export interface NumberedScan extends WholeScan {
  readonly pieces: readonly Piece[]
}

/** undefined: rows are filtered or computed, or do not lie in their order. */
export function numberedScan(context: ExecContext, plan: Plan): NumberedScan | undefined {
  const whole = wholeScan(context, plan)
  const pieces = whole === undefined ? undefined : piecesInOrder(context, plan, whole.shape)
  return whole === undefined || pieces === undefined ? undefined : { ...whole, pieces }
}

/** undefined also when later rows may replace some. */
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
  return !timed || (scan.kind === 'scan' && scan.order === 'any') ? commits : piecesByTime(commits)
}

/** Pieces, given in the order of their commits, one behind the other in time; undefined when they overlap. */
export function piecesByTime(commits: readonly Piece[]): Piece[] | undefined {
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

/** The same on a thread that helps, with the pieces that the lead has listed. */
export function wholeScanOf(context: ExecContext, plan: Plan, told: PieceList): NumberedScan | undefined {
  const whole = wholeScan(context, plan)
  if (whole === undefined) return undefined
  const candidates = scanRuns(context, whole.shape).flatMap((run) => run.pieces)
  const pieces = pickPieces(candidates, told)
  return pieces === undefined ? undefined : { ...whole, pieces }
}

/** Reads rows by their number. */
export class NumberedRows {
  readonly count: number
  readonly reader: SliceReader
  readonly #pieces: readonly Piece[]
  /** First row of each piece. */
  readonly #firsts: readonly number[]
  #piece = 0
  #row = 0

  constructor(context: ExecContext, { shape, pieces }: NumberedScan, reads: PageReads = 'kept') {
    this.reader = new SliceReader(context, shape, reads)
    this.#pieces = pieces
    let first = 0
    this.#firsts = pieces.map(({ rows }) => {
      first += rows
      return first - rows
    })
    this.count = first
  }

  seek(row: number): void {
    this.release()
    this.#row = row
    this.#piece = 0
    while (row >= (this.#firsts[this.#piece + 1] ?? this.count)) this.#piece++
  }

  get row(): number {
    return this.#row
  }

  /** The piece of the next row, and the row's place in it; undefined behind the last one. */
  next(): { readonly piece: Piece; readonly from: number } | undefined {
    this.#leave()
    const piece = this.#pieces[this.#piece]
    return piece === undefined ? undefined : { piece, from: this.#row - (this.#firsts[this.#piece] as number) }
  }

  /** The next rows of one piece, at most so many; they can be read until the next call. */
  take(rowsMax: number): { readonly rows: number; readonly vectors: readonly Vector[] } {
    const here = this.next()
    if (here === undefined) return { rows: 0, vectors: [] }
    const rows = Math.min(rowsMax, here.piece.rows - here.from)
    const vectors = this.reader.vectors(here.piece, here.from, null)
    this.#row += rows
    return { rows, vectors }
  }

  /** Goes past rows of the piece that somebody has read. */
  skip(rows: number): void {
    this.#row += rows
  }

  /** Gives the piece under way back. */
  release(): void {
    this.#pieces[this.#piece]?.release()
  }

  #leave(): void {
    while (this.#row >= (this.#firsts[this.#piece + 1] ?? Number.POSITIVE_INFINITY)) {
      this.release()
      this.#piece++
    }
  }
}
