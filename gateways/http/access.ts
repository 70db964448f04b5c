// Authorises an HTTP request before its body is read: determines the session, with the rights of the user whose
// credentials guard.ts has checked. A page of another site may read what its visitor may read, and may not change
// anything (CSRF).
//
// A browser sends requests on behalf of any page, with stored credentials or from a network where none are needed. It
// identifies the page by Sec-Fetch-Site, Origin or Referer. Plain HTTP may carry none of these, so a browser that
// does not identify the page is treated as a foreign site. Tools and drivers send no such headers and are not
// browsers. Browsers never send bearer tokens on their own.

import type { IncomingHttpHeaders } from 'node:http'
import { hasRight, readOnlyMessage } from '../../engine/base/rights.js'
import { nativeDialect, type Session } from '../../engine/engine.js'
import type { Principal } from '../common/users.js'
import type { Exchange, HttpOptions } from './context.js'

const foreignPage = 'a page of another site may not change anything here [docs=security.md]'

export function sessionOf(
  { user, rights }: Principal,
  headers: IncomingHttpHeaders,
  options: HttpOptions,
  trace: NonNullable<Session['trace']>,
): Session {
  const { readOnly } = options
  if (readOnly || !isForeign(headers, options.corsOrigins))
    return { user, rights, protocol: 'http', dialect: nativeDialect, trace, readOnly }
  return {
    ...{ user, rights, protocol: 'http', dialect: nativeDialect, trace },
    ...{ readOnly: true, readOnlyReason: foreignPage },
  }
}

/** Returns the error message for a write that is not permitted; null when it is permitted. */
export function refusalOfWrite({ session }: Pick<Exchange, 'session'>): string | null {
  if (hasRight(session, 'write')) return null
  if (session.readOnly) return session.readOnlyReason ?? readOnlyMessage
  return `the right is missing [user=${session.user}, right=write]`
}

/** The session of an accepted import: its own statements may read the rows that it staged. */
export function importing(session: Session): Session {
  return { ...session, rights: { ...session.rights, read: true } }
}

/** Whether a browser sends this request for a page of another site. */
export function isForeign(headers: IncomingHttpHeaders, corsOrigins: readonly string[] | null): boolean {
  const { authorization, origin, referer } = headers
  if (authorization !== undefined && /^(bearer|token) /i.test(authorization)) return false
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

/** Accepts X-Forwarded-Host because a proxy may rewrite Host, and a page cannot set that header. */
function isOwn(url: string, headers: IncomingHttpHeaders): boolean {
  const host = /^https?:\/\/([^/?#]*)/i.exec(url)?.[1]?.toLowerCase()
  const forwarded = headers['x-forwarded-host']
  return host !== undefined && (host === headers.host?.toLowerCase() || host === String(forwarded).toLowerCase())
}

/** Recognises browsers by User-Agent; PowerShell also claims to be Mozilla. */
function isBrowser(agent: string | undefined): boolean {
  return agent !== undefined && /^(Mozilla|Opera)\//.test(agent) && !agent.includes('PowerShell')
}
