// Handles the start of a connection: encryption requests, cancel requests and the startup message.
//
//   SSLRequest      80877103             answered by one byte: 'S' or 'N'
//   GSSENCRequest   80877104             answered by 'N'
//   CancelRequest   80877102 process:int32 secret:int32
//   StartupMessage  version:int32 (name value)* 0       version is major << 16 | minor

import type { Inbound, Message } from './inbound.js'
import { negotiateProtocolVersion } from './messages.js'
import type { Outbound } from './outbound.js'
import { MessageReader } from './reader.js'
import { PgError } from './sqlstate.js'

const sslRequest = 80_877_103
const gssRequest = 80_877_104
const cancelRequest = 80_877_102
const majorVersion = 3

export interface StartUp {
  readonly user: string
  readonly parameters: ReadonlyMap<string, string>
}

export interface CancelRequest {
  readonly process: number
  readonly secret: number
}

/** Returns null when the client has disconnected. */
export async function nextMessage(inbound: Inbound): Promise<Message | null> {
  for (;;) {
    const message = inbound.next()
    if (message !== null) return message
    if (inbound.ended) return null
    await inbound.wait()
  }
}

/** Returns the client's request; null when it has disconnected. Throws PgError, NetworkError. */
export async function readStartUp(inbound: Inbound, out: Outbound): Promise<StartUp | CancelRequest | null> {
  for (;;) {
    const message = await nextMessage(inbound)
    if (message === null) return null
    const reader = new MessageReader(message)
    const code = reader.int32()
    if (code === sslRequest || code === gssRequest) {
      out.put(Buffer.from('N'))
      await out.flush()
      continue
    }
    if (code === cancelRequest) return { process: reader.int32(), secret: reader.int32() }
    if (code >>> 16 !== majorVersion) {
      throw new PgError('0A000', `unsupported frontend protocol ${code >>> 16}.${code & 0xffff}: server supports 3.0`)
    }
    inbound.starting = false
    return startUpOf(reader, out, code & 0xffff)
  }
}

function startUpOf(reader: MessageReader, out: Outbound, minor: number): StartUp {
  const parameters = new Map<string, string>()
  for (let name = reader.text(); name !== ''; name = reader.text()) parameters.set(name.toLowerCase(), reader.text())
  reader.done()
  const unknown = [...parameters.keys()].filter((name) => name.startsWith('_pq_.'))
  if (minor > 0 || unknown.length > 0) out.put(negotiateProtocolVersion(0, unknown))
  const user = parameters.get('user')
  if (user === undefined) throw new PgError('28000', 'no PostgreSQL user name specified in startup packet')
  return { user, parameters }
}

/** Parses `options`: `-c name=value --name=value`; a backslash escapes a space. */
export function startUpOptions(text: string): [name: string, value: string][] {
  const words = [...text.matchAll(/(?:\\.|[^\s\\])+/gs)].map(([word]) => word.replace(/\\(.)/gs, '$1'))
  const settings: [string, string][] = []
  for (let index = 0; index < words.length; index++) {
    const word = words[index] ?? ''
    const written = word === '-c' ? (words[++index] ?? '') : /^(?:-c|--)(.+)$/s.exec(word)?.[1]
    const [, name, value] = /^([\w.-]+)=(.*)$/s.exec(written ?? '') ?? []
    if (name === undefined || value === undefined)
      throw new PgError('42601', `invalid command-line argument for server process: ${word}`)
    settings.push([name.replaceAll('-', '_').toLowerCase(), value])
  }
  return settings
}
