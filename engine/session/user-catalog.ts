// UserCatalog: the list of database users, on the main thread. Gateways authenticate clients by it, and SQL statements
// change it.
//
// Changes are made one after the other. A change takes effect when the writer has made it durable.

import { createHash, createPublicKey, generateKeyPairSync, type KeyObject, randomBytes } from 'node:crypto'
import type { StoredUser, UserDirectory } from '../api/session.js'
import type { Clock } from '../base/clock.js'
import { SqlError } from '../base/errors.js'
import { makeVerifier, type PasswordVerifier, parseVerifier, verifierText } from '../base/password.js'
import { noRights, type Right, type Rights } from '../base/rights.js'
import type { Name, UserChange } from '../sql/ast/ast.js'
import type { CredentialEntry, UserEntry } from '../sql/catalog.js'
import { encodeUsers, type PublicKey, type UserRecord } from '../storage/manifest/users.js'
import type { Value } from '../types/value.js'

/** A user defined by settings. */
export interface ConfiguredName {
  readonly name: string
  readonly rights: Rights
}

export interface UserCatalogOptions {
  readonly configured: readonly ConfiguredName[]
  readonly clock: Clock
  /** Resolves when the bytes are durable. */
  readonly store: (bytes: Uint8Array) => Promise<unknown>
}

/** A generated secret, returned once; the columns are strings. */
export interface MadeSecret {
  readonly columns: readonly string[]
  readonly row: readonly Value[]
}

interface LoggedIn {
  readonly record: UserRecord
  readonly user: StoredUser
}

const tokenBytes = 32
const tokensMax = 100
const usersMax = 10_000

export class UserCatalog implements UserDirectory {
  epoch = 0
  readonly #options: UserCatalogOptions
  readonly #listeners: (() => void)[] = []
  /** By lower-case name. */
  #records = new Map<string, UserRecord>()
  /** The enabled users. */
  #users = new Map<string, LoggedIn>()
  #byTokenHash = new Map<string, { readonly user: StoredUser; readonly expiresMicros: number | null }>()
  #lineKeys = new Map<string, KeyObject>()
  #changing: Promise<unknown> = Promise.resolve()

  constructor(options: UserCatalogOptions) {
    this.#options = options
  }

  load(records: readonly UserRecord[]): void {
    this.#records = new Map(records.map((record) => [record.name.toLowerCase(), record]))
    this.#users = new Map()
    this.#byTokenHash = new Map()
    this.#lineKeys = new Map()
    for (const record of records) if (record.enabled) this.#enter(record)
    this.epoch++
    for (const listener of this.#listeners) listener()
  }

  onChange(listener: () => void): void {
    this.#listeners.push(listener)
  }

  user(name: string): StoredUser | undefined {
    return this.#users.get(name.toLowerCase())?.user
  }

  byToken(token: string): StoredUser | undefined {
    const known = this.#byTokenHash.get(tokenHash(token))
    const expired = known !== undefined && known.expiresMicros !== null && known.expiresMicros <= this.#now()
    return expired ? undefined : known?.user
  }

  byLineKey(keyId: string): { readonly user: StoredUser; readonly key: KeyObject } | undefined {
    const user = this.user(keyId)
    const key = this.#lineKeys.get(keyId.toLowerCase())
    return user === undefined || key === undefined ? undefined : { user, key }
  }

  /** For SHOW USERS; users from settings come first. */
  entries(): UserEntry[] {
    const configured = this.#options.configured.map(({ name, rights }) => configuredEntry(name, rights))
    return [...configured, ...[...this.#records.values()].map(storedEntry)]
  }

  /** Throws SqlError. Returns a generated token or key, if any, which cannot be read again. */
  change(names: readonly Name[], change: UserChange): Promise<MadeSecret | null> {
    const changed = this.#changing.then(() => this.#change(names, change))
    this.#changing = changed.catch(() => {})
    return changed
  }

  async #change(names: readonly Name[], change: UserChange): Promise<MadeSecret | null> {
    const records = new Map(this.#records)
    let secret: MadeSecret | null = null
    for (const name of names) secret = await this.#changeOne(records, name, change)
    if (records.size > usersMax) throw new SqlError(`too many users [max=${usersMax}]`, names[0]?.position ?? 0)
    const list = [...records.values()]
    await this.#options.store(encodeUsers(list))
    this.load(list)
    return secret
  }

  async #changeOne(records: Map<string, UserRecord>, name: Name, change: UserChange): Promise<MadeSecret | null> {
    const key = name.name.toLowerCase()
    if (this.#options.configured.some((user) => user.name.toLowerCase() === key)) {
      throw new SqlError(`the user is defined by settings [user=${name.name}]`, name.position)
    }
    const record = records.get(key)
    if (change.kind === 'create') {
      if (record === undefined) records.set(key, await newRecord(name.name, change))
      else if (!change.ifNotExists) throw new SqlError(`user already exists [user=${name.name}]`, name.position)
      return null
    }
    if (record === undefined) {
      if (change.kind === 'drop' && change.ifExists) return null
      throw new SqlError(`user does not exist [user=${name.name}]`, name.position)
    }
    if (change.kind === 'drop') {
      records.delete(key)
      return null
    }
    const { changed, secret } = await this.#altered(record, name, change)
    records.set(key, { ...record, ...changed })
    return secret
  }

  async #altered(
    record: UserRecord,
    name: Name,
    change: Exclude<UserChange, { kind: 'create' | 'drop' }>,
  ): Promise<{ changed: Partial<UserRecord>; secret: MadeSecret | null }> {
    switch (change.kind) {
      case 'password':
        return { changed: { password: await hashedPassword(change.password) }, secret: null }
      case 'enable':
        return { changed: { enabled: change.enabled }, secret: null }
      case 'rights':
        return { changed: { rights: withRights(record.rights, change.rights, change.given) }, secret: null }
      case 'create token':
        return this.#newToken(record, name, change.ttlMicros)
      case 'drop token':
        return { changed: { tokens: tokensWithout(record, change.token, name) }, secret: null }
      case 'create key':
        return newKey(record, name, change.publicKey)
      case 'drop key':
        return { changed: { lineKey: null }, secret: null }
    }
  }

  #newToken(record: UserRecord, name: Name, ttlMicros: number | null) {
    const now = this.#now()
    const alive = record.tokens.filter(({ expiresMicros }) => expiresMicros === null || expiresMicros > now)
    if (alive.length >= tokensMax) throw new SqlError(`too many tokens [max=${tokensMax}]`, name.position)
    const token = `pst_${randomBytes(tokenBytes).toString('base64url')}`
    const hash = tokenHash(token)
    const expiresMicros = ttlMicros === null ? null : now + ttlMicros
    const id = randomBytes(6).toString('hex')
    const columns = ['name', 'token', 'expires_at', 'id']
    const expires = expiresMicros === null ? null : new Date(expiresMicros / 1000).toISOString()
    return {
      changed: { tokens: [...alive, { id, hash, expiresMicros }] },
      secret: { columns, row: [record.name, token, expires, id] },
    }
  }

  #enter(record: UserRecord): void {
    const verifier: PasswordVerifier | null = record.password === null ? null : parseVerifier(record.password)
    const user: StoredUser = { user: record.name, rights: record.rights, verifier }
    this.#users.set(record.name.toLowerCase(), { record, user })
    for (const { hash, expiresMicros } of record.tokens) this.#byTokenHash.set(hash, { user, expiresMicros })
    const key = record.lineKey === null ? null : publicKeyObject(record.lineKey)
    if (key !== null) this.#lineKeys.set(record.name.toLowerCase(), key)
  }

  #now(): number {
    return this.#options.clock.nowMicros()
  }
}

async function newRecord(
  name: string,
  { password, rights }: Extract<UserChange, { kind: 'create' }>,
): Promise<UserRecord> {
  const given = withRights(noRights, rights, true)
  return { name, enabled: true, rights: given, password: await hashedPassword(password), tokens: [], lineKey: null }
}

/** Stores a verifier unchanged, so that users can be copied between servers without their passwords. */
async function hashedPassword(password: string | null): Promise<string | null> {
  if (password === null) return null
  return parseVerifier(password) === null ? verifierText(await makeVerifier(password)) : password
}

function withRights(rights: Rights, changed: readonly Right[], given: boolean): Rights {
  return { ...rights, ...Object.fromEntries(changed.map((right) => [right, given])) }
}

function tokensWithout({ tokens }: UserRecord, token: string | null, name: Name): UserRecord['tokens'] {
  if (token === null) return []
  const retained = tokens.filter(({ id, hash }) => id !== token && hash !== tokenHash(token))
  if (retained.length === tokens.length) throw new SqlError('token does not exist', name.position)
  return retained
}

function newKey(record: UserRecord, name: Name, given: PublicKey | null) {
  if (given !== null) {
    if (publicKeyObject(given) === null) throw new SqlError('the point is not on the curve P-256', name.position)
    return { changed: { lineKey: given }, secret: null }
  }
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const { x = '', y = '', d = '' } = privateKey.export({ format: 'jwk' })
  const columns = ['name', 'public_key_x', 'public_key_y', 'private_key']
  return { changed: { lineKey: { x, y } }, secret: { columns, row: [record.name, x, y, d] } }
}

/** null when the point is not on the curve. */
function publicKeyObject({ x, y }: PublicKey): KeyObject | null {
  try {
    return createPublicKey({ key: { kty: 'EC', crv: 'P-256', x, y }, format: 'jwk' })
  } catch {
    return null
  }
}

function tokenHash(token: string): string {
  return createHash('sha256').update(token).digest('base64')
}

function configuredEntry(name: string, rights: Rights): UserEntry {
  const credentials = [{ kind: 'password', id: null, expiresMicros: null }] as const
  return { name, enabled: true, rights, source: 'configuration', credentials }
}

function storedEntry({ name, enabled, rights, password, tokens, lineKey }: UserRecord): UserEntry {
  const credentials: CredentialEntry[] = []
  if (password !== null) credentials.push({ kind: 'password', id: null, expiresMicros: null })
  for (const { id, expiresMicros } of tokens) credentials.push({ kind: 'rest token', id, expiresMicros })
  if (lineKey !== null) credentials.push({ kind: 'jwk token', id: null, expiresMicros: null })
  return { name, enabled, rights, source: 'sql', credentials }
}
