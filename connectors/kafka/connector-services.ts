// The services that a Kafka connector gets when it is created. Tests replace the consumer and the engine by fakes.

import type { Clock } from '../../engine/base/clock.js'
import type { Log } from '../../engine/base/log.js'
import type { Consumer } from './consumer.js'
import type { EngineClient } from './engine-client.js'
import type { SchemaRegistry } from './schema-registry.js'

export interface ConnectorServices {
  readonly engine: EngineClient
  readonly consumer: () => Consumer
  readonly registry: SchemaRegistry | null
  readonly log: Log
  readonly clock: Clock
}
