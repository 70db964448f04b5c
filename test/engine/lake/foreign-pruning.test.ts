// Goal: a query with an IN list skips those files of an Iceberg table that can contain none of the listed values, by the
// bounds and partitions of the files. The list is prepared once for the query (sorted, or hashed to Iceberg's buckets) and
// not read again for each file. Method: the test compares every value with the bounds, and counts reads of the list.

import { expect, test } from 'vitest'
import { bucketOf } from '../../../engine/lake/bucket-transform.js'
import type { ForeignDataFile } from '../../../engine/lake/foreign-manifests.js'
import type { ForeignMetadata, TableField } from '../../../engine/lake/foreign-metadata.js'
import { fieldTests, mayHaveRows, mayListRows } from '../../../engine/lake/foreign-pruning.js'
import { dataType } from '../../../engine/types/column-types.js'
import { intBound } from '../../support/lake/iceberg-table.js'

const field = (foreign: string): TableField => ({
  ...{ id: 1, name: 'id', foreign, initial: null, paths: null, shape: null },
  type: dataType(foreign === 'string' ? 'VARCHAR' : foreign === 'long' ? 'LONG' : 'DOUBLE'),
})

function metadataOf(foreign: string, ...transforms: readonly string[]): ForeignMetadata {
  const spec = transforms.map((transform) => ({ name: transform, sourceId: 1, transform }))
  return {
    location: '/t',
    fields: [field(foreign)],
    specs: new Map([[0, spec]]),
    leftOut: [],
    fieldOf: () => null,
    snapshot: null,
  }
}

const file: ForeignDataFile = {
  content: 'data',
  ...{ path: '/t/a', format: 'PARQUET', specId: 0, partition: [], sequenceNumber: 1n, rows: 1 },
  ...{ bytes: 1, lowerBounds: new Map(), upperBounds: new Map(), dataFile: null, range: null },
  ...{ equalityIds: [], nullIds: new Set() },
}

/** The list, and how many of its elements were read. */
function counted<Value>(values: readonly Value[]): { readonly list: readonly Value[]; reads(): number } {
  let reads = 0
  const list = new Proxy(values, {
    get(target, key, receiver) {
      if (typeof key === 'string' && /^\d+$/.test(key)) reads++
      return Reflect.get(target, key, receiver)
    },
  })
  return { list, reads: () => reads }
}

const text = (value: number): Buffer => Buffer.from(`device ${String(value).padStart(4, '0')}`)
const listed = Array.from({ length: 100 }, (_, index) => (index * 37) % 1000)

test('files by the bounds of texts', () => {
  const metadata = metadataOf('string')
  const { list, reads } = counted(listed.map(text))
  const tests = fieldTests(metadata.fields, [{ column: 0, name: 'in', values: list }])
  const before = reads()
  for (let from = 0; from < 1000; from += 3) {
    for (const width of [0, 1, 8]) {
      const [lowerBounds, upperBounds] = [new Map([[1, text(from)]]), new Map([[1, text(from + width)]])]
      const wanted = listed.some((value) => from <= value && value <= from + width)
      expect(mayHaveRows(metadata, tests, { ...file, lowerBounds, upperBounds })).toBe(wanted)
    }
  }
  expect(reads()).toBe(before)
})

test('files and manifests by buckets', () => {
  const metadata = metadataOf('long', 'bucket[1000]', 'bucket[7]')
  const some = listed.slice(0, 3).map(BigInt)
  const buckets = [1000, 7].map((count) => some.map((value) => bucketOf('long', value, count) ?? -1))
  const { list, reads } = counted(some)
  const tests = fieldTests(metadata.fields, [{ column: 0, name: 'in', values: list }])
  const own = buckets.map(([first = -1]) => first)
  expect(mayHaveRows(metadata, tests, { ...file, partition: own })).toBe(true)
  const before = reads()
  const isIn = (which: number, low: number, high: number): boolean =>
    buckets[which]?.some((bucket) => low <= bucket && bucket <= high) === true
  for (let first = 0; first < 1000; first++) {
    const second = first % 7
    const wanted = isIn(0, first, first) && isIn(1, second, second)
    expect(mayHaveRows(metadata, tests, { ...file, partition: [first, second] })).toBe(wanted)
    const partitions = [{ lowest: intBound(first), highest: intBound(first + 9), hasNull: false }]
    const manifest = { path: '/t/m', specId: 0, isOfDeletes: false, sequenceNumber: 1n, partitions }
    expect(mayListRows(metadata, tests, manifest)).toBe(isIn(0, first, first + 9))
  }
  expect(reads()).toBe(before)
})

test('a value whose bucket is unknown may be in any bucket', () => {
  const metadata = metadataOf('double', 'bucket[16]')
  for (const name of ['=', 'in']) {
    const tests = fieldTests(metadata.fields, [{ column: 0, name, values: [1.5] }])
    expect(mayHaveRows(metadata, tests, { ...file, partition: [3] })).toBe(true)
  }
})
