// Statistics of a connector: plain numbers for sys.connectors, sys.connector_partitions and the metrics.

export type ConnectorState = 'starting' | 'running' | 'waiting' | 'retrying' | 'paused' | 'failed' | 'stopped'

export interface PartitionStatistics {
  readonly topic: string
  readonly partition: number
  readonly assigned: boolean
  /** -1: nothing. */
  readonly storedOffset: number
  /** Last known end of the partition; -1: unknown. */
  readonly highWatermark: number
}

export interface ConnectorStatistics {
  readonly state: ConnectorState
  readonly records: number
  readonly rows: number
  readonly bytes: number
  readonly rejected: number
  readonly rowsPerSecond: number
  readonly retries: number
  readonly lastError: string
  /** Microseconds; 0: never. */
  readonly lastErrorMicros: number
  readonly partitions: readonly PartitionStatistics[]
}

export const noStatistics: ConnectorStatistics = {
  state: 'starting',
  records: 0,
  rows: 0,
  bytes: 0,
  rejected: 0,
  rowsPerSecond: 0,
  retries: 0,
  lastError: '',
  lastErrorMicros: 0,
  partitions: [],
}

/** Records of the partition that are not stored; 0 while its end is unknown. */
export function lagOf({ storedOffset, highWatermark }: PartitionStatistics): number {
  return Math.max(0, highWatermark - storedOffset - 1)
}

const samples = 10

/** Rows per second over the last ten seconds. */
export class Rate {
  readonly #samples: { readonly ms: number; readonly total: number }[] = []

  /** Call about once a second. */
  sample(ms: number, total: number): void {
    this.#samples.push({ ms, total })
    if (this.#samples.length > samples) this.#samples.shift()
  }

  get perSecond(): number {
    const first = this.#samples[0]
    const last = this.#samples.at(-1)
    if (first === undefined || last === undefined || last.ms === first.ms) return 0
    return ((last.total - first.total) * 1000) / (last.ms - first.ms)
  }
}
