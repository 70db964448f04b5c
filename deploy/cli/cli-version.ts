// Implements `penstock --version`: prints version and commit, Node.js and platform, and the versions of the formats on
// disk, which show whether this server can open a root folder.

import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { diskFormats } from '../../engine/engine.js'

export function versionText(version: string, packageFolder: URL): string {
  const commit = commitOf(packageFolder)
  const { manifest, log, part } = diskFormats
  return `penstock ${version}${commit === null ? '' : ` (commit ${commit})`}
Node.js ${process.versions.node}, ${process.platform}-${process.arch}
reads manifests of formats ${manifest.oldest} to ${manifest.newest}, logs of format ${log}, parts of format ${part}
`
}

/** In a clone the checked-out commit; else the one of the build. */
function commitOf(folder: URL): string | null {
  if (existsSync(new URL('.git', folder))) {
    const args = ['-C', fileURLToPath(folder), 'rev-parse', '--short=12', 'HEAD']
    const { stdout, status } = spawnSync('git', args, { encoding: 'utf8', timeout: 2000 })
    if (status === 0) return stdout.trim()
  }
  const file = new URL('dist/commit.txt', folder)
  return existsSync(file) ? readFileSync(file, 'utf8').trim() : null
}
