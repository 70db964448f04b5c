// The names of all metrics in the metric tables, as a running server exposes them.

import { systemClock } from '../../engine/base/clock.js'
import { ConnectionRegistry } from '../../gateways/common/connections.js'
import { engineMetrics } from '../../gateways/common/engine-metrics.js'
import { gatewayCounters, type Metric } from '../../gateways/common/metric.js'
import { gatewayMetrics } from '../../gateways/common/metrics-table.js'
import { fakeEngine } from './fake-engine.js'

export function allMetrics(): Metric[] {
  const registry = new ConnectionRegistry(systemClock, 1)
  return [...gatewayMetrics(gatewayCounters(), registry), ...engineMetrics(fakeEngine(), () => 0)]
}

export function metricNames(): string[] {
  return allMetrics().map(({ name }) => name)
}
