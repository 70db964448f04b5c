// Goal: every function name that users of this dialect know (fixtures/known-functions.txt) is listed by functions(), or
// docs/compatibility/functions.md explains why not.

import { readFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import { functionsRelation } from '../../../../engine/sql/relations/word-relations.js'

const names = readFileSync(new URL('../fixtures/known-functions.txt', import.meta.url), 'utf8')
  .trim()
  .split('\n')
const differences = readFileSync(new URL('../../../../docs/compatibility/functions.md', import.meta.url), 'utf8')

/** Names of PostgreSQL's catalog are listed with or without their schema. */
function bare(name: string): string {
  return name.replace(/^(pg_catalog|information_schema)\./, '')
}

it('knows every function, or tells why not', () => {
  const ours = new Set(
    functionsRelation()
      .rows()
      .map(([name]) => bare(String(name))),
  )
  const missing = names.filter((name) => !ours.has(bare(name)) && !differences.includes(`\`${name}\``))
  expect(names.length).toBeGreaterThan(300)
  expect(missing).toEqual([])
})
