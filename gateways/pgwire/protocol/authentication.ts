// Authenticates a client during start-up. The client answers each `Authentication` message by a message of type 'p',
// whose content depends on the method:
//
//   PasswordMessage      password                              cleartext; for md5 a hash of password, user, salt
//   SASLInitialResponse  mechanism bytes:int32 client-first    SCRAM-SHA-256, over TLS also SCRAM-SHA-256-PLUS
//   SASLResponse         client-final

import { randomBytes } from 'node:crypto'
import { boundMechanism, challenge, scramMechanism } from '../../common/scram.js'
import type { Principal } from '../../common/users.js'
import type { PgOptions, PgServices } from '../context.js'
import type { Inbound } from './inbound.js'
import { authentication } from './messages.js'
import type { Outbound } from './outbound.js'
import { MessageReader } from './reader.js'
import { PgError } from './sqlstate.js'
import { nextMessage } from './start-up.js'

interface Guard {
  readonly options: Pick<PgOptions, 'authentication'>
  readonly services: Pick<PgServices, 'authenticator'>
}

/** Returns null when the client has disconnected. Throws PgError when authentication fails. */
export async function authenticate(
  guard: Guard,
  user: string,
  { inbound, out, endPoint }: { readonly inbound: Inbound; readonly out: Outbound; readonly endPoint: Buffer | null },
): Promise<Principal | null> {
  const requested = { user, ask: (request: Buffer) => ask(inbound, out, request), out, endPoint }
  const outcome = await methods[guard.options.authentication](guard, requested)
  if (outcome === 'gone') return null
  if (outcome === null) throw new PgError('28P01', `password authentication failed for user "${user}"`)
  return outcome
}

interface Requested {
  readonly user: string
  /** Sends the request; returns the response, or null when the client has disconnected. */
  readonly ask: (request: Buffer) => Promise<MessageReader | null>
  readonly out: Outbound
  /** Channel-binding data; null without TLS. */
  readonly endPoint: Buffer | null
}

/** Returns null for wrong credentials. */
type Method = (guard: Guard, requested: Requested) => Promise<Principal | null | 'gone'>

const saltBytes = 4

const methods: Record<PgOptions['authentication'], Method> = {
  cleartext: async ({ services }, { user, ask }) => {
    const reply = await ask(authentication('cleartext'))
    return reply === null ? 'gone' : services.authenticator.password(user, reply.text())
  },
  // Users created by SQL have only a SCRAM verifier, and MD5 needs the password.
  md5: async (guard, requested) => {
    const { services } = guard
    const { user, ask } = requested
    if (!services.authenticator.usesMd5(user)) return scram(guard, requested)
    const salt = randomBytes(saltBytes)
    const reply = await ask(authentication('md5', salt))
    return reply === null ? 'gone' : services.authenticator.md5(user, salt, reply.text())
  },
  'scram-sha-256': scram,
}

async function scram({ services }: Guard, { user, ask, out, endPoint }: Requested): Promise<Principal | null | 'gone'> {
  const mechanisms = endPoint === null ? [scramMechanism] : [boundMechanism, scramMechanism]
  const first = await ask(authentication('sasl', Buffer.from(`${mechanisms.join('\0')}\0\0`)))
  if (first === null) return 'gone'
  const mechanism = first.text()
  if (!mechanisms.includes(mechanism)) throw new PgError('08P01', 'client selected an invalid SASL mechanism')
  const binding = { endPoint, chosen: mechanism === boundMechanism }
  const { verifier, principal } = await services.authenticator.verifier(user)
  const { message, finish } = challenge(verifier, first.bytes(first.int32()).toString('utf8'), binding)
  const final = await ask(authentication('saslContinue', Buffer.from(message)))
  if (final === null) return 'gone'
  const signature = finish(final.rest().toString('utf8'))
  if (signature === null || principal === null) return null
  out.put(authentication('saslFinal', Buffer.from(signature)))
  return principal
}

async function ask(inbound: Inbound, out: Outbound, request: Buffer): Promise<MessageReader | null> {
  out.put(request)
  await out.flush()
  const message = await nextMessage(inbound)
  if (message === null) return null
  if (message.type !== 112) throw new PgError('08P01', 'expected a password')
  return new MessageReader(message)
}
