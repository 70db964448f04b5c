// ASOF JOIN and LT JOIN with further conditions, and those that look for a row in the future (forward) or in both
// directions (nearest). All right rows that can match are buffered and listed by key, in the order of time. For each
// left row, a binary search finds the candidates: the right rows with its key whose time the join permits. Without a
// further condition, the candidate nearest in time is the match. With a condition, candidates are tested in batches,
// the nearest first: one for each left row, then two, then four and so on, until every left row has a match or no
// candidates are left.

import { assert } from '../../base/assert.js'
import { noRow } from '../../kernels/join.js'
import type { Plan } from '../../sql/plan/plan.js'
import type { DataType } from '../../types/column-types.js'
import { longMax, longMin } from '../../types/number.js'
import type { ExecContext } from '../batch/context.js'
import { type Batch, batchRowsMax, isBatch, type Operator, type Vector } from '../batch/vector.js'
import { compileVector, type VectorEvaluator } from '../expression/expression.js'
import { columnsOf } from '../expression/expression-shape.js'
import { type TimeScales, timeReader, timeScales } from './asof-times.js'
import { reachedSide } from './asof-trimmed.js'
import { buildListing, type Steps } from './join-build.js'
import type { Listing } from './join-built.js'
import { JoinKeys } from './join-keys.js'
import { SideGather } from './join-pairs.js'

type JoinPlan = Extract<Plan, { kind: 'join' }>
type Toward = 'backward' | 'forward'

const timeVector: Vector = { type: { name: 'TIMESTAMP', a: 0, b: 0 }, address: 0, dictionary: 0 }

export function* searched(
  context: ExecContext,
  { left, right }: { readonly left: Operator; readonly right: Operator },
  plan: JoinPlan,
): Steps {
  const scales = timeScales(plan)
  let search: NearestSearch | null = null
  for (;;) {
    const batch = left.pull()
    if (batch === null) return
    if (!isBatch(batch)) {
      yield batch
      continue
    }
    if (search === null) {
      const keys = new JoinKeys(context, typesAt(plan.left, plan.leftKeys), typesAt(plan.right, plan.rightKeys))
      const input = reachedSide(context, plan, scales, batch) ?? right
      const listing = yield* buildListing(context, input, typesOf(plan.right), plan.rightKeys, keys)
      search = new NearestSearch(context, plan, scales, keys, listing)
    }
    yield* search.joined(batch)
  }
}

function typesOf({ columns }: Plan): DataType[] {
  return columns.map(({ type }) => type)
}

function typesAt({ columns }: Plan, indexes: readonly number[]): DataType[] {
  return indexes.flatMap((index) => columns[index]?.type ?? [])
}

/** The address of a column. */
function addressAt(vectors: readonly Vector[], index: number): number {
  const vector = vectors[index]
  assert(vector !== undefined, 'B1: the plan names a column of its input')
  return vector.address
}

/** Arrays of batchRowsMax numbers: for each left row, unless they say otherwise. */
interface Areas {
  readonly codes: number
  /** Bounds of times, i64. */
  readonly bounds: number
  /** The candidates: places in the list, from and up to but excluding. */
  readonly from: number
  readonly to: number
  /** Left rows without a match so far. */
  readonly pending: number
  /** Pairs to which the condition is applied. */
  readonly leftRows: number
  readonly rightRows: number
}

class NearestSearch {
  readonly #context: ExecContext
  readonly #plan: JoinPlan
  readonly #scales: TimeScales
  readonly #keys: JoinKeys
  readonly #listing: Listing
  /** Times of the right rows in the common unit. */
  readonly #times: number
  readonly #leftTimes: (address: number, rows: number) => number
  readonly #areas: Areas
  /** Row numbers of the matches. */
  readonly #found: Readonly<Record<Toward, number>>
  readonly #gather: SideGather
  readonly #tested: PairTest | null

  constructor(context: ExecContext, plan: JoinPlan, scales: TimeScales, keys: JoinKeys, listing: Listing) {
    const { arena } = context
    const area = (): number => arena.take(batchRowsMax * 4)
    this.#context = context
    this.#plan = plan
    this.#scales = scales
    this.#keys = keys
    this.#listing = listing
    this.#times = allTimes(context, listing, plan.rightTimestamp, scales.right)
    const times = timeReader(context, scales.left)
    this.#leftTimes = (address, rows) => times({ ...timeVector, address }, rows)
    this.#areas = {
      ...{ codes: area(), bounds: arena.take(batchRowsMax * 8), from: area(), to: area() },
      ...{ pending: area(), leftRows: area(), rightRows: area() },
    }
    this.#found = { backward: area(), forward: area() }
    this.#gather = new SideGather(context, typesOf(plan.right))
    this.#tested = plan.residual === null ? null : new PairTest(context, plan)
  }

  *joined({ rows, vectors }: Batch): Steps {
    const { leftKeys, leftTimestamp, direction, left } = this.#plan
    const keys = leftKeys.flatMap((index) => vectors[index] ?? [])
    this.#keys.number(keys, rows, this.#areas.codes)
    const times = this.#leftTimes(addressAt(vectors, leftTimestamp), rows)
    const { backward, forward } = this.#found
    if (direction !== 'forward') yield* this.#search('backward', vectors, times, rows)
    if (direction !== undefined) yield* this.#search('forward', vectors, times, rows)
    if (direction === 'nearest') nearer(this.#context, this.#times, { times, backward, forward }, rows)
    const side = {
      vectors: this.#listing.vectors,
      index: direction === 'forward' ? forward : backward,
      mayLack: true,
    }
    const own = vectors.slice(0, left.columns.length)
    yield { rows, vectors: [...own, ...this.#gather.gather(side, rows, null)] }
  }

  *#search(toward: Toward, vectors: readonly Vector[], times: number, rows: number): Steps {
    const { bounds, from, to } = this.#areas
    const out = this.#found[toward]
    const strict = this.#plan.join === 'lt'
    const ends = reach(toward, strict, this.#scales.tolerance)
    writeBounds(this.#context, times, rows, ends.from, bounds)
    this.#places(rows, from)
    writeBounds(this.#context, times, rows, ends.to, bounds)
    this.#places(rows, to)
    if (this.#tested !== null) yield* this.#fitting(this.#tested, toward, vectors, rows)
    else firstOf(this.#context, this.#listing.list, { from, to, out, last: toward === 'backward' }, rows)
  }

  /** For each row: the first place in the list of its code whose time is not before its bound. */
  #places(rows: number, out: number): void {
    const { u32, i32 } = this.#context.memory
    const { starts, list, codeCount } = this.#listing
    const { codes, bounds } = this.#areas
    lowerBounds(
      u32,
      i32,
      codes >>> 2,
      bounds >>> 2,
      rows,
      starts >>> 2,
      list >>> 2,
      codeCount,
      this.#times >>> 2,
      out >>> 2,
    )
  }

  /** The nearest candidates that satisfy the condition. */
  *#fitting(test: PairTest, toward: Toward, vectors: readonly Vector[], rows: number): Steps {
    const { memory } = this.#context
    const out = this.#found[toward]
    memory.u32.fill(noRow, out >>> 2, (out >>> 2) + rows)
    const candidates = { ...this.#areas, out, list: this.#listing.list, last: toward === 'backward' }
    let pending = stillPending(memory.u32, candidates, null, rows)
    for (let depth = 1; pending > 0; depth *= 2) {
      depth = Math.min(depth, Math.floor(batchRowsMax / pending))
      const pairs = takeCandidates(memory.u32, candidates, pending, depth)
      const mask = test.mask(vectors, this.#listing.vectors, this.#areas, pairs)
      settle(memory.u8, memory.u32, candidates, mask, pairs)
      pending = stillPending(memory.u32, candidates, this.#areas.pending, pending)
      yield 'working'
    }
  }
}

/** Evaluates the condition over pairs of rows. */
class PairTest {
  readonly #test: VectorEvaluator
  readonly #left: SideGather
  readonly #right: SideGather
  readonly #width: number
  readonly #read: { readonly left: ReadonlySet<number>; readonly right: ReadonlySet<number> }

  constructor(context: ExecContext, { residual, left, right }: JoinPlan) {
    const width = left.columns.length
    const read = residual === null ? [] : columnsOf(residual)
    assert(residual !== null, 'B2: pairs are tested by a condition')
    this.#test = compileVector(residual, context)
    this.#width = width
    this.#left = new SideGather(context, typesOf(left))
    this.#right = new SideGather(context, typesOf(right))
    this.#read = {
      left: new Set(read.filter((index) => index < width)),
      right: new Set(read.filter((index) => index >= width).map((index) => index - width)),
    }
  }

  /** Address of a byte for each pair. */
  mask(own: readonly Vector[], other: readonly Vector[], { leftRows, rightRows }: Areas, pairs: number): number {
    const left = { vectors: own, index: leftRows, mayLack: false }
    const right = { vectors: other, index: rightRows, mayLack: false }
    const vectors = [
      ...this.#left.gather(left, pairs, this.#read.left).slice(0, this.#width),
      ...this.#right.gather(right, pairs, this.#read.right),
    ]
    return this.#test({ rows: pairs, vectors }).address
  }
}

function allTimes(context: ExecContext, { rows, vectors }: Listing, timestamp: number, scaled: boolean): number {
  const address = addressAt(vectors, timestamp)
  if (!scaled || rows === 0) return address
  const { memory, arena } = context
  const all = arena.take(rows * 8)
  const read = timeReader(context, true)
  for (let from = 0; from < rows; from += batchRowsMax) {
    const count = Math.min(batchRowsMax, rows - from)
    const at = read({ ...timeVector, address: address + from * 8 }, count)
    memory.u8.copyWithin(all + from * 8, at, at + count * 8)
  }
  return all
}

/** The times within reach as offsets to that of the left row, `to` excluded; null = unlimited. */
function reach(
  toward: Toward,
  strict: boolean,
  tolerance: bigint,
): { readonly from: bigint | 'first'; readonly to: bigint | 'last' } {
  const [near, far] = [strict ? 1n : 0n, tolerance]
  if (toward === 'backward') return { from: far < 0n ? 'first' : -far, to: 1n - near }
  return { from: near, to: far < 0n ? 'last' : far + 1n }
}

/** Bounds of times. A row without a time has none within reach: both bounds are the least time. */
function writeBounds(
  { memory }: ExecContext,
  times: number,
  rows: number,
  offset: bigint | 'first' | 'last',
  out: number,
): void {
  const { i64 } = memory
  for (let row = 0; row < rows; row++) {
    const time = i64[(times >>> 3) + row]!
    const bound = offset === 'first' ? longMin + 1n : offset === 'last' ? longMax : time + offset
    const within = bound <= longMin ? longMin + 1n : bound > longMax ? longMax : bound
    i64[(out >>> 3) + row] = time === longMin ? longMin : within
  }
}

/** All addresses are indexes of words. */
function lowerBounds(
  u32: Uint32Array,
  i32: Int32Array,
  codes: number,
  bounds: number,
  rows: number,
  starts: number,
  list: number,
  codeCount: number,
  times: number,
  out: number,
): void {
  for (let row = 0; row < rows; row++) {
    const code = u32[codes + row]!
    const low = u32[bounds + row * 2]!
    const high = i32[bounds + row * 2 + 1]!
    let from = code < codeCount ? u32[starts + code]! : 0
    let to = code < codeCount ? u32[starts + code + 1]! : 0
    while (from < to) {
      const middle = (from + to) >>> 1
      const word = times + u32[list + middle]! * 2
      const before = i32[word + 1]! < high || (i32[word + 1]! === high && u32[word]! < low)
      if (before) from = middle + 1
      else to = middle
    }
    u32[out + row] = from
  }
}

/** Addresses of the candidates, their list, and what is found; `last`: the last candidate is the nearest. */
interface Candidates {
  readonly from: number
  readonly to: number
  readonly list: number
  readonly out: number
  readonly last: boolean
}

function firstOf(
  { memory }: ExecContext,
  list: number,
  { from, to, out, last }: Omit<Candidates, 'list'>,
  rows: number,
): void {
  const { u32 } = memory
  for (let row = 0; row < rows; row++) {
    const [begin, end] = [u32[(from >>> 2) + row]!, u32[(to >>> 2) + row]!]
    u32[(out >>> 2) + row] = begin >= end ? noRow : u32[(list >>> 2) + (last ? end - 1 : begin)]!
  }
}

/** Writes the rows that have candidates and no match to `pending`; returns their number. `among`: null = all rows. */
function stillPending(
  u32: Uint32Array,
  { from, to, out, pending }: Candidates & Areas,
  among: number | null,
  count: number,
): number {
  let left = 0
  for (let index = 0; index < count; index++) {
    const row = among === null ? index : u32[(among >>> 2) + index]!
    if (u32[(out >>> 2) + row] !== noRow || u32[(from >>> 2) + row]! >= u32[(to >>> 2) + row]!) continue
    u32[(pending >>> 2) + left++] = row
  }
  return left
}

/** Writes up to `depth` candidates of each pending row as pairs, the nearest first; returns the number of pairs. */
function takeCandidates(
  u32: Uint32Array,
  { from, to, list, last, pending, leftRows, rightRows }: Candidates & Areas,
  count: number,
  depth: number,
): number {
  let pairs = 0
  for (let index = 0; index < count; index++) {
    const row = u32[(pending >>> 2) + index]!
    let begin = u32[(from >>> 2) + row]!
    let end = u32[(to >>> 2) + row]!
    for (let taken = 0; taken < depth && begin < end; taken++) {
      u32[(leftRows >>> 2) + pairs] = row
      u32[(rightRows >>> 2) + pairs++] = u32[(list >>> 2) + (last ? --end : begin++)]!
    }
    u32[(from >>> 2) + row] = begin
    u32[(to >>> 2) + row] = end
  }
  return pairs
}

/** The first pair of a row that satisfies the condition is its match. */
function settle(
  u8: Uint8Array,
  u32: Uint32Array,
  { out, leftRows, rightRows }: Candidates & Areas,
  mask: number,
  pairs: number,
): void {
  for (let pair = 0; pair < pairs; pair++) {
    if (u8[mask + pair] === 0) continue
    const row = (out >>> 2) + u32[(leftRows >>> 2) + pair]!
    if (u32[row] === noRow) u32[row] = u32[(rightRows >>> 2) + pair]!
  }
}

/** Replaces matches in the past by those in the future that are nearer; of equal distances, the past counts. */
function nearer(
  { memory }: ExecContext,
  rightTimes: number,
  { times, backward, forward }: { readonly times: number; readonly backward: number; readonly forward: number },
  rows: number,
): void {
  const { u32, i64 } = memory
  for (let row = 0; row < rows; row++) {
    const [before, after] = [u32[(backward >>> 2) + row]!, u32[(forward >>> 2) + row]!]
    if (after === noRow) continue
    const time = i64[(times >>> 3) + row]!
    const isNearer =
      before === noRow || i64[(rightTimes >>> 3) + after]! - time < time - i64[(rightTimes >>> 3) + before]!
    if (isNearer) u32[(backward >>> 2) + row] = after
  }
}
