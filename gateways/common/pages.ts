// Type and helpers of static pages that the HTTP gateway serves: the console and the documentation. deploy/main.ts
// loads the pages and passes them to the gateway, because the folder gateways/http must not import gateways/console and
// gateways/docs. The pages' Content-Security-Policy forbids inline scripts and styles, and scripts, styles and data
// from other servers.

import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { extname } from 'node:path'
import { gunzipSync } from 'node:zlib'

export interface Page {
  readonly contentType: string
  readonly body: Buffer
  /** Lets a browser revalidate its cached copy. */
  readonly etag: string
}

export interface Pages {
  /** Pages by path. */
  readonly files: ReadonlyMap<string, Page>
  /** Redirect target for a browser that requests `/`; null: no redirect. */
  readonly home: string | null
  /** Headers of every page. */
  readonly headers: readonly string[]
}

export const noPages: Pages = { files: new Map(), home: null, headers: [] }

const contentTypes: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.json': 'application/json; charset=utf-8',
  '.svg': 'image/svg+xml',
}

export const pageHeaders: readonly string[] = [
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

/** Reads a page, which is compressed on the disk if its name ends in `.gz`. */
export function readPage(path: string): Page {
  const isPacked = path.endsWith('.gz')
  const body = isPacked ? gunzipSync(readFileSync(path)) : readFileSync(path)
  const etag = `"${createHash('sha256').update(body).digest('base64url').slice(0, 16)}"`
  const extension = extname(isPacked ? path.slice(0, -3) : path)
  return { contentType: contentTypes[extension] ?? 'application/octet-stream', body, etag }
}

/** Both sets of pages; the home is that of the first. */
export function joinPages(first: Pages, second: Pages): Pages {
  return { ...first, files: new Map([...first.files, ...second.files]) }
}

/** Paths without the trailing slash of a page, with the page to which each is redirected. */
export function redirectsOf({ files }: Pages): Map<string, string> {
  const folders = [...files.keys()].filter((path) => path.endsWith('/'))
  return new Map(folders.map((path) => [path.slice(0, -1), path]))
}
