// Types of the HTTP gateway: its options, the services its handlers share, and one request with its response.

import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Clock } from '../../engine/base/clock.js'
import type { Log } from '../../engine/base/log.js'
import type { Engine, Session } from '../../engine/engine.js'
import type { ByteBudget, ParquetUploads } from '../../pipeline/ingest.js'
import type { Admission } from '../common/admission.js'
import type { Alerts } from '../common/alerts.js'
import type { Authenticator } from '../common/auth.js'
import type { ConnectionSlots } from '../common/connection-slots.js'
import type { Connection, ConnectionRegistry } from '../common/connections.js'
import type { OpenDump } from '../common/dump-import.js'
import type { GatewayCounters } from '../common/metric.js'
import type { MetricsSource } from '../common/metrics-source.js'
import type { Pages } from '../common/pages.js'
import type { Refusals } from '../common/refusals.js'
import type { Sessions } from '../common/sessions.js'
import type { TlsKeys } from '../common/tls.js'
import type { SavedItems } from './saved-items.js'
import type { SettingsStore } from './settings-store.js'

export interface HttpOptions {
  /** Rejects every change over HTTP, whatever the user's rights. */
  readonly readOnly: boolean
  /** Protocols that accept writes, as reported to clients. */
  readonly acceptingWrites: readonly string[]
  /** Origins that CORS allows (`*`: all); null: CORS is off. */
  readonly corsOrigins: readonly string[] | null
  readonly healthNeedsCredentials: boolean
  /** Host names accepted without credentials, besides addresses and local names; null: any name. */
  readonly hostNames: readonly string[] | null
  /** Returned by /warnings. */
  readonly warnings: readonly { readonly tag: string; readonly warning: string }[]
  readonly connectionsMax: number
  /** 0 or less: no limit. */
  readonly connectionsPerAddressMax: number
  readonly keepAliveMs: number
  readonly headerBytesMax: number
  /** Bytes of a request body processed at a time. */
  readonly receiveBufferBytes: number
  /** Encoded response bytes that may be buffered for a slow reader. */
  readonly sendBufferBytes: number
  /** Upper bound of the decompressed size of an import. */
  readonly importExpandedBytesMax: number
  readonly executePath: string
  readonly exportPath: string
  readonly importPath: string
  /** Row limit of one JSON response. */
  readonly rowsMax: number
  /** Deadline of statements whose request sets none; 0: no deadline. */
  readonly queryTimeoutMs: number
  readonly queriesMax: number
  readonly exportsMax: number
  readonly importsMax: number
  /** Deadline of Parquet exports whose request sets none. */
  readonly exportTimeoutMs: number
  /** Folder for exports that are completed before they are sent. */
  readonly exportDirectory: string
  /** File that stores the preferences. */
  readonly preferencesPath: string
  /** File that stores the queries and dashboards that users save. */
  readonly savedPath: string
  readonly linesEnabled: boolean
  readonly lineRequestsMax: number
  readonly lineBodyBytesMax: number
  readonly lineBodiesBytesMax: number
  /** Parameters of write requests whose values precede the names of tables. */
  readonly linePrefixParts: readonly string[]
  /** What a value that does not fit its column means for a QWP message. */
  readonly qwpBadValue: 'reject' | 'skip'
  /** How long QWP messages wait while writes are refused. */
  readonly qwpHoldMs: number
  /** Whether an accepted QWP message is durable. */
  readonly qwpDurable: boolean
  readonly qwpGroupsBytesMax: number
  /** The level of compressed QWP batches; 0: what the client asks for. */
  readonly qwpZstdLevel: number
  readonly metricsEnabled: boolean
  /** Makes health checks return 500 after an unhandled error. */
  readonly pessimisticHealth: boolean
  readonly logQueries: boolean
  readonly version: string
}

export interface HttpServices {
  readonly auth: Authenticator
  /** Null: plain HTTP. */
  readonly tls: TlsKeys | null
  readonly engine: Engine
  readonly registry: ConnectionRegistry
  readonly counters: GatewayCounters
  readonly metrics: MetricsSource
  readonly pages: Pages
  readonly clock: Clock
  readonly log: Log
  /** Reads SQLite dumps; null where the server has no such reader. */
  readonly openDump: OpenDump | null
  /** Parquet files while they are imported. */
  readonly uploads: ParquetUploads
  /** How readers of Iceberg tables reach the object store: properties of Iceberg's file access. */
  readonly lakeConfig: Readonly<Record<string, string>>
  /** Keys of the object store that they get, as such properties, for the objects below a location. */
  readonly lakeKeys: {
    readonly of: (location: string) => Promise<Readonly<Record<string, string>>>
    readonly expire: boolean
  }
  readonly alerts: Alerts
  /** Problems beside those of the engine and the settings, for /warnings. */
  readonly warnings: () => readonly { readonly tag: string; readonly warning: string }[]
}

export interface HttpContext extends HttpServices {
  readonly startedMicros: number
  readonly options: HttpOptions
  readonly sessions: Sessions
  readonly refusals: Refusals
  readonly slots: ConnectionSlots
  readonly queries: Admission
  readonly exports: Admission
  readonly imports: Admission
  readonly settings: SettingsStore
  readonly saved: SavedItems
  readonly lineRequests: Admission
  readonly lineBudget: ByteBudget
  /** For QWP messages that wait for their commit. */
  readonly qwpGroups: ByteBudget
}

/** One request and its response. */
export interface Exchange {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  /** The part of the URL after `?`, still encoded. */
  readonly query: string
  readonly connection: Connection
  /** The session whose rights apply to this request. */
  readonly session: Session
}

export type Handler = (context: HttpContext, exchange: Exchange) => Promise<void> | void
