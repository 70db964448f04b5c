// Decides for a run of the deterministic simulation which file operations fail, and at which operation the machine
// crashes. The seed determines both.

import type { Random } from '../random.js'
import { engineOperations, type Fault, type FaultyDisk, type Operation, type OperationKind } from './faulty-files.js'

const rare = new Set<OperationKind>(['truncate', 'makeDirectory', 'list', 'remove', 'removeDirectory', 'rename'])

export interface FaultPlan {
  /** The machine has stopped: also when somebody has swallowed the exception. */
  readonly struck: boolean
  /** Some operation has failed without the machine stopping. */
  readonly failed: boolean
  /** Where it stopped. */
  readonly crashedAt: Operation | undefined
  /** While the harness itself reads, nothing fails. */
  paused: boolean
  /** The disk is well again. */
  heal(): void
}

export interface FaultOptions {
  /** Stop within so many operations; 0 = never. */
  readonly crashWithin: number
  /** Part of the operations that fail. */
  readonly failing: number
}

/** Replaces the disk's injector. */
export function planFaults(disk: FaultyDisk, random: Random, options: FaultOptions): FaultPlan {
  const dice = random.fork()
  const stops = options.crashWithin === 0 ? () => false : crashPoint(disk, random, options.crashWithin)
  let failing = options.failing
  const plan = {
    struck: false,
    failed: false,
    crashedAt: undefined as Operation | undefined,
    paused: false,
    heal: () => {
      failing = 0
    },
  }
  disk.inject((operation): Fault | undefined => {
    if (plan.paused) return undefined
    if (stops(operation)) {
      plan.struck = true
      plan.crashedAt = operation
      return { kind: 'crash' }
    }
    if (failing === 0 || !dice.chance(failing)) return undefined
    plan.failed = true
    return { kind: dice.pick(['error', 'short'] as const), code: dice.pick(['EIO', 'ENOSPC']) }
  })
  return plan
}

/** Half of the crashes strike any operation, half one of a kind: rare kinds have their turn, too. */
function crashPoint(disk: FaultyDisk, random: Random, within: number): (operation: Operation) => boolean {
  const index = disk.operations + random.between(1, within)
  if (random.chance(0.5)) return (operation) => operation.index === index
  const kind = random.pick(engineOperations)
  const kindIndex = disk.counts[kind] + random.between(1, rare.has(kind) ? 3 : Math.ceil(within / 10))
  return (operation) =>
    (operation.kind === kind && operation.kindIndex >= kindIndex) || operation.index >= index + within
}
