// Collects the metrics of the engine from shared memory on request. The cost does not depend on the number of tables.

import type { EngineMetrics } from '../api/engine.js'
import { allocationCounts, createAllocator } from '../memory/allocator.js'
import { budgets } from '../memory/budgets.js'
import { commitSeconds, type MetricName, metricOf, metrics } from '../memory/metrics.js'
import { cacheCounts } from '../storage/cache/chunk-slots.js'
import { threadIds } from '../threads/wake.js'
import { writeRefusal } from '../threads/write-guard.js'
import type { LocalEngineOptions } from './local-options.js'

/** `queries`: number of running queries. */
export function engineMetrics(
  { memory, view, cacheAddress }: Pick<LocalEngineOptions, 'memory' | 'view' | 'cacheAddress'>,
  queries: number,
): EngineMetrics {
  const allocator = createAllocator(memory, threadIds.main)
  const counts = Object.fromEntries(
    Object.keys(metrics).map((name) => [name, metricOf(memory, name as MetricName)]),
  ) as Record<MetricName, number>
  const byBudget = Object.fromEntries(
    Object.entries(budgets).map(([name, budget]) => [
      name,
      { used: allocator.used(budget), limit: allocator.limit(budget) },
    ]),
  ) as unknown as EngineMetrics['memory']
  return {
    counts,
    writesRefused: writeRefusal(memory)?.message ?? null,
    commitSeconds: commitSeconds(memory),
    memory: byBudget,
    ...allocationCounts(memory),
    cache: cacheCounts(memory, cacheAddress),
    ...{ tables: view.count, queries, readers: view.readers, readerLeaks: view.leaks },
  }
}
