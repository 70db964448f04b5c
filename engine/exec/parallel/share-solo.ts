// Implements Sharing without helper threads: the coordinator works on every chunk itself.

import type { QuerySpace } from '../batch/query-space.js'
import { chunkRowsUsual, type Sharing } from './share.js'

export function soloSharing(space: QuerySpace): Sharing {
  return {
    threadId: 0,
    helpers: 0,
    chunkRowsMin: chunkRowsUsual,
    inviteAfterMs: 0,
    inviteForMs: 0,
    nowMs: () => 0,
    wake: () => {},
    board: (bytes) => space.keep(bytes),
    invite: () => {},
  }
}
