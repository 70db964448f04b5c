// `node .ci/with-server.mjs command args ...`: runs a command beside a built server with an empty root folder, then
// ends the server and removes the folder. In the arguments {http}, {line}, {health}, {pg} are ports and {db} is the
// data folder. The variable SERVER_SETTINGS may hold settings `key=value`. The exit status is the command's; a server
// that does not end cleanly is a failure, too.

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const cli = fileURLToPath(new URL('../dist/deploy/cli.js', import.meta.url))
const listeners = ['http.net.bind.to', 'http.min.net.bind.to', 'line.tcp.net.bind.to', 'pg.net.bind.to']
const [command, ...args] = process.argv.slice(2)
const root = mkdtempSync(join(tmpdir(), 'penstock-ci-'))
const further = (process.env.SERVER_SETTINGS ?? '').split(' ').filter((set) => set !== '')
const sets = [...listeners.map((key) => `${key}=127.0.0.1:0`), 'memory.bytes=1g', ...further].flatMap((set) => [
  '--set',
  set,
])
const server = spawn(process.execPath, [cli, 'start', '-d', root, ...sets], { stdio: ['ignore', 'pipe', 'inherit'] })
const closed = once(server, 'close')
let beside = null
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => beside?.kill('SIGTERM'))
let status = 1
try {
  status = await run(await ready())
} finally {
  server.kill('SIGTERM')
  const [code] = await closed
  if (code !== 0) process.stderr.write(`the server ended with status ${code}\n`)
  rmSync(root, { recursive: true, force: true })
  process.exitCode = status === 0 && code !== 0 ? 1 : status
}

/** The text that the server prints when it answers. */
async function ready() {
  let text = ''
  const printed = (async () => {
    for await (const chunk of server.stdout) {
      text += chunk
      if (text.includes('Ctrl-C')) break
    }
  })()
  await Promise.race([printed, closed])
  if (server.exitCode !== null) throw new Error(`the server ended with status ${server.exitCode}`)
  return text
}

async function run(text) {
  const port = (name) => new RegExp(`^ {2}${name} +\\S+:(\\d+)$`, 'm').exec(text)?.[1] ?? ''
  const places = {
    http: port('http'),
    line: port('line protocol'),
    health: port('health'),
    pg: port('postgres'),
    db: join(root, 'db'),
  }
  const filled = args.map((arg) => arg.replace(/\{(\w+)\}/g, (whole, name) => places[name] ?? whole))
  beside = spawn(command, filled, { stdio: ['ignore', 'inherit', 'inherit'] })
  const [code] = await once(beside, 'close')
  return code ?? 1
}
