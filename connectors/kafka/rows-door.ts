// The connector's way to the engine, seen from the connector's thread: host.ts answers on the main thread.

import type { TopicPartition } from './consumer.js'

/** Lines of consecutive records of a partition, stored as one transaction together with the offset. */
export interface StoreRequest extends TopicPartition {
  /** Offset that is stored of the partition when these rows are: -1 for none. */
  readonly previous: number
  /** Last offset that the rows cover. */
  readonly offset: number
  readonly lines: Uint8Array
  readonly precision: 'n' | 'u' | 'ms' | 's'
}

export type StoreResult =
  | { readonly kind: 'stored'; readonly rows: number }
  /** Nothing is stored: these lines, counted from 1, cannot be. */
  | { readonly kind: 'bad'; readonly lines: readonly { readonly line: number; readonly message: string; readonly table: string }[] } // biome-ignore format: one alternative a line
  /** Nothing is stored: another offset than `previous` is. */
  | { readonly kind: 'astray'; readonly stored: number }
  /** Nothing is stored now; later it may be. */
  | { readonly kind: 'refused'; readonly message: string; readonly tooLarge: boolean }

export interface Reject extends TopicPartition {
  readonly offset: number
  readonly table: string
  readonly reason: string
}

export interface RowsDoor {
  /** How far each partition is stored. */
  positions(): Promise<readonly (TopicPartition & { readonly offset: number })[]>
  store(request: StoreRequest): Promise<StoreResult>
  /** For sys.rejects. */
  rejects(rejects: readonly Reject[]): void
}
