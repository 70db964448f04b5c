// Authenticates clients: checks passwords, tokens and challenge responses, and issues temporary tokens. HTTP and the
// PostgreSQL protocol have an authenticator each, because settings configure their users separately; both share the
// users created by SQL.
//
// Comparisons take constant time. Unknown names, and wrong passwords of users that the settings configure, are checked
// like those of users created by SQL, so that timing does not tell them apart. Neither do the messages: what an unknown name
// is asked, and its salt, are derived from the name and from a secret that stays the same after a restart. A check of a stored password takes some
// milliseconds on a pool thread, so these checks run one at a time. Accepted credentials are cached as a keyed hash until
// a user changes.

import { createHash, createHmac, randomBytes, timingSafeEqual } from 'node:crypto'
import { ResourceError } from '../../engine/base/errors.js'
import {
  checkPassword,
  dummyVerifier,
  makeVerifier,
  type PasswordVerifier,
  verifierText,
} from '../../engine/base/password.js'
import type { UserDirectory } from '../../engine/engine.js'
import type { ConfiguredUser, Principal } from './users.js'

export interface AuthenticatorOptions extends ConfiguredAccess {
  readonly users: UserDirectory
  /** Unknown to clients, and the same after a restart. Default: random. */
  readonly nameSecret?: Buffer
}

/** Access as the settings configure it. */
export interface ConfiguredAccess {
  readonly configured: readonly ConfiguredUser[]
  /** Principal of requests without credentials or with unknown ones; null: they are rejected. */
  readonly anonymous: Principal | null
}

/** Limit of queued password checks. */
const checksWaitingMax = 500
const rememberedMax = 1000
/** Tokens that issue() has returned and that have not expired. */
const issuedMax = 10_000
const issuedBytes = 32
/** Longer credentials are rejected unchecked. */
const credentialCharactersMax = 4096

export class Authenticator {
  #access: ConfiguredAccess
  #configured: ReadonlyMap<string, ConfiguredUser>
  readonly #users: UserDirectory
  readonly #secret = randomBytes(32)
  readonly #nameSecret: Buffer
  /** Verifiers of the configured users, created on first use, by any name. */
  #verifiers: Promise<ReadonlyMap<string, PasswordVerifier>> | null = null
  readonly #remembered = new Map<string, Principal>()
  #rememberedEpoch = 0
  /** Tokens that issue() has returned, by their hash. */
  readonly #issued = new Map<string, { readonly principal: Principal; readonly untilMs: number }>()
  #checks: Promise<unknown> = Promise.resolve()
  #checksWaiting = 0

  constructor({ configured, users, anonymous, nameSecret = randomBytes(32) }: AuthenticatorOptions) {
    this.#nameSecret = nameSecret
    this.#configured = new Map(configured.map((user) => [user.user, user]))
    this.#users = users
    this.#access = { configured, anonymous }
  }

  /** Replaces the configuration and clears the cache of accepted credentials. */
  reconfigure(access: ConfiguredAccess): void {
    this.#access = access
    this.#configured = new Map(access.configured.map((user) => [user.user, user]))
    this.#verifiers = null
    this.#remembered.clear()
    this.#issued.clear()
  }

  get anonymous(): Principal | null {
    return this.#access.anonymous
  }

  /** Checks an Authorization header. Returns a promise only when a password has to be hashed. */
  header(text: string | undefined): Principal | null | Promise<Principal | null> {
    if (text === undefined || text === '') return this.anonymous
    if (text.length > credentialCharactersMax) return this.anonymous
    const known = this.#recall(text)
    if (known !== undefined) return known
    const [scheme = '', credentials = ''] = text.split(/ +(.*)/s)
    switch (scheme.toLowerCase()) {
      case 'basic':
        return this.#basic(text, credentials)
      // The scheme of InfluxDB clients, for tokens and, with those of version 1, `user:password`.
      case 'token':
        return this.token(credentials.trim()) ?? this.#pair(text, credentials.trim())
      case 'bearer':
        return this.token(credentials.trim()) ?? this.anonymous
      default:
        return this.anonymous
    }
  }

  token(token: string): Principal | null {
    return this.#users.byToken(token) ?? this.#issuedTo(token)
  }

  /** A new token for the principal, with its rights at the time of use. It expires, and ends with the process. */
  issue(principal: Principal, lifeMs: number): string {
    const token = `pso_${randomBytes(issuedBytes).toString('base64url')}`
    for (const [hash, { untilMs }] of this.#issued) {
      if (untilMs > Date.now() && this.#issued.size < issuedMax) break
      this.#issued.delete(hash)
    }
    this.#issued.set(this.#digest(token).toString('base64'), { principal, untilMs: Date.now() + lifeMs })
    return token
  }

  #issuedTo(token: string): Principal | null {
    if (this.#issued.size === 0) return null
    const found = this.#issued.get(this.#digest(token).toString('base64'))
    return found === undefined || found.untilMs <= Date.now() ? null : this.refresh(found.principal)
  }

  /** Returns the same user with its current rights; null when the user no longer exists. */
  refresh(principal: Principal): Principal | null {
    if (principal === this.anonymous) return principal
    return this.#configured.get(principal.user) ?? this.#users.user(principal.user) ?? null
  }

  /** Checks a clear-text password. Rejects with ResourceError when too many checks are queued. */
  async password(name: string, password: string): Promise<Principal | null> {
    const configured = this.#configured.get(name)
    if (configured !== undefined && this.#equal(configured.password, password)) return configured
    const user = configured === undefined ? this.#users.user(name) : undefined
    const verifier = user?.verifier ?? dummyVerifier(name, this.#nameSecret)
    const right = await this.#check(verifier, password)
    return right && user !== undefined && user.verifier !== null ? user : null
  }

  /**
   * Returns the SCRAM verifier of a user, or a made-up one for an unknown user. `principal` applies if the proof
   * is correct.
   */
  async verifier(name: string): Promise<{ verifier: PasswordVerifier; principal: Principal | null }> {
    const configured = this.#configured.get(name)
    this.#verifiers ??= verifiersOf(this.#access.configured, this.#nameSecret)
    const verifier = (await this.#verifiers).get(name)
    if (configured !== undefined && verifier !== undefined) return { verifier, principal: configured }
    const user = this.#users.user(name)
    if (user === undefined || user.verifier === null) {
      return { verifier: dummyVerifier(name, this.#nameSecret), principal: null }
    }
    return { verifier: user.verifier, principal: user }
  }

  /**
   * A secret that changes with the user's password; null for an unknown user and for one without a password. Sessions
   * derive their keys from it.
   */
  secretOf(name: string): { readonly principal: Principal; readonly secret: string } | null {
    const configured = this.#configured.get(name)
    if (configured !== undefined) return { principal: configured, secret: `configured ${configured.password}` }
    const user = this.#users.user(name)
    if (user === undefined || user.verifier === null) return null
    return { principal: user, secret: `stored ${verifierText(user.verifier)}` }
  }

  /**
   * Whether this name is asked for an MD5 hash: it needs the clear-text password, which only settings provide. Half of the
   * unknown names are asked, too, always the same ones, so that the method does not reveal which names exist.
   */
  usesMd5(name: string): boolean {
    if (this.#configured.has(name)) return true
    if (this.#users.user(name) !== undefined) return false
    const [first = 0] = createHmac('sha256', this.#nameSecret).update(`method ${name}`).digest()
    return first % 2 === 0
  }

  /** Checks the response to an MD5 challenge: `md5` and md5(md5(password + name) + salt) in hex. */
  md5(name: string, salt: Uint8Array, hash: string): Principal | null {
    const configured = this.#configured.get(name)
    const password = configured?.password ?? this.#secret.toString('hex')
    const inner = createHash('md5').update(`${password}${name}`).digest('hex')
    const wanted = `md5${createHash('md5').update(inner).update(salt).digest('hex')}`
    return this.#equal(wanted, hash) && configured !== undefined ? configured : null
  }

  #basic(text: string, credentials: string): Principal | null | Promise<Principal | null> {
    return this.#pair(text, Buffer.from(credentials, 'base64').toString('utf8'))
  }

  /** `text`: the header in which the user and password were sent. */
  #pair(text: string, pair: string): Principal | null | Promise<Principal | null> {
    const colon = pair.indexOf(':')
    if (colon < 0) return this.anonymous
    return this.password(pair.slice(0, colon), pair.slice(colon + 1)).then((principal) => {
      if (principal === null) return this.anonymous
      this.#remember(text, principal)
      return principal
    })
  }

  #equal(x: string, y: string): boolean {
    return timingSafeEqual(this.#digest(x), this.#digest(y))
  }

  #digest(text: string): Buffer {
    return createHmac('sha256', this.#secret).update(text).digest()
  }

  #recall(header: string): Principal | undefined {
    if (this.#remembered.size === 0) return undefined
    if (this.#rememberedEpoch !== this.#users.epoch) {
      this.#remembered.clear()
      return undefined
    }
    return this.#remembered.get(this.#digest(header).toString('base64'))
  }

  #remember(header: string, principal: Principal): void {
    if (this.#remembered.size >= rememberedMax || this.#rememberedEpoch !== this.#users.epoch) this.#remembered.clear()
    this.#rememberedEpoch = this.#users.epoch
    this.#remembered.set(this.#digest(header).toString('base64'), principal)
  }

  async #check(verifier: PasswordVerifier, password: string): Promise<boolean> {
    if (this.#checksWaiting >= checksWaitingMax) throw new ResourceError('too many passwords are waiting to be checked')
    this.#checksWaiting++
    const checked = this.#checks.then(() => checkPassword(verifier, password))
    this.#checks = checked.catch(() => {})
    try {
      return await checked
    } finally {
      this.#checksWaiting--
    }
  }
}

/** Their salts are those of unknown names. */
async function verifiersOf(
  users: readonly ConfiguredUser[],
  nameSecret: Buffer,
): Promise<ReadonlyMap<string, PasswordVerifier>> {
  const made = users.map(async ({ user, password }) => {
    const { salt } = dummyVerifier(user, nameSecret)
    return [user, await makeVerifier(password, salt)] as const
  })
  return new Map(await Promise.all(made))
}
