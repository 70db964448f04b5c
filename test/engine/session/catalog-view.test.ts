// Goal: the main thread reports to the writer exactly those table versions (immutable lists of files and memtables)
// that are in use, by queries or as the newest: with every new version, and when the last query of a version ends.

import { describe, expect, test } from 'vitest'
import { publishSequenceAddress } from '../../../engine/memory/layout.js'
import { createSharedMemory } from '../../../engine/memory/shared-memory.js'
import { CatalogView } from '../../../engine/session/catalog-view.js'
import type { ToWriter } from '../../../engine/storage/jobs/messages.js'
import type { TableSchema, TableVersion } from '../../../engine/storage/schema/schema.js'

const memtable = 5 * 1024 * 1024

function schema(id: number, name: string): TableSchema {
  return {
    id,
    name,
    version: 1,
    columns: [],
    timestampId: -1,
    partitionBy: 'NONE',
    bypassWal: false,
    dedupKeys: [],
    ttl: null,
    maxUncommittedRows: 0,
    o3MaxLagMicros: 0,
    createdMicros: 0,
  }
}

function version(id: number, number: number, name = `t${id}`): TableVersion {
  return {
    version: number,
    schema: schema(id, name),
    parts: [],
    memtables: [{ id: 1, address: memtable }],
    dictionaries: [],
  }
}

function newView() {
  const memory = createSharedMemory(8 * 1024 * 1024)
  const released: [number, number, readonly number[]][] = []
  const report = (message: Extract<ToWriter, { kind: 'released' | 'shown' }>): void => {
    if (message.kind === 'released') released.push([message.tableId, message.below, message.held])
  }
  const view = new CatalogView(memory, report, { nowMicros: () => 0 })
  return { memory, released, view }
}

describe('catalog view', () => {
  test('names match without case and follow a rename', () => {
    const { view } = newView()
    view.publish([version(1, 1, 'Trades')], [])
    expect(view.table('tRADES')?.schema.id).toBe(1)
    view.publish([version(1, 2, 'deals')], [])
    expect(view.table('trades')).toBeUndefined()
    expect(view.table('deals')?.version).toBe(2)
  })

  test('a held version is released when its last query ends', () => {
    const { released, view } = newView()
    view.publish([version(1, 1)], [])
    const first = view.hold([1])
    const second = view.hold([1])
    view.publish([version(1, 2)], [])
    expect(released.at(-1)).toEqual([1, 2, [1]])
    first.release()
    expect(released.at(-1)).toEqual([1, 2, [1]])
    second.release()
    expect(released.at(-1)).toEqual([1, 2, []])
  })

  test('versions behind one that is held for long are not held', () => {
    const { released, view } = newView()
    view.publish([version(1, 1)], [])
    const snapshot = view.holdSnapshot()
    view.publish([version(1, 2)], [])
    const later = view.hold([1])
    view.publish([version(1, 3)], [])
    expect(released.at(-1)).toEqual([1, 3, [1, 2]])
    later.release()
    expect(released.at(-1)).toEqual([1, 3, [1]])
    const again = view.hold([1], snapshot)
    expect(again.snapshots[0]?.version.version).toBe(1)
    snapshot.release()
    expect(released.at(-1)).toEqual([1, 3, [1]])
    again.release()
    expect(released.at(-1)).toEqual([1, 3, []])
  })

  test('a dropped table is gone for names and released behind its last query', () => {
    const { released, view } = newView()
    view.publish([version(1, 3)], [])
    const held = view.hold([1])
    view.publish([], [1])
    expect(view.table('t1')).toBeUndefined()
    expect(released.at(-1)).toEqual([1, 4, [3]])
    held.release()
    expect(released.at(-1)).toEqual([1, 4, []])
  })

  test('snapshots carry the rows that were visible', () => {
    const { memory, view } = newView()
    view.publish([version(1, 1)], [])
    Atomics.store(memory.u32, memtable >>> 2, 7)
    expect(view.hold([1]).snapshots[0]?.visibleRows).toEqual([7])
    expect(Atomics.load(memory.u32, publishSequenceAddress >>> 2)).toBe(0)
  })
})
