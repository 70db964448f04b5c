// Files of the web console for the HTTP gateway: reads those that the build has put into dist/console/, once.

import { existsSync, readdirSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type Page, type Pages, pageHeaders, readPage } from '../common/pages.js'

const home = '/console/'

export function consolePages(): Pages {
  const folder = bundledFolder()
  const files = new Map<string, Page>()
  for (const name of readdirSync(folder))
    files.set(name === 'index.html' ? home : home + name, readPage(join(folder, name)))
  return { files, home, headers: pageHeaders }
}

/** dist/console/, from this file's place in dist/ or in the sources. */
function bundledFolder(): string {
  const here = dirname(fileURLToPath(import.meta.url))
  const beside = join(here, '../../console')
  return existsSync(beside) ? beside : join(here, '../../dist/console')
}
