// MorselList: tells worker threads which morsels (memtable blocks and pages) a parallel plan reads, so that all threads
// use the same list in the same order. Each thread lists the morsels of the snapshot itself, and selects those in the
// MorselList. The time bounds of a morsel, and whether it is sorted, are part of it, because the writer may append to
// the last block of a memtable while the query runs: a thread that looked later would see other bounds, and all threads
// must treat a morsel alike. cutRows() cuts the rows of the list into chunks.

import { changedMorsel, type ScanMorsel } from './morsels.js'

export interface MorselList {
  readonly sources: Float64Array
  readonly indexes: Uint32Array
  readonly rows: Uint32Array
  /** Bytes 0 and 1. */
  readonly sorted: Uint8Array
  readonly minTs: BigInt64Array
  readonly maxTs: BigInt64Array
}

export function listMorsels(morsels: readonly ScanMorsel[]): MorselList {
  const { length } = morsels
  const sources = new Float64Array(length)
  const indexes = new Uint32Array(length)
  const rows = new Uint32Array(length)
  const sorted = new Uint8Array(length)
  const minTs = new BigInt64Array(length)
  const maxTs = new BigInt64Array(length)
  for (let at = 0; at < length; at++) {
    const morsel = morsels[at] as ScanMorsel
    sources[at] = morsel.source
    indexes[at] = morsel.index
    rows[at] = morsel.rows
    sorted[at] = morsel.sorted ? 1 : 0
    minTs[at] = morsel.minTs
    maxTs[at] = morsel.maxTs
  }
  return { sources, indexes, rows, sorted, minTs, maxTs }
}

/** undefined when a morsel is missing, so this thread cannot take part. */
export function pickMorsels(candidates: readonly ScanMorsel[], list: MorselList): ScanMorsel[] | undefined {
  const picked: ScanMorsel[] = []
  let places: Map<string, number> | null = null
  let next = 0
  for (let at = 0; at < list.sources.length; at++) {
    // Mostly both lists have the same order.
    if (!isListed(candidates[next], list, at)) {
      places ??= new Map(candidates.map(({ source, index }, place) => [`${source} ${index}`, place]))
      next = places.get(`${list.sources[at]} ${list.indexes[at]}`) ?? candidates.length
    }
    const morsel = candidates[next++]
    if (morsel === undefined || morsel.rows !== list.rows[at]) return undefined
    picked.push(alike(morsel, list, at))
  }
  return picked
}

function isListed(morsel: ScanMorsel | undefined, { sources, indexes }: MorselList, at: number): boolean {
  return morsel !== undefined && morsel.source === sources[at] && morsel.index === indexes[at]
}

function alike(morsel: ScanMorsel, list: MorselList, at: number): ScanMorsel {
  const sorted = list.sorted[at] === 1
  const minTs = list.minTs[at]!
  const maxTs = list.maxTs[at]!
  if (morsel.sorted === sorted && morsel.minTs === minTs && morsel.maxTs === maxTs) return morsel
  return changedMorsel(morsel, { minTs, maxTs, sorted })
}

/**
 * Cuts the rows [first, end) of the morsels, in their order, into chunks of at most `rowsMax`; returns the first row of
 * each, and the end. Chunks end between morsels where possible; longer morsels are cut evenly.
 */
export function cutRows(
  morsels: readonly Pick<ScanMorsel, 'rows'>[],
  { first, end }: { readonly first: number; readonly end: number },
  rowsMax: number,
): number[] {
  const cuts = [first]
  let cut = first
  let morselEnd = 0
  for (const { rows } of morsels) {
    const from = Math.max(first, morselEnd)
    morselEnd += rows
    const to = Math.min(end, morselEnd)
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
