// Collects the metrics of the engine from shared memory on request. The cost does not depend on the number of tables.

import type { EngineFigures } from '../api/engine.js'
import { allocationCounts, createAllocator } from '../memory/allocator.js'
import { budgets } from '../memory/budgets.js'
import { commitSeconds, type Figure, figureOf, figures } from '../memory/figures.js'
import { cacheCounts } from '../storage/cache/chunk-slots.js'
import { threadIds } from '../threads/wake.js'
import { writeRefusal } from '../threads/write-guard.js'
import type { LocalEngineOptions } from './local-options.js'

/** `queries`: number of running queries. */
export function engineFigures(
  { memory, view, cacheAddress }: Pick<LocalEngineOptions, 'memory' | 'view' | 'cacheAddress'>,
  queries: number,
): EngineFigures {
  const allocator = createAllocator(memory, threadIds.main)
  const counts = Object.fromEntries(
    Object.keys(figures).map((name) => [name, figureOf(memory, name as Figure)]),
  ) as Record<Figure, number>
  const byBudget = Object.fromEntries(
    Object.entries(budgets).map(([name, budget]) => [
      name,
      { used: allocator.used(budget), limit: allocator.limit(budget) },
    ]),
  ) as unknown as EngineFigures['memory']
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
