// PieceList: identifies the morsels of a parallel fragment for other threads. Each thread lists the runs of the
// snapshot itself, and selects the same morsels in the same order. Time bounds and sortedness are sent along, since the
// writer may change those of a memtable's last block meanwhile, and all threads must treat a morsel alike. cutRows()
// cuts the rows into chunks.

import { changedPiece, type Piece } from './pieces.js'

export interface PieceList {
  readonly sources: Float64Array
  readonly indexes: Uint32Array
  readonly rows: Uint32Array
  /** Bytes 0 and 1. */
  readonly sorted: Uint8Array
  readonly minTs: BigInt64Array
  readonly maxTs: BigInt64Array
}

export function listPieces(pieces: readonly Piece[]): PieceList {
  const { length } = pieces
  const sources = new Float64Array(length)
  const indexes = new Uint32Array(length)
  const rows = new Uint32Array(length)
  const sorted = new Uint8Array(length)
  const minTs = new BigInt64Array(length)
  const maxTs = new BigInt64Array(length)
  for (let at = 0; at < length; at++) {
    const piece = pieces[at] as Piece
    sources[at] = piece.source
    indexes[at] = piece.index
    rows[at] = piece.rows
    sorted[at] = piece.sorted ? 1 : 0
    minTs[at] = piece.minTs
    maxTs[at] = piece.maxTs
  }
  return { sources, indexes, rows, sorted, minTs, maxTs }
}

/** undefined when a morsel is missing, so this thread cannot help. */
export function pickPieces(candidates: readonly Piece[], list: PieceList): Piece[] | undefined {
  const picked: Piece[] = []
  let places: Map<string, number> | null = null
  let next = 0
  for (let at = 0; at < list.sources.length; at++) {
    // Mostly both lists have the same order.
    if (!isListed(candidates[next], list, at)) {
      places ??= new Map(candidates.map(({ source, index }, place) => [`${source} ${index}`, place]))
      next = places.get(`${list.sources[at]} ${list.indexes[at]}`) ?? candidates.length
    }
    const piece = candidates[next++]
    if (piece === undefined || piece.rows !== list.rows[at]) return undefined
    picked.push(alike(piece, list, at))
  }
  return picked
}

function isListed(piece: Piece | undefined, { sources, indexes }: PieceList, at: number): boolean {
  return piece !== undefined && piece.source === sources[at] && piece.index === indexes[at]
}

function alike(piece: Piece, list: PieceList, at: number): Piece {
  const sorted = list.sorted[at] === 1
  const minTs = list.minTs[at]!
  const maxTs = list.maxTs[at]!
  if (piece.sorted === sorted && piece.minTs === minTs && piece.maxTs === maxTs) return piece
  return changedPiece(piece, { minTs, maxTs, sorted })
}

/**
 * Cuts the rows [first, end) of the morsels, in their order, into chunks of at most `rowsMax`; returns the first row of
 * each, and the end. Chunks end between morsels where possible; longer morsels are cut evenly.
 */
export function cutRows(
  pieces: readonly Pick<Piece, 'rows'>[],
  { first, end }: { readonly first: number; readonly end: number },
  rowsMax: number,
): number[] {
  const cuts = [first]
  let cut = first
  let pieceEnd = 0
  for (const { rows } of pieces) {
    const from = Math.max(first, pieceEnd)
    pieceEnd += rows
    const to = Math.min(end, pieceEnd)
    if (to <= from) continue
    if (from > cut && to - cut > rowsMax) cuts.push(from)
    cut = cuts.at(-1) as number
    const parts = Math.ceil((to - cut) / rowsMax)
    for (let part = 1; part < parts; part++) cuts.push(cut + Math.floor(((to - cut) * part) / parts))
    cut = cuts.at(-1) as number
  }
  if (end > first) cuts.push(end)
  return cuts
}
