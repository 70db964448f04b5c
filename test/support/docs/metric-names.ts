// Lists the metrics of gateways, engine and alerts of a running server, read from the tables of metrics. Those of
// connectors, telemetry and the object store are not included.

import { ServerAlerts } from '../../../deploy/alerts.js'
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
  return [...gatewayMetrics(gatewayCounters(), registry), ...engineMetrics(engine, () => 0), ...alerts.metrics]
}

export function metricNames(): string[] {
  return allMetrics().map(({ name }) => name)
}
