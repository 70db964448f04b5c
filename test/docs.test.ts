// Goal: documents stay up to date with the code: docs/settings.md is current; every file, setting, benchmark and npm
// script that a document names exists; every link leads to a file, and to a heading if it names one; every document is
// in a list of documents. The changelog has no change twice in a section.

import { existsSync, readFileSync } from 'node:fs'
import { join, posix } from 'node:path'
import { expect, test } from 'vitest'
import { settingsTable } from '../deploy/settings/settings-table.js'
import { settingsDocument } from '../deploy/settings/settings-text.js'
import { filesBelow, repositoryRoot } from './support/docs/source-tree.js'

const documents = [
  ...['README.md', 'ARCHITECTURE.md', 'CONTRIBUTING.md', 'CHANGELOG.md'],
  ...filesBelow('docs'),
].filter((path) => path.endsWith('.md'))

function textOf(path: string): string {
  return readFileSync(join(repositoryRoot, path), 'utf8')
}

test('the settings are documented as they are', () => {
  expect(textOf('docs/settings.md'), 'run `npm run docs`').toBe(settingsDocument())
})

test('every file that a document names exists', () => {
  // A compiled program stands for its source, so that the test needs no build.
  const named = /(?:dist\/)?(?:engine|pipeline|gateways|connectors|deploy|test|docs)\/[\w./-]*\w/g
  const missing = documents.flatMap((document) =>
    [...textOf(document).matchAll(named)]
      .map(([path]) => path.replace(/^dist\/(.*)\.js$/, '$1.ts'))
      .filter((path) => !existsSync(join(repositoryRoot, path)))
      .map((path) => `${document} names ${path}`),
  )
  expect(missing).toEqual([])
})

/** Anchors of the headings of a page, as GitHub makes them. */
function anchorsOf(path: string): Set<string> {
  const headings = textOf(path)
    .replace(/^```[\s\S]*?^```/gm, '')
    .matchAll(/^#+ (.*)$/gm)
  return new Set(
    [...headings].map(([, title = '']) =>
      title
        .toLowerCase()
        .replace(/[^\p{L}\p{N} _-]/gu, '')
        .replaceAll(' ', '-'),
    ),
  )
}

test('every link of a document leads to a file, and to a heading', () => {
  const broken = documents.flatMap((document) =>
    [
      ...textOf(document)
        .replace(/`[^`]*`/g, '')
        .matchAll(/\]\(([^)\s]+)\)/g),
    ]
      .map(([, target = '']) => target)
      .filter((target) => !/^[a-z]+:/.test(target))
      .filter((target) => {
        const [path = '', anchor] = target.split('#')
        const file = path === '' ? document : posix.join(posix.dirname(document), path)
        if (!existsSync(join(repositoryRoot, file))) return true
        return anchor !== undefined && file.endsWith('.md') && !anchorsOf(file).has(anchor)
      })
      .map((target) => `${document} links ${target}`),
  )
  expect(broken).toEqual([])
})

test('every document can be found from the list of documents', () => {
  const listed = ['docs/README.md', 'docs/sql/README.md'].flatMap((path) =>
    [...textOf(path).matchAll(/\]\(([^)#\s]+)/g)].map(([, target = '']) => posix.join(posix.dirname(path), target)),
  )
  const unlisted = documents.filter((path) => path.startsWith('docs/') && !/README/.test(path))
  expect(unlisted.filter((path) => !listed.includes(path))).toEqual([])
})

test('every setting that a document names is one', () => {
  const first = new Set(Object.keys(settingsTable).map((key) => key.split('.')[0]))
  const unknown = documents.flatMap((document) =>
    [...textOf(document).matchAll(/`([a-z]+(?:\.[a-z]+)+)(?:=[^`]*)?`/g)]
      .map(([, key = '']) => key)
      .filter((key) => first.has(key.split('.')[0]) && !(key in settingsTable) && !/\.(md|ts|js|json|conf)$/.test(key))
      .map((key) => `${document} names ${key}`),
  )
  expect(unknown).toEqual([])
})

test('every benchmark that a document names is one', () => {
  const [, known = ''] = /^const suites[^{]*\{\n([\s\S]*?)^\}/m.exec(textOf('test/bench/main.ts')) ?? []
  const suites = [...known.matchAll(/^ {2}(\w+)/gm)].map(([, name = '']) => name)
  expect(suites).toContain('lines')
  const unknown = documents.flatMap((document) =>
    [...textOf(document).matchAll(/npm run bench -- (\w+)/g)]
      .map(([, name = '']) => name)
      .filter((name) => !suites.includes(name))
      .map((name) => `${document} names npm run bench -- ${name}`),
  )
  expect(unknown).toEqual([])
})

test('every npm script that a document names is one', () => {
  const { scripts } = JSON.parse(textOf('package.json')) as { scripts: Record<string, string> }
  const unknown = documents.flatMap((document) =>
    [...textOf(document).matchAll(/npm run ([\w-]+)/g)]
      .map(([, name = '']) => name)
      .filter((name) => !(name in scripts))
      .map((name) => `${document} names npm run ${name}`),
  )
  expect(unknown).toEqual([])
})

/** Lines of each "### section" of the changelog, by release and section. */
function changelogSections(): Map<string, string[]> {
  const sections = new Map<string, string[]>()
  let release = ''
  let lines: string[] = []
  for (const line of textOf('CHANGELOG.md').trimEnd().split('\n')) {
    if (line.startsWith('## ')) release = line.slice(3)
    else if (line.startsWith('### ')) {
      lines = []
      sections.set(`${release} ${line.slice(4)}`, lines)
    } else lines.push(line)
  }
  return sections
}

test('the changelog tells each change once, in its section', () => {
  const faults: string[] = []
  for (const [section, lines] of changelogSections()) {
    const items = lines.filter((line) => line.startsWith('- ')).map((line) => line.split(' ').slice(1, 7).join(' '))
    for (const [index, item] of items.entries()) {
      if (items.indexOf(item) < index) faults.push(`${section}: two entries begin with "${item}"`)
      if (/^(Added|Changed|Deprecated|Removed|Fixed|Security):/.test(item)) faults.push(`${section}: ${item}`)
    }
    for (const [index, line] of lines.entries()) {
      if (line.length > 120) faults.push(`${section}: more than 120 characters: ${line}`)
      if (line === '' && /^( {2}|- )/.test(lines[index - 1] ?? '') && /^( {2}|- )/.test(lines[index + 1] ?? ''))
        faults.push(`${section}: a blank line within a list, before: ${lines[index + 1]}`)
    }
  }
  expect(faults).toEqual([])
})
