// Operator: rows of a table that are filtered or computed, or merged from pieces that overlap, as row groups of a Parquet
// file made by several threads (encode-parquet-chunks.ts). A chunk is a range of time: a thread runs the whole plan over it.
//
// How many rows come of a chunk is not known before. A few rows from places all over the table tell what share passes, and
// chunks are cut so that about a row group comes of each: groups have as many rows as were asked for at most.

import type { Plan } from '../../sql/plan/plan.js'
import type { ExecContext } from '../batch/context.js'
import { isBatch, type Operator, type Pull } from '../batch/vector.js'
import { buildOperator } from '../build.js'
import { piecesOf, stableScan } from '../fragment/share-rows.js'
import type { ChunkWorker, ShareDetails, Sharing } from '../parallel/share.js'
import { type Piece, rowCount, timeMax, timeMin } from '../scan/pieces.js'
import { scanShape } from '../scan/scan-shape.js'
import { listPieces } from '../scan/share-pieces.js'
import { firstRange, timeCuts, within } from '../scan/time-cuts.js'
import { BatchGroups, GroupChunks, leadGroups } from './encode-parquet-chunks.js'
import { type ExportedGroup, groupRoom } from './encode-parquet-group.js'
import type { ParquetEncoding } from './parquet-encoding.js'
import { isolated, TimedSource } from './timed-source.js'

/** Larger ones are more than a chunk should hold: all of its rows may pass where few were expected. */
const chunkRowsMax = 4 * 1024 * 1024
/** Where it is looked what share of the rows passes, and at how many rows each time. */
const probes = 4
const probeRows = 1024
/** Fewer row groups leave threads without work. */
const chunksWanted = 8
/** Of a row group that is aimed at: a few rows more than expected make a small second one. */
const fullness = 7 / 8

/** undefined: the plan does more, or its rows are few. `give` hears of groups before their rows are told. */
export function sharedRowGroups(
  context: ExecContext,
  plan: Plan,
  encoding: ParquetEncoding,
  give: (group: ExportedGroup) => void,
): Operator | undefined {
  const { sharing } = context
  const scan = sharing === undefined || sharing.helpers === 0 ? undefined : stableScan(plan)
  if (sharing === undefined || scan === undefined) return undefined
  const shape = scanShape(context, scan)
  if (shape.snapshot.version.schema.timestampId < 0) return undefined
  const pieces = piecesOf(context, shape)
  if (rowCount(pieces) <= sharing.chunkRowsMin) return undefined
  const descending = scan.order === 'descending'
  const probe = new Probe(context, plan, pieces)
  const begin = (): Operator => {
    const chunkRows = chunkRowsOf(rowCount(pieces), probe.share, encoding, sharing)
    const room = groupRoom(context, plan.columns).rows / Math.max(probe.share, 1 / probeRows)
    const cuts = timeCuts(pieces, Math.ceil(Math.min(chunkRows, room)))
    if (cuts === undefined) return buildOperator(context, plan)
    const times = BigInt64Array.from([timeMin, ...cuts, timeMax])
    const source = new BatchGroups(new TimedSource(context, plan, { times, descending }))
    const details = (): ShareDetails => ({ pieces: listPieces([]), chunkPieces: 1, counts: null, times })
    return leadGroups(context, sharing, { plan, source, encoding, columns: plan.columns, details, give })
  }
  let lead: Operator | null = null
  const pull = (): Pull => {
    if (lead !== null) return lead.pull()
    if (probe.step()) return 'working'
    lead = begin()
    return 'working'
  }
  return { pull }
}

/** What a helper does for it. */
export function helpRowGroups(
  context: ExecContext,
  plan: Plan,
  encoding: ParquetEncoding,
  { times }: ShareDetails,
): ChunkWorker | undefined {
  const scan = stableScan(plan)
  if (scan === undefined || times === undefined) return undefined
  const source = new BatchGroups(new TimedSource(context, plan, { times, descending: scan.order === 'descending' }))
  return new GroupChunks(context, { source, encoding, columns: plan.columns, packed: true })
}

/** Rows of the table in a chunk. */
function chunkRowsOf(
  rows: number,
  share: number,
  { rowGroupRows }: ParquetEncoding,
  { chunkRowsMin }: Sharing,
): number {
  const group = Math.min(rowGroupRows * fullness, (rows * share) / chunksWanted)
  return Math.min(chunkRowsMax, Math.ceil(Math.max(chunkRowsMin, group) / Math.max(share, 1 / probeRows)))
}

/** Finds what share of the rows of a table are rows of the plan. */
class Probe {
  readonly #context: ExecContext
  readonly #plan: Plan
  readonly #pieces: Piece[]
  #asked = 0
  #passed = 0

  constructor(context: ExecContext, plan: Plan, pieces: readonly Piece[]) {
    this.#context = context
    this.#plan = plan
    this.#pieces = Array.from(
      { length: probes },
      (_, probe) => pieces[Math.floor((pieces.length * probe) / probes)] as Piece,
    )
  }

  get share(): number {
    return Math.min(1, this.#passed / Math.max(1, this.#asked))
  }

  /** False: it has asked enough. */
  step(): boolean {
    const piece = this.#pieces.pop()
    if (piece === undefined) return false
    const range = { lo: piece.minTs, hi: firstRange([piece], probeRows, false).hi }
    const rows = isolated(this.#context, within(this.#plan, range))
    this.#asked += Math.min(probeRows, piece.rows)
    for (let pulled = rows.pull(); pulled !== null; pulled = rows.pull())
      if (isBatch(pulled)) this.#passed += pulled.rows
    rows.release()
    return true
  }
}
