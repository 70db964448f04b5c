// Goal: transactions that create tables at the same time get ids of their own, and each COMMIT stores its tables.

import { expect, test } from 'vitest'
import { dataType } from '../../../../engine/types/column-types.js'
import { createFaultyDisk } from '../../../support/simulator/faulty-files.js'
import { schemaOf } from '../part-support.js'
import { WriterHost } from '../writer-host.js'

test('tables of two transactions have different ids', () => {
  const { files } = createFaultyDisk(1)
  files.makeDirectory('/db')
  files.syncDirectory('/')
  const host = new WriterHost({ files, parts: new Map() })
  host.settle()
  const takeIds = (requestId: number): number => {
    host.writer.receive({ kind: 'tableIds', requestId, count: 2 })
    return host.await(requestId).firstTableId ?? -1
  }
  const ids = [takeIds(101), takeIds(102)].flatMap((first) => [first, first + 1])
  const names = ['a', 'b', 'c', 'd']
  for (const [index, pair] of [names.slice(0, 2), names.slice(2)].entries()) {
    const drafts = pair.map((name, at) => {
      const id = ids[index * 2 + at] as number
      const schema = { ...schemaOf([dataType('LONG')]), id, name }
      return { tableId: id, base: 0, name, schema, emptied: false, truncated: false, read: null }
    })
    host.writer.receive({ kind: 'transaction', requestId: 201 + index, drafts, tables: [] })
    expect(host.await(201 + index).error).toBeNull()
  }
  expect(names.map((name) => host.tableId(name))).toEqual(ids)
})
