// The thread of health checks: listens and tells its parent where, or why not.

import { parentPort, workerData } from 'node:worker_threads'
import type { BindAddress } from '../common/bind-address.js'
import { listen } from '../common/listen.js'
import { healthServer } from './health-server.js'

export interface HealthThreadData {
  readonly bindTo: BindAddress
  readonly flag: Int32Array
}

export type HealthThreadReply = { readonly address: BindAddress } | { readonly failure: string }

const { bindTo, flag } = workerData as HealthThreadData
const reply = (message: HealthThreadReply): void => parentPort?.postMessage(message)

listen(healthServer(flag), bindTo).then(
  (address) => reply({ address }),
  (error: Error) => reply({ failure: error.message }),
)
