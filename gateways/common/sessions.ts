// Sessions of the web console: tokens that a browser keeps as a cookie, so that a user stays signed in.
//
//   token   base64url(user name) . expiry in seconds since 1970 . base64url(HMAC-SHA-256 of the two parts before it)
//
// Nothing is stored. The key of the HMAC is derived from the user's password or its verifier, so a token survives a
// restart of the server, and a new password, a dropped user or a disabled one ends all sessions of that user. The
// derivation is slow on purpose: a stolen token must not be a quick way to guess a password.

import { createHmac, scrypt, timingSafeEqual } from 'node:crypto'
import type { Clock } from '../../engine/base/clock.js'
import type { Authenticator } from './auth.js'
import type { Principal } from './users.js'

export const sessionSeconds = 7 * 24 * 3600
const keyBytes = 32
const keysMax = 1000
const tokenCharactersMax = 1024
const salt = 'penstock console session 1'

export interface OpenSession {
  readonly principal: Principal
  readonly expirySeconds: number
}

interface DerivedKey {
  readonly secret: string
  readonly key: Promise<Buffer>
}

export class Sessions {
  readonly #auth: Authenticator
  readonly #clock: Clock
  readonly #keys = new Map<string, DerivedKey>()

  constructor(auth: Authenticator, clock: Clock) {
    this.#auth = auth
    this.#clock = clock
  }

  /** A token for an authenticated user; null for a user without a password. */
  async open(user: string): Promise<{ readonly token: string; readonly expirySeconds: number } | null> {
    const known = this.#auth.secretOf(user)
    if (known === null) return null
    const expirySeconds = Math.floor(this.#nowSeconds()) + sessionSeconds
    const claim = `${Buffer.from(user).toString('base64url')}.${expirySeconds}`
    return { token: `${claim}.${signature(await this.#key(user, known.secret), claim)}`, expirySeconds }
  }

  /** The user of a token, with its current rights; null if the token is invalid or has expired. */
  async check(token: string): Promise<OpenSession | null> {
    const match = /^([\w-]{1,512})\.(\d{1,12})\.([\w-]{43})$/.exec(token.slice(0, tokenCharactersMax))
    if (match === null) return null
    const [, name = '', expiry = '', proof = ''] = match
    const user = Buffer.from(name, 'base64url').toString('utf8')
    const known = this.#auth.secretOf(user)
    if (known === null || Number(expiry) <= this.#nowSeconds()) return null
    const wanted = signature(await this.#key(user, known.secret), `${name}.${expiry}`)
    const isValid = timingSafeEqual(Buffer.from(wanted), Buffer.from(proof))
    return isValid ? { principal: known.principal, expirySeconds: Number(expiry) } : null
  }

  #nowSeconds(): number {
    return this.#clock.nowMicros() / 1e6
  }

  #key(user: string, secret: string): Promise<Buffer> {
    const known = this.#keys.get(user)
    if (known?.secret === secret) return known.key
    if (this.#keys.size >= keysMax) this.#keys.clear()
    const key = new Promise<Buffer>((resolve, reject) => {
      scrypt(secret, `${salt} ${user}`, keyBytes, (error, bytes) => (error === null ? resolve(bytes) : reject(error)))
    })
    this.#keys.set(user, { secret, key })
    return key
  }
}

function signature(key: Buffer, claim: string): string {
  return createHmac('sha256', key).update(claim).digest('base64url')
}
