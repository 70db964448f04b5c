// `node deploy/kubernetes/render.js`: writes penstock.yaml, beside this file, from the chart in deploy/helm. It needs the
// program `helm`, version 3. The first lines hold a hash of the chart, by which a test without `helm` sees that the
// manifests are those of the chart.

import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const chart = fileURLToPath(new URL('../helm', import.meta.url))
const target = fileURLToPath(new URL('penstock.yaml', import.meta.url))

if (process.argv[1] === fileURLToPath(import.meta.url)) writeFileSync(target, manifests())

/** Hash of the paths and contents of all files of the chart. */
export function chartHash() {
  const hash = createHash('sha256')
  const paths = readdirSync(chart, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }) => join(parentPath, name))
    .toSorted()
  for (const path of paths) {
    hash.update(`${path.slice(chart.length).replaceAll('\\', '/')}\n`)
    hash.update(readFileSync(path, 'utf8'))
  }
  return hash.digest('hex')
}

function manifests() {
  // A `helm` that was built from source believes in an old version of Kubernetes.
  const args = ['template', 'penstock', chart, '--kube-version', '1.30.0']
  const { stdout, stderr, status, error } = spawnSync('helm', args, { encoding: 'utf8' })
  if (status !== 0) throw new Error(error?.message ?? stderr)
  return `# One server with a disk of its own, without Helm. Make the secret first:
#
#   kubectl create secret generic penstock --from-literal=password=<password>
#   kubectl apply -f deploy/kubernetes/penstock.yaml
#
# Rendered from the chart in deploy/helm by deploy/kubernetes/render.js; docs/deploy.md explains both.
# chart: sha256 ${chartHash()}
${stdout.replaceAll('app.kubernetes.io/managed-by: Helm', 'app.kubernetes.io/managed-by: kubectl')}`
}
