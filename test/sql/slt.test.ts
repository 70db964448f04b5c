// Goal: golden SQL files hold: every record of every .slt file below this folder gives the same answer by every door
// (the engine with and without run-time kernels, /exec of a server and its wire protocol), whether its rows lie in memtables,
// in parts, or in both.
//
// SLT_COMPLETE=1 rewrites the expectations from the first door: the diff is what reviewers read. SLT_FILE=name narrows.
// `npm test` takes a share: the engine with kernels, rows in memtables and in both; /exec and the wire protocol each have half
// of the files. SLT_MODES=all: every door, and the engine's in each of the three places. SLT_MODES=memory: one door and place.

import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { repositoryRoot } from '../support/source-tree.js'
import { engineDoor, type SltDoor, serverDoor } from './doors.js'
import { pgDoor } from './pg-door.js'
import { difference, modes, parseSlt, printSlt, type SltAnswer, type SltRecord } from './slt-file.js'
import { run, withFixtures } from './slt-run.js'

const folder = join(repositoryRoot, 'test/sql')
const complete = process.env['SLT_COMPLETE'] === '1'
const wantedFile = process.env['SLT_FILE'] ?? ''
const files = readdirSync(folder, { recursive: true, encoding: 'utf8' })
  .filter((name) => name.endsWith('.slt') && !name.startsWith('fixtures') && name.includes(wantedFile))
  .sort()

const wantedModes = process.env['SLT_MODES'] ?? ''
const doors: SltDoor[] = []
/** Each has half of the files, unless all are wanted. */
const servers: SltDoor[] = []

beforeAll(async () => {
  doors.push(await engineDoor(true))
  if (complete || wantedModes === 'memory') return
  servers.push(await serverDoor(), await pgDoor())
  if (wantedModes === 'all') doors.push(await engineDoor(false), ...servers)
})

afterAll(async () => {
  for (const door of new Set([...doors, ...servers])) await door.close()
})

for (const [index, file] of files.entries()) {
  test(file, async () => {
    const path = join(folder, file)
    if (complete) return rewrite(path)
    const records = withFixtures(parseSlt(readFileSync(path, 'utf8')))
    const failures = new Map<SltRecord, string>()
    // Each door has a database of its own, and mostly waits.
    const half = servers[index % servers.length]
    const asked = new Set(half === undefined ? doors : [...doors, half])
    await Promise.all([...asked].map((door) => allModes(door, records, failures)))
    const found = records.flatMap((record) => finding(file, record, failures.get(record)))
    expect(found.length, `\n${found.join('\n\n')}\n`).toBe(0)
  })
}

async function allModes(door: SltDoor, records: readonly SltRecord[], failures: Map<SltRecord, string>): Promise<void> {
  for (const mode of door.modes ?? modes) {
    await run(door, mode, records, (record, answer) => {
      const text = difference(record, answer)
      if (text !== null && !failures.has(record)) failures.set(record, `[${door.name}, rows ${mode}]\n${text}`)
    })
  }
}

function finding(file: string, record: SltRecord, failure: string | undefined): string[] {
  const place = `test/sql/${file}:${record.line}`
  if (record.failing) return failure === undefined ? [`${place} passes: take its mark 'failing' off`] : []
  return failure === undefined ? [] : [`${place} ${failure}\n  ${record.sql}`]
}

/** Keeps the expectation of a record marked as failing, and the mark unless the record passes. */
async function rewrite(path: string): Promise<void> {
  const [door] = doors
  if (door === undefined) throw new Error('no door is open')
  const records = parseSlt(readFileSync(path, 'utf8'))
  const found = new Map<SltRecord, SltRecord>()
  await run(door, 'in memory', withFixtures(records), (record, answer) => found.set(record, completed(record, answer)))
  writeFileSync(path, printSlt(records.map((record) => found.get(record) ?? record)))
}

function completed(record: SltRecord, answer: SltAnswer): SltRecord {
  const same = difference(record, answer) === null
  if (record.failing) return same ? { ...record, failing: false } : record
  return same ? record : { ...record, kind: answer.kind, expected: answer.lines }
}
