// Goal: clients of InfluxDB, versions 1 to 3, can connect, query the databases and measurements, and write: with their
// credentials, their timestamp units, and their ways to name a database.

import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { allRights, readRights } from '../../../engine/base/rights.js'
import type { Engine } from '../../../engine/engine.js'
import { type TestGateway, testHttp } from '../../support/gateway.js'
import { openTestEngine, rowsFrom } from '../../support/test-engine.js'

let directory: string
let engine: Engine
let gateway: TestGateway

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'penstock-influx-'))
  engine = await openTestEngine(directory)
})
afterAll(async () => {
  await engine.close()
  await rm(directory, { recursive: true })
})
beforeEach(async () => {
  gateway = await testHttp({}, { real: engine })
})
afterEach(() => gateway.close())

async function ask(path: string, init: RequestInit = {}) {
  const response = await fetch(gateway.url + path, init)
  const text = await response.text()
  return { status: response.status, headers: response.headers, json: text === '' ? null : JSON.parse(text) }
}

const write = (path: string, body: string, headers: Record<string, string> = {}) =>
  ask(path, { method: 'POST', body, headers })

const query = (text: string, more = '') => ask(`/query?q=${encodeURIComponent(text)}${more}`)

describe('/api/v3/write_lp', () => {
  test('guesses the unit of each timestamp', async () => {
    const lines = ['g v=1i 1704067200', 'g v=2i 1704067200001', 'g v=3i 1704067200000002', 'g v=4i 1704067200000000003']
    const more = ['g v=5i 1704067200000005t', 'g,k=other v=6i 4999999999', 'g,k=other v=7i 5000000000']
    expect((await write('/api/v3/write_lp?db=x', [...lines, ...more].join('\n'))).status).toBe(204)
    const rows = await rowsFrom(engine, 'select v, cast(timestamp as long) - 1704067200000000 from g')
    const second = 1_000_000n
    expect(rows).toEqual([
      [7n, 5_000_000_000n * 1000n - 1704067200n * second],
      ...[
        [1n, 0n],
        [4n, 0n],
        [3n, 2n],
        [5n, 5n],
        [2n, 1000n],
      ],
      [6n, 4_999_999_999n * second - 1704067200n * second],
    ])
  })

  test.each([
    ['second', 1_000_000n],
    ['millisecond', 1000n],
    ['microsecond', 1n],
    ['s', 1_000_000n],
  ])('takes the unit %s', async (unit, micros) => {
    expect((await write(`/api/v3/write_lp?db=x&precision=${unit}`, `u_${unit} v=1i 7000000000`)).status).toBe(204)
    expect(await rowsFrom(engine, `select cast(timestamp as long) from u_${unit}`)).toEqual([[7_000_000_000n * micros]])
  })

  test('stores the good lines unless told otherwise', async () => {
    const refused = await write('/api/v3/write_lp?db=x&no_sync=true', 'part v=1i 1\npart v=no\npart v=2i 2')
    expect(refused).toMatchObject({
      status: 400,
      json: {
        error: 'partial write of line protocol occurred',
        data: [{ line_number: 2, original_line: 'part v=no' }],
      },
    })
    expect(await rowsFrom(engine, 'select v from part')).toHaveLength(2)
    const whole = await write('/api/v3/write_lp?db=x&accept_partial=false', 'whole v=1i 1\nwhole v=no')
    expect(whole).toMatchObject({ status: 400, json: { error: expect.stringContaining('line 2'), line: 2 } })
    expect(engine.tableExists('whole')).toBe(false)
  })

  test.each(['precision=minutes', 'accept_partial=maybe', 'no_sync=1'])('refuses %s', async (parameter) => {
    expect((await write(`/api/v3/write_lp?db=x&${parameter}`, 'never v=1i')).status).toBe(400)
    expect(engine.tableExists('never')).toBe(false)
  })
})

describe('names of databases', () => {
  test('mean nothing', async () => {
    expect((await write('/api/v2/write?org=a&bucket=b', 'plain v=1i 1')).status).toBe(204)
    expect((await write('/write?db=a&rp=b', 'plain v=1i 2')).status).toBe(204)
    expect(await rowsFrom(engine, 'select v from plain')).toHaveLength(2)
  })

  test('precede names of tables, if the setting says so', async () => {
    await gateway.close()
    gateway = await testHttp({ linePrefixParts: ['bucket', 'db', 'rp'] }, { real: engine })
    const body = '# comment\n\npre,k=a v="x\ny" 1\r\npre v="z" 2'
    expect((await write('/api/v2/write?org=a&bucket=b%20c', body)).status).toBe(204)
    expect(await rowsFrom(engine, 'select v from "b c_pre"')).toEqual([['x\ny'], ['z']])
    expect((await write('/write?db=d&rp=week', 'pre v=1i 1')).status).toBe(204)
    expect(engine.tableExists('d_week_pre')).toBe(true)
    expect((await write('/write?db=d%0ae', 'pre v=1i 1')).json).toMatchObject({
      message: expect.stringContaining('line.http.table.prefix'),
    })
    const errors = await write('/write?db=d', 'pre v=1i 1\npre v=x 2')
    expect(errors.json).toMatchObject({ line: 2 })
  })
})

describe('credentials', () => {
  beforeEach(async () => {
    const configured = [
      { user: 'writer', password: 'w:x', rights: allRights },
      { user: 'reader', password: 'r', rights: readRights },
    ]
    await gateway.close()
    gateway = await testHttp({}, { real: engine, access: { configured, anonymous: null } })
  })

  test('come as parameters or in a token', async () => {
    expect((await write('/write', 'cred v=1i 1')).status).toBe(403)
    expect((await write('/write?u=writer&p=w:x', 'cred v=1i 1')).status).toBe(204)
    expect((await write('/write?u=writer&p=no', 'cred v=1i 1')).status).toBe(403)
    expect((await write('/write?u=reader&p=r', 'cred v=1i 1')).status).toBe(403)
    expect((await write('/api/v2/write', 'cred v=1i 1', { Authorization: 'Token writer:w:x' })).status).toBe(204)
    expect((await write('/api/v2/write', 'cred v=1i 1', { Authorization: 'Token writer:no' })).status).toBe(403)
    expect((await query('show databases', '&u=reader&p=r')).status).toBe(200)
    expect((await query('show databases')).status).toBe(403)
    expect((await ask('/exec?query=select%201&u=writer&p=w:x')).status).toBe(403)
  })
})

describe('health', () => {
  test('of each version', async () => {
    expect(await ask('/ping')).toMatchObject({ status: 204, json: null })
    const verbose = await ask('/ping?verbose=true')
    expect(verbose).toMatchObject({ status: 200, json: { version: 'v2.7.4' } })
    expect(verbose.headers.get('x-influxdb-version')).toBe('v2.7.4')
    expect(await ask('/health')).toMatchObject({
      status: 200,
      json: { name: 'influxdb', status: 'pass', version: 'v2.7.4' },
    })
    expect(await ask('/ready')).toMatchObject({
      status: 200,
      json: { status: 'ready', up: expect.stringMatching(/^0h\d+m\d+s$/) },
    })
  })

  test('fails when rows may be lost and the setting says so', async () => {
    await gateway.close()
    gateway = await testHttp({ pessimisticHealth: true }, { real: engine })
    gateway.counters.unhandledErrors++
    expect(await ask('/health')).toMatchObject({ status: 503, json: { status: 'fail' } })
  })
})

describe('/query', () => {
  test('creates no database and lists the one that is there', async () => {
    const created = await query('CREATE DATABASE "my db" WITH DURATION 3d')
    expect(created).toMatchObject({ status: 200, json: { results: [{ statement_id: 0 }] } })
    const listed = await query('SHOW DATABASES; show retention policies on qdb', '&db=telegraf')
    expect(listed.json.results).toEqual([
      { statement_id: 0, series: [{ name: 'databases', columns: ['name'], values: [['qdb'], ['telegraf']] }] },
      { statement_id: 1, series: [expect.objectContaining({ values: [['autogen', '0s', '168h0m0s', 1, true]] })] },
    ])
    const posted = await ask('/query', { method: 'POST', body: new URLSearchParams({ q: 'create database x' }) })
    expect(posted).toMatchObject({ status: 200, json: { results: [{ statement_id: 0 }] } })
  })

  test('shows tables, their symbols and their other columns', async () => {
    expect((await write('/write', 'seen,city=a,dotted=b f=1,i=2i,s="x",b=t 1')).status).toBe(204)
    expect((await query('show measurements')).json.results[0].series[0].values).toContainEqual(['seen'])
    expect((await query('show measurements on "qdb" limit 1')).json.results[0].series[0].values).toHaveLength(1)
    expect((await query('show tag keys on qdb from "qdb"."autogen"."seen"')).json.results[0].series).toEqual([
      { name: 'seen', columns: ['tagKey'], values: [['city'], ['dotted']] },
    ])
    expect((await query('show field keys from nowhere, seen')).json.results[0].series).toEqual([
      {
        name: 'seen',
        columns: ['fieldKey', 'fieldType'],
        values: [
          ['f', 'float'],
          ['i', 'integer'],
          ['s', 'string'],
          ['b', 'boolean'],
        ],
      },
    ])
    expect((await query('show tag keys')).json.results[0].series).toContainEqual(
      expect.objectContaining({ name: 'seen' }),
    )
  })

  test.each(['', 'select * from cpu', 'show nothing'])('refuses %j', async (text) => {
    expect(await query(text)).toMatchObject({ status: 400, json: { error: expect.any(String) } })
  })
})
