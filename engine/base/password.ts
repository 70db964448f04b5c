// Password verifiers of SCRAM-SHA-256 (RFC 5802, RFC 7677), stored in the text form that PostgreSQL uses:
//
//   SCRAM-SHA-256$<iterations>:<salt>$<stored key>:<server key>      all in base64
//
// The password cannot be recovered from a verifier. The same verifier also checks clear-text passwords.

import { createHash, createHmac, pbkdf2, randomBytes, timingSafeEqual } from 'node:crypto'

export interface PasswordVerifier {
  readonly iterations: number
  readonly salt: Buffer
  readonly storedKey: Buffer
  readonly serverKey: Buffer
}

/** Iterations that clients perform at every connect: 4096, as in RFC 7677 and PostgreSQL. */
const iterationsOfNew = 4096
const iterationsMax = 1_000_000
const saltBytes = 16
const keyBytes = 32

export async function makeVerifier(password: string, salt: Buffer = randomBytes(saltBytes)): Promise<PasswordVerifier> {
  return verifierOf(await saltedPassword(password, salt, iterationsOfNew), salt, iterationsOfNew)
}

export function verifierText({ iterations, salt, storedKey, serverKey }: PasswordVerifier): string {
  const [saltText, storedText, serverText] = [salt, storedKey, serverKey].map((bytes) => bytes.toString('base64'))
  return `SCRAM-SHA-256$${iterations}:${saltText}$${storedText}:${serverText}`
}

/** Null when the text is not a verifier. */
export function parseVerifier(text: string): PasswordVerifier | null {
  const match = /^SCRAM-SHA-256\$(\d{1,7}):([A-Za-z0-9+/]+={0,2})\$([A-Za-z0-9+/]{43}=):([A-Za-z0-9+/]{43}=)$/.exec(
    text,
  )
  if (match === null) return null
  const [, iterations, salt, storedKey, serverKey] = match as unknown as [string, string, string, string, string]
  if (Number(iterations) < 1 || Number(iterations) > iterationsMax) return null
  const [saltKey, stored, server] = [salt, storedKey, serverKey].map((part) => Buffer.from(part, 'base64')) as [
    Buffer,
    Buffer,
    Buffer,
  ]
  return { iterations: Number(iterations), salt: saltKey, storedKey: stored, serverKey: server }
}

/** Takes constant time. */
export async function checkPassword(
  { iterations, salt, storedKey }: PasswordVerifier,
  password: string,
): Promise<boolean> {
  const { storedKey: computed } = verifierOf(await saltedPassword(password, salt, iterations), salt, iterations)
  return timingSafeEqual(computed, storedKey)
}

/**
 * A verifier that matches no password and is constant per name, so that clients cannot find out which names exist.
 */
export function dummyVerifier(name: string, secret: Buffer): PasswordVerifier {
  const bytes = (what: string): Buffer => createHmac('sha256', secret).update(`${what} ${name}`).digest()
  return {
    iterations: iterationsOfNew,
    salt: bytes('salt').subarray(0, saltBytes),
    storedKey: bytes('stored'),
    serverKey: bytes('server'),
  }
}

function verifierOf(salted: Buffer, salt: Buffer, iterations: number): PasswordVerifier {
  const clientKey = createHmac('sha256', salted).update('Client Key').digest()
  return {
    iterations,
    salt,
    storedKey: createHash('sha256').update(clientKey).digest(),
    serverKey: createHmac('sha256', salted).update('Server Key').digest(),
  }
}

function saltedPassword(password: string, salt: Buffer, iterations: number): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    pbkdf2(preparedPassword(password), salt, iterations, keyBytes, 'sha256', (error, key) => {
      if (error === null) resolve(key)
      else reject(error)
    })
  })
}

/** SASLprep (RFC 4013) as far as clients apply it: maps blanks, drops invisible characters, then applies NFKC. */
export function preparedPassword(password: string): string {
  if (/^[\x20-\x7e]*$/.test(password)) return password
  return password
    .replace(/[\u00a0\u1680\u2000-\u200a\u202f\u205f\u3000]/g, ' ')
    .replace(/\u00ad|\u034f|\u1806|[\u180b-\u180d]|[\u200b-\u200d]|\u2060|[\ufe00-\ufe0f]|\ufeff/g, '')
    .normalize('NFKC')
}
