// Pages of the documentation for the HTTP gateway, below /docs/: those that the build has rendered into dist/docs/, and
// the style sheet and search script from this package. All are read once; none is loaded from another server.

import { existsSync, readdirSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type Page, type Pages, pageHeaders, readPage } from '../common/pages.js'

const home = '/docs/'

export function docsPages(): Pages {
  const files = new Map<string, Page>()
  for (const name of ['docs.css', 'docs.js']) files.set(home + name, readPage(join(assetFolder(), name)))
  const rendered = renderedFolder()
  for (const path of filesBelow(rendered)) files.set(home + path.replace(/\.gz$/, ''), readPage(join(rendered, path)))
  for (const [path, page] of [...files])
    if (path.endsWith('/index.html')) files.set(path.replace('index.html', ''), page)
  return { files, home: null, headers: pageHeaders }
}

/** Paths relative to the folder, with slashes. */
function filesBelow(folder: string): string[] {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    if (!entry.isDirectory()) return [entry.name]
    return filesBelow(join(folder, entry.name)).map((path) => `${entry.name}/${path}`)
  })
}

/** dist/docs/, from this file's place in dist/ or in the sources. */
function renderedFolder(): string {
  const here = dirname(fileURLToPath(import.meta.url))
  const beside = join(here, '../../docs')
  return existsSync(join(beside, 'search.json.gz')) ? beside : join(here, '../../dist/docs')
}

/** The folder next to this source file; a compiled file in dist/ uses the one next to its source. */
function assetFolder(): string {
  const here = dirname(fileURLToPath(import.meta.url))
  const beside = join(here, 'page')
  return existsSync(beside) ? beside : join(here, '../../../gateways/docs/page')
}
