// What a build is made of, and whether dist/ is what the sources say. Plain JavaScript without packages: what builds and what tests ask it.

import { createHash } from 'node:crypto'
import { existsSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

export const home = dirname(dirname(fileURLToPath(import.meta.url)))

/** The command line tool, and the modules that threads begin with. */
export const programs = [
  ...['deploy/cli', 'deploy/embedded/index'],
  ...['engine/threads/query-thread', 'engine/threads/writer-thread', 'engine/threads/log-thread'],
  ...['gateways/min-http/worker', 'connectors/kafka/worker', 'connectors/sqlite/dump-worker'],
]

const layers = ['engine', 'pipeline', 'gateways', 'connectors', 'deploy']

/** What a build can be of: the programs that users run, or also every module for itself, tests included. */
const scopes = {
  programs: { stamp: '.built', folders: layers },
  modules: { stamp: '.built-modules', folders: [...layers, 'test'] },
}

/** AssemblyScript: its compiler makes engine/kernels/generated of it. */
const kernels = 'engine/kernels/as'

/** Paths below the root folder, with slashes. */
export function sourceFiles(scope) {
  const found = []
  const visit = (folder) => {
    if (folder === kernels || !existsSync(join(home, folder))) return
    for (const entry of readdirSync(join(home, folder), { withFileTypes: true })) {
      const path = `${folder}/${entry.name}`
      if (entry.isDirectory()) visit(path)
      else if (entry.name.endsWith('.ts')) found.push(path)
    }
  }
  for (const folder of scopes[scope].folders) visit(folder)
  return found
}

/** A digest of all sources by path, size and time of change: 10 ms for 1,000 files. */
export function sourcesState(scope) {
  const hash = createHash('sha1')
  for (const path of [...sourceFiles(scope), 'deploy/build.js', 'package.json', 'package-lock.json']) {
    const { size, mtimeMs } = statSync(join(home, path))
    hash.update(`${path} ${size} ${mtimeMs}\n`)
  }
  return hash.digest('hex')
}

export function isBuilt(scope) {
  try {
    return readFileSync(stampPath(scope), 'utf8') === sourcesState(scope)
  } catch {
    return false
  }
}

export function markBuilt(scope, state) {
  writeFileSync(stampPath(scope), state)
}

/** A build that is cut off leaves nothing that counts as built. */
export function forgetBuilt() {
  for (const scope of Object.keys(scopes)) rmSync(stampPath(scope), { force: true })
}

function stampPath(scope) {
  return join(home, 'dist', scopes[scope].stamp)
}
