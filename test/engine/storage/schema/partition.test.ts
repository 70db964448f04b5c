// Goal: for every partition unit, also before 1970, the names of partitions agree with JavaScript's Date (names of
// weeks with examples of ISO 8601). Every timestamp lies within the bounds of its partition, and timestamps just
// outside of the bounds have other partition names.

import fc from 'fast-check'
import { expect, test } from 'vitest'
import { partitionFinder, partitionNamer } from '../../../../engine/storage/schema/partition.js'
import type { PartitionUnit, TableSchema } from '../../../../engine/storage/schema/schema.js'
import { dataType } from '../../../../engine/types/column-types.js'

function schemaOf(partitionBy: PartitionUnit, nanos = false): TableSchema {
  const type = dataType(nanos ? 'TIMESTAMP_NS' : 'TIMESTAMP')
  return {
    ...{ id: 1, name: 't', version: 1, timestampId: 0, partitionBy, bypassWal: false, dedupKeys: [], ttl: null },
    ...{ maxUncommittedRows: 1, o3MaxLagMicros: 0, createdMicros: 0 },
    columns: [{ id: 0, name: 'ts', type, dropped: false }],
  }
}

const micros = (text: string) => BigInt(Date.parse(text)) * 1000n

test('names', () => {
  const at = micros('2024-03-14T05:06:07Z')
  expect(partitionNamer(schemaOf('HOUR'))(at)).toBe('2024-03-14T05')
  expect(partitionNamer(schemaOf('DAY'))(at)).toBe('2024-03-14')
  expect(partitionNamer(schemaOf('WEEK'))(at)).toBe('2024-W11')
  expect(partitionNamer(schemaOf('MONTH'))(at)).toBe('2024-03')
  expect(partitionNamer(schemaOf('YEAR'))(at)).toBe('2024')
  expect(partitionNamer(schemaOf('NONE'))(at)).toBe('default')
  expect(partitionNamer(schemaOf('DAY', true))(at * 1000n + 999n)).toBe('2024-03-14')
  expect(partitionNamer(schemaOf('WEEK'))(micros('2021-01-03T23:59:59Z'))).toBe('2020-W53')
  expect(partitionNamer(schemaOf('WEEK'))(micros('2024-12-30T00:00:00Z'))).toBe('2025-W01')
  expect(partitionNamer(schemaOf('DAY'))(-1n)).toBe('1969-12-31')
})

test('every timestamp lies within its partition, and its neighbours outside have other names', () => {
  const units: PartitionUnit[] = ['HOUR', 'DAY', 'WEEK', 'MONTH', 'YEAR']
  fc.assert(
    fc.property(
      fc.constantFrom(...units),
      fc.boolean(),
      fc.bigInt(-(2n ** 63n), 2n ** 63n - 2n),
      fc.integer({ min: -60_000_000_000_000, max: 200_000_000_000_000 }),
      (unit, nanos, any, drawn) => {
        // Nanoseconds reach from 1677 to 2262.
        const ms = nanos ? drawn % 9_000_000_000_000 : drawn
        const ts = BigInt(ms) * (nanos ? 1_000_000n : 1000n)
        const find = partitionFinder(schemaOf(unit, nanos))
        for (const one of [any, ts]) {
          const { name, from, to } = find(one)
          expect(from <= one && one < to).toBe(true)
          expect(find(from).name).toBe(name)
          expect(find(to - 1n).name).toBe(name)
          if (to < 2n ** 63n - 1n) expect(find(to).name).not.toBe(name)
          if (from > -(2n ** 63n)) expect(find(from - 1n).name).not.toBe(name)
        }
        const date = new Date(ms).toISOString()
        if (date.startsWith('+') || date.startsWith('-')) return
        const names: Partial<Record<PartitionUnit, string>> = {
          HOUR: date.slice(0, 13),
          DAY: date.slice(0, 10),
          MONTH: date.slice(0, 7),
          YEAR: date.slice(0, 4),
        }
        if (names[unit] !== undefined) expect(partitionNamer(schemaOf(unit, nanos))(ts)).toBe(names[unit])
      },
    ),
    { numRuns: 500 },
  )
})
