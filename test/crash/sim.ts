// Runs one seed of the deterministic simulation: the engine runs, crashes and recovers on a simulated disk, and a model
// checks:
//
//   acknowledged   a request that the engine has confirmed is stored once, with exactly its values, from then on
//   atomic         an unanswered transaction is stored entirely or not at all, over all its tables and columns; and the
//                  state is that after some of the requests, applied in their order
//   shown          what a read has returned does not disappear
//   order          rows are ordered by designated timestamp, ties in commit order
//   snapshots      a reader that holds a version sees the same rows until it releases it
//   no leaks       at the end there is no unreferenced file or memory; checked in a quarter of the seeds
//   it starts      every start succeeds if the disk works
//
// All randomness comes from the seed, so a seed always gives the same run.

import { FileError } from '../../engine/base/errors.js'
import type { Files } from '../../engine/base/files.js'
import type { PinnedSnapshots } from '../../engine/session/catalog-view.js'
import type { Receipt } from '../../engine/storage/jobs/messages.js'
import type { TableVersion } from '../../engine/storage/schema/schema.js'
import type { CommitMode } from '../../engine/wal/types.js'
import { createRandom, type Random } from '../support/random.js'
import { type FaultOptions, type FaultPlan, planFaults } from '../support/simulator/faults.js'
import { createFaultyDisk, type FaultyDisk, SimulatedCrash } from '../support/simulator/faulty-files.js'
import { SimHost, type SimHostOptions, type SimMemory } from '../support/simulator/host.js'
import { findMatch, type UnderWay } from '../support/simulator/match.js'
import {
  applyStep,
  changed,
  type Model,
  type ModelChange,
  type ModelTable,
  type Observed,
  type ObservedTable,
  tableById,
} from '../support/simulator/model.js'
import { readTable } from '../support/simulator/read.js'
import {
  changeRequest,
  checkpointRequest,
  insertRequest,
  linesRequest,
  newRequestState,
  type Request,
  type RequestState,
} from '../support/simulator/requests.js'
import { checkLeaks } from './sim-leaks.js'

const operationsMin = 200
const underWayMax = 5

export interface SimStats {
  operations: number
  lives: number
  crashes: number
  recoveryCrashes: number
  failedStarts: number
  flushes: number
  merges: number
  reads: number
  readonly kinds: Record<string, number>
  readonly struck: Record<string, number>
}

export function newSimStats(): SimStats {
  const counts = { operations: 0, lives: 0, crashes: 0, recoveryCrashes: 0, failedStarts: 0 }
  return { ...counts, flushes: 0, merges: 0, reads: 0, kinds: {}, struck: {} }
}

export interface SimOptions {
  readonly seed: number
  readonly sim: SimMemory
  readonly stats: SimStats
  readonly trace?: (text: string) => void
  /** Removes a guard: what the engine sees instead of the disk. */
  readonly wrap?: (files: Files) => Files
  /** What the engine does while the model goes on to expect mode sync. */
  readonly commitMode?: CommitMode
}

interface Hold {
  readonly held: PinnedSnapshots
  readonly tables: readonly ObservedTable[]
}

interface Life {
  readonly options: SimOptions
  readonly random: Random
  /** Of the machine's wall clock, which somebody sets. */
  readonly clockRandom: Random
  wallShiftMs: number
  readonly disk: FaultyDisk
  readonly files: Files
  readonly requests: RequestState
  readonly stats: SimStats
  readonly trace: (text: string) => void
  readonly shape: Pick<SimHostOptions, 'settings' | 'memtableBytes' | 'walBytesMax' | 'walSegmentBytes'>
  /** Part of the file operations that fail. */
  readonly failing: number
  /** Requests may be refused for other reasons than their content: the disk fails, or memory is short. */
  readonly refusals: boolean
  base: Model
  underWay: UnderWay[]
  holds: Hold[]
  operations: number
  ms: number
  plan: FaultPlan
}

/** Runs one seed; throws an Error that says what is wrong. */
export function simulate(options: SimOptions): void {
  const life = newLife(options)
  for (let round = 0; life.operations < operationsMin; round++) {
    const host = start(life, round)
    const stopped = live(life, host)
    if (!stopped && life.random.chance(0.3)) closeInOrder(life, host)
    leave(life, host)
  }
  finish(life)
  options.stats.operations += life.operations
}

function newLife(options: SimOptions): Life {
  const random = createRandom(options.seed)
  const disk = createFaultyDisk(options.seed)
  disk.files.makeDirectory('/db')
  disk.files.syncDirectory('/')
  const settings = {
    flushRows: random.pick([25, 80, 200]),
    flushAgeMs: random.pick([10_000, 600_000]),
    relocatedBytesMax: random.pick([0, 64 * 1024]),
  }
  const shape = {
    settings,
    memtableBytes: random.pick([8, 8, 8, 1]) * 1024 * 1024,
    walBytesMax: random.pick([128, 400]) * 1024,
    walSegmentBytes: random.pick([8, 32]) * 1024,
  }
  const failing = random.pick([0, 0, 0, 0, 0.003, 0.003, 0.02])
  return {
    ...{
      options,
      random,
      disk,
      shape,
      failing,
      base: new Map(),
      underWay: [],
      holds: [],
      operations: 0,
      ms: 0,
      wallShiftMs: 0,
    },
    refusals: failing > 0 || shape.memtableBytes < 8 * 1024 * 1024,
    files: options.wrap?.(disk.files) ?? disk.files,
    clockRandom: createRandom(~options.seed),
    requests: newRequestState(random.fork()),
    stats: options.stats,
    trace: options.trace ?? (() => {}),
    plan: planFaults(disk, random, { crashWithin: 0, failing: 0 }),
  }
}

// ---- start and stop
// --------------------------------------------------------------------------------------------------

/** Starts until it works. At least one crash of each seed strikes within a recovery. */
function start(life: Life, round: number): SimHost {
  const { random } = life
  const crashes = round === 1 ? 1 : random.pick([0, 0, 0, 1])
  for (let attempt = 0; ; attempt++) {
    const crashWithin = round > 0 && attempt < crashes ? 40 : 0
    const failing = round > 0 && attempt < 3 ? life.failing : 0
    const host = tryStart(life, { crashWithin, failing })
    if (host === undefined) continue
    life.plan = planFaults(life.disk, random, {
      crashWithin: random.pick([300, 1500, 6000]),
      failing: life.failing,
    })
    return host
  }
}

function tryStart(life: Life, faults: FaultOptions): SimHost | undefined {
  const { random, disk, stats, trace } = life
  trace(`start [crashWithin=${faults.crashWithin}, failing=${faults.failing}]`)
  life.plan = planFaults(disk, random, faults)
  try {
    const host = newHost(life)
    life.plan.paused = true
    stats.lives++
    checkRecovered(life, host)
    return host
  } catch (thrown) {
    if (thrown instanceof SimulatedCrash) stats.recoveryCrashes++
    else if (thrown instanceof FileError && life.plan.failed) stats.failedStarts++
    else throw thrown
    trace(`start failed: ${thrown.message}`)
    fall(life)
    return undefined
  }
}

function newHost(life: Life): SimHost {
  const { options, files, random, shape, trace } = life
  const host = new SimHost({
    ...shape,
    ...{ sim: options.sim, files, random: random.fork(), startMs: life.ms, trace, wallShiftMs: life.wallShiftMs },
    commitMode: options.commitMode ?? 'sync',
    stopped: () => life.plan.struck,
  })
  return host
}

/** What is there must be a state that the requests pass through; then it is what everybody has seen. */
function checkRecovered(life: Life, host: SimHost): void {
  const observed = readAll(host)
  const match = findMatch(life.base, life.underWay, observed, life.refusals)
  if (typeof match === 'string') throw new Error(`after the restart: ${match}`)
  life.trace(`recovered [tables=${observed.size}, under way=${life.underWay.length}, kept=${match.done.size}]`)
  life.base = withIds(match.model, host)
  life.underWay = []
}

/** Power loss, or the end of the process alone. */
function fall(life: Life): void {
  const { random, disk, plan, stats } = life
  const { crashedAt } = plan
  if (crashedAt !== undefined) {
    stats.struck[crashedAt.kind] = (stats.struck[crashedAt.kind] ?? 0) + 1
    life.trace(`crashed at operation ${crashedAt.index} ${crashedAt.kind} ${crashedAt.path}`)
  }
  const power = random.chance(0.8)
  if (power) disk.crash(random.below(0xffff_ffff))
  else disk.kill()
  life.trace(power ? 'power lost' : 'process ended')
}

function leave(life: Life, host: SimHost): void {
  const { stats } = life
  life.ms = host.ms
  life.holds = []
  stats.crashes += life.plan.struck ? 1 : 0
  stats.flushes += host.jobsDone.flush
  stats.merges += host.jobsDone.merge
  fall(life)
}

/** Everything that was answered is there after an orderly end, too. */
function closeInOrder(life: Life, host: SimHost): void {
  try {
    life.plan.heal()
    settleRequests(life, host, 0)
    host.send({ kind: 'close', requestId: 0 })
    for (let turn = 0; turn < 4000 && !host.closed; turn++) host.turn()
    if (!host.closed) throw new Error('the writer does not close')
    host.deliverAll()
  } catch (thrown) {
    if (!(thrown instanceof SimulatedCrash)) throw thrown
  }
}

/** The disk works: all is flushed, nothing is left over, and one more start finds the same. */
function finish(life: Life): void {
  const host = tryStart(life, { crashWithin: 0, failing: 0 })
  if (host === undefined) throw new Error('the last start failed')
  if (life.random.chance(0.25)) {
    submit(life, host, checkpointRequest(life.requests))
    settleRequests(life, host, 0)
    host.pass(1100)
    host.settle()
    checkLeaks(host, life.disk, life.base)
    closeInOrder(life, host)
  }
  leave(life, host)
  tryStart(life, { crashWithin: 0, failing: 0 })
}

// ---- a life
// ----------------------------------------------------------------------------------------------------------

/** Random operations; answers whether the machine stopped. */
function live(life: Life, host: SimHost): boolean {
  try {
    const left = Math.min(life.random.between(20, 160), operationsMin - life.operations)
    for (let index = 0; index < left; index++) act(life, host)
    return false
  } catch (thrown) {
    if (!(thrown instanceof SimulatedCrash)) throw thrown
    return true
  }
}

function act(life: Life, host: SimHost): void {
  const { random } = life
  life.operations++
  if (life.clockRandom.chance(0.01)) setClock(life, host)
  const choice = random.next()
  if (choice < 0.58) submit(life, host, linesRequest(life.requests))
  else if (choice < 0.7) submitCommand(life, host, (tables) => insertRequest(life.requests, tables))
  else if (choice < 0.84) submitCommand(life, host, (tables) => changeRequest(life.requests, tables))
  else if (choice < 0.845) submitCommand(life, host, () => checkpointRequest(life.requests))
  else if (choice < 0.87) check(life, host, 'a read')
  else if (choice < 0.89) hold(life, host)
  else if (choice < 0.91) release(life, host)
  else submit(life, host, linesRequest(life.requests))
  if (random.chance(0.03)) host.pass(random.pick([100, 1100, 2500]))
  if (random.chance(0.15)) settleRequests(life, host, random.below(3))
  else for (let turns = random.below(random.pick([4, 40])); turns > 0; turns--) host.turn()
  takeReceipts(life, host)
}

/** By seconds, as NTP does it, or by years, as machines without a battery do. */
function setClock(life: Life, host: SimHost): void {
  const { clockRandom } = life
  life.wallShiftMs += clockRandom.pick([-1, 1]) * clockRandom.pick([1500, 3_600_000, 5 * 365 * 86_400_000])
  host.wallShiftMs = life.wallShiftMs
}

type Make = (tables: readonly TableVersion[]) => Request | undefined

/** Commands are made from what the catalog shows, and one at a time is under way: so their tables are known. */
function submitCommand(life: Life, host: SimHost, make: Make): void {
  while (life.underWay.some(({ request }) => request.lane === 'command')) settleRequests(life, host, 0)
  host.deliverAll()
  takeReceipts(life, host)
  const request = make(host.catalog.tables().filter(({ schema }) => tableById(life.base, schema.id) !== undefined))
  if (request !== undefined) submit(life, host, request)
}

function submit(life: Life, host: SimHost, request: Request): void {
  if (life.underWay.length >= underWayMax) settleRequests(life, host, 2)
  life.trace(`${request.requestId} ${request.text}`)
  const kind = request.text.split(' ')[0] as string
  life.stats.kinds[kind] = (life.stats.kinds[kind] ?? 0) + 1
  life.underWay.push({ request, done: 0 })
  if (request.message !== undefined) host.send(request.message)
  host.sendLines(request.blocks)
}

/** Until so many requests are left without an answer. A disk that refuses for too long is healed. */
function settleRequests(life: Life, host: SimHost, left: number): void {
  for (let turns = 0; life.underWay.length > left; turns++) {
    host.turn()
    takeReceipts(life, host)
    if (turns === 3000) life.plan.heal()
    if (turns > 3000 && turns % 500 === 0) host.pass(1100)
    if (turns > 30_000) throw new Error(`no answer [request=${life.underWay[0]?.request.text}]`)
  }
}

function takeReceipts(life: Life, host: SimHost): void {
  if (host.receipts.length === 0) return
  const receipts = host.receipts.splice(0)
  for (const receipt of receipts) takeReceipt(life, receipt)
  life.base = withIds(life.base, host)
}

function takeReceipt(life: Life, receipt: Receipt): void {
  const index = life.underWay.findIndex(({ request }) => request.requestId === receipt.requestId)
  const entry = life.underWay[index]
  if (entry === undefined) {
    if (receipt.requestId === 0) return
    throw new Error(`a second answer, or one that nobody asked for [request=${receipt.requestId}]`)
  }
  life.underWay.splice(index, 1)
  const { request } = entry
  const error = receipt.error?.message ?? ''
  life.trace(`    ${receipt.requestId} rows=${receipt.rows} ${error}`)
  if (request.lane === 'command' && request.refused === undefined) answerChange(life, request, receipt)
  else answerRows(life, entry, receipt)
}

function answerChange(life: Life, { steps, text }: Request, receipt: Receipt): void {
  const [step] = steps
  if (step?.kind !== 'change') return
  const next = changed(life.base, step.change)
  const done = receipt.error === null && !receipt.existed
  if (done && next === undefined) throw new Error(`a change was done that should be refused [${text}]`)
  if (done && next !== undefined) life.base = next
  if (!done && !life.refusals && !mayBeRefused(life, step.change)) {
    throw new Error(`a change was refused [${text}, error=${receipt.error?.message}]`)
  }
}

/** Refusals are answered at once: requests before it may have been served, and not be answered yet. */
function mayBeRefused({ base, underWay }: Life, change: ModelChange): boolean {
  let model = base
  for (const step of [undefined, ...underWay.flatMap(({ request, done }) => request.steps.slice(done))]) {
    if (step !== undefined) model = applyStep(model, step)
    const next = changed(model, change)
    if (next === undefined || isNoop(model, next)) return true
  }
  return false
}

/** A rename to the same name may be answered either way. */
function isNoop(base: Model, next: Model): boolean {
  return (
    [...base.keys()].join() === [...next.keys()].join() && [...base].every(([name, table]) => next.get(name) === table)
  )
}

function answerRows(life: Life, entry: UnderWay, receipt: Receipt): void {
  const { request } = entry
  const refused = receipt.error !== null
  if (refused !== request.refused && !(refused && life.refusals)) {
    throw new Error(`a request was ${refused ? 'refused' : 'taken'} [${request.text}, error=${receipt.error?.message}]`)
  }
  let rows = 0
  for (const [index, step] of request.steps.entries()) {
    if (step.kind !== 'rows' || (refused && rows === receipt.rows)) break
    rows += step.rows.length
    if (index >= entry.done) life.base = applyStep(life.base, step)
    else if (rows > receipt.rows) throw new Error(`shown rows were refused [${request.text}]`)
  }
  if (rows !== receipt.rows) throw new Error(`an answer counts ${receipt.rows} rows, not ${rows} [${request.text}]`)
}

// ---- reads
// -----------------------------------------------------------------------------------------------------------

/** Reads everything: it must be the state of the answered requests and, as far as shown, of those under way. */
function check(life: Life, host: SimHost, when: string): void {
  life.plan.paused = true
  host.deliverAll()
  takeReceipts(life, host)
  const observed = readAll(host)
  const match = findMatch(life.base, life.underWay, observed, life.refusals)
  if (typeof match === 'string') throw new Error(`${when}: ${match}`)
  life.stats.reads++
  life.base = withIds(match.model, host)
  for (const [entry, done] of match.done) entry.done = done
  life.plan.paused = false
}

function readAll(host: SimHost): Observed {
  const { held, tables } = holdAll(host)
  held.release()
  return new Map(tables.map((table) => [table.name, table]))
}

function holdAll(host: SimHost): Hold {
  const held = host.catalog.hold(host.catalog.tables().map(({ schema }) => schema.id))
  const tables = held.snapshots.map((snapshot) => readTable(host, snapshot))
  return { held, tables }
}

function hold(life: Life, host: SimHost): void {
  if (life.holds.length >= 2) release(life, host)
  life.plan.paused = true
  life.holds.push(holdAll(host))
  life.plan.paused = false
}

/** The same rows as when the snapshots were taken, whatever has happened since. */
function release(life: Life, host: SimHost): void {
  const hold = life.holds.shift()
  if (hold === undefined) return
  life.plan.paused = true
  for (const [index, snapshot] of hold.held.snapshots.entries()) {
    const again = readTable(host, snapshot)
    // A held version keeps its count of rows: what became visible later is not part of the snapshot.
    if (JSON.stringify(again) !== JSON.stringify(hold.tables[index])) {
      throw new Error(`a held snapshot has changed [table=${again.name}]`)
    }
  }
  hold.held.release()
  life.stats.reads++
  life.plan.paused = false
}

/** Numbers that the engine has given to new tables. */
function withIds(model: Model, host: SimHost): Model {
  let named: Map<string, ModelTable> | undefined
  for (const [name, table] of model) {
    const id = table.id < 0 ? host.catalog.table(name)?.schema.id : undefined
    if (id === undefined) continue
    named ??= new Map(model)
    named.set(name, { ...table, id })
  }
  return named ?? model
}
