// Goal: the documents contain no repeated words, no clichés, and no weak or wordy phrases. The package write-good finds
// them.
//
// Code in the documents is not checked. Two checks of write-good are off: the passive voice is allowed, because readers
// need to know what is done to rows and not by whom; a sentence may begin with `so`. The list `technical` has words
// that write-good takes for weak or wordy and that have a technical meaning here.

import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { filesBelow, repositoryRoot } from './support/docs/source-tree.js'

/** The package has no types, and is no module. */
const writeGood: (text: string, checks: object) => { index: number; offset: number; reason: string }[] = createRequire(
  import.meta.url,
)('write-good')

const checks = { passive: false, so: false }
const technical: ReadonlySet<string> = new Set([
  // Terms of databases and of mathematics.
  ...[
    'aggregate',
    'allocate',
    'evaluate',
    'magnitude',
    'maximum',
    'minimum',
    'monitor',
    'multiple',
    'remainder',
    'satisfy',
  ],
  ...['hourly', 'type of', 'point in time'],
  // Numbers that are not known, and words that limit a statement or order it.
  ...[
    'few',
    'many',
    'several',
    'only',
    'exactly',
    'silently',
    'deliberately',
    'recently',
    'usually',
    'early',
    'likely',
  ],
  ...[
    'it is',
    'it was',
    'all of',
    'a number of',
    'similar to',
    'there is',
    'there are',
    'however',
    'therefore',
    'things',
    'is a number',
  ],
])
const pages = [
  ...['README.md', 'ARCHITECTURE.md', 'CHANGELOG.md', 'CONTRIBUTING.md'],
  // A list of messages.
  ...filesBelow('docs').filter((path) => path.endsWith('.md') && path !== 'docs/errors.md'),
]

test('the prose of the documents', () => {
  const found = pages.flatMap((path) => {
    const text = proseOf(readFileSync(join(repositoryRoot, path), 'utf8'))
    return writeGood(text, checks)
      .filter(({ index, offset }) => !technical.has(phraseAt(text, index, offset)))
      .map(
        ({ index, reason }) => `${path}:${text.slice(0, index).split('\n').length} ${reason.replaceAll(/\s+/g, ' ')}`,
      )
  })
  expect(found).toEqual([])
})

function phraseAt(text: string, index: number, offset: number): string {
  return text
    .slice(index, index + offset)
    .toLowerCase()
    .replaceAll(/\s+/g, ' ')
    .trim()
}

/** The page with blanks in the place of blocks and addresses, and a word of its own for each piece of code. */
function proseOf(page: string): string {
  let codes = 0
  return page
    .replaceAll(/^```[\s\S]*?^```/gm, blank)
    .replaceAll(/^ {4}.*$/gm, blank)
    .replaceAll(/`[^`\n]*`/g, () => `code${codes++}`)
    .replaceAll(/\]\([^)]*\)|<http[^>]*>/g, blank)
    .replaceAll(/^#.*$/gm, (heading) => `${heading}.`)
    .replaceAll('|', '.')
}

function blank(text: string): string {
  return text.replaceAll(/[^\n]/g, ' ')
}
