// Goal: each authentication method accepts the right password of configured and stored users, and no other; a
// connection above the limit is refused with the reason.

import pg from 'pg'
import { afterEach, expect, test } from 'vitest'
import { makeVerifier } from '../../../../engine/base/password.js'
import { allRights, readRights } from '../../../../engine/base/rights.js'
import type { UserDirectory } from '../../../../engine/engine.js'
import { Authenticator } from '../../../../gateways/common/auth.js'
import { noUsers } from '../../../../gateways/common/users.js'
import { openPgGateway, type PgGateway, type PgOptions } from '../../../../gateways/pgwire/server.js'
import { context } from '../../../support/gateway.js'

let gateway: PgGateway

afterEach(() => gateway.close())

async function storedUsers(): Promise<UserDirectory> {
  const bob = { user: 'bob', rights: readRights, verifier: await makeVerifier('made by SQL') }
  return { ...noUsers, user: (name) => (name === 'bob' ? bob : undefined) }
}

async function open(authentication: PgOptions['authentication'], connectionsMax = 10): Promise<void> {
  const configured = [
    { user: 'admin', password: 'quest', rights: allRights },
    { user: 'user', password: 'pencil', rights: readRights },
  ]
  const authenticator = new Authenticator({ configured, users: await storedUsers(), anonymous: null })
  const options: PgOptions = {
    tlsRequired: false,
    connectionsMax,
    connectionsPerAddressMax: 0,
    readOnly: false,
    authentication,
    queryTimeoutMs: 0,
    logQueries: false,
    firstTimestamp: false,
    serverVersion: '12.3',
  }
  gateway = await openPgGateway({ host: '127.0.0.1', port: 0 }, options, {
    ...context(),
    authenticator,
    tls: null,
  })
}

async function connect(user: string, password: string): Promise<pg.Client> {
  const client = new pg.Client({ host: '127.0.0.1', port: gateway.address.port, user, password })
  client.on('error', () => {})
  await client.connect()
  return client
}

for (const method of ['cleartext', 'md5', 'scram-sha-256'] as const) {
  test(method, async () => {
    await open(method)
    for (const [user, password] of [
      ['admin', 'quest'],
      ['user', 'pencil'],
      ['bob', 'made by SQL'],
    ] as const) {
      const client = await connect(user, password)
      await client.end()
    }
    await expect(connect('admin', 'pencil')).rejects.toMatchObject({ code: '28P01' })
    for (const name of ['nobody', 'none', 'no', 'one', 'other'])
      await expect(connect(name, 'quest')).rejects.toMatchObject({ code: '28P01' })
  })
}

test('one connection too many is refused with the reason', async () => {
  await open('cleartext', 1)
  const client = await connect('admin', 'quest')
  await expect(connect('admin', 'quest')).rejects.toMatchObject({ code: '53300', severity: 'FATAL' })
  await client.end()
})
