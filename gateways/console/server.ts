// Provides the web console: loads its pages and the chart library from this package once.

import { existsSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type Page, type Pages, pageHeaders, readPage } from '../common/pages.js'

const home = '/console/'

const own = ['console.css', 'icon.svg', 'console.js', 'api.js', 'chart.js', 'dialogs.js', 'editor.js', 'element.js']
const files = [...own, 'grid.js', 'tables.js']

export function consolePages(): Pages {
  const folder = pageFolder()
  const library = dirname(createRequire(import.meta.url).resolve('uplot'))
  const pages = new Map<string, Page>([[home, readPage(join(folder, 'index.html'))]])
  for (const name of files) pages.set(home + name, readPage(join(folder, name)))
  pages.set(`${home}uplot.js`, readPage(join(library, 'uPlot.esm.js')))
  pages.set(`${home}uplot.css`, readPage(join(library, 'uPlot.min.css')))
  return { files: pages, home, headers: pageHeaders }
}

/** The folder next to this source file; a compiled file in dist/ uses the one next to its source. */
function pageFolder(): string {
  const here = dirname(fileURLToPath(import.meta.url))
  const beside = join(here, 'page')
  return existsSync(beside) ? beside : join(here, '../../../gateways/console/page')
}
