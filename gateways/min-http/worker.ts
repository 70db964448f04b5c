// Thread of the health-check server: listens, reports its address or failure to the main thread, and asks it for
// metrics.

import type { Server as HttpsServer } from 'node:https'
import { parentPort, workerData } from 'node:worker_threads'
import type { BindAddress } from '../common/bind-address.js'
import { listen } from '../common/listen.js'
import type { TlsServerOptions } from '../common/tls.js'
import { healthServer } from './health-server.js'

export interface HealthThreadData {
  readonly bindTo: BindAddress
  readonly flag: Int32Array
  /** Null: plain HTTP. */
  readonly tls: TlsServerOptions | null
  /** Connections per address; 0 or less: no limit. */
  readonly perAddressMax: number
}

/** Message: a new limit. */
export interface HealthLimit {
  readonly perAddressMax: number
}

/** Message: a new certificate. */
export interface HealthTls {
  readonly tls: TlsServerOptions
}

export type HealthThreadReply = { readonly address: BindAddress } | { readonly failure: string }

export interface HealthMetricsRequest {
  readonly id: number
}

export interface HealthMetrics {
  readonly id: number
  /** Null: metrics are off. */
  readonly metrics: { readonly contentType: string; readonly text: string } | null
}

const { bindTo, flag, tls, perAddressMax } = workerData as HealthThreadData
const reply = (message: HealthThreadReply | HealthMetricsRequest): void => parentPort?.postMessage(message)
const waiting = new Map<number, (metrics: HealthMetrics['metrics']) => void>()
let lastId = 0
const { server, limitAddresses } = healthServer(flag, requestMetrics, tls)
limitAddresses(perAddressMax)

parentPort?.on('message', (message: HealthMetrics | HealthTls | HealthLimit) => {
  if ('perAddressMax' in message) {
    limitAddresses(message.perAddressMax)
    return
  }
  if ('tls' in message) {
    if ('setSecureContext' in server) (server as HttpsServer).setSecureContext(message.tls)
    return
  }
  waiting.get(message.id)?.(message.metrics)
  waiting.delete(message.id)
})

function requestMetrics(): Promise<HealthMetrics['metrics']> {
  lastId++
  const id = lastId
  return new Promise((resolve) => {
    waiting.set(id, resolve)
    reply({ id })
  })
}

listen(server, bindTo).then(
  (address) => reply({ address }),
  (error: Error) => reply({ failure: error.message }),
)
