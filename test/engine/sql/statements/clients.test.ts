// Goal: whatever recorded clients of the PostgreSQL world ask of the catalog plans and runs. Method: each recorded script
// is parsed; its queries run over a small catalog, with texts for parameters; statements about cursors, prepared
// statements and COPY belong to the wire protocol.

import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { parseScript } from '../../../../engine/sql/parse/parse.js'
import { dataType } from '../../../../engine/types/column-types.js'
import { MemoryDatabase } from '../../../support/memory-database.js'

const file = new URL('../../../../test/engine/sql/parse/fixtures/clients.jsonl', import.meta.url)
const scripts = readFileSync(file, 'utf8')
  .split('\n')
  .filter((line) => line !== '')
  .map((line) => JSON.parse(line) as string)

const ofTheProtocol = new Set(['copy', 'declare cursor', 'fetch', 'close', 'prepare', 'execute', 'empty'])
const text = { value: 'T', type: dataType('STRING') }

function database(): MemoryDatabase {
  const made = new MemoryDatabase()
  made.run('create table other (ts timestamp, v long, s symbol) timestamp(ts) partition by day wal')
  made.run('create view seen as (select s, v from other)')
  return made
}

function queriesOf(script: string): string[] {
  return parseScript(script)
    .filter(({ statement }) => !ofTheProtocol.has(statement.kind))
    .map(({ start, end }) => script.slice(start, end))
}

describe('statements of clients', () => {
  test.each(scripts.filter((script) => queriesOf(script).length > 0))('%s', (script) => {
    const made = database()
    if (!/create table "T"/i.test(script))
      made.run('create table T (ts timestamp, v long) timestamp(ts) partition by day wal')
    for (const sql of queriesOf(script)) expect(made.run(sql, [text, text, text, text])).toHaveProperty('tag')
  })
})
