// Goal: the console loads only files of this package, with a content security policy that enforces it, and health
// probes of `/` still read OK. .ci/console.mjs tests it in a browser.

import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { consolePages } from '../../../gateways/console/server.js'
import { type TestGateway, testHttp } from '../../support/gateway.js'
import { repositoryRoot } from '../../support/source-tree.js'

const folder = join(repositoryRoot, 'gateways/console/page')
const pages = consolePages()
let gateway: TestGateway

beforeAll(async () => {
  gateway = await testHttp({}, { pages })
})
afterAll(() => gateway.close())

test('every file of the page is served', () => {
  const served = [...pages.files.keys()].map((path) => path.slice('/console/'.length))
  const wanted = readdirSync(folder).map((name) => (name === 'index.html' ? '' : name))
  expect(served.sort()).toEqual([...wanted, 'uplot.css', 'uplot.js'].sort())
})

test('what the page names is served', () => {
  const index = readFileSync(join(folder, 'index.html'), 'utf8')
  const scripts = readdirSync(folder).filter((name) => name.endsWith('.js'))
  const imports = scripts.flatMap((name) =>
    [...readFileSync(join(folder, name), 'utf8').matchAll(/from '\.\/([\w.]+)'/g)].map(([, file]) => file),
  )
  const linked = [...index.matchAll(/(?:href|src)="([^"]+)"/g)].map(([, file]) => file)
  // The documentation is a set of pages of its own.
  const ours = [...imports, ...linked].filter((file) => file !== '/docs/')
  for (const file of ours) expect(pages.files.has(`/console/${file}`), file).toBe(true)
})

test('nothing is inline, and no script makes markup of a text', () => {
  expect(readFileSync(join(folder, 'index.html'), 'utf8')).not.toMatch(/<script>|\son\w+=|\sstyle=|javascript:|https?:/)
  for (const name of readdirSync(folder).filter((file) => file.endsWith('.js'))) {
    expect(readFileSync(join(folder, name), 'utf8'), name).not.toMatch(
      /innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|new Function|https?:/,
    )
  }
})

test('GET /console/ has a strict policy and is known again', async () => {
  const response = await fetch(`${gateway.url}/console/`)
  expect(response.status).toBe(200)
  expect(response.headers.get('content-type')).toBe('text/html; charset=utf-8')
  const policy = response.headers.get('content-security-policy') ?? ''
  expect(policy).toContain("default-src 'none'")
  expect(policy).not.toContain('unsafe')
  const etag = response.headers.get('etag') ?? ''
  expect((await fetch(`${gateway.url}/console/`, { headers: { 'if-none-match': etag } })).status).toBe(304)
})

test('GET / answers OK and leads browsers to the console', async () => {
  const response = await fetch(gateway.url)
  expect(await response.text()).toBe('OK')
  expect(response.headers.get('refresh')).toBe('0; url=/console/')
  const redirect = await fetch(`${gateway.url}/console`, { redirect: 'manual' })
  expect([redirect.status, redirect.headers.get('location')]).toEqual([301, '/console/'])
})

test.each(['/console/nope.js', '/console/..%2f..%2fpackage.json', '/console/index.html/'])(
  '%s is not there',
  async (path) => {
    expect((await fetch(gateway.url + path)).status).toBe(404)
  },
)

test('the page reads whole numbers of any size, and tells whether there are more rows', async () => {
  // A script of browsers: it has no types.
  const api = (await import(join(folder, 'api.js'))) as {
    readonly exactNumbers: (json: string) => string
    readonly execute: (sql: string, options: object) => Promise<Readonly<Record<string, unknown>>>
  }
  const json =
    '{"query":"9007199254740993 \\" 12345678901234567","dataset":[[9007199254740993,-9223372036854775807,0.1234567890123456,1.5E300,1234567]]}'
  expect(JSON.parse(api.exactNumbers(json))).toEqual({
    query: '9007199254740993 " 12345678901234567',
    dataset: [['9007199254740993', '-9223372036854775807', 0.1234567890123456, 1.5e300, 1234567]],
  })
  const requested: unknown[] = []
  const answers = ['[[1],[2],[3]],"count":3', '[[1],[2]],"count":2', '[[1],[2]],"count":2,"capped":true,"rowsMax":2']
  const original = globalThis.fetch
  globalThis.fetch = async (path, options) => {
    if (path === '../settings') return new Response('{"config":{"http.context.execute":"/moved"}}')
    expect(path).toBe('../moved')
    requested.push(JSON.parse(String(options?.body)).limit)
    return new Response(`{"columns":[],"dataset":${answers.shift()}}`)
  }
  try {
    const shown = []
    for (let turn = 0; turn < 3; turn++) {
      const { dataset, count, more } = await api.execute('select 1', { limit: 2 })
      shown.push([dataset, count, more])
    }
    expect(shown).toEqual([
      [[[1], [2]], 2, true],
      [[[1], [2]], 2, false],
      [[[1], [2]], 2, true],
    ])
    expect(requested).toEqual(['3', '3', '3'])
  } finally {
    globalThis.fetch = original
  }
})
