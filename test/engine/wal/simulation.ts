// One run of the write-ahead log on a simulated disk: random appends, groups, syncs, failures and crashes, with a model
// of the expected contents. Used by the crash test and by the test that removes safeguards (guards.test.ts).
//
// The model has the frames (log records) in the order of their positions, each with the seed of its content. After a
// recovery the replayed frames must be a contiguous range of the model's, which begins at or before the first frame
// that is not trimmed, and ends at or after the last acknowledged one (modes async and nosync: the last durable one).
// Optionally, bytes are damaged at the end of a run: then only the damaged frames may be missing.

import type { Clock } from '../../../engine/base/clock.js'
import { ResourceError } from '../../../engine/base/errors.js'
import type { Files } from '../../../engine/base/files.js'
import { silentLog } from '../../../engine/base/log.js'
import { HighWater } from '../../../engine/wal/high-water.js'
import type { createLogLoop, LogLoop } from '../../../engine/wal/log-loop.js'
import type { openWal } from '../../../engine/wal/open.js'
import type { CommitMode, LogReport, LogRequest, Lsn, ReplayReport, Wal } from '../../../engine/wal/types.js'
import { createRandom, type Random } from '../../support/random.js'
import {
  createFaultyDisk,
  type Fault,
  type FaultyDisk,
  type Injector,
  SimulatedCrash,
} from '../../support/simulator/faulty-files.js'

const walDirectory = '/db/wal'

/** The modules under test: handed in, so that a test can load them with a guard removed. */
interface WalModules {
  readonly openWal: typeof openWal
  readonly createLogLoop: typeof createLogLoop
}

export interface SimulationOptions {
  readonly modules: WalModules
  readonly seed: number
  readonly mode?: CommitMode
  /** Removes a guard: what the log sees instead of the disk. */
  readonly wrap?: (files: Files) => Files
  readonly rounds?: number
  /** Damage bytes that were durable before a clean reopening. */
  readonly damage?: boolean
  readonly onDisk?: (disk: FaultyDisk) => void
}

interface ModelFrame {
  readonly lsn: Lsn
  readonly endLsn: Lsn
  readonly seed: number
  readonly bytes: number
}

interface Life {
  readonly options: SimulationOptions
  readonly random: Random
  readonly disk: FaultyDisk
  readonly files: Files
  readonly clock: Clock & { advance(ms: number): void }
  readonly toLog: LogRequest[]
  readonly toWriter: LogReport[]
  model: ModelFrame[]
  /** Positions, as far as they were promised. */
  acknowledged: Lsn
  trimmed: Lsn
  replayed: ModelFrame[]
  replay: ReplayReport | undefined
  wal: Wal | undefined
  logLoop: LogLoop | undefined
}

/** Runs one life; throws an Error that says what is wrong. */
export function simulate(options: SimulationOptions): void {
  const life = createLife(options)
  options.onDisk?.(life.disk)
  for (let round = 0; round < (options.rounds ?? 3); round++) {
    open(life, round)
    checkRecovered(life)
    const crashed = live(life)
    stop(life, crashed)
  }
  if (options.damage === true) checkDamage(life)
  else {
    open(life, -1)
    checkRecovered(life)
  }
}

function createLife(options: SimulationOptions): Life {
  const random = createRandom(options.seed)
  const disk = createFaultyDisk(options.seed)
  disk.files.makeDirectory('/db')
  disk.files.syncDirectory('/')
  const state = { ms: 0 }
  return {
    options,
    random,
    disk,
    files: options.wrap?.(disk.files) ?? disk.files,
    clock: {
      nowMicros: () => state.ms * 1000,
      monotonicMs: () => state.ms,
      advance: (ms) => {
        state.ms += ms
      },
    },
    toLog: [],
    toWriter: [],
    model: [],
    acknowledged: 0,
    trimmed: 0,
    replayed: [],
    replay: undefined,
    wal: undefined,
    logLoop: undefined,
  }
}

/** Opens the log; it may crash on the way, again and again, and then works. */
function open(life: Life, round: number): void {
  const attempts = round >= 0 && life.random.chance(0.4) ? life.random.between(1, 2) : 0
  for (let attempt = 0; attempt < attempts; attempt++) {
    const at = life.disk.operations + life.random.between(1, 40)
    life.disk.inject((operation) => (operation.index === at ? { kind: 'crash' } : undefined))
    if (!crashes(() => openOnce(life))) break
    powerOff(life)
  }
  life.disk.inject(undefined)
  openOnce(life)
}

function openOnce(life: Life): void {
  const { files, clock, random, toLog, toWriter, options } = life
  toLog.length = 0
  toWriter.length = 0
  life.replayed = []
  const { wal, replay } = options.modules.openWal({
    files,
    clock,
    directory: walDirectory,
    log: silentLog,
    mode: options.mode ?? 'sync',
    segmentBytes: random.pick([2048, 8192, 32768]),
    highWater: HighWater.open({ files, directory: '/db', log: silentLog }),
    logId: new Uint8Array([1, 2, 3, 4, 5, 6, 7, 8]),
    send: (request) => void toLog.push(request),
    onFrame: ({ lsn, endLsn, payload }) => void life.replayed.push({ ...frameContent(payload), lsn, endLsn }),
  })
  life.wal = wal
  life.replay = replay
  const report = (message: LogReport) => void toWriter.push(message)
  life.logLoop = options.modules.createLogLoop({ files, take: () => toLog.shift(), report })
}

/** What a frame's payload must be, from its first 8 bytes; a wrong byte behind them makes the seed -1. */
function frameContent(payload: Uint8Array): { seed: number; bytes: number } {
  const view = new DataView(payload.buffer, payload.byteOffset, payload.byteLength)
  const seed = payload.length < 8 ? -1 : view.getUint32(0, true)
  const expected = contentOf(seed, payload.length)
  return { seed: Buffer.compare(expected, payload) === 0 ? seed : -1, bytes: payload.length }
}

function contentOf(seed: number, bytes: number): Uint8Array {
  const from = Math.abs(seed) % 4096
  const content = noise.slice(from, from + bytes)
  if (bytes >= 8) new DataView(content.buffer).setUint32(0, seed, true)
  return content
}

/** Frames are stretches of it: making each anew took most of the test's time. */
const noise = createRandom(42).fill(new Uint8Array(16384))

/** The replayed frames against the model; then the model is what was replayed: readers have seen it. */
function checkRecovered(life: Life): void {
  const { model, replayed, acknowledged, trimmed, replay } = life
  const damage = replay?.setAside.find(({ reason }) => reason !== 'tail')
  if (damage !== undefined) throw new Error(`false alarm: ${JSON.stringify(damage)}`)
  const first = model.findIndex(({ lsn }) => lsn === replayed[0]?.lsn)
  const run = first < 0 ? [] : model.slice(first, first + replayed.length)
  for (const [index, frame] of replayed.entries()) {
    const expected = run[index]
    if (expected === undefined) throw new Error(`a frame nobody appended was replayed: ${JSON.stringify(frame)}`)
    if (!sameFrame(expected, frame))
      throw new Error(`replayed ${JSON.stringify(frame)}, not ${JSON.stringify(expected)}`)
  }
  const required = model.filter(({ lsn, endLsn }) => lsn >= trimmed && endLsn <= acknowledged)
  const missing = required.find(({ lsn }) => !replayed.some((frame) => frame.lsn === lsn))
  if (missing !== undefined) throw new Error(`an acknowledged frame is lost: ${JSON.stringify(missing)}`)
  life.model = replayed
  life.acknowledged = replay?.endLsn ?? 0
}

function sameFrame(a: ModelFrame, b: ModelFrame): boolean {
  return a.lsn === b.lsn && a.endLsn === b.endLsn && a.seed === b.seed && a.bytes === b.bytes
}

/** A stretch of work that may meet failures, and ends with a crash (true) or without. */
function live(life: Life): boolean {
  life.disk.inject(randomFaults(life))
  return crashes(() => {
    const steps = life.random.between(5, 60)
    for (let step = 0; step < steps; step++) act(life)
  })
}

/** Mode nosync keeps nothing for a second attempt: a failure loses frames, so only crashes are tried there. */
function randomFaults({ random, disk, options }: Life): Injector {
  const faults = random.fork()
  const crashAt = random.chance(0.5) ? disk.operations + random.between(1, 60) : -1
  const failing = random.chance(0.4) && options.mode !== 'nosync' ? random.pick([0.02, 0.1]) : 0
  return ({ index }): Fault | undefined => {
    if (index === crashAt) return { kind: 'crash' }
    if (!faults.chance(failing)) return undefined
    return { kind: faults.pick(['error', 'short'] as const), code: faults.pick(['EIO', 'ENOSPC']) }
  }
}

function crashes(work: () => void): boolean {
  try {
    work()
    return false
  } catch (error) {
    if (error instanceof SimulatedCrash) return true
    throw error
  }
}

function act(life: Life): void {
  const { random, wal, logLoop, toWriter, clock } = life
  if (wal === undefined || logLoop === undefined) throw new Error('the log is open while it lives')
  const choice = random.next()
  if (choice < 0.35) appendFrames(life, wal)
  else if (choice < 0.5) wal.writeGroup()
  else if (choice < 0.68) logLoop.step()
  else if (choice < 0.86) deliver(wal, toWriter, random.between(1, 3))
  else if (choice < 0.96) {
    clock.advance(random.pick([1, 50, 150, 1500]))
    wal.tick()
  } else trim(life, wal)
  life.acknowledged = Math.max(life.acknowledged, promisedLsn(life, wal))
}

/** What survives a power loss: in every mode, what the log calls durable. */
function promisedLsn({ options }: Life, wal: Wal): Lsn {
  return options.mode === 'sync' || options.mode === undefined ? wal.acknowledgedLsn : wal.durableLsn
}

function appendFrames({ random, model }: Life, wal: Wal): void {
  for (let left = random.between(1, 4); left > 0; left--) {
    const seed = random.below(0xffff_ffff)
    const bytes = random.pick([8, 21, 100, 470, 512, 1500, random.between(8, 6000)])
    const content = contentOf(seed, bytes)
    const cut = random.below(bytes)
    try {
      const endLsn = wal.append(16, [content.subarray(0, cut), content.subarray(cut)])
      model.push({ lsn: endLsn - 32 - Math.ceil(bytes / 8) * 8, endLsn, seed, bytes })
    } catch (error) {
      if (error instanceof ResourceError && wal.state === 'poisoned') return
      throw error
    }
  }
}

function deliver(wal: Wal, toWriter: LogReport[], count: number): void {
  for (const report of toWriter.splice(0, count)) wal.handle(report)
}

function trim(life: Life, wal: Wal): void {
  const frame = life.model[life.random.below(Math.max(1, life.model.length))]
  if (frame === undefined || frame.lsn > wal.durableLsn) return
  life.trimmed = Math.max(life.trimmed, frame.lsn)
  wal.trim(life.trimmed)
}

/** An orderly shutdown, the death of the process, or a power loss. */
function stop(life: Life, crashed: boolean): void {
  const choice = life.random.next()
  if (choice < 0.2 && !crashed) shutDown(life)
  if (choice < 0.4) life.disk.kill()
  else powerOff(life)
}

function powerOff({ disk, random }: Life): void {
  disk.crash(random.below(0xffff_ffff))
}

function shutDown(life: Life): void {
  const { wal, disk, clock } = life
  disk.inject(undefined)
  if (wal === undefined) return
  settle(life)
  clock.advance(5000)
  wal.tick()
  settle(life)
  wal.close()
  life.acknowledged = Math.max(life.acknowledged, life.model.at(-1)?.endLsn ?? 0)
}

/** Lets the log role finish everything. */
function settle(life: Pick<Life, 'wal' | 'logLoop' | 'toWriter' | 'clock'>): void {
  const { wal, logLoop, toWriter, clock } = life
  if (wal === undefined || logLoop === undefined) return
  for (let turn = 0; turn < 100; turn++) {
    wal.writeGroup()
    while (logLoop.step() === 'worked');
    deliver(wal, toWriter, toWriter.length)
    if (wal.state === 'open' && wal.quiet && wal.waitingBytes === 0 && wal.headLsn === wal.durableLsn) return
    clock.advance(1100)
    wal.tick()
  }
  if (wal.state !== 'open') throw new Error('the log does not become writable again')
}

/** Everything durable and said to be so; then bytes go bad: only the frames that they hit may be missing. */
function checkDamage(life: Life): void {
  life.disk.inject(undefined)
  openOnce(life)
  checkRecovered(life)
  const { wal, random, clock, disk } = life
  if (wal === undefined) return
  for (let group = 0; group < 4; group++) {
    appendFrames(life, wal)
    settle(life)
  }
  clock.advance(200)
  wal.tick()
  settle(life)
  disk.kill()
  const hit = damageFrames(life, random)
  openOnce(life)
  const expected = life.model.filter((frame) => frame.lsn >= (life.replay?.startLsn ?? 0))
  const replayed = new Set(life.replayed.map(({ lsn }) => lsn))
  const lost = expected.filter(({ lsn }) => !replayed.has(lsn))
  if (lost.some(({ lsn }) => !hit.has(lsn))) throw new Error('damage cost more than the frames it hit')
  if ([...hit].some((lsn) => replayed.has(lsn))) throw new Error('a damaged frame was replayed')
  const present = expected.filter(({ lsn }) => replayed.has(lsn))
  if (present.some((frame, index) => !sameFrame(frame, life.replayed[index] as ModelFrame)))
    throw new Error('a frame changed')
  const reports = life.replay?.setAside.filter(({ reason }) => reason === 'damage') ?? []
  if (hit.size > 0 && reports.length === 0) throw new Error('damage was not reported')
  life.model = life.replayed
}

/** Garbles parts of some frames; returns the positions of those. */
function damageFrames({ model, disk, wal }: Life, random: Random): Set<Lsn> {
  const hit = new Set<Lsn>()
  for (const frame of model) {
    if (!random.chance(0.2) || frame.endLsn > (wal?.durableLsn ?? 0)) continue
    const place = locate(disk, frame.lsn)
    if (place === undefined) continue
    const used = 32 + frame.bytes
    // The last 4 bytes of a header mean nothing: begin before them, or behind.
    const from = random.pick([0, random.below(28), 32 + random.below(frame.bytes)])
    const length = random.between(1, used - from)
    const old = disk.peek(place.path).subarray(place.offset + from, place.offset + from + length)
    disk.damage(
      place.path,
      place.offset + from,
      old.map((byte) => byte ^ 0x5a),
    )
    hit.add(frame.lsn)
  }
  return hit
}

/** The file and offset of a position: the last segment that begins at or before it. */
function locate(disk: FaultyDisk, lsn: Lsn): { path: string; offset: number } | undefined {
  for (const name of disk.files.list(walDirectory).reverse()) {
    if (!name.endsWith('.wal')) continue
    const path = `${walDirectory}/${name}`
    const header = disk.peek(path)
    if (header.length < 8192) continue
    const start = Number(new DataView(header.buffer, header.byteOffset).getBigUint64(24, true))
    if (start <= lsn) return { path, offset: 8192 + lsn - start }
  }
  return undefined
}
