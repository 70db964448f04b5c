// Finds for each data file of an Iceberg table the files that delete rows of it. A program that writes a stream adds a
// data file and a file of deletes with each commit, so the number of pairs is the square of the number of commits. That
// is why what a pair needs is prepared once for each file, and data files of a partition share one list of equality
// deletes.
//
//   positions   of one data file, or of the data files of the partition whose names are within the bounds
//   equality    of older data files: those of the partition, or all if the spec has no fields, or only void ones
//
// The shared list has all files that some data file of the partition needs. For another data file it may contain files
// that delete none of its rows, because they are older or their bounds exclude it. These do no harm: the scan compares
// sequence numbers and values.

import type { ForeignDataFile } from './foreign-manifests.js'
import { type ForeignMetadata, ForeignTableError } from './foreign-metadata.js'
import { boundsOf, isBelow, type Range } from './foreign-pruning.js'
import { valueOfRaw } from './foreign-types.js'

export interface FileDeletes {
  readonly positions: readonly ForeignDataFile[]
  /** Several data files may have the same list. */
  readonly equality: readonly ForeignDataFile[]
}

/** Field id of the column file_path of files of positions. */
const pathId = 2_147_483_546
const pairsMax = 10_000_000
const none: readonly ForeignDataFile[] = []

/** Those of each data file, in their order. Throws ForeignTableError if there are too many. */
export function deletesOf(
  metadata: ForeignMetadata,
  data: readonly ForeignDataFile[],
  deletes: readonly ForeignDataFile[],
): FileDeletes[] {
  if (deletes.length === 0) return data.map(() => ({ positions: none, equality: none }))
  const keys = data.map((file) => partitionKey(metadata, file))
  const equality = equalityOf(
    metadata,
    data.map((file, index) => ({ file, key: keys[index] ?? '' })),
    deletes.filter(({ content }) => content === 'equality'),
  )
  const positions = new Positions(
    metadata,
    deletes.filter(({ content }) => content === 'positions'),
  )
  let pairs = 0
  return data.map((file, index) => {
    const own = positions.of(file, keys[index] ?? '')
    pairs += own.length
    if (pairs > pairsMax)
      throw new ForeignTableError(`the query needs more than ${pairsMax} pairs of data files and files of positions`)
    return { positions: own, equality: equality[index] ?? none }
  })
}

/** Whether the files of a partition spec have no partition: equality deletes are of all data files then. */
export function isUnpartitioned({ specs }: ForeignMetadata, { specId, partition }: ForeignDataFile): boolean {
  const spec = specs.get(specId)
  return spec === undefined ? partition.length === 0 : spec.every(({ transform }) => transform === 'void')
}

/** The same text for files of the same partition, whichever types its columns had when they were written. */
export function partitionKey(metadata: ForeignMetadata, { specId, partition }: ForeignDataFile): string {
  const spec = metadata.specs.get(specId) ?? []
  const values = partition.map((raw, index): string | null => {
    const source = spec[index]
    if (raw === null || source?.transform === 'void') return null
    const isOfType = source !== undefined && /^(identity|truncate)/.test(source.transform)
    const field = isOfType ? metadata.fieldOf(source.sourceId) : null
    const value = (field === null ? undefined : valueOfRaw(field.foreign, raw)) ?? raw
    if (value instanceof Uint8Array) return Buffer.from(value).toString('hex')
    return Object.is(value, -0) ? '-0' : String(value)
  })
  return JSON.stringify([specId, ...values])
}

// Positions ---------------------------------------------------------------------------------------------------------

interface PositionFile {
  readonly file: ForeignDataFile
  /** Of the names of data files; null: unknown. */
  readonly low: Uint8Array | null
  readonly high: Uint8Array | null
}

class Positions {
  /** By the only data file that they are of. */
  readonly #byFile = new Map<string, PositionFile[]>()
  readonly #byPartition = new Map<string, PositionFile[]>()

  constructor(metadata: ForeignMetadata, files: readonly ForeignDataFile[]) {
    for (const file of files) {
      const [low = null, high = null] = [file.lowerBounds.get(pathId), file.upperBounds.get(pathId)]
      const isOfOne = low !== null && high !== null && Buffer.compare(low, high) === 0
      const only = file.dataFile ?? (isOfOne ? Buffer.from(low).toString() : null)
      if (only === null) listIn(this.#byPartition, partitionKey(metadata, file)).push({ file, low, high })
      else listIn(this.#byFile, only).push({ file, low: null, high: null })
    }
  }

  of(data: ForeignDataFile, key: string): ForeignDataFile[] {
    const own = this.#byFile.get(data.path) ?? []
    const others = this.#byPartition.get(key) ?? []
    if (own.length === 0 && others.length === 0) return []
    const name = Buffer.from(data.path)
    const found = [...own, ...others].filter(({ file, low, high }) => {
      if (file.sequenceNumber < data.sequenceNumber) return false
      return (low === null || Buffer.compare(low, name) <= 0) && (high === null || Buffer.compare(name, high) <= 0)
    })
    // A deletion vector has all positions of the older files.
    const vector = found.find(({ file }) => file.format === 'PUFFIN')
    return (vector === undefined ? found : [vector]).map(({ file }) => file)
  }
}

function listIn<Item>(lists: Map<string, Item[]>, key: string): Item[] {
  const known = lists.get(key)
  if (known !== undefined) return known
  const list: Item[] = []
  lists.set(key, list)
  return list
}

// Equality ----------------------------------------------------------------------------------------------------------

interface EqualityFile {
  readonly file: ForeignDataFile
  readonly sequence: number
  /** Of its columns; null: they exclude no data file. */
  readonly ranges: readonly (Range | null)[]
}

/** Files of equality deletes of the same data files. */
interface Scope {
  /** That no data file needs so far. */
  waiting: EqualityFile[]
  readonly needed: EqualityFile[]
}

interface Placed {
  readonly file: ForeignDataFile
  /** Of its partition. */
  readonly key: string
}

const everywhere = 'all'

function equalityOf(
  metadata: ForeignMetadata,
  data: readonly Placed[],
  deletes: readonly ForeignDataFile[],
): (readonly ForeignDataFile[])[] {
  const scopes = new Map<string, Scope>()
  // Newest first, since one that applies to a data file is then found soon.
  for (const file of [...deletes].sort((one, other) => Number(other.sequenceNumber - one.sequenceNumber))) {
    const key = isUnpartitioned(metadata, file) ? everywhere : partitionKey(metadata, file)
    const scope = scopes.get(key) ?? { waiting: [], needed: [] }
    scopes.set(key, scope)
    scope.waiting.push({
      file,
      sequence: Number(file.sequenceNumber),
      ranges: file.equalityIds.map((id) => rangeOf(metadata, file, id)),
    })
  }
  const pairs = new Pairs(metadata)
  const wanted = data.map(({ file, key }) =>
    [everywhere, key].filter((one) => {
      const scope = scopes.get(one)
      return scope !== undefined && pairs.concern(scope, file)
    }),
  )
  // All scopes are complete now.
  const lists = new Map<string, readonly ForeignDataFile[]>()
  return wanted.map((keys) => {
    const name = keys.join('\n')
    const list = lists.get(name) ?? keys.flatMap((key) => (scopes.get(key)?.needed ?? []).map(({ file }) => file))
    lists.set(name, list)
    return list
  })
}

/** Compares bounds, up to a limit: after it, all newer files are taken to have values of a data file. */
class Pairs {
  readonly #metadata: ForeignMetadata
  #compared = 0

  constructor(metadata: ForeignMetadata) {
    this.#metadata = metadata
  }

  /** Whether files of the scope may delete rows of a data file; those that nobody has needed before are found. */
  concern(scope: Scope, data: ForeignDataFile): boolean {
    const known = new Map<number, Range | null>()
    const range = (id: number): Range | null => {
      let found = known.get(id)
      if (found === undefined) {
        const field = this.#metadata.fieldOf(id)
        found = field === null ? null : boundsOf(field, data)
        known.set(id, found)
      }
      return found
    }
    const sequence = Number(data.sequenceNumber)
    const applies = (one: EqualityFile): boolean => one.sequence > sequence && this.#mayShareValues(one, range)
    const first = scope.waiting.filter(applies)
    if (first.length === 0) return scope.needed.some(applies)
    const found = new Set(first)
    scope.waiting = scope.waiting.filter((one) => !found.has(one))
    for (const one of found) scope.needed.push(one)
    return true
  }

  #mayShareValues({ file, ranges }: EqualityFile, rangeIn: (id: number) => Range | null): boolean {
    if (this.#compared++ > pairsMax) return true
    return file.equalityIds.every((id, index) => {
      const own = ranges[index] ?? null
      const other = own === null ? null : rangeIn(id)
      return own === null || other === null || (!isBelow(own[1], other[0]) && !isBelow(other[1], own[0]))
    })
  }
}

/** Bounds leave out NULL and NaN. */
function rangeOf(metadata: ForeignMetadata, file: ForeignDataFile, id: number): Range | null {
  const field = metadata.fieldOf(id)
  if (field === null || file.nullIds.has(id) || field.type.name === 'DOUBLE') return null
  return boundsOf(field, file)
}
