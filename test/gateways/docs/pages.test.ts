// Goal: the server serves the complete documentation under /docs/ without access to other servers: every page of docs/
// is there, every link leads to a page and a heading, no script or style is inline, and the search finds pages by
// words. The renderer supports all Markdown that the documents use.

import { readFileSync } from 'node:fs'
import { join, posix } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { docsPages } from '../../../gateways/docs/server.js'
import { filesBelow, repositoryRoot } from '../../support/docs/source-tree.js'
import { type TestGateway, testHttp } from '../../support/gateway.js'

const pages = docsPages()
const html = new Map(
  [...pages.files].filter(([path]) => path.endsWith('.html')).map(([path, { body }]) => [path, body.toString()]),
)
let gateway: TestGateway

beforeAll(async () => {
  gateway = await testHttp({}, { pages })
})
afterAll(() => gateway.close())

test('every document is a page', () => {
  const wanted = filesBelow('docs')
    .filter((path) => path.endsWith('.md'))
    .map((path) => `/${path.replace(/README\.md$/, 'index.md').replace(/\.md$/, '.html')}`)
  expect([...html.keys()].sort()).toEqual([...wanted, '/docs/start.html'].sort())
})

test('every link leads to a page of the server, and to a heading', () => {
  const broken: string[] = []
  for (const [path, text] of html) {
    for (const [, target = ''] of text.matchAll(/ (?:href|src)="([^"]+)"/g)) {
      if (/^(https?:|\/console\/)/.test(target)) continue
      const [file = '', anchor] = target.split('#')
      const page = file === '' ? path : posix.resolve(posix.dirname(path), file) + (file.endsWith('/') ? '/' : '')
      const found = pages.files.get(page)?.body.toString()
      if (found === undefined || (anchor !== undefined && !found.includes(`id="${anchor}"`)))
        broken.push(`${path} ${target}`)
    }
  }
  expect(broken).toEqual([])
})

test('no page has inline scripts, styles or markup of its text, or loads from elsewhere', () => {
  for (const [path, text] of html)
    expect(text, path).not.toMatch(/<script>|<style|\son\w+="|\sstyle=|<link[^>]*https?:|src="https?:|javascript:/)
  const script = readFileSync(join(repositoryRoot, 'gateways/docs/page/docs.js'), 'utf8')
  expect(script).not.toMatch(/innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|https?:/)
})

test('nothing of the Markdown is left in the pages', () => {
  for (const [path, text] of html) {
    const prose = text.replace(/<pre[\s\S]*?<\/pre>|<code>[\s\S]*?<\/code>/g, '')
    expect(prose.match(/^.*(?:```|\]\(|\*\*|^\|).*$/m)?.[0], path).toBeUndefined()
  }
})

describe('the gateway', () => {
  test('redirects folders to their page, which has a strict policy', async () => {
    const redirect = await fetch(`${gateway.url}/docs`, { redirect: 'manual' })
    expect([redirect.status, redirect.headers.get('location')]).toEqual([301, '/docs/'])
    const response = await fetch(`${gateway.url}/docs/sql`)
    expect(response.status).toBe(200)
    expect(await response.text()).toContain('<h1 id="sql-reference">')
    const policy = response.headers.get('content-security-policy') ?? ''
    expect(policy).toContain("default-src 'none'")
    expect(policy).not.toContain('unsafe')
  })

  test.each(['/docs/nope.html', '/docs/..%2fpackage.json', '/docs/tour.md'])('%s is not there', async (path) => {
    expect((await fetch(gateway.url + path)).status).toBe(404)
  })
})

describe('the search', () => {
  type Section = readonly [page: string, anchor: string, title: string, heading: string, text: string]
  const index = JSON.parse(pages.files.get('/docs/search.json')?.body.toString() ?? '[]') as readonly Section[]
  const { ranked } = searchOf(readFileSync(join(repositoryRoot, 'gateways/docs/page/docs.js'), 'utf8'))

  test.each([
    ['fill', 'sql/fill.html'],
    ['latest on', 'sql/latest-on.html'],
    ['ttl', 'sql/ttl.html'],
    ['backup', 'backup.html'],
    ['http.user', 'settings.html'],
    ['rnd_uuid4', 'functions.html'],
    ['svc_disk_free_bytes', 'metrics.html'],
    ['grafana', 'guides/tools.html'],
    ['out of memory', 'errors.html'],
    ['influxdb', 'guides/from-influxdb.html'],
  ])('%s', (words, wanted) => {
    const found = ranked(index, words.split(' ')).map(([page]) => page)
    expect(found.slice(0, 10)).toContain(wanted)
  })

  test('finds nothing for a word that is nowhere', () => {
    expect(ranked(index, ['fill', 'xyzzyq'])).toEqual([])
  })

  /** The ranking of the page's script, without the parts that need a browser. */
  function searchOf(script: string): { ranked: (all: readonly Section[], words: readonly string[]) => Section[] } {
    const functions = ['ranked', 'scoreOf'].map((name) => {
      const [text = ''] = new RegExp(`function ${name}\\([\\s\\S]*?\\n}\\n`).exec(script) ?? []
      return text
    })
    return new Function(`${functions.join('\n')}\nreturn { ranked }`)() as ReturnType<typeof searchOf>
  }
})
