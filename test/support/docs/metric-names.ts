// Lists the metrics of a running server, read from the tables of metrics, without those of the process and Node.js.

import { connectorMetrics } from '../../../connectors/kafka/relations.js'
import { ServerAlerts } from '../../../deploy/alerts.js'
import { lakeMetrics } from '../../../deploy/lake.js'
import { storeMetrics, sweepMetrics } from '../../../deploy/object-store.js'
import { Telemetry } from '../../../deploy/telemetry.js'
import { systemClock } from '../../../engine/base/clock.js'
import { ConnectionRegistry } from '../../../gateways/common/connections.js'
import { engineMetrics } from '../../../gateways/common/engine-metrics.js'
import { gatewayCounters, type Metric } from '../../../gateways/common/metric.js'
import { gatewayMetrics } from '../../../gateways/common/metrics-table.js'
import { fakeEngine } from '../fake-engine.js'

export function allMetrics(): Metric[] {
  const registry = new ConnectionRegistry(systemClock, 1)
  const engine = fakeEngine()
  const alerts = new ServerAlerts(engine, { path: '/dev/null/none', clock: systemClock, log: () => {} })
  alerts.close()
  const noSettings = (): never => {
    throw new Error('metrics do not depend on settings')
  }
  const telemetry = new Telemetry(noSettings, systemClock, () => {})
  return [
    ...gatewayMetrics(gatewayCounters(), registry),
    ...engineMetrics(engine, () => 0),
    ...alerts.metrics,
    ...connectorMetrics([]),
    ...storeMetrics(
      () => ({ kind: 'none' }),
      () => null,
    ),
    ...sweepMetrics(() => null),
    ...lakeMetrics(() => null),
    ...telemetry.metrics,
  ]
}

export function metricNames(): string[] {
  return allMetrics().map(({ name }) => name)
}
