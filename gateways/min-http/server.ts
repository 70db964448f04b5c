// Starts the health-check server on its own thread, so that it responds while the main thread is busy.

import { Worker } from 'node:worker_threads'
import { NetworkError } from '../../engine/base/errors.js'
import type { BindAddress } from '../common/bind-address.js'
import type { TlsKeys } from '../common/tls.js'
import { healthStates, healthWord } from './health-server.js'
import type {
  HealthLimit,
  HealthMetrics,
  HealthMetricsRequest,
  HealthThreadData,
  HealthThreadReply,
  HealthTls,
} from './worker.js'

export interface MinHttpGateway {
  readonly address: BindAddress
  /** Whether health checks return 200. Before the first call the server counts as starting. */
  setHealth(healthy: boolean): void
  /** Connections per address; 0 or less: no limit. */
  limitAddresses(perAddressMax: number): void
  close(): Promise<void>
}

/** The thread runs one small server. */
const resourceLimits = { maxOldGenerationSizeMb: 32, maxYoungGenerationSizeMb: 4 }

/**
 * `metrics` returns the text, or null when metrics are off. Only the main thread can provide it, so requests wait
 * for it.
 */
export async function openMinHttpGateway(
  bindTo: BindAddress,
  metrics: () => Promise<HealthMetrics['metrics']>,
  { tls = null, perAddressMax = 0 }: { readonly tls?: TlsKeys | null; readonly perAddressMax?: number } = {},
): Promise<MinHttpGateway> {
  const flag = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT))
  Atomics.store(flag, healthWord, healthStates.starting)
  const data: HealthThreadData = { bindTo, flag, tls: tls?.options ?? null, perAddressMax }
  const worker = new Worker(new URL('./worker.js', import.meta.url), { workerData: data, resourceLimits, execArgv: [] })
  const address = await firstReply(worker)
  worker.on('message', (request: HealthMetricsRequest) => {
    void metrics().then((text) => worker.postMessage({ id: request.id, metrics: text } satisfies HealthMetrics))
  })
  tls?.onChange((changed) => worker.postMessage({ tls: changed } satisfies HealthTls))
  return {
    address,
    setHealth: (healthy) => Atomics.store(flag, healthWord, healthy ? healthStates.healthy : healthStates.unhealthy),
    limitAddresses: (max) => worker.postMessage({ perAddressMax: max } satisfies HealthLimit),
    close: async () => {
      await worker.terminate()
    },
  }
}

function firstReply(worker: Worker): Promise<BindAddress> {
  return new Promise((resolve, reject) => {
    worker.once('error', reject)
    worker.once('message', (reply: HealthThreadReply) => {
      worker.off('error', reject)
      if ('address' in reply) resolve(reply.address)
      else void worker.terminate().then(() => reject(new NetworkError(reply.failure)))
    })
  })
}
