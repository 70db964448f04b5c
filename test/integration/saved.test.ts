// Goal: the server keeps the queries and dashboards that users save. Only its user sees a private one; all users see a
// shared one. A user who has not seen the newest version cannot overwrite it. Saved queries and dashboards survive a
// restart, and a damaged file of them is not overwritten.

import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { TestServer } from '../support/server.js'

const server = new TestServer(['memory.bytes=512m', 'telemetry.enabled=false'])
const path = (): string => join(server.root, 'conf/saved.json')
const panel = { title: 'Now', kind: 'value', sql: 'select 1' }

beforeAll(async () => {
  await server.start()
  for (const rights of ['read', 'write', 'read, write', 'admin'])
    await server.exec(`create user ${userWith(rights)} with password 'p' ${rights}`)
})
afterAll(() => server.remove())

const userWith = (rights: string): string => `with_${rights.replaceAll(/\W+/g, '_')}`

type Answer = readonly [status: number, body: Readonly<Record<string, unknown>>]

async function ask(method: string, query: string, rights: string, body?: unknown): Promise<Answer> {
  const headers = rights === '' ? {} : { authorization: `Basic ${btoa(`${userWith(rights)}:p`)}` }
  const text = body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }
  const answer = await fetch(`http://${server.address('http')}/api/v1/saved${query}`, { method, headers, ...text })
  return [answer.status, (await answer.json()) as Record<string, unknown>]
}

const save = (rights: string, item: unknown): Promise<Answer> => ask('PUT', '', rights, item)

async function names(kind: string, rights: string): Promise<string[]> {
  const [, { saved }] = await ask('GET', `?kind=${kind}`, rights)
  return (saved as { name: string; user: string }[]).map(({ name, user }) => `${name} of ${user}`)
}

test('a private item is seen by its user alone, a shared one by all', async () => {
  expect(await save('read', { kind: 'query', name: 'mine', content: 'select 1' })).toEqual([
    200,
    { status: 'OK', version: 1 },
  ])
  const board = { kind: 'dashboard', name: 'plant', shared: true, content: { panels: [panel] } }
  expect((await save('read, write', board))[0]).toBe(200)
  expect((await save('read, write', { kind: 'query', name: 'mine', content: 'select 2' }))[0]).toBe(200)
  expect(await names('query', 'read')).toEqual(['mine of with_read'])
  expect(await names('query', 'read, write')).toEqual(['mine of with_read_write'])
  expect(await names('query', 'admin')).toEqual([])
  expect(await names('dashboard', 'read')).toEqual(['plant of with_read_write'])
  const [, { user, saved }] = await ask('GET', '?kind=dashboard', 'admin')
  expect(user).toBe('with_admin')
  expect(saved).toEqual([
    {
      ...{ kind: 'dashboard', name: 'plant', user: 'with_read_write', shared: true, version: 1 },
      updated: expect.stringMatching(/^\d{4}-.*Z$/),
      content: {
        ...{ range: '6h', refresh: 'off', variables: [] },
        panels: [{ ...panel, style: 'lines', width: 'third', height: 'low', unit: '' }],
      },
    },
  ])
})

test('rights', async () => {
  const missing = (right: string): unknown => [403, { error: expect.stringContaining(`right=${right}]`) }]
  const item = { kind: 'query', name: 'x', content: 'select 1' }
  expect(await save('read', { ...item, shared: true })).toEqual(missing('write'))
  expect(await save('write', item)).toEqual(missing('read'))
  expect((await ask('GET', '?kind=query', 'write'))[0]).toBe(403)
  expect(await ask('DELETE', '?kind=dashboard&name=plant&user=with_read_write', 'read')).toEqual(missing('admin'))
  const foreign = await fetch(`http://${server.address('http')}/api/v1/saved`, {
    ...{ method: 'PUT', body: JSON.stringify(item), headers: { 'sec-fetch-site': 'cross-site' } },
  })
  expect(foreign.status).toBe(403)
})

test('a change of a version that its author has not seen is rejected', async () => {
  const item = { kind: 'query', name: 'v', content: 'select 1' }
  expect((await save('read', { ...item, version: 0 }))[1]).toEqual({ status: 'OK', version: 1 })
  expect((await save('read', { ...item, version: 1 }))[1]).toEqual({ status: 'OK', version: 2 })
  for (const version of [0, 1])
    expect(await save('read', { ...item, version })).toEqual([
      409,
      { error: expect.stringContaining('currentVersion=2') },
    ])
  const together = await Promise.all([1, 2, 3].map(() => save('read', { ...item, version: 2 })))
  expect(together.map(([status]) => status).sort()).toEqual([200, 409, 409])
})

test.each([
  ['{', 'the body is not JSON'],
  [[], 'a saved item is a JSON object with kind, name, shared and content'],
  [{ kind: 'note', name: 'x' }, "'kind' is one of query, dashboard"],
  [{ kind: 'query', content: 'select 1' }, 'a saved item needs a name'],
  [{ kind: 'query', name: 'x'.repeat(101), content: 'select 1' }, 'the name is too long [max=100]'],
  [{ kind: 'query', name: 'x' }, 'a saved query needs a statement'],
  [{ kind: 'query', name: 'x', content: 'select 1', colour: 'red' }, 'unknown member of a saved item [name=colour]'],
  [{ kind: 'query', name: 'x', content: "alter user u with password 's'" }, 'the statement may contain a secret'],
  [{ kind: 'dashboard', name: 'x' }, 'a dashboard is a JSON object'],
  [{ kind: 'dashboard', name: 'x', content: { panels: Array(51).fill(0) } }, 'there are too many panels [max=50]'],
  [{ kind: 'dashboard', name: 'x', content: { panels: [{ ...panel, kind: 'pie' }] } }, "panel 1: 'kind' is one of"],
  [{ kind: 'dashboard', name: 'x', content: { range: 'soon' } }, "'range' is a duration such as 6h"],
  [{ kind: 'dashboard', name: 'x', content: { range: '2026-02-02/2026-02-01' } }, "'range' is a duration such as 6h"],
  [{ kind: 'dashboard', name: 'x', content: { variables: [{ name: 'a b' }] } }, 'the name of a variable consists of'],
  [{ kind: 'dashboard', name: 'x', content: { variables: [{ name: 'From' }] } }, 'the name stands for the time range'],
  [
    { kind: 'dashboard', name: 'x', content: { variables: [{ name: 'a' }, { name: 'A' }] } },
    'two variables have one name',
  ],
])('%j is rejected', async (item, message) => {
  expect(await save('read, write', item)).toEqual([400, { error: expect.stringContaining(message) }])
})

test('a word is no secret without a value', async () => {
  const content = "select sum(tokens) from usage where model = 'small'"
  expect((await save('read', { kind: 'query', name: 'tokens', content }))[0]).toBe(200)
})

test('removal', async () => {
  expect((await ask('DELETE', '?kind=query&name=tokens', 'read'))[0]).toBe(200)
  expect((await ask('DELETE', '?kind=query&name=tokens', 'read'))[0]).toBe(404)
  // Private ones of others do not exist for an administrator; shared ones can be removed.
  expect((await ask('DELETE', '?kind=query&name=mine&user=with_read', 'admin'))[0]).toBe(404)
  expect((await ask('DELETE', '?kind=dashboard&name=plant&user=with_read_write', 'admin'))[0]).toBe(200)
})

test('a restart keeps them; a damaged file is not overwritten', async () => {
  await server.restart('SIGKILL')
  expect(await names('query', 'read')).toEqual(['mine of with_read', 'v of with_read'])
  const before = readFileSync(path(), 'utf8')
  await server.end()
  writeFileSync(path(), '{"version": 2, "items": []}')
  await server.start()
  expect(await names('query', 'read')).toEqual([])
  const [status, { error }] = await save('read', { kind: 'query', name: 'x', content: 'select 1' })
  expect([status, error]).toEqual([400, expect.stringContaining('cannot be read')])
  writeFileSync(path(), before)
  expect(await names('query', 'read')).toEqual(['mine of with_read', 'v of with_read'])
})

test('saved queries of earlier versions, which were preferences, are taken over', async () => {
  await server.end()
  rmSync(path())
  mkdirSync(join(server.root, 'conf'), { recursive: true })
  const list = [{ name: 'old', sql: 'select 1', user: 'ann' }, { name: '', sql: 'select 1' }, 5]
  writeFileSync(
    join(server.root, 'conf/preferences.json'),
    JSON.stringify({ version: 3, values: { 'console.queries': list } }),
  )
  await server.start()
  expect(await names('query', 'read')).toEqual(['old of ann'])
  expect((await save('read', { kind: 'query', name: 'new', content: 'select 1' }))[0]).toBe(200)
  expect(await names('query', 'read')).toEqual(['new of with_read', 'old of ann'])
})

test('a statement of a read-only request changes nothing', async () => {
  const answer = await server
    .exec('create table t (a int)', { readonly: 'true' })
    .catch((error: unknown) => String(error))
  expect(JSON.stringify(answer)).toContain('the request asks for a read-only statement')
  expect(JSON.stringify(await server.exec('select 1', { readonly: 'true' }))).toContain('[[1]]')
  expect(await server.rows("select count() from tables() where table_name = 't'")).toEqual([[0]])
})
