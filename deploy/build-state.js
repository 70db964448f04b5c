// Whether dist/ is what the sources say. Plain JavaScript without packages: what builds and what tests ask it.

import { createHash } from 'node:crypto'
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

export const home = dirname(dirname(fileURLToPath(import.meta.url)))
export const stampPath = join(home, 'dist', '.built')
const sourceFolders = ['engine', 'pipeline', 'gateways', 'connectors', 'deploy', 'test']

/** A digest of all sources by path, size and time of change: 5 ms for 500 files. */
export function sourcesState() {
  const hash = createHash('sha1')
  const add = (path) => {
    const { size, mtimeMs } = statSync(join(home, path))
    hash.update(`${path} ${size} ${mtimeMs}\n`)
  }
  const visit = (folder) => {
    if (!existsSync(join(home, folder))) return
    for (const entry of readdirSync(join(home, folder), { withFileTypes: true })) {
      const path = `${folder}/${entry.name}`
      if (entry.isDirectory()) visit(path)
      else if (entry.name.endsWith('.ts')) add(path)
    }
  }
  for (const folder of sourceFolders) visit(folder)
  add('tsconfig.json')
  add('package-lock.json')
  return hash.digest('hex')
}

/** What the last build was made of. */
export function builtState() {
  try {
    return readFileSync(stampPath, 'utf8')
  } catch {
    return ''
  }
}
