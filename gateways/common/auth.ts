// Who somebody is: checks passwords, tokens and the answers of the wire protocol's challenges. Each protocol has an
// authenticator of its own, because settings name users for each; users made by SQL are the same everywhere.
//
// Comparisons take the same time whatever is wrong, and unknown names are checked like known ones. A password costs some
// milliseconds of a pool thread, so one is checked at a time; credentials that were right are remembered, as a keyed hash,
// until a user changes.

import { createHash, createHmac, randomBytes, timingSafeEqual } from 'node:crypto'
import { ResourceError } from '../../engine/base/errors.js'
import { checkPassword, makeVerifier, type PasswordVerifier, verifierOfNobody } from '../../engine/base/password.js'
import type { UserDirectory } from '../../engine/engine.js'
import type { ConfiguredUser, Principal } from './users.js'

export interface AuthenticatorOptions extends ConfiguredAccess {
  readonly users: UserDirectory
}

/** What settings say. */
export interface ConfiguredAccess {
  readonly configured: readonly ConfiguredUser[]
  /** Who comes without credentials, or with ones that nobody knows; null: nobody may. */
  readonly anonymous: Principal | null
}

/** Passwords that wait for being checked. */
const checksWaitingMax = 500
const rememberedMax = 1000
/** Longer ones are no credentials. */
const credentialCharactersMax = 4096

export class Authenticator {
  #access: ConfiguredAccess
  #configured: ReadonlyMap<string, ConfiguredUser>
  readonly #users: UserDirectory
  readonly #secret = randomBytes(32)
  /** Verifiers of the configured users; made when first asked for. */
  readonly #verifiers = new Map<string, Promise<PasswordVerifier>>()
  readonly #remembered = new Map<string, Principal>()
  #rememberedEpoch = 0
  #checks: Promise<unknown> = Promise.resolve()
  #checksWaiting = 0

  constructor({ configured, users, anonymous }: AuthenticatorOptions) {
    this.#configured = new Map(configured.map((user) => [user.user, user]))
    this.#users = users
    this.#access = { configured, anonymous }
  }

  /** Takes other settings; what was remembered is forgotten. */
  reconfigure(access: ConfiguredAccess): void {
    this.#access = access
    this.#configured = new Map(access.configured.map((user) => [user.user, user]))
    this.#verifiers.clear()
    this.#remembered.clear()
  }

  get anonymous(): Principal | null {
    return this.#access.anonymous
  }

  /** Of a request's Authorization header. A promise only where a password has to be computed. */
  header(text: string | undefined): Principal | null | Promise<Principal | null> {
    if (text === undefined || text === '') return this.anonymous
    if (text.length > credentialCharactersMax) return this.anonymous
    const known = this.#recall(text)
    if (known !== undefined) return known
    const [scheme = '', credentials = ''] = text.split(/ +(.*)/s)
    switch (scheme.toLowerCase()) {
      case 'basic':
        return this.#basic(text, credentials)
      // What clients of InfluxDB say.
      case 'token':
      case 'bearer':
        return this.token(credentials.trim()) ?? this.anonymous
      default:
        return this.anonymous
    }
  }

  token(token: string): Principal | null {
    return this.#users.byToken(token) ?? null
  }

  /** The same user with the rights of now; null when there is no such user any more. */
  refresh(principal: Principal): Principal | null {
    if (principal === this.anonymous) return principal
    return this.#configured.get(principal.user) ?? this.#users.user(principal.user) ?? null
  }

  /** A password in clear text. Rejects with ResourceError when too many wait for their check. */
  async password(name: string, password: string): Promise<Principal | null> {
    const configured = this.#configured.get(name)
    if (configured !== undefined) return this.#equal(configured.password, password) ? configured : null
    const user = this.#users.user(name)
    const verifier = user?.verifier ?? verifierOfNobody(name, this.#secret)
    const right = await this.#check(verifier, password)
    return right && user !== undefined && user.verifier !== null ? user : null
  }

  /** For SCRAM: of anybody, also of those who do not exist. `principal` is who comes in when the proof is right. */
  async verifier(name: string): Promise<{ verifier: PasswordVerifier; principal: Principal | null }> {
    const configured = this.#configured.get(name)
    if (configured !== undefined) {
      const made = this.#verifiers.get(name) ?? makeVerifier(configured.password)
      this.#verifiers.set(name, made)
      return { verifier: await made, principal: configured }
    }
    const user = this.#users.user(name)
    if (user === undefined || user.verifier === null) {
      return { verifier: verifierOfNobody(name, this.#secret), principal: null }
    }
    return { verifier: user.verifier, principal: user }
  }

  /** Whether MD5 can be asked of this user: it needs the password itself, which only the configuration holds. */
  knowsPassword(name: string): boolean {
    return this.#configured.has(name)
  }

  /** The answer to an MD5 challenge: `md5` and md5(md5(password + name) + salt) in hex. */
  md5(name: string, salt: Uint8Array, answer: string): Principal | null {
    const configured = this.#configured.get(name)
    const password = configured?.password ?? this.#secret.toString('hex')
    const inner = createHash('md5').update(`${password}${name}`).digest('hex')
    const wanted = `md5${createHash('md5').update(inner).update(salt).digest('hex')}`
    return this.#equal(wanted, answer) && configured !== undefined ? configured : null
  }

  #basic(text: string, credentials: string): Principal | null | Promise<Principal | null> {
    const decoded = Buffer.from(credentials, 'base64').toString('utf8')
    const colon = decoded.indexOf(':')
    if (colon < 0) return this.anonymous
    return this.password(decoded.slice(0, colon), decoded.slice(colon + 1)).then((principal) => {
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
    if (this.#checksWaiting >= checksWaitingMax) throw new ResourceError('too many passwords wait for their check')
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
