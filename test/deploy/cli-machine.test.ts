// Goal: the commands `penstock config`, `doctor`, `bench` and `--version` report the true state of a root folder and of
// this machine, and change nothing. Method: the tool as a process, on root folders with and without damage.

import { spawnSync } from 'node:child_process'
import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { checkClock, checkFileLimit, type Finding } from '../../deploy/cli/doctor-machine.js'
import { checkLastEnd } from '../../deploy/cli/doctor-root.js'
import { openProgress, progressText, sizeText } from '../../deploy/cli/progress.js'
import { repositoryRoot } from '../support/docs/source-tree.js'
import { command, TestServer } from '../support/server.js'

const folder = mkdtempSync(join(tmpdir(), 'penstock-doctor-'))
const server = new TestServer(['memory.bytes=512m', 'query.threads=1', 'storage.flush.rows=1000'])
/** Ports that no other server has. */
const quiet =
  'http.net.bind.to=127.0.0.1:0\nhttp.min.net.bind.to=127.0.0.1:0\nline.tcp.net.bind.to=127.0.0.1:0\npg.net.bind.to=127.0.0.1:0\n'

beforeAll(async () => {
  await server.start()
  const lines = Array.from({ length: 5000 }, (_, n) => `cpu,host=h${n % 9} load=${n} ${1_700_000_000 + n}000000000\n`)
  expect((await server.write(lines.join(''))).status).toBe(204)
})

afterAll(async () => {
  await server.remove()
  rmSync(folder, { recursive: true, force: true })
})

function tool(args: readonly string[], env: Readonly<Record<string, string>> = {}) {
  const { status, stdout, stderr } = spawnSync(process.execPath, [command, ...args], {
    ...{ encoding: 'utf8', cwd: folder, env: { ...process.env, ...env } },
  })
  return { status, out: stdout, err: stderr }
}

function doctor(root: string, env: Readonly<Record<string, string>> = {}) {
  const { status, out } = tool(['doctor', '-d', root, '--json'], env)
  return { status, findings: JSON.parse(out) as readonly Finding[] }
}

const problems = (findings: readonly Finding[]) => findings.filter(({ level }) => level === 'problem')

test('--version names version, commit, Node.js and formats', () => {
  const { version } = JSON.parse(readFileSync(join(repositoryRoot, 'package.json'), 'utf8')) as { version: string }
  const { status, out } = tool(['--version'])
  expect(status).toBe(0)
  expect(out).toMatch(new RegExp(`^penstock ${version.replaceAll('.', '\\.')}( \\(commit [0-9a-f]{12}\\))?\n`))
  expect(out).toContain(`Node.js ${process.versions.node}, ${process.platform}-${process.arch}\n`)
  expect(out).toMatch(/manifests of formats 1 to \d+, logs of format \d+, parts of format \d+\n$/)
  expect(tool(['-V']).out).toBe(out)
})

test('config shows each setting with its source', () => {
  const root = join(folder, 'config')
  mkdirSync(join(root, 'conf'), { recursive: true })
  const file = join(root, 'conf', 'server.conf')
  writeFileSync(file, '# comment\nquery.timeout = 30s\nhttp.user=file\n')
  const env = { PENSTOCK_HTTP_USER: 'environment', PENSTOCK_PG_PASSWORD: 'hidden' }
  const { status, out } = tool(['config', '-d', root, '--changed', '--set', 'log.level=W'], env)
  expect(status).toBe(0)
  expect(out.replace(/ +# /g, ' # ').split('\n')).toEqual([
    'http.user = environment # environment PENSTOCK_HTTP_USER',
    'log.level = W # --set log.level',
    'pg.password = **** # environment PENSTOCK_PG_PASSWORD',
    `query.timeout = 30s # ${file}, line 2`,
    '',
  ])
  expect(out).not.toContain('hidden')
  const all = JSON.parse(tool(['config', 'query.', '-d', root, '--json']).out) as { name: string; source: string }[]
  expect(all.every(({ name }) => name.includes('query.'))).toBe(true)
  expect(all.find(({ name }) => name === 'query.threads')).toMatchObject({ value: '0', source: 'default' })
  expect(tool(['config', 'no.such', '-d', root]).status).toBe(2)
  writeFileSync(file, 'query.timeot = 1s\n')
  const wrong = tool(['config', '-d', root])
  expect(wrong.status).toBe(1)
  expect(wrong.err).toContain('perhaps query.timeout is meant')
  // Nothing is created for a root that does not exist.
  expect(tool(['config', '-d', join(folder, 'none')]).status).toBe(0)
  expect(existsSync(join(folder, 'none'))).toBe(false)
})

test('doctor finds nothing wrong with a server that runs', () => {
  const { status, findings } = doctor(server.root)
  expect(problems(findings)).toEqual([])
  expect(status).toBe(0)
  expect(findings.find(({ subject }) => subject === 'root')?.text).toContain('a server uses it')
  expect(findings.some(({ subject }) => subject.startsWith('port'))).toBe(false)
})

test('doctor finds damage, wrong settings and taken ports', async () => {
  await server.end()
  const root = join(folder, 'damaged')
  cpSync(server.root, root, { recursive: true })
  writeFileSync(join(root, 'conf', 'server.conf'), quiet)
  const healthy = doctor(root)
  expect(problems(healthy.findings)).toEqual([])
  expect(healthy.findings.find(({ subject }) => subject === 'data')?.text).toContain('every checksum is right')
  expect(readdirSync(join(root, 'tmp')).filter((name) => name.startsWith('doctor'))).toEqual([])

  const part = readdirSync(join(root, 'db'), { recursive: true, encoding: 'utf8' }).find((name) =>
    name.endsWith('.parquet'),
  )
  const path = join(root, 'db', part ?? '')
  const bytes = readFileSync(path)
  bytes.fill(0xff, 100, 130)
  writeFileSync(path, bytes)
  const damaged = doctor(root)
  expect(damaged.status).toBe(1)
  expect(problems(damaged.findings).map(({ subject, text }) => `${subject} ${text.split(':')[0]}`)).toEqual([
    `data ${part}`,
  ])
  expect(problems(damaged.findings)[0]?.advice).toContain('backup')

  writeFileSync(join(root, 'conf', 'server.conf'), 'http.user = \nno.such = 1\n')
  expect(problems(doctor(root).findings)[0]).toMatchObject({ subject: 'settings' })

  const taken = createServer()
  await new Promise<void>((resolve) => taken.listen(0, '127.0.0.1', resolve))
  const address = taken.address()
  const port = typeof address === 'object' ? address?.port : 0
  const { findings } = doctor(join(folder, 'new'), { PENSTOCK_PG_NET_BIND_TO: `127.0.0.1:${port}` })
  expect(problems(findings).find(({ subject }) => subject === `port ${port}`)?.text).toContain('another program')
  taken.close()
})

describe('doctor says how the last process ended', () => {
  const at = (time: string, text: string): string => `2026-05-0${time}:00.000Z ${text}\n`
  const starting = at('1T10:00', 'I server starting [version=1.0.0, root=/r, node=20.19.0]')
  const ended = (files: Readonly<Record<string, string>>): string[] => {
    const root = mkdtempSync(join(folder, 'ended-'))
    mkdirSync(join(root, 'log'))
    for (const [name, text] of Object.entries(files)) writeFileSync(join(root, 'log', `stdout-${name}.txt`), text)
    return checkLastEnd(root, false).map(({ level, text }) => `${level}: ${text}`)
  }
  const outside = ['ok: was ended from outside; the next start replays its log']

  test.each([
    ['a server', starting + at('1T10:01', 'I server ended'), ['ok: ended cleanly']],
    ['the embedded database', starting + at('1T10:01', 'I server closed'), ['ok: ended cleanly']],
    ['a killed server', starting, outside],
    ['a killed server after another one', starting + at('1T10:01', 'I server ended') + starting, outside],
    ['a message of another logger', starting + at('1T10:01', 'I server lines ended'), outside],
    ['a failed one before the last', starting + at('1T10:01', 'C server cannot start: x') + starting, outside],
    [
      'a failed one',
      starting + at('1T10:01', 'C server the engine cannot continue: x'),
      ['warning: the log of the last server has: server the engine cannot continue: x'],
    ],
    [
      'JSON',
      '{"time":"2026","level":"I","logger":"server","message":"starting [x]"}\n{"level":"I","logger":"server","message":"ended"}\n',
      ['ok: ended cleanly'],
    ],
    ['no records of level I', at('1T10:01', 'W backup slow'), []],
  ])('%s', (_name, text, expected) => {
    expect(ended({ '2026-05-01': text })).toEqual(expected)
  })

  test('one that ran for days, with many records', () => {
    const end = at('3T00:01', 'I server ended')
    const between = at('2T00:01', 'W server slow').repeat(200_000)
    expect(ended({ '2026-05-01': starting, '2026-05-02': between, '2026-05-03': end })).toEqual(['ok: ended cleanly'])
    expect(ended({ '2026-05-01': starting, '2026-05-02': between })).toEqual(outside)
  })
})

test('doctor refuses a newer format with the right advice', () => {
  const root = join(folder, 'newer')
  cpSync(server.root, root, { recursive: true })
  writeFileSync(join(root, 'conf', 'server.conf'), quiet)
  const [name = ''] = readdirSync(join(root, 'db', 'manifest'))
  const path = join(root, 'db', 'manifest', name)
  const bytes = readFileSync(path)
  bytes.writeUInt32LE(99, 4)
  writeFileSync(path, bytes)
  const found = problems(doctor(root).findings)
  expect(found.length).toBeGreaterThan(0)
  expect(found.map(({ advice }) => advice).join()).toContain('newer version')
})

test('limits and clocks', () => {
  const limits = (soft: string) =>
    `Limit  Soft Limit  Hard Limit  Units\nMax open files            ${soft}  4096   files\n`
  expect(checkFileLimit(limits('1024'))[0]).toMatchObject({ level: 'warning' })
  expect(checkFileLimit(limits('65536'))[0]).toMatchObject({ level: 'ok' })
  expect(checkFileLimit('')).toEqual([])
  const now = Date.UTC(2026, 5)
  expect(checkClock(now + 3_600_000, now)).toMatchObject({ level: 'warning', subject: 'clock' })
  expect(checkClock(0, 0)).toMatchObject({ level: 'problem' })
})

test('bench measures and leaves nothing behind', () => {
  const place = join(folder, 'bench')
  const { status, out, err } = tool(['bench', '-d', place, '--seconds', '0.2', '--json'])
  expect(err).toBe('')
  expect(status).toBe(0)
  const { measured } = JSON.parse(out) as { measured: readonly { what: string; value: number; unit: string }[] }
  expect(measured.map(({ unit }) => unit)).toContain('rows/s')
  for (const { what, value } of measured) expect(value, what).toBeGreaterThan(0)
  expect(readdirSync(place)).toEqual([])
  expect(tool(['bench', '-d', place, '--seconds', 'x']).status).toBe(2)
})

test('progress shows amount, rate and remaining time, on terminals alone', () => {
  expect(progressText({ done: 25_000_000, total: 100_000_000, unit: 'bytes', seconds: 5 })).toBe(
    '25 %, 25 MB of 100 MB, 5.0 MB/s, 15 s left',
  )
  expect(progressText({ done: 1500, total: null, unit: 'rows', seconds: 3 })).toBe('1,500 rows, 500 rows/s')
  expect(progressText({ done: 1, total: 7201, unit: 'bytes', seconds: 1 })).toContain('2 h 0 min left')
  expect(sizeText(999)).toBe('999 bytes')
  let written = ''
  let now = 0
  const stream = { isTTY: true, columns: 40, write: (text: string) => (written += text) }
  const progress = openProgress('import', { total: 1000 }, stream, () => now)
  progress.add(100)
  expect(written).toBe('')
  now = 1000
  progress.add(400)
  expect(written).toBe(`\r${'import: 50 %, 500 bytes of 1.0 KB, 500 bytes/s, 1 s left'.slice(0, 39)}\x1b[K`)
  progress.end()
  expect(written.endsWith('\r\x1b[K')).toBe(true)
  written = ''
  openProgress('import', { total: 1 }, { ...stream, isTTY: false }, () => now + 9999).add(1)
  expect(written).toBe('')
})
