// Provides the web console: loads its pages and the chart library from this package once. The Content-Security-Policy
// forbids scripts, styles and data from any other source.

import { createHash } from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Page, Pages } from '../common/pages.js'

const home = '/console/'

const contentTypes: Readonly<Record<string, string>> = {
  html: 'text/html; charset=utf-8',
  css: 'text/css; charset=utf-8',
  js: 'text/javascript; charset=utf-8',
  svg: 'image/svg+xml',
}

const own = ['console.css', 'icon.svg', 'console.js', 'api.js', 'chart.js', 'dialogs.js', 'editor.js', 'element.js']
const files = [...own, 'grid.js', 'tables.js']

const headers = [
  ...[
    'Content-Security-Policy',
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  ],
  ...['X-Content-Type-Options', 'nosniff'],
  ...['X-Frame-Options', 'DENY'],
  // Without Sec-Fetch-Site (plain HTTP), the referrer identifies our own pages.
  ...['Referrer-Policy', 'same-origin'],
  ...['Cross-Origin-Opener-Policy', 'same-origin'],
  ...['Cache-Control', 'no-cache'],
]

export function consolePages(): Pages {
  const folder = pageFolder()
  const library = dirname(createRequire(import.meta.url).resolve('uplot'))
  const pages = new Map<string, Page>([[home, page('html', join(folder, 'index.html'))]])
  for (const name of files) pages.set(home + name, page(name.split('.')[1] ?? '', join(folder, name)))
  pages.set(`${home}uplot.js`, page('js', join(library, 'uPlot.esm.js')))
  pages.set(`${home}uplot.css`, page('css', join(library, 'uPlot.min.css')))
  return { files: pages, home, headers }
}

/** The folder next to this source file; a compiled file in dist/ uses the one next to its source. */
function pageFolder(): string {
  const here = dirname(fileURLToPath(import.meta.url))
  const beside = join(here, 'page')
  return existsSync(beside) ? beside : join(here, '../../../gateways/console/page')
}

function page(extension: string, path: string): Page {
  const body = readFileSync(path)
  const etag = `"${createHash('sha256').update(body).digest('base64url').slice(0, 16)}"`
  return { contentType: contentTypes[extension] ?? 'application/octet-stream', body, etag }
}
