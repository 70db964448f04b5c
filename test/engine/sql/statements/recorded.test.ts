// Goal: CREATE, INSERT, DROP, RENAME, TRUNCATE and SHOW, executed one after the other in one database, give the
// responses that were recorded from QuestDB for the same statements.

import { expect, test } from 'vitest'
import { MemoryDatabase } from '../../../support/memory-database.js'
import { difference, readRecorded } from '../../../support/recorded.js'

const file = new URL('../fixtures/statements.jsonl', import.meta.url)

test('statements in sequence', () => {
  const database = new MemoryDatabase()
  const wrong = readRecorded(file).flatMap((recorded) => {
    const found = difference(database, recorded)
    return found === null ? [] : [`${recorded.sql}: ${found}`]
  })
  expect(wrong).toEqual([])
})
