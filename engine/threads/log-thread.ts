// Worker: the log thread. It only syncs the files that the writer names, so that the writer decodes on meanwhile.

import { nodeFiles } from '../base/files.js'
import { completeSync, pendingSync } from './sync-words.js'
import { runWorker, workerContext } from './thread.js'
import { threadIds, wake } from './wake.js'

export interface LogThreadMessage {
  readonly kind: 'close'
}

const context = workerContext<null, LogThreadMessage, never>()
const files = nodeFiles()
let closing = false

runWorker<LogThreadMessage>(
  context,
  () => {
    closing = true
  },
  step,
  60_000,
)

function step(): 'worked' | 'idle' | 'ended' {
  const descriptor = pendingSync(context.memory)
  if (descriptor < 0) return closing ? 'ended' : 'idle'
  completeSync(context.memory, !sync(descriptor))
  wake(context.memory, threadIds.writer)
  return 'worked'
}

function sync(descriptor: number): boolean {
  try {
    files.syncDescriptor(descriptor)
    return true
  } catch (error) {
    context.log('E', 'wal', `sync failed: ${error instanceof Error ? error.message : String(error)}`)
    return false
  }
}
