// Goal: the statements that a starting server runs to load and compile its code succeed. (The server ignores their
// errors, so only this test would notice.)

import { expect, test } from 'vitest'
import { firstStatements, runFirstStatements } from '../../deploy/start-statements.js'
import { InlineEngine } from '../support/inline-engine.js'
import { createFaultyDisk } from '../support/simulator/faulty-files.js'

test.each(firstStatements)('%s', async (sql) => {
  const { files } = createFaultyDisk()
  files.makeDirectory('/db')
  files.syncDirectory('/')
  const engine = new InlineEngine({ files })
  await engine.settle()
  expect(await engine.rows(sql)).not.toEqual([])
})

test('an engine that refuses them does not end the start', async () => {
  const requested: string[] = []
  const execute = async (sql: string): Promise<never> => {
    requested.push(sql)
    throw new Error('refused')
  }
  await runFirstStatements({ execute })
  expect(requested).toEqual(firstStatements)
})
