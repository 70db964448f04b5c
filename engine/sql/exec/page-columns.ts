// Columns of the piece that a thread reads just now, in memory of its query instead of the chunk cache: filling that costs
// page faults and drives out what others read often.

import type { ExecContext } from './context.js'
import type { Piece } from './pieces.js'

/** What a reader of a page may touch behind it. */
const readAheadBytes = 128
/** Of all columns together; those of wider tables are read through the cache. */
const bytesMax = 32 * 1024 * 1024

/** Writes a column of the piece to the room that it asks for; false: the piece has it at an address of its own. */
export type FillColumn = (piece: Piece, columnId: number, room: (bytes: number) => number) => boolean

interface Area {
  address: number
  bytes: number
  piece: Piece
  done: boolean
}

export class PageColumns {
  readonly #context: ExecContext
  readonly #fill: FillColumn
  readonly #areas = new Map<number, Area>()
  #bytes = 0

  constructor(context: ExecContext, fill: FillColumn) {
    this.#context = context
    this.#fill = fill
  }

  /** 0: the piece has the column at an address of its own. */
  column(piece: Piece, columnId: number): number {
    let area = this.#areas.get(columnId)
    if (area === undefined) {
      if (this.#bytes > bytesMax) return 0
      area = { address: 0, bytes: 0, piece, done: false }
      this.#areas.set(columnId, area)
    } else if (area.piece === piece) return area.done ? area.address : 0
    const own = area
    own.piece = piece
    own.done = false
    own.done = this.#fill(piece, columnId, (bytes) => this.#room(own, bytes))
    return own.done ? own.address : 0
  }

  /** Gives all areas back. */
  clear(): void {
    for (const { address } of this.#areas.values()) if (address !== 0) this.#context.space.give(address)
    this.#areas.clear()
    this.#bytes = 0
  }

  #room(area: Area, bytes: number): number {
    if (area.bytes >= bytes) return area.address
    const { space } = this.#context
    if (area.address !== 0) space.give(area.address)
    this.#bytes += bytes - area.bytes
    area.bytes = bytes
    area.address = space.take(bytes + readAheadBytes)
    return area.address
  }
}
