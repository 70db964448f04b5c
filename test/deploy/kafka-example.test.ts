// Goal: the example of docs/kafka.md works as far as it can be tested without containers: its settings exist, the
// messages of its producer become rows, and the queries of its dashboard are valid for the table of these rows.

import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { RecordReader } from '../../connectors/kafka/record-reader.js'
import { connectorRelations } from '../../connectors/kafka/relations.js'
import { kafkaOptions } from '../../deploy/kafka-options.js'
import { loadSettings } from '../../deploy/settings/settings.js'
import { allRights } from '../../engine/base/rights.js'
import { nativeDialect } from '../../engine/sql/dialect.js'
import { repositoryRoot } from '../support/docs/source-tree.js'
import { InlineEngine } from '../support/inline-engine.js'
import { createFaultyDisk } from '../support/simulator/faulty-files.js'

const folder = join(repositoryRoot, 'deploy/kafka')
const compose = readFileSync(join(folder, 'compose.yaml'), 'utf8')

function exampleOptions() {
  const environment = Object.fromEntries(
    [...compose.matchAll(/^ +(PENSTOCK_\w+): (\S+)$/gm)].map(([, name = '', value = '']) => [name, value]),
  )
  const loaded = loadSettings({ file: null, environment, assignments: [] })
  expect(loaded.warnings).toEqual([])
  return kafkaOptions(loaded)
}

function producedLines(): string {
  const [options] = exampleOptions()
  const text = execFileSync('sh', [join(folder, 'readings.sh'), '20'], { encoding: 'utf8' })
  const records = text
    .trim()
    .split('\n')
    .map((value, index) => ({ key: null, value: Buffer.from(value), offset: String(index), timestamp: '0' }))
  if (options === undefined) throw new Error('the example has a connector')
  const block = new RecordReader(options.mapping, null).read({ topic: 'readings', partition: 0 }, records, 0, new Set())
  expect(block.bad.size).toBe(0)
  return Buffer.from(block.lines).toString()
}

test('the connector reads what the producer sends into the table of the dashboard', async () => {
  const disk = createFaultyDisk(1)
  disk.files.makeDirectory('/db')
  const host = new InlineEngine({ files: disk.files })
  for (const relation of connectorRelations([])) host.engine.relation(relation)
  const blocks = [Buffer.from(producedLines())]
  const request = { blocks, precision: 'n', atomic: true, skipBadLines: false, connectionId: 0 } as const
  const receipt = await host.until(host.engine.lines(request).receipt)
  expect(receipt).toMatchObject({ rows: 20, error: null })

  const { panels } = JSON.parse(readFileSync(join(folder, 'dashboard.json'), 'utf8')) as {
    panels: { targets: { rawSql: string }[] }[]
  }
  expect(panels.length).toBe(6)
  const session = {
    user: 'admin',
    protocol: 'internal',
    dialect: nativeDialect,
    readOnly: true,
    rights: allRights,
  } as const
  for (const { targets } of panels) {
    const [target] = targets
    const sql = (target?.rawSql ?? '')
      .replace('$__timeFilter(timestamp)', "timestamp BETWEEN '2024-01-01T00:00:00Z' AND '2024-01-02T00:00:00Z'")
      .replace('$__interval', '10s')
    expect(host.engine.validate(sql, session).columns?.length, sql).toBeGreaterThan(0)
  }
})

test('both images of the broker are the same, and the producer sends to the topic of the connector', () => {
  const [options] = exampleOptions()
  expect(new Set([...compose.matchAll(/image: (apache\/kafka\S+)/g)].map(([, image]) => image)).size).toBe(1)
  expect(compose).toContain(`--topic ${options?.client.topics[0]}"`)
  expect(compose).toContain(`--bootstrap-server ${options?.client.brokers[0]} `)
})
