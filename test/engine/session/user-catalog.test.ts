// Goal: the catalog of users that were created by SQL stores their properties and rights, finds them by name and by the
// hash of a token, shows a generated token only once, and is the same after a restart.

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { nodeFiles } from '../../../engine/base/files.js'
import { checkPassword } from '../../../engine/base/password.js'
import { allRights } from '../../../engine/base/rights.js'
import { UserCatalog } from '../../../engine/session/user-catalog.js'
import type { UserStatement } from '../../../engine/sql/ast/ast.js'
import { parseStatement } from '../../../engine/sql/parse/parse.js'
import { decodeUsers, encodeUsers, readUsers, writeUsers } from '../../../engine/storage/manifest/users.js'

function open(configured: readonly string[] = []) {
  const stored: Uint8Array[] = []
  const clock = { nowMicros: () => time.micros, monotonicMs: () => 0 }
  const time = { micros: 1_000_000 }
  const users = new UserCatalog({
    configured: configured.map((name) => ({ name, rights: allRights })),
    clock,
    store: async (bytes) => void stored.push(bytes),
  })
  const run = (sql: string) => {
    const { users: names, change } = parseStatement(sql) as UserStatement
    return users.change(names, change)
  }
  return { users, run, stored, time }
}

test('a user, its rights and its end', async () => {
  const { users, run } = open()
  await run("CREATE USER Bob WITH PASSWORD 'it''s'")
  const bob = users.user('bob')
  expect(bob).toMatchObject({ user: 'Bob', rights: { read: false, write: false, admin: false } })
  expect(bob?.verifier !== null && bob !== undefined && (await checkPassword(bob.verifier, "it's"))).toBe(true)
  const { epoch } = users
  await run('grant read, write to bob')
  expect(users.epoch).toBeGreaterThan(epoch)
  expect(users.user('bob')?.rights).toEqual({ read: true, write: true, admin: false })
  await run('revoke write from bob')
  expect(users.user('bob')?.rights).toEqual({ read: true, write: false, admin: false })
  await run('alter user bob disable')
  expect(users.user('bob')).toBeUndefined()
  await run('alter user bob enable')
  await run('alter user bob no password')
  expect(users.user('bob')?.verifier).toBeNull()
  await run('drop user bob')
  expect(users.user('bob')).toBeUndefined()
})

test('tokens are shown once, found by their hash, and expire', async () => {
  const { users, run, stored, time } = open()
  await run('create user robot no password write')
  const made = await run("alter user robot create token type rest with ttl '1h'")
  expect(made?.columns).toEqual(['name', 'token', 'expires_at', 'id'])
  const token = String(made?.row[1])
  expect(users.byToken(token)?.user).toBe('robot')
  expect(users.byToken(`${token}x`)).toBeUndefined()
  expect(Buffer.concat(stored).includes(token)).toBe(false)
  time.micros += 3600e6
  expect(users.byToken(token)).toBeUndefined()
  const other = await run('alter user robot create token type rest')
  await run(`alter user robot drop token type rest '${other?.row[3]}'`)
  expect(users.byToken(String(other?.row[1]))).toBeUndefined()
  await expect(run("alter user robot drop token type rest 'nope'")).rejects.toThrow('token does not exist')
})

test('keys of line protocol', async () => {
  const { users, run } = open()
  await run('create user sensor no password write')
  const made = await run('alter user sensor create token type jwk')
  const [, x, y] = made?.row ?? []
  expect(users.byLineKey('sensor')?.key.export({ format: 'jwk' })).toMatchObject({ x, y })
  await run('alter user sensor drop token type jwk')
  expect(users.byLineKey('sensor')).toBeUndefined()
  await run(`alter user sensor create token type jwk public key x '${x}' y '${y}'`)
  expect(users.byLineKey('sensor')?.user.user).toBe('sensor')
  await expect(run(`alter user sensor create token type jwk public key x '${x}' y '${x}'`)).rejects.toThrow('curve')
})

test.each([
  ["create user bob password 'x'", 'user already exists'],
  ["create user BOB password 'x'", 'user already exists'],
  ["create user admin password 'x'", 'the user is defined by settings'],
  ['drop user nobody', 'user does not exist'],
  ['grant read to bob, nobody', 'user does not exist'],
])('%s is refused and changes nothing', async (sql, message) => {
  const { users, run, stored } = open(['admin'])
  await run("create user bob password 'x'")
  await expect(run(sql)).rejects.toThrow(message)
  expect(stored.length).toBe(1)
  expect(users.user('bob')?.rights.read).toBe(false)
})

test('what cannot be stored is not seen', async () => {
  const clock = { nowMicros: () => 0, monotonicMs: () => 0 }
  const users = new UserCatalog({ configured: [], clock, store: () => Promise.reject(new Error('disk full')) })
  const { users: names, change } = parseStatement('create user bob no password') as UserStatement
  await expect(users.change(names, change)).rejects.toThrow('disk full')
  expect(users.user('bob')).toBeUndefined()
})

test('the file', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'penstock-users-'))
  const { run, stored } = open()
  await run("create user bob with password 'p' admin")
  const bytes = stored[0] as Uint8Array
  expect(Buffer.from(bytes).toString('latin1', 0, 4)).toBe('PUS1')
  expect(Buffer.from(bytes).includes("'p'")).toBe(false)
  expect(readUsers(nodeFiles(), directory, false)).toEqual([])
  writeUsers(nodeFiles(), directory, bytes)
  writeUsers(nodeFiles(), directory, bytes)
  const read = readUsers(nodeFiles(), directory, false)
  expect(read[0]).toMatchObject({ name: 'bob', enabled: true, rights: { admin: true } })
  expect(Buffer.from(encodeUsers(read)).equals(Buffer.from(bytes))).toBe(true)
  const damaged = Uint8Array.from(bytes)
  damaged[20] = damaged[20]! ^ 1
  expect(() => decodeUsers(damaged, 'f')).toThrow('damaged')
  rmSync(directory, { recursive: true })
})
