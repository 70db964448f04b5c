// GET of a page that is served as it is.

import type { Page } from '../common/pages.js'
import type { Handler } from './context.js'

export function handlePage({ contentType, body, etag }: Page): Handler {
  return ({ pages }, { request, response }) => {
    const known = request.headers['if-none-match'] === etag
    const kind = known ? [] : ['Content-Type', contentType, 'Content-Length', String(body.length)]
    response.writeHead(known ? 304 : 200, [...pages.headers, 'ETag', etag, ...kind])
    response.end(known || request.method === 'HEAD' ? undefined : body)
  }
}

/** A path without its last slash leads to the one with it. */
export function handleRedirect(path: string): Handler {
  return (_context, { response }) => {
    response.writeHead(301, ['Location', path, 'Content-Length', '0']).end()
  }
}
