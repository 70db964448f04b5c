// The inputs of a build, and whether dist/ is up to date. Plain JavaScript without packages, because it runs before a
// build.

import { createHash } from 'node:crypto'
import { existsSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

export const home = dirname(dirname(fileURLToPath(import.meta.url)))

/** Entry points: the command line tool, the embedded database, and the modules of threads. */
export const programs = [
  ...['deploy/cli', 'deploy/embedded/index'],
  ...['engine/threads/query-thread', 'engine/threads/writer-thread', 'engine/threads/log-thread'],
  ...['engine/threads/store-thread', 'engine/threads/backup-thread'],
  ...['gateways/min-http/worker', 'connectors/kafka/worker', 'connectors/sqlite/dump-worker'],
]

const layers = ['engine', 'pipeline', 'gateways', 'connectors', 'deploy']

/** Extent of a build: only the programs for users, or also every module separately, including tests; or only pages. */
const scopes = {
  programs: { stamp: '.built', folders: layers },
  modules: { stamp: '.built-modules', folders: [...layers, 'test'] },
  docs: { stamp: '.built-docs', folders: [] },
}

/** AssemblyScript, which its own compiler compiles to engine/kernels/generated. */
const kernels = 'engine/kernels/as'

/** Paths relative to the repository, with slashes. */
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

/** Files of the console that are copied as they are. */
const consolePage = 'gateways/console/page'

/** A fast digest of all sources: path, size and modification time. */
export function sourcesState(scope) {
  const page = existsSync(join(home, consolePage)) ? readdirSync(join(home, consolePage)) : []
  const copied = page.map((name) => `${consolePage}/${name}`)
  const tools = ['deploy/build.js', 'deploy/load-program.js', 'package.json', 'package-lock.json']
  return stateOf([...sourceFiles(scope), ...copied, ...tools])
}

/** A digest of what the documentation is rendered from. */
export function docsState() {
  const pages = readdirSync(join(home, 'docs'), { recursive: true, encoding: 'utf8' }).filter((name) =>
    name.endsWith('.md'),
  )
  return stateOf([
    'README.md',
    'deploy/build-docs.js',
    'deploy/markdown.js',
    ...pages.sort().map((name) => `docs/${name}`),
  ])
}

function stateOf(paths) {
  const hash = createHash('sha1')
  for (const path of paths) {
    const { size, mtimeMs } = statSync(join(home, path))
    hash.update(`${path} ${size} ${mtimeMs}\n`)
  }
  return hash.digest('hex')
}

export function isBuilt(scope) {
  try {
    return readFileSync(stampPath(scope), 'utf8') === (scope === 'docs' ? docsState() : sourcesState(scope))
  } catch {
    return false
  }
}

export function markBuilt(scope, state) {
  writeFileSync(stampPath(scope), state)
}

/** Called at the beginning of a build, so that an interrupted one does not count as built. */
export function forgetBuilt() {
  for (const scope of Object.keys(scopes)) rmSync(stampPath(scope), { force: true })
}

function stampPath(scope) {
  return join(home, 'dist', scopes[scope].stamp)
}
