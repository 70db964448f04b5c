// Goal: each way to authenticate accepts valid credentials and no others. HTTP headers and the SCRAM exchange of the
// PostgreSQL protocol know the users of the settings and those created by SQL; the MD5 exchange knows those of the
// settings alone. HTTP requests without credentials, or with invalid ones, get the rights of the anonymous user, if
// there is one. Accepted credentials are cached only until a user changes.

import { createHash, createHmac, pbkdf2Sync } from 'node:crypto'
import { expect, test } from 'vitest'
import { makeVerifier, parseVerifier, preparedPassword, verifierText } from '../../../engine/base/password.js'
import { allRights, readRights } from '../../../engine/base/rights.js'
import type { StoredUser, UserDirectory } from '../../../engine/engine.js'
import { Authenticator } from '../../../gateways/common/auth.js'
import { challenge } from '../../../gateways/common/scram.js'
import type { Principal } from '../../../gateways/common/users.js'

const configured = [{ user: 'admin', password: 'secret', rights: allRights }]
const basic = (text: string): string => `Basic ${Buffer.from(text).toString('base64')}`

async function directory(): Promise<UserDirectory & { epoch: number; known: Map<string, StoredUser> }> {
  const bob = { user: 'bob', rights: readRights, verifier: await makeVerifier('pass:wörd') }
  const robot = { user: 'robot', rights: readRights, verifier: null }
  const known = new Map<string, StoredUser>([
    ['bob', bob],
    ['robot', robot],
  ])
  return {
    epoch: 1,
    known,
    user: (name) => known.get(name),
    byToken: (token) => (token === 'good-token' ? robot : undefined),
    byLineKey: () => undefined,
    onChange: () => {},
  }
}

async function authenticator(anonymous: Principal | null = null) {
  const users = await directory()
  return { users, auth: new Authenticator({ configured, users, anonymous }) }
}

test.each([
  [undefined, null],
  ['', null],
  ['Basic', null],
  ['Basic YWRtaW4=', null],
  [basic('admin:secret'), 'admin'],
  [`basic  ${Buffer.from('admin:secret').toString('base64')}`, 'admin'],
  [basic('ADMIN:secret'), null],
  [basic('admin:Secret'), null],
  [basic('admin:'), null],
  [basic('bob:pass:wörd'), 'bob'],
  [basic('bob:pass'), null],
  [basic('nobody:pass'), null],
  [basic('robot:'), null],
  ['Bearer good-token', 'robot'],
  ['Token good-token', 'robot'],
  ['Bearer bad', null],
  ['Bearer', null],
  ['Digest x', null],
  [`Bearer ${'x'.repeat(10_000)}`, null],
])('header %s', async (header, wanted) => {
  const { auth } = await authenticator()
  expect((await auth.header(header))?.user ?? null).toBe(wanted)
  expect((await auth.header(header))?.user ?? null).toBe(wanted)
})

test('without credentials, or with unknown ones, the anonymous user comes in if there is one', async () => {
  const { auth } = await authenticator({ user: 'admin', rights: allRights })
  expect((await auth.header(undefined))?.rights).toEqual(allRights)
  expect((await auth.header('Token whatever'))?.rights).toEqual(allRights)
  expect((await auth.header(basic('bob:pass:wörd')))?.rights).toEqual(readRights)
})

test('right credentials are remembered until a user changes', async () => {
  const { auth, users } = await authenticator()
  expect((await auth.header(basic('bob:pass:wörd')))?.user).toBe('bob')
  expect(auth.header(basic('bob:pass:wörd'))).not.toBeInstanceOf(Promise)
  users.known.delete('bob')
  users.epoch++
  expect(await auth.header(basic('bob:pass:wörd'))).toBeNull()
})

/** What a client of the wire protocol computes. */
function clientFinal(password: string, clientFirst: string, serverFirst: string): { message: string; wanted: string } {
  const [, nonce = '', salt = '', iterations = ''] = /^r=([^,]*),s=([^,]*),i=(\d+)$/.exec(serverFirst) ?? []
  const salted = pbkdf2Sync(password, Buffer.from(salt, 'base64'), Number(iterations), 32, 'sha256')
  const hmac = (key: Buffer, text: string): Buffer => createHmac('sha256', key).update(text).digest()
  const clientKey = hmac(salted, 'Client Key')
  const bare = clientFirst.slice(clientFirst.indexOf(',,') + 2)
  const withoutProof = `c=biws,r=${nonce}`
  const authMessage = `${bare},${serverFirst},${withoutProof}`
  const signature = hmac(createHash('sha256').update(clientKey).digest(), authMessage)
  const proof = clientKey.map((byte, index) => byte ^ signature[index]!)
  const wanted = `v=${hmac(hmac(salted, 'Server Key'), authMessage).toString('base64')}`
  return { message: `${withoutProof},p=${Buffer.from(proof).toString('base64')}`, wanted }
}

test.each([
  ['admin', 'secret', 'admin'],
  ['admin', 'wrong', null],
  ['bob', 'pass:wörd', 'bob'],
  ['bob', 'secret', null],
  ['nobody', 'secret', null],
])('SCRAM of %s with %s', async (user, password, wanted) => {
  const { auth } = await authenticator()
  const { verifier, principal } = await auth.verifier(user)
  const first = `n,,n=${user},r=abcDEF123`
  const begun = challenge(verifier, first)
  const final = clientFinal(password, first, begun.message)
  const answer = begun.finish(final.message)
  expect(answer).toBe(wanted === null ? null : final.wanted)
  if (wanted !== null) expect(principal?.user).toBe(wanted)
})

test('who does not exist gets the same salt twice', async () => {
  const { auth } = await authenticator()
  const salts = [await auth.verifier('ghost'), await auth.verifier('ghost')].map(({ verifier }) => verifier.salt)
  expect(salts[0]).toEqual(salts[1])
})

test('a wrong password of a configured user waits like that of an unknown one; the right one never waits', async () => {
  const { auth } = await authenticator()
  const waiting = Array.from({ length: 500 }, () => auth.password('nobody', 'x'))
  await expect(auth.password('nobody', 'x')).rejects.toThrow('too many passwords')
  await expect(auth.password('admin', 'x')).rejects.toThrow('too many passwords')
  expect((await auth.password('admin', 'secret'))?.user).toBe('admin')
  await Promise.all(waiting)
  expect(await auth.password('admin', 'x')).toBeNull()
})

test('the first challenge of an unknown user takes no less time than that of a configured one', async () => {
  const { auth } = await authenticator()
  const order: string[] = []
  const ask = (name: string): Promise<unknown> => auth.verifier(name).then(() => order.push(name))
  await Promise.all(['admin', 'nobody', 'bob'].map(ask))
  expect(order).toEqual(['admin', 'nobody', 'bob'])
})

test.each(['', 'x', 'n,,n=bob', 'p=tls-unique,,n=bob,r=abc', 'n,,n=bob,r='])('SCRAM refuses %s', async (first) => {
  const { auth } = await authenticator()
  const { verifier } = await auth.verifier('bob')
  expect(() => challenge(verifier, first)).toThrow('malformed')
})

test('SCRAM refuses a changed nonce or binding', async () => {
  const { auth } = await authenticator()
  const { verifier } = await auth.verifier('bob')
  const begun = challenge(verifier, 'n,,n=bob,r=abc')
  expect(() => begun.finish('c=biws,r=abc,p=AAAA')).toThrow('nonce')
  expect(() => begun.finish('c=eSws,r=abc,p=AAAA')).toThrow('binding')
})

test('MD5 answers of configured users', async () => {
  const { auth } = await authenticator()
  const md5 = (text: string | Buffer): string => createHash('md5').update(text).digest('hex')
  const salt = Buffer.from([1, 2, 3, 4])
  const answer = (password: string): string => `md5${md5(Buffer.concat([Buffer.from(md5(`${password}admin`)), salt]))}`
  expect(auth.md5('admin', salt, answer('secret'))?.user).toBe('admin')
  expect(auth.md5('admin', salt, answer('wrong'))).toBeNull()
  expect(auth.md5('bob', salt, answer('secret'))).toBeNull()
})

test('neither method nor salt reveals which names exist, also after a restart', async () => {
  const { users } = await authenticator()
  const nameSecret = Buffer.from('of a root')
  const open = (): Authenticator => new Authenticator({ configured, users, anonymous: null, nameSecret })
  const [auth, restarted] = [open(), open()]
  const unknown = Array.from({ length: 100 }, (_, index) => `nobody ${index}`)
  const names = ['admin', 'bob', ...unknown]
  const methods = names.map((name) => auth.usesMd5(name))
  expect(methods.slice(0, 2)).toEqual([true, false])
  expect(names.map((name) => restarted.usesMd5(name))).toEqual(methods)
  const asked = methods.slice(2).filter((isMd5) => isMd5).length
  expect(asked).toBeGreaterThan(25)
  expect(asked).toBeLessThan(75)
  for (const name of names) {
    const [{ verifier }, { verifier: later }] = [await auth.verifier(name), await restarted.verifier(name)]
    expect(later.salt, name).toEqual(verifier.salt)
    expect(verifier.salt, name).toHaveLength(16)
    expect(verifier.iterations, name).toBe(4096)
  }
})

test('verifiers are texts and back', async () => {
  const text = verifierText(await makeVerifier('x'))
  expect(text).toMatch(/^SCRAM-SHA-256\$4096:/)
  const parsed = parseVerifier(text)
  expect(parsed === null ? '' : verifierText(parsed)).toBe(text)
  expect(parseVerifier(`${text}x`)).toBeNull()
  expect(preparedPassword('a\u00a0b\u00adc\u2168')).toBe('a bcIX')
})
