// Operator: a whole table as row groups of a Parquet file, made by several threads. A chunk is so many rows of the table in
// its order, a whole number of row groups (encode-parquet-chunks.ts).

import type { Plan } from '../../sql/plan/plan.js'
import type { ExecContext } from '../batch/context.js'
import { batchRowsMax, type Operator, type Vector } from '../batch/vector.js'
import type { ChunkWorker, ShareDetails } from '../parallel/share.js'
import { soloSharing } from '../parallel/share-solo.js'
import { type Piece, rowCount } from '../scan/pieces.js'
import { listPieces } from '../scan/share-pieces.js'
import { NumberedRows, type NumberedScan, numberedScan, wholeScanOf } from '../scan/whole-scan.js'
import { GroupChunks, type GroupSource, leadGroups } from './encode-parquet-chunks.js'
import { type ExportedGroup, type GroupEncoder, groupRoom } from './encode-parquet-group.js'
import type { ParquetEncoding } from './parquet-encoding.js'

/** Larger ones are more than a chunk should hold. */
const chunkRowsMax = 4 * 1024 * 1024

/** undefined: rows are filtered or computed, or do not lie in their order. `give` hears of groups before their rows do. */
export function sharedExport(
  context: ExecContext,
  plan: Plan,
  encoding: ParquetEncoding,
  give: (group: ExportedGroup) => void,
): Operator | undefined {
  const sharing = context.sharing ?? soloSharing(context.space)
  // Small row groups are made many at a time.
  const usual = encoding.rowGroupRows * Math.ceil(sharing.chunkRowsMin / encoding.rowGroupRows)
  const room = groupRoom(context, plan.columns).rows
  // A chunk of several groups has whole ones: the end of a chunk ends a group.
  const whole = Math.floor(room / encoding.rowGroupRows) * encoding.rowGroupRows
  const chunkRows = Math.min(usual, whole === 0 ? room : whole)
  const scan = chunkRows > chunkRowsMax ? undefined : numberedScan(context, plan)
  if (scan === undefined) return undefined
  const { pieces, window } = scan
  const rows = window.end - window.first
  if (rows <= chunkRows && !pieces.some(isWorthTaking)) return undefined
  const details = (): ShareDetails => ({
    ...{ pieces: listPieces(pieces), chunkPieces: chunkRows, counts: null },
    range: { ...window, all: rowCount(pieces) },
  })
  const work = { source: new NumberedGroups(context, scan, chunkRows), encoding, columns: scan.columns }
  return leadGroups(context, sharing, { plan, ...work, details, give })
}

/** What a helper does for it; `chunkPieces` are rows here. */
export function helpExport(
  context: ExecContext,
  plan: Plan,
  encoding: ParquetEncoding,
  { pieces: told, chunkPieces, range }: ShareDetails,
): ChunkWorker | undefined {
  const scan = range === undefined ? undefined : wholeScanOf(context, plan, told, range)
  return scan === undefined
    ? undefined
    : new GroupChunks(context, {
        ...{ source: new NumberedGroups(context, scan, chunkPieces), encoding, columns: scan.columns, packed: true },
      })
}

/** Smaller pages would make an export of small pages. */
const storedRowsMin = 16_384

function isWorthTaking({ source, rows }: Piece): boolean {
  return source >= 0 && rows >= storedRowsMin
}

class NumberedGroups implements GroupSource {
  readonly chunks: number
  readonly #scan: NumberedScan
  readonly #chunkRows: number
  readonly #rows: NumberedRows
  #rowEnd = 0
  /** Of a piece that is taken column by column; -1 = it is not. */
  #column = -1

  constructor(context: ExecContext, scan: NumberedScan, chunkRows: number) {
    this.#scan = scan
    this.#chunkRows = chunkRows
    this.chunks = Math.ceil((scan.window.end - scan.window.first) / chunkRows)
    this.#rows = new NumberedRows(context, scan)
  }

  seek(chunk: number): void {
    const { first, end } = this.#scan.window
    const from = first + chunk * this.#chunkRows
    this.#rowEnd = Math.min(end, from + this.#chunkRows)
    this.#rows.seek(from)
    this.#column = -1
  }

  feed(encoder: GroupEncoder): boolean {
    const rest = this.#rowEnd - this.#rows.row
    const here = this.#rows.next()
    if (here === undefined || rest <= 0) return false
    if (this.#column >= 0 || (here.from === 0 && this.#isWhole(encoder, here.piece)))
      this.#takeColumn(encoder, here.piece)
    else {
      const { rows, vectors } = this.#rows.take(Math.min(batchRowsMax, rest))
      encoder.rows(vectors, 0, rows)
    }
    return this.#rows.row < this.#rowEnd
  }

  release(): void {
    this.#rows.release()
    this.#column = -1
  }

  #isWhole(encoder: GroupEncoder, piece: Piece): boolean {
    return isWorthTaking(piece) && piece.rows <= Math.min(encoder.room, this.#rowEnd - this.#rows.row)
  }

  #takeColumn(encoder: GroupEncoder, piece: Piece): void {
    const { shape } = this.#scan
    const index = Math.max(0, this.#column)
    encoder.column(index, {
      stored: piece.stored(shape.columnIds[index] as number),
      dictionary: this.#rows.reader.dictionaryOf(index),
      rows: piece.rows,
      vector: () => this.#rows.reader.vectors(piece, 0, [index], true)[index] as Vector,
    })
    this.#column = index + 1
    if (this.#column < shape.columnIds.length) return
    this.#column = -1
    encoder.endPiece(piece.rows)
    this.#rows.skip(piece.rows)
  }
}
