// The session cookie of the web console: reads it from requests, and sets and clears it in responses.
//
// A browser sends cookies with every request to this host, also with requests that pages of other sites cause. So the
// cookie is SameSite=Strict, and is valid only together with a request header that other pages cannot set. Scripts
// cannot read it. Its name contains the port, because a browser shares cookies among all ports of a host.

import type { IncomingMessage } from 'node:http'

export const sessionPath = '/console/session'
/** The console sends it with every request. */
export const ownHeader = 'x-penstock-console'

/** The token of the cookie, if the request comes from the console itself. */
export function sessionToken({ headers, socket }: IncomingMessage): string | undefined {
  if (headers.cookie === undefined || headers[ownHeader] === undefined) return undefined
  const name = cookieName(socket.localPort)
  for (const part of headers.cookie.split(/; */)) {
    if (part.startsWith(`${name}=`)) return part.slice(name.length + 1)
  }
  return undefined
}

/** A Set-Cookie header; 0 seconds remove the cookie. */
export function sessionCookie({ socket, headers }: IncomingMessage, token: string, seconds: number): string {
  const isSecure = 'encrypted' in socket || headers['x-forwarded-proto'] === 'https'
  const parts = [
    `${cookieName(socket.localPort)}=${token}`,
    'Path=/',
    `Max-Age=${seconds}`,
    'HttpOnly',
    'SameSite=Strict',
  ]
  return [...parts, ...(isSecure ? ['Secure'] : [])].join('; ')
}

function cookieName(port: number | undefined): string {
  return `penstock-session-${port ?? 0}`
}
