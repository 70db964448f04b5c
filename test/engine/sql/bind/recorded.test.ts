// Goal: queries recorded from another server of this SQL dialect return the recorded column names, types, designated
// timestamps and rows, and errors have the recorded positions. An interpreter runs the plans, so a failure is one of
// parsing, binding, planner rules or a function's `eval`.

import { describe, expect, test } from 'vitest'
import { MemoryDatabase } from '../../../support/memory-database.js'
import { difference, readRecorded } from '../../../support/recorded.js'

const fixtures = new URL('../../../../test/engine/sql/fixtures/', import.meta.url)

function filledDatabase(): MemoryDatabase {
  const database = new MemoryDatabase()
  for (const { sql } of readRecorded(new URL('tables.jsonl', fixtures))) database.run(sql)
  return database
}

describe.each(['queries', 'errors'])('recorded %s', (file) => {
  const database = filledDatabase()
  const cases = readRecorded(new URL(`${file}.jsonl`, fixtures))
  test.each(cases.map((recorded) => [recorded.sql, recorded] as const))('%s', (_sql, recorded) => {
    expect(difference(database, recorded)).toBeNull()
  })
})
