// Goal: a backup taken while clients write is consistent, and an interrupted backup leaves the previous one usable;
// `penstock check` finds a changed byte in parts, symbol files, manifest, log and the file of users; a file of a newer
// format is rejected and not changed.

import { type ChildProcess, spawn } from 'node:child_process'
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { crc32 } from 'node:zlib'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { repositoryRoot } from '../support/docs/source-tree.js'
import { TestServer } from '../support/server.js'

const server = new TestServer(['memory.bytes=512m', 'storage.flush.rows=2000'])
const folder = mkdtempSync(join(tmpdir(), 'penstock-backup-'))
const backup = join(folder, 'backup')
const command = join(repositoryRoot, 'dist/deploy/cli.js')
/** Folder of the table that has one part. */
let oldTable = ''

beforeAll(async () => {
  await server.start()
  await server.rows('create table old (ts timestamp, k symbol) timestamp(ts) partition by day')
  await server.rows("insert into old values (0, 'k')")
  await server.rows('checkpoint')
  oldTable = String((await server.rows("select id from tables() where table_name = 'old'"))[0]?.[0])
  await server.rows('create user watcher with no password')
})
afterAll(async () => {
  await server.remove()
  rmSync(folder, { recursive: true, force: true })
})

function spawnTool(args: readonly string[]): ChildProcess {
  const env = { ...process.env, PENSTOCK_URL: `http://${server.address('http')}` }
  return spawn(process.execPath, [command, ...args], { env, stdio: ['ignore', 'pipe', 'pipe'] })
}

function tool(args: readonly string[]): Promise<{ code: number | null; out: string; err: string }> {
  const child = spawnTool(args)
  let [out, err] = ['', '']
  child.stdout?.on('data', (chunk) => (out += chunk))
  child.stderr?.on('data', (chunk) => (err += chunk))
  return new Promise((resolve) => child.on('close', (code) => resolve({ code, out, err })))
}

/** Every request has a row for each of two tables: a consistent copy has the same rows of both. */
function writer(): { stop(): Promise<number> } {
  let running = true
  let written = 0
  const work = async (): Promise<void> => {
    while (running) {
      const base = 1_700_000_000_000_000_000n + BigInt(written) * 1_000_000_000n
      const lines = Array.from({ length: 100 }, (_, n) => {
        const ts = base + BigInt(n)
        return `first,city=c${n % 7} n=${written + n}i ${ts}\nsecond,town=t${n % 5} n=${written + n}i ${ts}`
      })
      const answer = await server.write(`${lines.join('\n')}\n`).catch(() => null)
      if (answer?.status === 204) written += 100
    }
  }
  const working = work()
  return {
    stop: async () => {
      running = false
      await working
      return written
    },
  }
}

/** Rows of both tables of a restored copy. */
async function restored(name: string): Promise<readonly unknown[]> {
  const copy = new TestServer(['memory.bytes=512m'])
  try {
    const { code, err, out } = await tool(['restore', backup, '-d', copy.root])
    expect(err).toBe('')
    expect(code, name).toBe(0)
    expect(out).toContain(` bytes, to ${copy.root}\n`)
    // What is there is never replaced.
    const again = await tool(['restore', backup, '-d', copy.root])
    expect([again.code, again.err]).toEqual([1, expect.stringContaining('is not empty')])
    await copy.start()
    await copy.write('first,city=new n=-1i 1\nsecond,town=new n=-1i 1\n')
    const [first] = await copy.rows("select count(), count_distinct(n), sum(n) from first where city != 'new'")
    const [second] = await copy.rows("select count(), count_distinct(n), sum(n) from second where town != 'new'")
    expect(first, name).toEqual(second)
    expect(first?.[0], name).toBe(first?.[1])
    return first ?? []
  } finally {
    await copy.remove()
  }
}

test('consistent while clients write, incremental, whole whatever is killed', async () => {
  const writing = writer()
  await server.untilRows('select count() > 4000 from first', [[true]])
  expect(await tool(['backup', backup, '-d', server.root])).toMatchObject({ code: 0, err: '' })
  const [rows] = (await restored('first')) as [number]
  expect(rows).toBeGreaterThan(4000)

  // The tool dies at any moment: the backup stays what it was, or is the new one.
  for (const ms of [250, 400, 550]) {
    const child = spawnTool(['backup', backup, '-d', server.root])
    const ended = new Promise((resolve) => child.on('close', resolve))
    setTimeout(() => child.kill('SIGKILL'), ms)
    await ended
    expect((await tool(['check', '-d', backup])).code, `killed after ${ms} ms`).toBe(0)
  }
  const again = await tool(['backup', backup, '-d', server.root, '--json'])
  const result = JSON.parse(again.out) as { parts: number; copiedParts: number; rows: number }
  expect(result.copiedParts).toBeLessThan(result.parts)
  await server.rows('checkpoint release')

  // The server dies meanwhile: what it wrote before is in the next backup, and the last one is still good.
  const child = spawnTool(['backup', backup, '-d', server.root])
  const ended = new Promise((resolve) => child.on('close', resolve))
  setTimeout(() => void server.end('SIGKILL'), 300)
  await ended
  const written = await writing.stop()
  expect((await tool(['check', '-d', backup])).code).toBe(0)
  await server.end('SIGKILL')
  await server.start()
  expect((await tool(['backup', backup, '-d', server.root])).err).toBe('')
  const [count] = (await restored('last')) as [number]
  expect(count).toBeGreaterThanOrEqual(written)
})

test('what is removed meanwhile stays until the release', async () => {
  await server.rows('create table gone as (select x from long_sequence(1000))')
  expect(await server.rows('select * from checkpoint_status()')).toEqual([[false, null]])
  await server.rows('checkpoint create')
  expect(await server.rows('select in_progress, started_at > 0 from checkpoint_status()')).toEqual([[true, true]])
  const id = (await server.rows("select id from tables() where table_name = 'gone'"))[0]?.[0]
  await server.rows('drop table gone')
  const there = (): boolean => readdirSync(join(server.root, 'db')).includes(String(id))
  expect(there()).toBe(true)
  await server.rows('checkpoint release')
  expect(await server.rows('select * from checkpoint_status()')).toEqual([[false, null]])
  await expect.poll(there).toBe(false)
})

test('a restore wants a root without data, and a backup is none of a folder without a server', async () => {
  expect(await tool(['restore', backup, '-d', server.root])).toMatchObject({ code: 1 })
  expect((await tool(['restore', folder, '-d', join(folder, 'x')])).err).toContain('no data in this folder')
  expect((await tool(['backup', join(folder, 'y'), '-d', folder])).err).toContain('no server uses the folder')
})

/** One file of each kind below the database directory. */
function filesOf(root: string): string[] {
  const all = readdirSync(join(root, 'db'), { recursive: true, encoding: 'utf8' }).filter((path) =>
    statSync(join(root, 'db', path)).isFile(),
  )
  // A part of the other tables may have been merged away and wait for its removal.
  const kinds = [new RegExp(`^${oldTable}/.*\\.parquet$`), /\.symbols$/, /^manifest.*\.log$/, /\.wal$/, /users\.pus$/]
  return kinds.flatMap((kind) => all.find((path) => kind.test(path)) ?? [])
}

test('check finds a changed byte and names file and offset', async () => {
  await server.write('first,city=tail n=1i 2\n')
  await server.end('SIGKILL')
  expect((await tool(['check', '-d', server.root])).out).toContain('every checksum is right')
  const copy = join(folder, 'damaged')
  const kinds = filesOf(server.root)
  expect(kinds).toHaveLength(5)
  for (const path of kinds) {
    cpSync(join(server.root, 'db'), join(copy, 'db'), { recursive: true })
    const file = join(copy, 'db', path)
    const bytes = readFileSync(file)
    // Anywhere, but of manifest and log before what a later frame says was durable.
    const at = path.endsWith('.wal') ? 8192 + 40 : path.startsWith('manifest') ? 60 : Math.floor(bytes.length / 3)
    bytes[at] = bytes[at]! ^ 0x55
    writeFileSync(file, bytes)
    const { code, out } = await tool(['check', '-d', copy])
    expect(code, `${path}: ${out}`).toBe(1)
    expect(out).toMatch(new RegExp(`^damaged: ${path.replaceAll('.', '\\.')}, offset \\d+: `, 'm'))
    rmSync(copy, { recursive: true, force: true })
  }
  await server.start()
})

test('files of a newer format are refused with a clear error, and left alone', async () => {
  await server.end('SIGKILL')
  const changes: readonly ((bytes: Buffer) => void)[] = [
    (bytes) => bytes.write('PSD2', 0, 'latin1'),
    (bytes) => bytes.writeUInt32LE(200, 4),
    (bytes) => {
      for (const at of [0, 4096]) {
        bytes.writeUInt32LE(200, at + 4)
        bytes.writeUInt32LE(crc32(bytes.subarray(at, at + 32)), at + 32)
      }
    },
    (bytes) => bytes.write('PUS2', 0, 'latin1'),
  ]
  for (const [index, change] of changes.entries()) {
    // Behind the part: symbols, manifest, log, users. A start that is refused later has a new manifest.
    const path = filesOf(server.root)[index + 1] as string
    const file = join(server.root, 'db', path)
    const before = readFileSync(file)
    const changed = Buffer.from(before)
    change(changed)
    writeFileSync(file, changed)
    await expect(server.start(), path).rejects.toThrow(
      /written by a newer version of this program \[format=\d+, known=\d+\]/,
    )
    expect(readFileSync(file).equals(changed), path).toBe(true)
    writeFileSync(file, before)
  }
  await server.start()
  expect(Number((await server.rows('select count() from first'))[0]?.[0])).toBeGreaterThan(0)
})
