// The cookie of the console's session.
//
// Browsers send a cookie with every request to this host, also those that another page causes. So the cookie is
// SameSite=Strict, and counts only beside a header that another page cannot set. Scripts cannot read it. Its name has the
// port, because browsers share cookies among the ports of a host.

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
