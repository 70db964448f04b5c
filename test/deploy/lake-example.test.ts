// Goal: the example of three servers over one Iceberg table works as far as it can be tested without containers: its
// settings exist and fit together, and its images have the versions that are tested. Method: records of its producers
// are stored in three servers with the table of the example; one table in the catalog must then have the rows of all
// three.

import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { RecordReader } from '../../connectors/kafka/record-reader.js'
import { kafkaOptions } from '../../deploy/kafka-options.js'
import { openLake } from '../../deploy/lake.js'
import { loadSettings } from '../../deploy/settings/settings.js'
import { repositoryRoot } from '../support/docs/source-tree.js'
import { openTestCatalog } from '../support/lake/rest-catalog.js'
import { readShared } from '../support/lake/shared-lake.js'
import { TestServer } from '../support/server.js'

const textOf = (path: string): string => readFileSync(join(repositoryRoot, path), 'utf8')
const compose = textOf('deploy/lake/compose.yaml')
const folder = mkdtempSync(join(tmpdir(), 'penstock-lake-example-'))
const catalog = await openTestCatalog()
const settings = [
  ...[`object.store.url=file://${folder}`, `lake.catalog.url=${catalog.url}`, 'lake.commit.lag=1s'],
  ...[`lake.catalog.client.id=${catalog.client.id}`, `lake.catalog.client.secret=${catalog.client.secret}`],
  'telemetry.enabled=false',
]
const servers = [1, 2, 3].map(() => new TestServer(settings))

afterAll(async () => {
  for (const server of servers) await server.remove()
  await catalog.close()
  rmSync(folder, { recursive: true, force: true })
})

/** Of each server: they have the same. */
function loadedSettings() {
  const environment = Object.fromEntries(
    [...compose.matchAll(/^ {2}(PENSTOCK_\w+): "?([^\s"]+)"?$/gm)].map(([, name = '', value = '']) => [name, value]),
  )
  return loadSettings({ file: null, environment, assignments: [] })
}

function connector() {
  return kafkaOptions(loadedSettings())[0] ?? expect.fail('the servers have no connector')
}

test('the settings of the servers exist, and they divide one topic', () => {
  const loaded = loadedSettings()
  expect(loaded.warnings).toEqual([])
  expect(compose.match(/<<: \*server\n/g)?.length).toBe(3)
  expect(connector()).toMatchObject({
    offsetsInLake: true,
    client: { topics: ['readings'], groupId: 'readings' },
  })
  const { engine } = openLake(loaded.values, folder)
  expect(compose).toContain(`iceberg.rest-catalog.uri=${engine.catalog?.url}\n`)
  expect(compose).toContain(`s3.endpoint=${loaded.values['object.store.s3.endpoint']}\n`)
  expect(compose).toContain('--topic readings"')
})

test('images have versions, those of the tests', () => {
  const images = new Set([...compose.matchAll(/image: (\S+)/g)].map(([, image = '']) => image))
  const { version } = JSON.parse(textOf('package.json')) as { version: string }
  const [gateway] = /versitygw@(v[\d.]+)/.exec(textOf('.ci/s3.sh'))?.slice(1) ?? []
  const [iceberg] =
    /<artifactId>iceberg-open-api<\/artifactId><version>([\d.]+)</
      .exec(textOf('test/interop/iceberg-catalog.xml'))
      ?.slice(1) ?? []
  const [kafka] = /image: (apache\/kafka\S+)/.exec(textOf('deploy/kafka/compose.yaml'))?.slice(1) ?? []
  expect([...images].filter((image) => !image.startsWith('trinodb/trino:4')).toSorted()).toEqual(
    [`penstock:${version}`, `versity/versitygw:${gateway}`, `apache/iceberg-rest-fixture:${iceberg}`, kafka].toSorted(),
  )
  expect(images.size).toBe(5)
})

test('the catalog has time to start before its health check counts', () => {
  const [, catalogOf = ''] = /^ {2}catalog:\n((?: {4}.*\n)+)/m.exec(compose) ?? []
  expect(catalogOf).toContain('    healthcheck: { start_period: 90s }\n')
})

test('what three servers receive is in one table', async () => {
  const [create] = /'(CREATE TABLE [^']+)'/.exec(textOf('deploy/lake/create-tables.sh'))?.slice(1) ?? []
  for (const [index, server] of servers.entries()) {
    await server.start()
    const { mapping } = connector()
    const text = execFileSync('sh', [join(repositoryRoot, 'deploy/kafka/readings.sh'), '20'], { encoding: 'utf8' })
    const records = text
      .trim()
      .split('\n')
      .map((value, at) => ({ key: null, value: Buffer.from(value), offset: String(at), timestamp: '0' }))
    const source = { topic: 'readings', partition: index }
    const { lines, bad } = new RecordReader(mapping, null).read(source, records, 0, new Set())
    expect(bad.size).toBe(0)
    for (let time = 0; time < 2; time++) await server.rows(create ?? expect.fail('no statement'))
    expect((await server.write(Buffer.from(lines))).status).toBe(204)
    expect(await server.rows('select count(), count(site), count(temperature) from readings')).toEqual([[20, 20, 20]])
    const columns = (await server.rows("select column from table_columns('readings')")).map(([name]) => name)
    const places = ['kafka_topic', 'kafka_partition', 'kafka_offset']
    expect(columns).toEqual(['device', 'site', 'temperature', 'pressure', 'running', ...places, 'timestamp'])
  }
  const shared = async (): Promise<unknown> => {
    const metadata = catalog.tables.get('qdb.readings')
    return metadata === undefined
      ? null
      : (await readShared(metadata, 'count(*), count(distinct site), count(distinct kafka_partition)'))[0]
  }
  let found: unknown = null
  for (let attempt = 0; attempt < 300 && String(found) !== '60,4,3'; attempt++) {
    await new Promise((later) => setTimeout(later, 200))
    found = await shared()
  }
  expect(found).toEqual(['60', '4', '3'])
})
