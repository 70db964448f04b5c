// Goal: the session cookie of the web console keeps a user signed in and cannot be misused: scripts cannot read it, it
// is valid only together with a header that other sites cannot set, and it ends when it expires, when the password
// changes or when the user is dropped.

import { afterEach, describe, expect, test } from 'vitest'
import { allRights, readRights } from '../../../engine/base/rights.js'
import { Authenticator } from '../../../gateways/common/auth.js'
import { Sessions, sessionSeconds } from '../../../gateways/common/sessions.js'
import { noUsers } from '../../../gateways/common/users.js'
import { consolePages } from '../../../gateways/console/server.js'
import { type TestGateway, testHttp } from '../../support/gateway.js'

const configured = [
  { user: 'admin', password: 'secret', rights: allRights },
  { user: 'viewer, ü', password: 'look', rights: readRights },
]
const access = { configured, anonymous: null }
const pages = consolePages()
const own = { 'x-penstock-console': '1' }
let gateway: TestGateway | null = null

afterEach(async () => {
  await gateway?.close()
  gateway = null
})

async function signIn(user: string, password: string, headers: Record<string, string> = own): Promise<Response> {
  const body = JSON.stringify({ user, password })
  return fetch(`${gateway?.url}/console/session`, { method: 'POST', body, headers })
}

/** The cookie as the browser sends it. */
const cookieOf = (response: Response): string => /^[^;]*/.exec(response.headers.get('set-cookie') ?? '')?.[0] ?? ''

async function statusOf(path: string, headers: Record<string, string>, method = 'GET'): Promise<number> {
  const body = method === 'POST' ? { body: 'a b=1i\n' } : {}
  const response = await fetch(`${gateway?.url}${path}`, { method, headers, ...body })
  await response.arrayBuffer()
  return response.status
}

describe('a session', () => {
  test('is a cookie that scripts and other sites cannot use', async () => {
    gateway = await testHttp({}, { access, pages })
    const response = await signIn('admin', 'secret')
    expect(response.status).toBe(200)
    expect(await response.json()).toMatchObject({ user: 'admin', rights: { admin: true }, signedIn: true })
    const header = response.headers.get('set-cookie') ?? ''
    expect(header).toMatch(new RegExp(`^penstock-session-${gateway.port}=[\\w-]+\\.\\d+\\.[\\w-]{43}; `))
    for (const part of ['Path=/', 'HttpOnly', 'SameSite=Strict', `Max-Age=${sessionSeconds}`])
      expect(header).toContain(part)
    expect(header).not.toContain('Secure')
    expect(header).not.toContain('secret')
  })

  test('counts beside the header of the console alone', async () => {
    gateway = await testHttp({}, { access, pages })
    const cookie = cookieOf(await signIn('admin', 'secret'))
    for (const path of ['/exec?query=rows+1', '/exp?query=rows+1', '/metrics', '/settings', '/warnings']) {
      expect(await statusOf(path, { cookie }), path).toBe(403)
      expect(await statusOf(path, { cookie, ...own }), path).toBe(200)
      expect(await statusOf(path, own), path).toBe(403)
    }
    expect(await statusOf('/write', { cookie }, 'POST')).toBe(403)
    expect(await statusOf('/write', { cookie, ...own }, 'POST')).toBe(204)
    expect(gateway.engine.executed.map(({ options }) => options.session.user)).toEqual(['admin', 'admin'])
  })

  test('has the rights of its user, whose name may have any characters', async () => {
    gateway = await testHttp({}, { access, pages })
    const cookie = `other=1; ${cookieOf(await signIn('viewer, ü', 'look'))}`
    const headers = { cookie, ...own }
    expect(await (await fetch(`${gateway.url}/console/session`, { headers })).json()).toMatchObject({
      user: 'viewer, ü',
      rights: { read: true, write: false, admin: false },
      signedIn: true,
    })
    expect(await statusOf('/exec?query=rows+1', headers)).toBe(200)
    expect(await statusOf('/write', headers, 'POST')).toBe(403)
  })

  test('does not begin with wrong credentials, or for another site', async () => {
    gateway = await testHttp({}, { access, pages })
    const wrong = await signIn('admin', 'guess')
    expect([wrong.status, wrong.headers.get('set-cookie'), wrong.headers.get('www-authenticate')]).toEqual([
      403,
      null,
      null,
    ])
    expect((await signIn('nobody', 'secret')).status).toBe(403)
    expect((await signIn('admin', 'secret', {})).status).toBe(403)
    expect((await signIn('admin', 'secret', { ...own, 'sec-fetch-site': 'cross-site' })).status).toBe(403)
    expect((await signIn('admin', 'x'.repeat(10_000))).status).toBe(413)
    expect(await (await fetch(`${gateway.url}/console/session`)).json()).toMatchObject({ user: '', signedIn: false })
  })

  test('ends with a sign-out', async () => {
    gateway = await testHttp({}, { access, pages })
    const response = await fetch(`${gateway.url}/console/session`, { method: 'DELETE', headers: own })
    expect(response.status).toBe(204)
    expect(response.headers.get('set-cookie')).toContain('=; Path=/; Max-Age=0; HttpOnly')
  })

  test('on an open server everybody is who the server says', async () => {
    gateway = await testHttp({}, { pages })
    expect(await (await fetch(`${gateway.url}/console/session`)).json()).toMatchObject({
      user: 'admin',
      signedIn: false,
    })
  })

  test('is not there without the console', async () => {
    gateway = await testHttp({}, { access })
    expect((await signIn('admin', 'secret')).status).toBe(403)
  })
})

describe('a token', () => {
  let micros = 1_800_000_000_000_000
  const clock = { nowMicros: () => micros, monotonicMs: () => micros / 1000 }
  const auth = new Authenticator({ ...access, users: noUsers })
  const sessions = new Sessions(auth, clock)
  const opened = async (): Promise<string> => (await sessions.open('admin'))?.token ?? ''

  test('is valid until it expires, also after a restart', async () => {
    const token = await opened()
    expect((await sessions.check(token))?.principal.user).toBe('admin')
    const restarted = new Sessions(new Authenticator({ ...access, users: noUsers }), clock)
    expect((await restarted.check(token))?.principal.user).toBe('admin')
    micros += (sessionSeconds - 1) * 1e6
    expect(await sessions.check(token)).not.toBeNull()
    micros += 1e6
    expect(await sessions.check(token)).toBeNull()
  })

  test('cannot be changed', async () => {
    const token = await opened()
    const [user = '', expiry = '', proof = ''] = token.split('.')
    const other = Buffer.from('viewer, ü').toString('base64url')
    const changed = [
      ...[`${other}.${expiry}.${proof}`, `${user}.${Number(expiry) + 1}.${proof}`],
      ...[
        `${user}.${expiry}.${proof.startsWith('A') ? 'B' : 'A'}${proof.slice(1)}`,
        `${user}.${expiry}.`,
        '',
        'x'.repeat(5000),
      ],
    ]
    for (const text of changed) expect(await sessions.check(text), text).toBeNull()
  })

  test('ends with the password, or with the user', async () => {
    const token = await opened()
    auth.reconfigure({ configured: [{ user: 'admin', password: 'new', rights: allRights }], anonymous: null })
    expect(await sessions.check(token)).toBeNull()
    auth.reconfigure({ configured: [], anonymous: null })
    expect(await sessions.check(token)).toBeNull()
    expect(await sessions.open('admin')).toBeNull()
    auth.reconfigure(access)
    expect(await sessions.check(token)).not.toBeNull()
  })
})
