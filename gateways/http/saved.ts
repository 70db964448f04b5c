// Handlers of /api/v1/saved, for queries and dashboards that users of the console save: GET ?kind= lists the items that
// the user may see, PUT stores one, DELETE ?kind=&name= removes one. Every user with the right to read may keep items
// of their own. Sharing an item needs the right to write; removing a shared item of another user needs admin.

import { hasRight, readOnlyMessage, requireRight } from '../../engine/base/rights.js'
import { formatTimestamp } from '../../engine/types/timestamp.js'
import { refusalOfWrite } from './access.js'
import type { Exchange, HttpContext } from './context.js'
import { refuseUnread } from './guard.js'
import { parseQueryString } from './query-string.js'
import { replyJson } from './replies.js'
import { readBody } from './request-body.js'
import { SavedItemConflict, SavedItemError, savedChangeFrom, savedKindFrom } from './saved-items.js'

export async function handleSaved({ saved }: HttpContext, exchange: Exchange): Promise<void> {
  const { response, query, session } = exchange
  requireRight(session, 'read')
  await answering(exchange, async () => {
    const kind = savedKindFrom(parseQueryString(query).parameters.get('kind'))
    replyJson(response, 200, { user: session.user, saved: await saved.visible(kind, session.user) })
  })
}

export async function handleSavedChange({ saved, clock }: HttpContext, exchange: Exchange): Promise<void> {
  const { request, response, session } = exchange
  const refused = refusalOfSaving(exchange)
  if (refused !== null) return refuseUnread(response, 403, { error: refused })
  await answering(exchange, async () => {
    const change = savedChangeFrom(parsed(await readBody(request)), session.user)
    const mayNotShare = change.item.shared ? refusalOfWrite(exchange) : null
    if (mayNotShare !== null) return replyJson(response, 403, { error: mayNotShare })
    const updated = formatTimestamp(BigInt(clock.nowMicros()), 'TIMESTAMP')
    replyJson(response, 200, { status: 'OK', version: await saved.store(change, updated) })
  })
}

export async function handleSavedRemoval({ saved }: HttpContext, exchange: Exchange): Promise<void> {
  const { response, query, session } = exchange
  const refused = refusalOfSaving(exchange)
  if (refused !== null) return refuseUnread(response, 403, { error: refused })
  await answering(exchange, async () => {
    const { parameters } = parseQueryString(query)
    const [kind, name] = [savedKindFrom(parameters.get('kind')), parameters.get('name') ?? '']
    const user = parameters.get('user') ?? session.user
    const found = (await saved.visible(kind, session.user)).find((item) => item.name === name && item.user === user)
    if (found === undefined) return replyJson(response, 404, { error: `there is no such ${kind} [name=${name}]` })
    if (user !== session.user && !hasRight(session, 'admin'))
      return replyJson(response, 403, { error: `the right is missing [user=${session.user}, right=admin]` })
    await saved.remove(found)
    replyJson(response, 200, { status: 'OK' })
  })
}

/** Why the session may not keep anything; null: it may. */
function refusalOfSaving({ session }: Exchange): string | null {
  if (session.readOnly) return session.readOnlyReason ?? readOnlyMessage
  return hasRight(session, 'read') ? null : `the right is missing [user=${session.user}, right=read]`
}

async function answering({ response }: Exchange, work: () => Promise<void>): Promise<void> {
  try {
    await work()
  } catch (error) {
    if (!(error instanceof SavedItemError)) throw error
    replyJson(response, error instanceof SavedItemConflict ? 409 : 400, { error: error.message })
  }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    throw new SavedItemError('the body is not JSON')
  }
}
