// Types of the messages between a Kafka connector's thread and the main thread. The thread sends blocks of lines to
// store, requests about offsets, rejected records, statistics and log records, and confirms a pause or stop. The main
// thread sends the results of storing, the requested offsets, and commands to start, pause and stop.

import type { TopicPartition } from './consumer.js'
import type { Positions, Reject, StoreRequest, StoreResult } from './engine-client.js'
import type { KafkaOptions } from './options.js'
import type { ConnectorStatistics } from './statistics.js'

export interface ThreadOptions {
  readonly options: KafkaOptions
  /** Time base of the process's clock. */
  readonly clockAnchor: SharedArrayBuffer
}

export type ToThread =
  | { readonly kind: 'start' }
  | { readonly kind: 'pause' }
  | { readonly kind: 'stop' }
  | { readonly kind: 'stored'; readonly id: number; readonly result: StoreResult }
  /** `error`: the request could not be carried out. */
  | { readonly kind: 'answer'; readonly id: number; readonly positions: Positions; readonly error: string | null }

/** A method of EngineClient. */
export type Ask =
  | { readonly what: 'positions' | 'committed' | 'handOver' }
  | { readonly what: 'begin'; readonly places: readonly TopicPartition[] }

export type FromThread =
  | { readonly kind: 'store'; readonly id: number; readonly request: StoreRequest }
  | { readonly kind: 'ask'; readonly id: number; readonly ask: Ask }
  | { readonly kind: 'rejects'; readonly rejects: readonly Reject[] }
  | { readonly kind: 'statistics'; readonly statistics: ConnectorStatistics }
  | { readonly kind: 'log'; readonly level: 'I' | 'W' | 'E' | 'C'; readonly logger: string; readonly message: string }
  /** The request has been carried out. */
  | { readonly kind: 'done'; readonly what: 'paused' | 'stopped' }
