// For tests: the dashboards of deploy/, and their time ranges as Grafana computes them.

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { repositoryRoot } from './docs/source-tree.js'

interface Dashboard {
  readonly time: { readonly from: string; readonly to: string }
  readonly templating: {
    readonly list: readonly { readonly name: string; readonly type: string; readonly query: string }[]
  }
  readonly panels: readonly {
    readonly title: string
    readonly targets: readonly { readonly rawSql: string; readonly format: string | number }[]
  }[]
}

/** A path below deploy/. */
export function dashboardOf(path: string): Dashboard {
  return JSON.parse(readFileSync(join(repositoryRoot, 'deploy', path), 'utf8'))
}

/** `2026-03-02T00:00:00.000Z` as it is, `now-1h` and `now` from the clock. */
export function instant(text: string): string {
  const [, count] = /^now(?:-(\d+)h)?$/.exec(text) ?? []
  if (!text.startsWith('now')) return text
  return new Date(Date.now() - Number(count ?? 0) * 3_600_000 + (count === undefined ? 60_000 : 0)).toISOString()
}
