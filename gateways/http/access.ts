// Who a request comes from and what it may do, decided before its body is read.
//
//   1. credentials   of the Authorization header; wrong or missing ones are answered 403
//   2. origin        a page of another site may read what its visitor may read, and changes nothing
//
// A browser sends requests for any page, with the credentials it keeps for the server, or from a network where none are
// asked for. It tells by Sec-Fetch-Site, Origin or Referer whose page it was; plain HTTP from a page may bring none of
// these, so a browser that proves nothing counts as another site. Tools and drivers say none of it and are no browsers;
// a bearer token is never sent by a browser on its own.

import type { IncomingHttpHeaders } from 'node:http'
import { hasRight, readOnlyMessage } from '../../engine/base/rights.js'
import type { Session } from '../../engine/engine.js'
import type { Principal } from '../common/users.js'
import type { Exchange, HttpOptions } from './context.js'

const foreignPage = 'a page of another site may not change anything here [docs=security.md]'

export function sessionOf(
  { user, rights }: Principal,
  headers: IncomingHttpHeaders,
  options: HttpOptions,
  trace: NonNullable<Session['trace']>,
): Session {
  if (options.readOnly) return { user, rights, protocol: 'http', trace, readOnly: true }
  if (!isForeign(headers, options.corsOrigins)) return { user, rights, protocol: 'http', trace, readOnly: false }
  return { user, rights, protocol: 'http', trace, readOnly: true, readOnlyReason: foreignPage }
}

/** The words for a request that changes something and may not; null: it may. */
export function refusalOfWrite({ session }: Pick<Exchange, 'session'>): string | null {
  if (hasRight(session, 'write')) return null
  if (session.readOnly) return session.readOnlyReason ?? readOnlyMessage
  return `the right is missing [user=${session.user}, right=write]`
}

/** For an import that has been let in: its own statements read what it staged. */
export function importing(session: Session): Session {
  return { ...session, rights: { ...session.rights, read: true } }
}

/** Whether a browser sends this for a page of another site. */
export function isForeign(headers: IncomingHttpHeaders, corsOrigins: readonly string[] | null): boolean {
  if (/^(bearer|token) /i.test(headers.authorization ?? '')) return false
  const { origin, referer } = headers
  if (origin !== undefined && isAllowedOrigin(origin, corsOrigins)) return false
  const site = headers['sec-fetch-site']
  if (site !== undefined) return site !== 'same-origin' && site !== 'none'
  if (origin !== undefined) return !isOwn(origin, headers)
  if (referer !== undefined) return !isOwn(referer, headers)
  return isBrowser(headers['user-agent'])
}

export function isAllowedOrigin(origin: string, corsOrigins: readonly string[] | null): boolean {
  return corsOrigins?.some((allowed) => allowed === '*' || allowed.toLowerCase() === origin.toLowerCase()) === true
}

/** A proxy may have changed Host; X-Forwarded-Host is nothing that a page can add. */
function isOwn(url: string, headers: IncomingHttpHeaders): boolean {
  const host = /^https?:\/\/([^/?#]*)/i.exec(url)?.[1]?.toLowerCase()
  const forwarded = headers['x-forwarded-host']
  return host !== undefined && (host === headers.host?.toLowerCase() || host === String(forwarded).toLowerCase())
}

/** PowerShell calls itself a browser. */
function isBrowser(agent: string | undefined): boolean {
  return agent !== undefined && /^(Mozilla|Opera)\//.test(agent) && !agent.includes('PowerShell')
}
