// Operator: a whole table as row groups of a Parquet file, made by several threads. A chunk is so many rows of the table in
// its order, a whole number of row groups; the lead places what comes in the order of the chunks.
//
// A thread holds a few chunks that the file has not taken yet and no more, so a slow reader stops all.

import type { Plan } from '../plan/plan.js'
import type { ExecContext } from './context.js'
import { type ExportedGroup, GroupEncoder, packGroups, unpackGroups } from './encode-parquet-group.js'
import type { ParquetEncoding } from './parquet-encoding.js'
import { type Piece, rowCount } from './pieces.js'
import type { QuerySpace } from './query-space.js'
import { type ChunkWorker, LeadRun, type ShareDetails } from './share.js'
import { listPieces } from './share-pieces.js'
import { soloSharing } from './share-solo.js'
import { batchRowsMax, type Operator, type Pull, type Vector } from './vector.js'
import { NumberedRows, type NumberedScan, numberedScan, wholeScanOf } from './whole-scan.js'

/** Larger ones are more than a chunk should hold. */
const chunkRowsMax = 4 * 1024 * 1024
/** Chunks that a helper holds until the lead has taken them. */
const heldMax = 2

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
  const scan = chunkRows > chunkRowsMax ? undefined : numberedScan(context, plan)
  if (scan === undefined) return undefined
  const { pieces } = scan
  const rows = rowCount(pieces)
  if (rows <= chunkRows && !pieces.some(isWorthTaking)) return undefined
  const worker = new GroupChunks(context, { scan, chunkRows, encoding, packed: false })
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
  const scan = wholeScanOf(context, plan, told)
  return scan === undefined
    ? undefined
    : new GroupChunks(context, { scan, chunkRows: chunkPieces, encoding, packed: true })
}

/** Smaller pages would make an export of small pages. */
const storedRowsMin = 16_384

function isWorthTaking({ source, rows }: Piece): boolean {
  return source >= 0 && rows >= storedRowsMin
}

interface ChunkOptions {
  readonly scan: NumberedScan
  readonly chunkRows: number
  readonly encoding: ParquetEncoding
  /** Results are for another thread. */
  readonly packed: boolean
}

class GroupChunks implements ChunkWorker {
  readonly heldMax = heldMax
  readonly #context: ExecContext
  readonly #options: ChunkOptions
  readonly #rows: NumberedRows
  /** The memory of what each result names. */
  readonly #results = new Map<number, readonly QuerySpace[]>()
  readonly #own = new Map<number, readonly ExportedGroup[]>()
  #space: QuerySpace | null = null
  #encoder: GroupEncoder | null = null
  #groups: ExportedGroup[] = []
  #rowEnd = 0
  /** Of a piece that is taken column by column; -1 = it is not. */
  #column = -1

  constructor(context: ExecContext, options: ChunkOptions) {
    this.#context = context
    this.#options = options
    this.#rows = new NumberedRows(context, options.scan)
    context.onEnd(() => {
      this.#abandon()
      for (const result of [...this.#results.keys()]) this.recycle(result)
    })
  }

  begin(chunk: number): void {
    this.#abandon()
    const { chunkRows, encoding, scan } = this.#options
    const space = this.#context.space.child()
    this.#space = space
    this.#encoder = new GroupEncoder(encoding, { ...this.#context, space }, scan.columns, (group) =>
      this.#groups.push(group),
    )
    const first = chunk * chunkRows
    this.#rowEnd = Math.min(this.#rows.count, first + chunkRows)
    this.#rows.seek(first)
  }

  step(): boolean {
    const rest = this.#rowEnd - this.#rows.row
    const here = this.#rows.next()
    if (here === undefined || rest <= 0) return false
    if (this.#column >= 0 || (here.from === 0 && this.#isWhole(here.piece))) this.#takeColumn(here.piece)
    else {
      const { rows, vectors } = this.#rows.take(Math.min(batchRowsMax, rest))
      this.#encoder?.rows(vectors, 0, rows)
    }
    return this.#rows.row < this.#rowEnd
  }

  #isWhole(piece: Piece): boolean {
    const room = Math.min(this.#encoder?.room ?? 0, this.#rowEnd - this.#rows.row)
    return isWorthTaking(piece) && piece.rows <= room
  }

  #takeColumn(piece: Piece): void {
    const { shape } = this.#options.scan
    const index = Math.max(0, this.#column)
    this.#encoder?.column(index, {
      stored: piece.stored(shape.columnIds[index] as number),
      dictionary: this.#rows.reader.dictionaryOf(index),
      rows: piece.rows,
      vector: () => this.#rows.reader.vectors(piece, 0, [index], true)[index] as Vector,
    })
    this.#column = index + 1
    if (this.#column < shape.columnIds.length) return
    this.#column = -1
    this.#encoder?.endPiece(piece.rows)
    this.#rows.skip(piece.rows)
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
    this.#rows.release()
    for (const { space } of this.#groups) space?.freeAll()
    this.#encoder?.abandon()
    this.#space?.freeAll()
    this.#space = null
    this.#encoder = null
    this.#column = -1
    this.#groups = []
  }
}
