// Goal: the main thread does not send a table version (the list of a table's files and memtables) to a query thread if
// it is the last one that was sent for this table; the thread reconstructs the messages with all their versions.

import { expect, test } from 'vitest'
import type { RunQuery } from '../../../engine/exec/run/messages.js'
import type { TableVersion } from '../../../engine/storage/schema/schema.js'
import type { ToQueryHost } from '../../../engine/threads/messages.js'
import { ReceivedVersions, type SentToQueryHost, SentVersions } from '../../../engine/threads/version-delta.js'

function version(tableId: number, number: number): TableVersion {
  return { version: number, schema: { id: tableId }, parts: [{ id: number }] } as unknown as TableVersion
}

function run(queryId: number, ...versions: readonly TableVersion[]): RunQuery {
  const snapshots = versions.map((version, index) => ({ version, visibleRows: [queryId, index] }))
  return { kind: 'run', queryId, snapshots } as unknown as RunQuery
}

test('a thread receives each version once, with what changed', () => {
  const [sentVersions, receivedVersions] = [new SentVersions(), new ReceivedVersions()]
  const known = Array.from({ length: 400 }, (_, id) => version(id, 1))
  const [first, second] = [version(1000, 1), version(1000, 2)]
  const [one, other] = known as [TableVersion, TableVersion]
  const messages: ToQueryHost[] = [
    ...[run(1, first), run(2, first, one), run(3, second, one), run(4, first), run(5, second, second)],
    { kind: 'joinFragment', request: run(6, second, other) } as unknown as ToQueryHost,
    { kind: 'dismiss', queryId: 6 },
    // More tables than a thread remembers.
    ...known.map((each, index) => run(10 + index, each, second)),
    run(500, ...known.slice(0, 300)),
    run(501, second, one),
  ]
  for (const message of messages) {
    const sent = structuredClone(sentVersions.sent(message)) as SentToQueryHost
    expect(receivedVersions.whole(sent)).toEqual(message)
  }
  const again = sentVersions.sent(run(600, second, one)) as Extract<SentToQueryHost, { kind: 'run' }>
  expect(again.snapshots.map((snapshot) => snapshot.version)).toEqual([null, null])
})
