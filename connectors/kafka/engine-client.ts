// The interface through which the thread of a Kafka connector uses the engine, which belongs to the main thread:
// requests are messages to the main thread (messages.ts), where server.ts executes them.

import type { TopicPartition } from './consumer.js'

/** Lines of consecutive records of a partition, stored in one transaction together with the offset. */
export interface StoreRequest extends TopicPartition {
  /** The partition's stored offset before this request: -1 for none. */
  readonly previous: number
  /** Last offset that the rows cover. */
  readonly offset: number
  readonly lines: Uint8Array
  readonly precision: 'n' | 'u' | 'ms' | 's'
}

export type StoreResult =
  | { readonly kind: 'stored'; readonly rows: number }
  /** Nothing is stored, because of these lines, counted from 1. */
  | { readonly kind: 'bad'; readonly lines: readonly { readonly line: number; readonly message: string; readonly table: string }[] } // biome-ignore format: one alternative a line
  /**
   * Nothing is stored: this line, counted from 1, has a fraction in a column that an earlier line of the request
   * creates for whole numbers. Once the rows before it are stored, the column can be widened.
   */
  | { readonly kind: 'split'; readonly line: number }
  /** Nothing is stored, because the stored offset is not `previous`. */
  | { readonly kind: 'astray'; readonly stored: number }
  /** Nothing is stored; a retry may succeed. */
  | { readonly kind: 'refused'; readonly message: string; readonly tooLarge: boolean }

export interface Reject extends TopicPartition {
  readonly offset: number
  readonly table: string
  readonly reason: string
}

export type Positions = readonly (TopicPartition & { readonly offset: number })[]

export interface EngineClient {
  /** Stored offset of each partition. */
  positions(): Promise<Positions>
  /**
   * Makes the stored offsets of the partitions those from which their rows go on in the shared Iceberg table; returns
   * stored offsets. Rejects while the table does not say so.
   */
  begin(places: readonly TopicPartition[]): Promise<Positions>
  /** Commits the stored rows to the Iceberg table, as far as that is possible now. */
  handOver(): Promise<void>
  /** Last offset of each partition whose rows are in the Iceberg table. */
  committed(): Promise<Positions>
  store(request: StoreRequest): Promise<StoreResult>
  /** Reports to sys.rejects. */
  rejects(rejects: readonly Reject[]): void
}
