// Goal: documents stay up to date with the code: generated documents are current, every file that a document names
// exists, and every setting that a document names exists.

import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { settingsTable } from '../deploy/settings/settings-table.js'
import { settingsDocument } from '../deploy/settings/settings-text.js'
import { repositoryRoot } from './support/source-tree.js'

const documents = [
  ...['README.md', 'ARCHITECTURE.md', 'CONTRIBUTING.md', 'CHANGELOG.md'],
  ...readdirSync(join(repositoryRoot, 'docs')).map((name) => `docs/${name}`),
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
