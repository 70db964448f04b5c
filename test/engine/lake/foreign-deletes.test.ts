// Goal: each data file of an Iceberg table gets the files that may delete rows of it, by partition, sequence number and
// bounds, and files of the same partition share a list. A table of a stream has as many of both as it has commits.

import { expect, test } from 'vitest'
import { deletesOf, partitionKey } from '../../../engine/lake/foreign-deletes.js'
import type { ForeignDataFile } from '../../../engine/lake/foreign-manifests.js'
import type { ForeignMetadata, PartitionSource, TableField } from '../../../engine/lake/foreign-metadata.js'
import { typeOfForeign } from '../../../engine/lake/foreign-types.js'
import { dataType } from '../../../engine/types/column-types.js'
import { intBound } from '../../support/lake/iceberg-table.js'

function metadataOf(foreign: string, transform: string | null): ForeignMetadata {
  const type = typeOfForeign(foreign) ?? dataType('INT')
  const field: TableField = { id: 1, name: 'id', foreign, type, initial: null, paths: null, shape: null }
  const spec: PartitionSource[] = transform === null ? [] : [{ name: 'id', sourceId: 1, transform }]
  return {
    ...{ location: '/t', fields: [field], specs: new Map([[0, spec]]), leftOut: [], snapshot: null },
    fieldOf: (id) => (id === 1 ? field : null),
  }
}

function file(path: string, sequence: number, more: Partial<ForeignDataFile> = {}): ForeignDataFile {
  return {
    ...{
      content: 'data',
      path,
      format: 'PARQUET',
      specId: 0,
      partition: [],
      sequenceNumber: BigInt(sequence),
      rows: 1,
    },
    ...{ bytes: 1, lowerBounds: new Map(), upperBounds: new Map(), dataFile: null, range: null },
    ...{ equalityIds: [], nullIds: new Set() },
    ...more,
  }
}

const between = (id: number, low: Uint8Array, high: Uint8Array): Partial<ForeignDataFile> => ({
  ...{ lowerBounds: new Map([[id, low]]), upperBounds: new Map([[id, high]]) },
})
const paths = (files: readonly ForeignDataFile[]): string[] => files.map(({ path }) => path)

test('the key of a partition', () => {
  const key = (foreign: string, value: ForeignDataFile['partition'][number], transform = 'identity'): string =>
    partitionKey(metadataOf(foreign, transform), file('a', 1, { partition: [value] }))
  expect(key('long', 5)).toBe(key('long', 5n))
  expect(key('long', 15, 'truncate[5]')).toBe(key('long', 15n, 'truncate[5]'))
  expect(key('timestamp', 1)).toBe(key('timestamp', 86_400_000_000n))
  expect(key('decimal(20, 0)', Buffer.from([0xff, 0xfe]))).toBe(key('decimal(20, 0)', Buffer.from([0xff, 0xff, 0xfe])))
  expect(key('double', Number.NaN)).toBe(key('double', Number.NaN))
  expect(key('double', -0)).not.toBe(key('double', 0))
  expect(key('string', null)).not.toBe(key('string', 'null'))
  expect(key('binary', Buffer.from([1]))).not.toBe(key('binary', Buffer.from([2])))
  expect(key('int', 3, 'bucket[16]')).not.toBe(key('int', 4, 'bucket[16]'))
})

test('files of positions are of the files that their bounds name', () => {
  const names = (low: string, high: string): Partial<ForeignDataFile> => ({
    content: 'positions',
    ...between(2_147_483_546, Buffer.from(low), Buffer.from(high)),
  })
  const found = deletesOf(
    metadataOf('int', null),
    [file('a', 1), file('b', 1), file('c', 9)],
    [
      file('of a', 2, names('a', 'a')),
      file('of a and b', 2, names('a', 'b')),
      file('of any', 3, { content: 'positions' }),
      file('named', 3, { content: 'positions', dataFile: 'b' }),
    ],
  )
  expect(found.map(({ positions }) => paths(positions))).toEqual([
    ['of a', 'of a and b', 'of any'],
    ['named', 'of a and b', 'of any'],
    [],
  ])
})

test('data files share the list of those equality deletes that one of them needs', () => {
  const equality = (low: number, high: number): Partial<ForeignDataFile> => ({
    ...{ content: 'equality', equalityIds: [1], ...between(1, intBound(low), intBound(high)) },
  })
  const data = [
    file('a', 1, between(1, intBound(0), intBound(9))),
    file('b', 2, between(1, intBound(10), intBound(19))),
    file('c', 3, between(1, intBound(0), intBound(9))),
  ]
  const deletes = [
    file('p', 2, equality(5, 5)),
    file('q', 3, equality(12, 30)),
    file('r', 3, equality(40, 50)),
    file('s', 1, equality(0, 9)),
  ]
  const [a, b, c] = deletesOf(metadataOf('int', null), data, deletes).map((one) => one.equality)
  expect(paths(a ?? [])).toEqual(['p', 'q'])
  expect(b).toBe(a)
  expect(c).toEqual([])
})

test('a stream of a commit a minute', () => {
  const count = 3000
  const bounds = between(1, intBound(0), intBound(1_000_000))
  const data = Array.from({ length: count }, (_, index) => file(`d${index}`, index, bounds))
  const deletes = data.map((one, index) =>
    file(`q${index}`, index, { ...bounds, content: 'equality', equalityIds: [1], path: `q${one.path}` }),
  )
  const found = deletesOf(metadataOf('int', null), data, deletes)
  expect(new Set(found.map(({ equality }) => equality)).size).toBe(2)
  expect(found[0]?.equality.length).toBe(count - 1)
  expect(found[count - 1]?.equality.length).toBe(0)
})
