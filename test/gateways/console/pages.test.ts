// Goal: the web console loads only files of this package, its Content-Security-Policy enforces that, its files are
// small, and health checks of `/` still get OK. .ci/console.mjs tests the console in a browser.

import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { consolePages } from '../../../gateways/console/server.js'
import { repositoryRoot } from '../../support/docs/source-tree.js'
import { type TestGateway, testHttp } from '../../support/gateway.js'

const sources = join(repositoryRoot, 'gateways/console/app')
const packedBytesMax = 500_000
const pages = consolePages()
let gateway: TestGateway

beforeAll(async () => {
  gateway = await testHttp({}, { pages })
})
afterAll(() => gateway.close())

const textOf = (path: string): string => pages.files.get(path)?.body.toString('utf8') ?? ''

test('what the page names is served', () => {
  const linked = [...textOf('/console/').matchAll(/(?:href|src)="([^"#]+)"/g)].map(([, file]) => file)
  expect(linked).toContain('console.js')
  // The documentation is a set of pages of its own.
  for (const file of linked.filter((name) => name !== '/docs/'))
    expect(pages.files.has(`/console/${file}`), file).toBe(true)
  expect([...pages.files.keys()].sort()).toEqual(
    ['', 'console.css', 'console.js', 'icon.svg', 'uplot.css'].map((name) => `/console/${name}`),
  )
})

test('nothing is inline, nothing comes from elsewhere, and no script makes markup of a text', () => {
  expect(textOf('/console/')).not.toMatch(/<script>|<style|\son\w+=|\sstyle=|javascript:|https?:/)
  expect(textOf('/console/console.css')).not.toMatch(/@import|url\(/)
  const names = readdirSync(sources).filter((file) => file.endsWith('.ts'))
  expect(names.length).toBeGreaterThan(20)
  for (const name of names) {
    expect(readFileSync(join(sources, name), 'utf8'), name).not.toMatch(
      /innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|new Function/,
    )
  }
})

test('the console is small', () => {
  const packed = [...pages.files.values()].reduce((sum, { body }) => sum + gzipSync(body, { level: 9 }).length, 0)
  expect(packed).toBeLessThan(packedBytesMax)
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

test('pages are compressed for those who accept it', async () => {
  const url = `${gateway.url}/console/console.js`
  const [packed, plain, refused] = await Promise.all(
    ['gzip, br', 'identity', 'gzip;q=0, br'].map((coding) => fetch(url, { headers: { 'accept-encoding': coding } })),
  )
  expect(packed?.headers.get('content-encoding')).toBe('gzip')
  expect(packed?.headers.get('vary')).toBe('Accept-Encoding')
  for (const other of [plain, refused]) expect(other?.headers.get('content-encoding')).toBeNull()
  expect(await packed?.text()).toBe(await plain?.text())
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
