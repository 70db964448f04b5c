// GET /chk: whether a table exists.

import { demandRight } from '../../engine/base/rights.js'
import type { Exchange, HttpContext } from './context.js'
import { parseQueryString } from './query-string.js'
import { contentTypes, reply, replyText } from './replies.js'

export function handleChk({ engine }: HttpContext, { response, query, session }: Exchange): void {
  demandRight(session, 'read')
  const { parameters } = parseQueryString(query)
  const name = parameters.get('j') ?? ''
  const status = engine.tableExists(name) ? 'Exists' : 'Does not exist'
  if (name === '') replyText(response, 200, 'table name missing\r\n')
  else if (parameters.get('f') === 'json') reply(response, 200, contentTypes.plainJson, JSON.stringify({ status }))
  else replyText(response, 200, `${status}\r\n`)
}
