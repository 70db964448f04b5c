// Window functions over rows that come in the order of the window, of which only few are in memory. All calls have the
// same partitions and the same order. Used for partitions that outgrow the memory (spill/window-sorted.ts).
//
// Rows are processed in blocks. A block returns its rows up to the first one whose frame may still grow, and keeps the
// rows that the frames of later rows need. How a call is computed:
//
//   frame       the frame has two bounds, or the call is lag() or lead(): from the rows in memory
//   running     the frame begins with the partition: a state is carried from block to block (window-running.ts)
//   peers,      one value for all rows that are equal by ORDER BY, or for all rows of a partition: an earlier pass over
//   partition   the rows has found it (window-groups.ts)
//   place       counts of rows, such as rank() (window-place.ts)

import type { WindowCall } from '../../sql/plan/plan.js'
import { isBatch, type Operator } from '../batch/vector.js'
import type { Steps } from '../join/join-build.js'
import { blockOf, FrameCall, type OrderedCall, RunningCall } from './window-blocks.js'
import type { Prepared } from './window-calls.js'
import type { Frames } from './window-frames.js'
import { GroupCall, type GroupLevels } from './window-groups.js'
import { movingNames } from './window-moving.js'
import { WindowOrder, type Working } from './window-order.js'
import { PlaceCall } from './window-place.js'
import { rankNames } from './window-rank.js'
import { emitted, ResultReader } from './window-result.js'
import type { WindowRows } from './window-rows.js'
import { constantOf, distanceOf } from './window-running.js'

export type Way = 'frame' | 'running' | 'peers' | 'partition' | 'place'

/** null: all rows of the partition must be in memory. */
export function wayOf(call: WindowCall): Way | null {
  const { name, args, ignoreNulls, frame } = call
  if (rankNames.has(name)) return 'place'
  if (name === 'lag' || name === 'lead') {
    const distance = distanceOf(call)
    if (!Number.isInteger(distance) || distance < 0) return null
    if (!ignoreNulls) return 'frame'
    return name === 'lag' && distance > 0 ? 'running' : null
  }
  if (movingNames.has(name)) return 'running'
  if (frame.lo !== null) return frame.hi === null ? null : 'frame'
  if (name === 'nth_value' && !Number.isInteger(constantOf(args[1]))) return null
  return growingWay(call)
}

/** For frames that begin with the partition. */
function growingWay({ frame: { hi, unit, exclude }, orderBy }: WindowCall): Way | null {
  const endsHere = hi !== null && Number(hi) === 0
  if (exclude !== 'none' && !(exclude === 'current' && unit === 'rows' && endsHere)) return null
  if (hi === null) return 'partition'
  if (unit === 'rows' || !endsHere) return 'running'
  return orderBy.length === 0 ? 'partition' : 'peers'
}

/** Rows of a block, if they are not wide. */
const blockRowsMin = 32_768
/** Bytes of the rows of a block, as a fraction of the free memory of queries. */
const blockShare = 1 / 16
/** New rows of a block whose rows have more bytes, for each row that is left from the block before. */
const newShareMin = 1 / 4

/** `input`: rows in the order of the calls. */
export function* orderedBlocks(
  rows: WindowRows,
  input: Operator,
  prepared: readonly Prepared[],
  levels: GroupLevels,
): Steps {
  const calls = orderedCalls(rows, prepared, levels)
  const keys = prepared[0]?.keys
  if (keys === undefined) return
  let done = 0
  /** Rows that are left from earlier blocks: they are computed again, so there must be many new rows for them. */
  let known = 0
  const bytesMax = rows.context.arena.left * blockShare
  const isEnough = (): boolean => {
    const added = rows.rows - known
    if (added >= Math.max(blockRowsMin, known)) return true
    return added > 0 && added >= known * newShareMin && rows.store.bytesHeld > bytesMax
  }
  for (let ended = false; !ended; ) {
    for (let isFull = false; !ended && !isFull; ) {
      const batch = input.pull()
      if (isBatch(batch)) rows.append(batch)
      ended = batch === null
      if (batch !== null) yield batch === 'waiting' ? batch : 'working'
      isFull = isEnough()
    }
    if (ended) rows.complete()
    if (rows.rows === done) return
    const order = yield* WindowOrder.make(rows, keys)
    const { to, results, needed } = yield* computedBlock(order, calls, levels, done, ended)
    yield* emitted(rows, results, done, to)
    if (needed > 0) rows.store.keepLast(rows.rows - needed)
    for (const call of calls) call.drop(needed)
    done = to - needed
    known = rows.rows
    rows.forgetWork()
  }
}

function orderedCalls(rows: WindowRows, prepared: readonly Prepared[], levels: GroupLevels): OrderedCall[] {
  return prepared.map(({ call, slots }) => {
    switch (wayOf(call)) {
      case 'place':
        return new PlaceCall(rows, call, slots, levels)
      case 'peers':
        return new GroupCall(call, levels.peers)
      case 'partition':
        return new GroupCall(call, levels.partition)
      case 'running':
        return new RunningCall(rows, call, slots)
      default:
        return new FrameCall(call, slots)
    }
  })
}

interface ComputedBlock {
  /** The results are those of the rows before. */
  readonly to: number
  readonly results: readonly ResultReader[]
  /** The first row that later blocks need. */
  readonly needed: number
}

function* computedBlock(
  order: WindowOrder,
  calls: readonly OrderedCall[],
  levels: GroupLevels,
  from: number,
  ended: boolean,
): Working<ComputedBlock> {
  const { rows } = order
  const frames = new Map<string, Frames>()
  let to = rows.rows
  for (const { reach } of calls) {
    if (reach === null) continue
    yield* reach.prepare(order, frames)
    if (!ended) to = Math.min(to, reach.completeTo(from))
  }
  const block = blockOf(order, from, to)
  levels.peers?.advance(rows, block, block.startsPeers)
  levels.partition?.advance(rows, block, block.startsPartition)
  const results: ResultReader[] = []
  for (const call of calls) results.push(new ResultReader(rows, call.type, yield* call.result(order, block)))
  if (ended || to === from) return { to, results, needed: ended ? rows.rows : 0 }
  // The row before the next one tells whether a partition begins with that.
  const start = block.startOf(to)
  const needed = calls.reduce((least, call) => Math.min(least, call.neededFor(to)), to)
  return { to, results, needed: Math.max(0, Math.min(to - 1, Math.max(start, needed))) }
}
