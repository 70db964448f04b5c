// Endpoints for sessions of the web console: sign in, sign out, and report the signed-in user.
//
//   GET /console/session      {user, rights, signedIn, expires}; an empty user: not signed in, but credentials are
//                             required
//   POST /console/session     {user, password} as JSON: sets the cookie; 403 if they are wrong
//   DELETE /console/session   removes the cookie

import { sessionSeconds } from '../common/sessions.js'
import type { Principal } from '../common/users.js'
import { isForeign } from './access.js'
import type { Exchange, HttpContext } from './context.js'
import { refuseUnread } from './guard.js'
import { replyEmpty, replyJson } from './replies.js'
import { headerText, readBody } from './request-body.js'
import { ownHeader, sessionCookie, sessionToken } from './session-cookie.js'

const bodyBytesMax = 8 * 1024
/** A session is renewed when a page asks for it and this much of its time is over. */
const renewalShare = 1 / 7

/** Reports who is signed in, and renews a session that is some days old. */
export async function handleSession(
  { auth, sessions, clock }: HttpContext,
  { request, response }: Exchange,
): Promise<void> {
  const token = request.headers.authorization === undefined ? sessionToken(request) : undefined
  const session = token === undefined ? null : await sessions.check(token)
  if (session === null) {
    const principal = await auth.header(request.headers.authorization)
    return replyJson(response, 200, { ...identity(principal), signedIn: false, expires: '' })
  }
  let { expirySeconds } = session
  const remaining = expirySeconds - clock.nowMicros() / 1e6
  if (remaining < sessionSeconds * (1 - renewalShare)) {
    const renewed = await sessions.open(session.principal.user)
    if (renewed !== null) {
      expirySeconds = renewed.expirySeconds
      response.setHeader('Set-Cookie', sessionCookie(request, renewed.token, sessionSeconds))
    }
  }
  replyJson(response, 200, { ...identity(session.principal), signedIn: true, expires: isoOf(expirySeconds) })
}

export async function handleSignIn(context: HttpContext, { request, response, connection }: Exchange): Promise<void> {
  const { auth, sessions, options, refusals } = context
  if (request.headers[ownHeader] === undefined || isForeign(request.headers, options.corsOrigins)) {
    return refuseUnread(response, 403, { error: 'only the console signs in here; programs send Authorization' })
  }
  if (Number(headerText(request, 'content-length') ?? bodyBytesMax + 1) > bodyBytesMax) {
    return refuseUnread(response, 413, { error: 'the body is too long' })
  }
  const { user, password } = credentialsOf(await readBody(request))
  const principal = user === '' ? null : await auth.password(user, password)
  const session = principal === null ? null : await sessions.open(user)
  if (principal === null || session === null) {
    refusals.note(request.socket, 'credentials are missing or wrong')
    return replyJson(response, 403, { error: 'The user or the password is wrong.' })
  }
  connection.principal = principal.user
  response.setHeader('Set-Cookie', sessionCookie(request, session.token, sessionSeconds))
  replyJson(response, 200, { ...identity(principal), signedIn: true, expires: isoOf(session.expirySeconds) })
}

/** Needs no credentials: it changes nothing on the server. */
export function handleSignOut(_context: HttpContext, { request, response }: Exchange): void {
  response.setHeader('Set-Cookie', sessionCookie(request, '', 0))
  replyEmpty(response, 204)
}

function identity(principal: Principal | null): { user: string; rights: Principal['rights'] | object } {
  return { user: principal?.user ?? '', rights: principal?.rights ?? {} }
}

function credentialsOf(text: string): { user: string; password: string } {
  let parsed: unknown
  try {
    parsed = JSON.parse(text)
  } catch {
    parsed = null
  }
  const { user = '', password = '' } = typeof parsed === 'object' && parsed !== null ? { ...parsed } : {}
  return { user: String(user), password: String(password) }
}

function isoOf(seconds: number): string {
  return new Date(seconds * 1000).toISOString()
}
