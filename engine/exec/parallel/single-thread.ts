// The implementation of the interface Parallelism for a query that must not use other threads: none are ever invited,
// so the query's own thread processes all of the input.

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
