// Goal: a table that is also an Iceberg table (LAKE ON) has no snapshot that refers to a missing object, whatever the
// object store does (errors, lost responses, reset connections) and whenever the server is killed during a commit; and
// all rows reach the Iceberg table once the store works again.

import { afterAll, expect, test } from 'vitest'
import { decodeManifest, decodeManifestList, entryStatus } from '../../engine/lake/manifest-files.js'
import { currentSnapshot, partitionOf, type TableMetadata } from '../../engine/lake/table-metadata.js'
import { openS3Service } from '../support/lake/s3-service.js'
import { createRandom } from '../support/random.js'
import { TestServer } from '../support/server.js'

const service = await openS3Service()
const server = new TestServer([
  `object.store.url=s3://${service.bucket}/faulty`,
  `object.store.s3.endpoint=${service.endpoint}`,
  `object.store.access.key.id=${service.accessKeyId}`,
  `object.store.secret.access.key=${service.secretAccessKey}`,
  ...['object.store.retry.time=300ms', 'object.store.timeout=1s', 'object.store.delete.grace=2s', 'lake.commit.lag=1s'],
  'telemetry.enabled=false',
])

afterAll(async () => {
  await server.remove()
  await service.close()
})

const random = createRandom(1)

function contentOf(uri: string): Buffer {
  const key = uri.replace(`s3://${service.bucket}/`, '')
  const found = service.objects.get(key)
  if (found === undefined) throw new Error(`an object is named and not there [uri=${uri}]`)
  return found.content
}

/** Follows the newest version of the metadata to everything that its current snapshot names; returns the rows. */
function rowsNamed(): number {
  const versions = [...service.objects.keys()].flatMap((key) => {
    const [, version] = /\/v(\d+)\.metadata\.json$/.exec(key) ?? []
    return version === undefined ? [] : [{ key, version: Number(version) }]
  })
  const newest = versions.sort((x, y) => y.version - x.version)[0]
  if (newest === undefined) return 0
  const metadata: TableMetadata = JSON.parse(contentOf(`s3://${service.bucket}/${newest.key}`).toString())
  const snapshot = currentSnapshot(metadata)
  if (snapshot === null) return 0
  const live = decodeManifestList(contentOf(snapshot['manifest-list']))
    .flatMap((manifest) => decodeManifest(partitionOf(metadata), manifest, contentOf(manifest.path)))
    .filter(({ status }) => status !== entryStatus.deleted)
  for (const { file } of live) expect(contentOf(file.path).length).toBe(file.bytes)
  return live.reduce((sum, { file }) => sum + file.rows, 0)
}

test('faults and kills leave whole snapshots, and all rows arrive', async () => {
  await server.start()
  await server.rows('create table t (ts timestamp, x long) timestamp(ts) partition by day lake on')
  let rows = 0
  for (let round = 0; round < 6; round++) {
    service.fail = () => {
      if (random.chance(0.1)) return 'reset'
      return random.chance(0.2) ? { status: 503, applied: random.chance(0.5) } : null
    }
    for (let batch = 0; batch < 4; batch++) {
      await server.rows(
        `insert into t select dateadd('m', (x * 13)::int, '2024-01-01'::timestamp), x from long_sequence(500)`,
      )
      rows += 500
      await new Promise((later) => setTimeout(later, 300 + random.next() * 900))
      expect(rowsNamed()).toBeLessThanOrEqual(rows)
      expect(rowsNamed() % 500).toBe(0)
    }
    if (round % 2 === 1) await server.restart('SIGKILL')
  }
  service.fail = null
  for (let attempt = 0; rowsNamed() !== rows; attempt++) {
    if (attempt === 600) expect(rowsNamed()).toBe(rows)
    await new Promise((later) => setTimeout(later, 100))
  }
  expect(await server.rows('select count() from t')).toEqual([[rows]])
})
