// What the handlers of HTTP requests share, and one request on its way through them.

import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Clock } from '../../engine/base/clock.js'
import type { Log } from '../../engine/base/log.js'
import type { Engine, Session } from '../../engine/engine.js'
import type { ByteBudget } from '../../pipeline/ingest.js'
import type { Admission } from '../common/admission.js'
import type { Authenticator } from '../common/auth.js'
import type { BusyPoll } from '../common/busy-poll.js'
import type { Connection, ConnectionRegistry } from '../common/connections.js'
import type { OpenDump } from '../common/dump-import.js'
import type { GatewayCounters } from '../common/metric.js'
import type { MetricsSource } from '../common/metrics-source.js'
import type { Pages } from '../common/pages.js'
import type { Places } from '../common/places.js'
import type { Refusals } from '../common/refusals.js'
import type { TlsKeys } from '../common/tls.js'
import type { SettingsStore } from './settings-store.js'

export interface HttpOptions {
  /** Nothing may be changed over HTTP, whoever asks. */
  readonly readOnly: boolean
  /** The ways in that take changes, for clients that ask. */
  readonly acceptingWrites: readonly string[]
  /** Whose pages may ask and read (`*`: everybody's); null: CORS is off. */
  readonly corsOrigins: readonly string[] | null
  readonly healthNeedsCredentials: boolean
  /** Names under which requests without credentials may call the server, besides addresses and local ones; null: any. */
  readonly hostNames: readonly string[] | null
  /** For /warnings. */
  readonly warnings: readonly { readonly tag: string; readonly warning: string }[]
  readonly connectionsMax: number
  /** 0 and less: no limit. */
  readonly connectionsPerAddressMax: number
  readonly keepAliveMs: number
  /** busy-poll.ts */
  readonly busyPoll: boolean
  readonly headerBytesMax: number
  /** Bytes of a body that are handled at one time. */
  readonly receiveBufferBytes: number
  /** Encoded bytes of an answer that wait for its reader. */
  readonly sendBufferBytes: number
  /** What a compressed import may expand to. */
  readonly importExpandedBytesMax: number
  readonly executePath: string
  readonly exportPath: string
  readonly importPath: string
  /** Rows of one JSON answer. */
  readonly rowsMax: number
  /** Deadline of statements that bring none; 0 = none. */
  readonly queryTimeoutMs: number
  readonly queriesMax: number
  readonly exportsMax: number
  readonly importsMax: number
  /** Deadline of Parquet exports that bring none. */
  readonly exportTimeoutMs: number
  /** Where exports are completed before they are sent. */
  readonly exportDirectory: string
  /** The file of the preferences. */
  readonly preferencesPath: string
  readonly linesEnabled: boolean
  readonly lineRequestsMax: number
  readonly lineBodyBytesMax: number
  readonly lineBodiesBytesMax: number
  readonly metricsEnabled: boolean
  /** Health checks answer 500 after an unhandled error. */
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
  /** Reads dumps of SQLite; null where nobody does. */
  readonly openDump: OpenDump | null
}

export interface HttpContext extends HttpServices {
  readonly poll: BusyPoll
  readonly options: HttpOptions
  readonly refusals: Refusals
  readonly places: Places
  readonly queries: Admission
  readonly exports: Admission
  readonly imports: Admission
  readonly settings: SettingsStore
  readonly lineRequests: Admission
  readonly lineBudget: ByteBudget
}

/** One request and its answer. */
export interface Exchange {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  /** Behind the `?`, still encoded. */
  readonly query: string
  readonly connection: Connection
  /** Whose rights count, for this request. */
  readonly session: Session
}

export type Handler = (context: HttpContext, exchange: Exchange) => Promise<void> | void
