// Goal: a reader who follows docs/guides/ten-tasks.md command by command completes all ten tasks.
//
// All blocks run in order in one shell, in an empty folder, as in the reader's terminal. A block that consists of
// `penstock start ..` ends the running server and starts one, and a `sql` block is given to `penstock sql`. Ports are
// free ones. Without curl and openssl the test is skipped, without psql the block that needs it.
// `DOCS_COMPLETE=1` writes the actual output into the page.

import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { type DocBlock, runnableBlocks, withResults } from '../support/docs/doc-blocks.js'
import { repositoryRoot } from '../support/docs/source-tree.js'
import { command } from '../support/server.js'

const page = join(repositoryRoot, 'docs/guides/ten-tasks.md')
const complete = process.env['DOCS_COMPLETE'] === '1'
const folder = mkdtempSync(join(tmpdir(), 'penstock-tasks-'))
const sentinel = '--- the block ended with status'
let server: ChildProcess | null = null
let shell: ChildProcess | null = null

afterAll(async () => {
  shell?.kill()
  await endServer()
  rmSync(folder, { recursive: true, force: true })
})

test.skipIf(!has('curl') || !has('openssl'))('the ten tasks', async () => {
  const ports = await portsByDocumented()
  const env = { ...process.env, ...addresses(ports) }
  const text = readFileSync(page, 'utf8')
  const results: (readonly [DocBlock, string])[] = []
  for (const block of runnableBlocks(text).filter((each) => !/\bpsql\b/.test(each.text) || has('psql'))) {
    const start = /^penstock start -d (\S+)$/.exec(block.text)
    if (start !== null) {
      await startServer(start[1] as string, env)
      continue
    }
    const { output, status } = await run(withPorts(commandsOf(block), ports), env)
    const shown = withDocumentedPorts(output, ports).trimEnd()
    expect(status, `line ${block.line}: ${block.text}\n${shown}`).toBe(0)
    results.push([block, shown])
  }
  if (complete) return writeFileSync(page, withResults(text, results))
  for (const [{ line, text: source, expected }, shown] of results)
    if (expected !== null) expect(shown, `line ${line}: ${source}`).toBe(expected)
})

function commandsOf({ kind, text }: DocBlock): string {
  return kind === 'sql' ? `penstock sql <<'END'\n${text}\nEND` : text
}

function has(tool: string): boolean {
  return spawnSync('bash', ['-c', `command -v ${tool}`]).status === 0
}

/** What a block prints, errors included, and the status of its last command. */
async function run(commands: string, env: NodeJS.ProcessEnv): Promise<{ output: string; status: number }> {
  shell ??= openShell(env)
  const { stdin, stdout } = shell
  if (stdin === null || stdout === null) throw new Error('the shell has no streams')
  stdin.write(`{\n${commands}\n} 2>&1 </dev/null\necho "${sentinel} $?"\n`)
  let output = ''
  for (;;) {
    const [chunk] = (await once(stdout, 'data')) as [Buffer]
    output += chunk.toString()
    const end = new RegExp(`^${sentinel} (\\d+)$`, 'm').exec(output)
    if (end !== null) return { output: output.slice(0, end.index), status: Number(end[1]) }
  }
}

function openShell(env: NodeJS.ProcessEnv): ChildProcess {
  const tool = join(folder, 'bin', 'penstock')
  mkdirSync(dirname(tool))
  writeFileSync(tool, `#!/bin/sh\nexec '${process.execPath}' '${command}' "$@"\n`, { mode: 0o755 })
  const path = `${dirname(tool)}:${env['PATH']}`
  return spawn('bash', [], { cwd: folder, env: { ...env, PATH: path }, stdio: ['pipe', 'pipe', 'inherit'] })
}

async function startServer(root: string, env: NodeJS.ProcessEnv): Promise<void> {
  await endServer()
  const started = spawn(process.execPath, [command, 'start', '-d', root], { cwd: folder, env, stdio: 'pipe' })
  server = started
  let output = ''
  await new Promise<void>((resolve, reject) => {
    const gather = (chunk: Buffer): void => {
      output += chunk.toString()
      if (output.includes('Ctrl-C')) resolve()
    }
    started.stdout.on('data', gather)
    started.stderr.on('data', gather)
    started.once('close', (code) => reject(new Error(`the server ended with code ${code}: ${output}`)))
  })
}

async function endServer(): Promise<void> {
  if (server === null || server.exitCode !== null) return
  const closed = once(server, 'close')
  server.kill('SIGINT')
  await closed
}

/** A free port for each one that the page names. */
async function portsByDocumented(): Promise<ReadonlyMap<string, string>> {
  const found = new Map<string, string>()
  const listeners = ['9000', '8812', '9009', '9003'].map((documented) => ({ documented, listener: createServer() }))
  for (const { documented, listener } of listeners) {
    listener.listen(0, '127.0.0.1')
    await once(listener, 'listening')
    const address = listener.address()
    if (address !== null && typeof address === 'object') found.set(documented, String(address.port))
  }
  for (const { listener } of listeners) {
    listener.close()
    await once(listener, 'close')
  }
  return found
}

function addresses(ports: ReadonlyMap<string, string>): Readonly<Record<string, string>> {
  const at = (documented: string): string => `127.0.0.1:${ports.get(documented)}`
  return {
    PENSTOCK_URL: `http://${at('9000')}`,
    PENSTOCK_HTTP_NET_BIND_TO: at('9000'),
    PENSTOCK_PG_NET_BIND_TO: at('8812'),
    PENSTOCK_LINE_TCP_NET_BIND_TO: at('9009'),
    PENSTOCK_HTTP_MIN_NET_BIND_TO: at('9003'),
  }
}

function withPorts(text: string, ports: ReadonlyMap<string, string>): string {
  return text.replaceAll(/(:|-p )(9000|8812|9009|9003)\b/g, (_, before, port) => `${before}${ports.get(port)}`)
}

function withDocumentedPorts(text: string, ports: ReadonlyMap<string, string>): string {
  const lines = text.replaceAll('\r\n', '\n')
  return [...ports].reduce((shown, [documented, port]) => shown.replaceAll(`:${port}`, `:${documented}`), lines)
}
