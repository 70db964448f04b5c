// What the engine on the main thread is made of.

import type { EngineObserver } from '../api/engine.js'
import type { Clock } from '../base/clock.js'
import type { Log } from '../base/log.js'
import type { SharedMemory } from '../memory/shared-memory.js'
import type { Backend, ParameterFigures } from '../sql/catalog.js'
import type { ToWriter } from '../storage/jobs/messages.js'
import type { QueryDoor } from '../threads/query-door.js'
import type { CatalogView } from './catalog-view.js'
import type { SmallDoor } from './inline-execution.js'
import type { ConfiguredName } from './user-catalog.js'

/** What the surroundings of the engine want to be asked or told. */
export interface EngineHooks {
  /** Reads the settings again; whether they are in force. */
  readonly reload?: () => boolean
  /** Tables of the server's own, by their lower-case names; some may be hidden from other sessions. */
  readonly systemTable?: (name: string) => 'shown' | 'hidden' | undefined
  readonly observer?: EngineObserver
  /** Connections that clients of PostgreSQL find in pg_stat_activity. */
  readonly backends?: () => readonly Backend[]
}

export interface LocalEngineOptions extends EngineHooks {
  readonly memory: SharedMemory
  readonly view: CatalogView
  readonly queries: QueryDoor
  /** For queries that are not worth a hand-over; null: every query is handed over. */
  readonly small: SmallDoor | null
  readonly postWriter: (message: ToWriter) => void
  readonly wakeWriter: () => void
  /** Ends all threads; the writer has closed its files before. */
  readonly endThreads: () => Promise<void>
  readonly parameters: () => readonly ParameterFigures[]
  readonly cacheAddress: number
  readonly configuredUsers: readonly ConfiguredName[]
  readonly jit: boolean
  readonly clock: Clock
  readonly log: Log
}
