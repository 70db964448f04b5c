// Tells whether writes are accepted: the main thread asks before it passes a write to the writer. Writes fail while the
// disk is nearly full, the log cannot be written, or memory is full and cannot be flushed. Schema changes that free
// disk space or need almost none (writer/free-space.ts) are always accepted. Line protocol over TCP waits and is not
// rejected, because its clients get no responses and would not send the rows again.

import { ResourceError } from '../base/errors.js'
import { metricOf, writeRefusals } from '../memory/metrics.js'
import type { SharedMemory } from '../memory/shared-memory.js'
import type { PlannedStatement } from '../sql/statements/planned.js'
import { freesSpace } from '../storage/writer/free-space.js'

const MIB = 1024 * 1024

/** The reason why writes are refused at present; null if they are not. */
export function writeRefusal(memory: SharedMemory): ResourceError | null {
  switch (metricOf(memory, 'refusal')) {
    case writeRefusals.none:
      return null
    case writeRefusals.diskLow: {
      const free = Math.floor(metricOf(memory, 'freeBytes') / MIB)
      const least = Math.floor(metricOf(memory, 'freeBytesMin') / MIB)
      return new ResourceError(`the disk is nearly full, writes are refused [freeMiB=${free}, leastMiB=${least}]`)
    }
    case writeRefusals.diskFull:
      return new ResourceError('the disk is full, writes are refused until there is room for new files')
    case writeRefusals.logFailed:
      return new ResourceError('the log cannot be written now, writes are refused')
    default:
      return new ResourceError('the memory is full and the disk takes nothing, writes are refused')
  }
}

export function requireRoom(memory: SharedMemory): void {
  const refusal = writeRefusal(memory)
  if (refusal !== null) throw refusal
}

/** Throws if the statement needs disk space and writes are refused. */
export function guardWrite(memory: SharedMemory, planned: PlannedStatement): void {
  if (needsRoom(planned)) requireRoom(memory)
}

function needsRoom(planned: PlannedStatement): boolean {
  switch (planned.kind) {
    case 'insert':
    case 'insertSelect':
    case 'insertNew':
    case 'upsert':
    case 'withChanges':
    case 'insertReturning':
    case 'createTableAs':
    case 'rewrite':
      return true
    case 'change':
      return planned.changes.some((change) => !freesSpace(change))
    default:
      return false
  }
}
