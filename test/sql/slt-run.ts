// Runs the records of a golden SQL file with one client, and checkpoints between them as the mode requires: rows in
// memory, in data files (parts), or in both. Passes each result to a callback.

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { repositoryRoot } from '../support/docs/source-tree.js'
import type { SltClient } from './clients.js'
import { type Mode, parseSlt, type SltAnswer, type SltRecord } from './slt-file.js'

/** Puts the records of fixtures in the place of their includes. */
export function withFixtures(records: readonly SltRecord[]): SltRecord[] {
  return records.flatMap((record) => {
    if (record.kind !== 'include') return [record]
    return parseSlt(readFileSync(join(repositoryRoot, 'test/sql/fixtures', `${record.sql}.slt`), 'utf8'))
  })
}

/** Begins with an empty database. */
export async function run(
  client: SltClient,
  mode: Mode,
  records: readonly SltRecord[],
  answered: (record: SltRecord, answer: SltAnswer) => void,
): Promise<void> {
  await dropAll(client)
  let changes = 0
  for (const record of records) {
    if (record.kind === 'restart' && client.restartsIn.includes(mode)) await client.restart()
    if (record.sql === '' || client.skips?.(record) === true) continue
    if (mode === 'in parts' && record.kind === 'query' && changes > 0) {
      await mustRun(client, 'checkpoint')
      changes = 0
    }
    answered(record, await client.run(record.sql, record.expected[0]))
    if (record.kind !== 'ok') continue
    changes++
    if (mode === 'in both' && changes % 2 === 1) await mustRun(client, 'checkpoint')
  }
}

async function dropAll(client: SltClient): Promise<void> {
  for (const [kind, names] of [
    ['view', 'select view_name from views()'],
    ['table', "select table_name from tables() where table_type = 'T'"],
  ]) {
    const { lines } = await mustRun(client, names as string)
    for (const name of lines.slice(1)) await mustRun(client, `drop ${kind} '${name.replaceAll("'", "''")}'`)
  }
}

async function mustRun(client: SltClient, sql: string): Promise<SltAnswer> {
  const answer = await client.run(sql)
  if (answer.kind === 'error') throw new Error(`${sql}: ${answer.lines.join(' ')}`)
  return answer
}
