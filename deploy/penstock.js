#!/usr/bin/env node
// The command `penstock`. In a source tree it also prepares a fresh clone: it installs packages if node_modules is
// missing or stale, and compiles if dist is; then it runs the command line tool in this process. Plain JavaScript
// without packages, because it runs before these exist. An installed package has no tsconfig.json, so these steps are
// skipped there.
//
//   node deploy/penstock.js start -d <root>     runs the server
//   node deploy/penstock.js build               only installs and compiles: programs, all modules, tests, documentation
//   node deploy/penstock.js build programs      compiles programs and documentation alone, for a package or an image

import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { home, isBuilt } from './build-state.js'

const nodeMin = [20, 19]

const [verb, scope] = process.argv.slice(2)

checkNode()
if (existsSync(join(home, 'tsconfig.json'))) {
  if (installIsStale()) install()
  // A package contains only the programs, so no modules are compiled for it.
  if (verb === 'build' && scope === 'programs') build('programs')
  else if (verb === 'build' && !isBuilt('modules')) build('modules')
  else if (!isBuilt('programs')) build('programs')
  // A build renders the documentation as well.
  if (!isBuilt('docs')) build('docs')
}
if (verb !== 'build') await import('../dist/deploy/cli.js')

function checkNode() {
  const [major = 0, minor = 0] = process.versions.node.split('.').map(Number)
  if (major > nodeMin[0] || (major === nodeMin[0] && minor >= nodeMin[1])) return
  fail(`penstock needs Node ${nodeMin.join('.')} or newer, this is ${process.versions.node}`)
}

/** Whether a package of the lockfile is missing or has another version. Optional packages may be missing. */
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
  const begin = performance.now()
  say('installing packages ..')
  const npm = process.env.npm_execpath
  const args = ['ci', '--include=dev', '--no-audit', '--no-fund']
  if (npm?.endsWith('.js')) run(process.execPath, [npm, ...args])
  else run('npm', args)
  say(`installed in ${((performance.now() - begin) / 1000).toFixed(1)} s`)
}

/** Runs in a separate process, so that the server does not keep the compiler in memory. */
function build(scope) {
  run(process.execPath, [join(home, 'deploy', 'build.js'), scope])
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
