// Goal: PostgreSQL clients see the server version from the settings in every place where they look for it, and cannot
// change it.

import pg from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { TestServer } from '../../support/server.js'

const server = new TestServer(['pg.server.version=14.0', 'query.threads=1'])
let client: pg.Client
const reported = new Map<string, string>()

beforeAll(async () => {
  await server.start()
  client = new pg.Client(server.login)
  const { connection } = client as unknown as { connection: NodeJS.EventEmitter }
  connection.on('parameterStatus', ({ parameterName, parameterValue }) => reported.set(parameterName, parameterValue))
  await client.connect()
})

afterAll(async () => {
  await client?.end()
  await server.remove()
})

test('the version of the setting', async () => {
  const first = async (sql: string): Promise<unknown> => Object.values((await client.query(sql)).rows[0])[0]
  expect(reported.get('server_version')).toBe('14.0')
  expect(await first('show server_version')).toBe('14.0')
  expect(await first('show server_version_num')).toBe('140000')
  expect(await first("select current_setting('server_version_num')::int / 100")).toBe(1400)
  expect((await client.query('select version()')).rows[0].version).toMatch(/^PostgreSQL 14\.0,/)
  await expect(client.query("set server_version = '15.0'")).rejects.toMatchObject({ code: '55P02' })
  await client.query('reset all')
  expect(await first('show server_version')).toBe('14.0')
})
