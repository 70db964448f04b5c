// Defines the SQL table function memory_metrics(): bytes by tag. The tags are totals, the purposes of shared memory,
// and the JavaScript heap.

import type { Engine, VirtualRelation } from '../../engine/engine.js'

export function memoryRelation(engine: Pick<Engine, 'metrics'>): VirtualRelation {
  return {
    name: 'memory_metrics',
    columns: [
      { name: 'memory_tag', type: 'STRING' },
      { name: 'bytes', type: 'LONG' },
    ],
    rows: () => {
      const { memory } = engine.metrics()
      const { heapUsed, heapTotal, rss } = process.memoryUsage()
      const shared = Object.values(memory)
      const tags: Record<string, number> = {
        TOTAL_USED: shared.reduce((sum, { used }) => sum + used, heapUsed),
        RSS_MEM_USED: rss,
        SHARED_MEM_LIMIT: shared.reduce((sum, { limit }) => sum + limit, 0),
        NATIVE_DEFAULT: memory.ingest.used + memory.memtables.used + memory.queries.used,
        NATIVE_INGEST: memory.ingest.used,
        NATIVE_MEMTABLE: memory.memtables.used,
        NATIVE_QUERY: memory.queries.used,
        NATIVE_O3: memory.flush.used,
        NATIVE_MMAP: memory.cache.used,
        JVM_HEAP_USED: heapUsed,
        JVM_HEAP_COMMITTED: heapTotal,
      }
      return Object.entries(tags).map(([tag, bytes]) => [tag, BigInt(Math.round(bytes))])
    },
  }
}
