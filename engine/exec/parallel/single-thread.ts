// Implements Parallelism without worker threads: the coordinator works on every chunk itself.

import type { QueryArena } from '../batch/query-arena.js'
import { chunkRowsUsual, type Parallelism } from './coordinator.js'

export function singleThread(arena: QueryArena): Parallelism {
  return {
    threadId: 0,
    workers: 0,
    chunkRowsMin: chunkRowsUsual,
    inviteAfterMs: 0,
    inviteForMs: 0,
    invited: false,
    nowMs: () => 0,
    wake: () => {},
    queue: (bytes) => arena.keep(bytes),
    invite: () => {},
  }
}
