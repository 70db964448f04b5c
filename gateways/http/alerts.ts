// Handlers of /api/v1/alerts: PUT defines an alert or replaces the one of its name, DELETE ?name= removes one. The
// virtual table sys.alerts shows them with their states.

import { AlertError, alertFrom } from '../common/alerts.js'
import { refusalOfWrite } from './access.js'
import type { Exchange, HttpContext } from './context.js'
import { refuseUnread } from './guard.js'
import { parseQueryString } from './query-string.js'
import { replyJson } from './replies.js'
import { readBody } from './request-body.js'

export async function handleAlert({ alerts }: HttpContext, exchange: Exchange): Promise<void> {
  const { request, response, session } = exchange
  const refused = refusalOfWrite(exchange)
  if (refused !== null) return refuseUnread(response, 403, { error: refused })
  try {
    await alerts.define(alertFrom(parsed(await readBody(request)), session.user))
    replyJson(response, 200, { status: 'OK' })
  } catch (error) {
    if (!(error instanceof AlertError)) throw error
    replyJson(response, 400, { error: error.message })
  }
}

export async function handleAlertRemoval({ alerts }: HttpContext, exchange: Exchange): Promise<void> {
  const { response, query } = exchange
  const refused = refusalOfWrite(exchange)
  if (refused !== null) return refuseUnread(response, 403, { error: refused })
  const name = parseQueryString(query).parameters.get('name') ?? ''
  try {
    if (await alerts.remove(name)) replyJson(response, 200, { status: 'OK' })
    else replyJson(response, 404, { error: `there is no such alert [name=${name}]` })
  } catch (error) {
    if (!(error instanceof AlertError)) throw error
    replyJson(response, 400, { error: error.message })
  }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    throw new AlertError('the body is not JSON')
  }
}
