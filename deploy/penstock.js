#!/usr/bin/env node
// The command `penstock`, and how a fresh clone becomes runnable: in a source tree it installs what the lockfile names
// when node_modules is missing or stale and compiles when dist is, then runs the command line tool in this process.
// Plain JavaScript without packages, since it runs before either is there. An installed package has no tsconfig.json,
// and nothing of this happens there.
//
//   node deploy/penstock.js start -d <root>     runs the server
//   node deploy/penstock.js build               only installs and compiles

import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { builtState, home, sourcesState, stampPath } from './build-state.js'

const nodeMin = [20, 19]

checkNode()
if (existsSync(join(home, 'tsconfig.json'))) {
  if (installIsStale()) install()
  const state = sourcesState()
  if (builtState() !== state) build(state)
}
if (process.argv[2] !== 'build') await import('../dist/deploy/cli.js')

function checkNode() {
  const [major = 0, minor = 0] = process.versions.node.split('.').map(Number)
  if (major > nodeMin[0] || (major === nodeMin[0] && minor >= nodeMin[1])) return
  fail(`penstock needs Node ${nodeMin.join('.')} or newer, this is ${process.versions.node}`)
}

/** Whether a package of the lockfile is missing or has another version; optional ones may be missing. */
function installIsStale() {
  const locked = packagesOf(join(home, 'package-lock.json'))
  const installed = packagesOf(join(home, 'node_modules', '.package-lock.json'))
  if (locked === null || installed === null) return true
  for (const [path, { version, optional, link }] of Object.entries(locked)) {
    if (path === '' || link) continue
    const found = installed[path]
    if (found === undefined ? !optional : found.version !== version) return true
  }
  return false
}

function packagesOf(lockfile) {
  try {
    return JSON.parse(readFileSync(lockfile, 'utf8')).packages
  } catch {
    return null
  }
}

function install() {
  say('installing packages from the lockfile ...')
  const npm = process.env.npm_execpath
  const args = ['ci', '--include=dev', '--no-audit', '--no-fund']
  if (npm?.endsWith('.js')) run(process.execPath, [npm, ...args])
  else run('npm', args)
}

function build(state) {
  say('building ...')
  run(process.execPath, [join(home, 'node_modules', 'typescript', 'bin', 'tsc'), '-p', home])
  run(process.execPath, [join(home, 'dist', 'deploy', 'pack.js')])
  mkdirSync(dirname(stampPath), { recursive: true })
  writeFileSync(stampPath, state)
}

function run(command, args) {
  const shell = process.platform === 'win32' && command === 'npm'
  const { status, error } = spawnSync(command, args, { cwd: home, stdio: ['ignore', 2, 2], shell })
  if (error !== undefined) fail(`${command} cannot be run: ${error.message}`)
  if (status !== 0) fail(`${command} ${args.join(' ')} failed with status ${status}`)
}

function say(text) {
  process.stderr.write(`penstock: ${text}\n`)
}

function fail(text) {
  say(text)
  process.exit(1)
}
