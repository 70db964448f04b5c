// Sharing where there is nobody to share with: the lead does every chunk.

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
