// The options with which LocalEngine (the engine on the main thread) is created: its threads, shared memory, view of
// the tables, settings, and callbacks to the server.

import type { EngineObserver } from '../api/engine.js'
import type { Clock } from '../base/clock.js'
import type { Log } from '../base/log.js'
import type { SharedMemory } from '../memory/shared-memory.js'
import type { Backend, ServerParameter } from '../sql/catalog.js'
import type { ToWriter } from '../storage/jobs/messages.js'
import type { QueryPool } from '../threads/query-pool.js'
import type { CatalogView } from './catalog-view.js'
import type { InlineExecution } from './inline-execution.js'
import type { ConfiguredName } from './user-catalog.js'

/** Callbacks from the engine to the server around it. */
export interface EngineHooks {
  /** Reloads the settings; returns whether they are in force. */
  readonly reload?: () => boolean
  /** Whether a name (in lower case) is a table of the server itself, and whether it is hidden from other sessions. */
  readonly systemTable?: (name: string) => 'shown' | 'hidden' | undefined
  readonly observer?: EngineObserver
  /** Connections to list in pg_stat_activity. */
  readonly backends?: () => readonly Backend[]
}

export interface LocalEngineOptions extends EngineHooks {
  readonly memory: SharedMemory
  readonly view: CatalogView
  readonly queries: QueryPool
  /** Inline execution of small queries; null: all queries run on query threads. */
  readonly inline: InlineExecution | null
  readonly postWriter: (message: ToWriter) => void
  readonly wakeWriter: () => void
  /** Ends all threads; called after the writer has closed its files. */
  readonly endThreads: () => Promise<void>
  readonly parameters: () => readonly ServerParameter[]
  readonly cacheAddress: number
  readonly configuredUsers: readonly ConfiguredName[]
  readonly jit: boolean
  /** Whether queries of tables are answered from stored buckets of materialized views; absent: on. */
  readonly viewRewrite?: 'on' | 'off' | 'exact'
  /** Whether a materialized view is read as its query returns it, or what is stored of it alone; absent: fresh. */
  readonly viewRead?: 'fresh' | 'stored'
  /** Whether statements that differ only in constants share plans; absent: yes. */
  readonly sharesPlans?: boolean
  readonly clock: Clock
  readonly log: Log
  /** Whether the log syncs commits before they are acknowledged. */
  readonly durable?: boolean
}
