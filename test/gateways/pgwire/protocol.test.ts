// Goal: the PostgreSQL gateway responds message by message as in the transcripts in test/protocol. Invalid messages end
// their connection, or are rejected, and do not affect others; for these, valid conversations are changed at random.

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { repositoryRoot } from '../../support/docs/source-tree.js'
import { createRandom } from '../../support/random.js'
import { TestServer } from '../../support/server.js'
import { int16, int32, message, RawClient, type ServerMessage, startUp } from './raw-client.js'

const server = TestServer.shared()
let port = 0

beforeAll(async () => {
  await server.start()
  port = Number(server.address('postgres').split(':')[1])
})
afterAll(() => server.remove())

// TRANSCRIPTS -------------------------------------------------------------------------------------------------------

/** `"quoted"` with the escapes of JSON, or a bare word. */
function words(line: string): string[] {
  return [...line.matchAll(/"(?:[^"\\]|\\.)*"|\S+/g)].map(([word]) =>
    word.startsWith('"') ? (JSON.parse(word) as string) : word,
  )
}

const copySignature = Buffer.from('PGCOPY\n\xff\r\n\0', 'latin1')

function clientMessage(name: string, args: readonly string[]): Buffer {
  const [first = '', second = ''] = args
  switch (name) {
    case 'Query':
      return message('Q', `${first}\0`)
    case 'Parse': {
      const types = args.slice(2).map((oid) => int32(Number(oid)))
      return message('P', `${first}\0${second}\0`, int16(types.length), ...types)
    }
    case 'Bind': {
      const values = args
        .slice(2)
        .map((text) =>
          text === 'NULL' ? int32(-1) : Buffer.concat([int32(Buffer.byteLength(text)), Buffer.from(text)]),
        )
      return message('B', `${first}\0${second}\0`, int16(0), int16(values.length), ...values, int16(0))
    }
    case 'BindResults': {
      const formats = args.slice(2).map((format) => int16(Number(format)))
      return message('B', `${first}\0${second}\0`, int16(0), int16(0), int16(formats.length), ...formats)
    }
    case 'Describe':
      return message('D', `${first}${second}\0`)
    case 'Execute':
      return message('E', `${first}\0`, int32(Number(second)))
    case 'Close':
      return message('C', `${first}${second}\0`)
    case 'Sync':
      return message('S')
    case 'CopyData':
      return message('d', first)
    case 'CopyDone':
      return message('c')
    case 'CopyBinary':
      return message('d', copySignature, Buffer.from(first.replaceAll(' ', ''), 'hex'))
    case 'FunctionCall':
      return message('F', int32(1), int16(0), int16(0), int16(0))
    case 'CopyFail':
      return message('f', `${first}\0`)
    default:
      throw new Error(`unknown message of the client: ${name}`)
  }
}

const plainNames: Readonly<Record<string, string>> = {
  '1': 'ParseComplete',
  '2': 'BindComplete',
  '3': 'CloseComplete',
  n: 'NoData',
  I: 'EmptyQueryResponse',
  s: 'PortalSuspended',
  c: 'CopyDone',
}

function serverLine({ type, body }: ServerMessage): string {
  const plain = plainNames[type]
  if (plain !== undefined) return plain
  const strings = body.toString('utf8').split('\0')
  switch (type) {
    case 'Z':
      return `ReadyForQuery ${body.toString()}`
    case 'C':
      return `CommandComplete ${strings[0]}`
    case 'A':
      return `NotificationResponse ${body.toString('utf8', 4).split('\0').slice(0, 2).join(' ')}`
    case 'S':
      return `ParameterStatus ${strings[0]} ${strings[1]}`
    case 'E':
    case 'N': {
      const fields = strings.filter((text) => /^[CP]/.test(text)).map((text) => `${text[0]}=${text.slice(1)}`)
      return `${type === 'E' ? 'ErrorResponse' : 'NoticeResponse'} ${fields.join(' ')}`
    }
    case 'T':
      return `RowDescription ${fieldNames(body).join(' ')}`
    case 'D':
      return `DataRow ${rowStrings(body).join(' ')}`
    case 't': {
      const oids = Array.from({ length: body.readInt16BE(0) }, (_, index) => body.readInt32BE(2 + index * 4))
      return `ParameterDescription ${oids.join(' ')}`
    }
    case 'G':
    case 'H':
      return `${type === 'G' ? 'CopyInResponse' : 'CopyOutResponse'} ${body[0]} ${body.readInt16BE(1)}`
    case 'd':
      return `CopyData ${JSON.stringify(body.toString('utf8'))}`
    default:
      return `unknown ${type}`
  }
}

function fieldNames(body: Buffer): string[] {
  const names: string[] = []
  let at = 2
  for (let field = 0; field < body.readInt16BE(0); field++) {
    const end = body.indexOf(0, at)
    names.push(`${body.toString('utf8', at, end)}:${body.readInt32BE(end + 7)}`)
    at = end + 19
  }
  return names
}

function rowStrings(body: Buffer): string[] {
  const strings: string[] = []
  let at = 2
  for (let field = 0; field < body.readInt16BE(0); field++) {
    const bytes = body.readInt32BE(at)
    at += 4
    strings.push(bytes < 0 ? 'NULL' : body.toString('utf8', at, at + bytes))
    at += Math.max(0, bytes)
  }
  return strings
}

test.each(['basics', 'mistakes', 'transactions'])('transcript: %s', async (name) => {
  const client = new RawClient(port)
  await client.logIn()
  const lines = readFileSync(join(repositoryRoot, `test/protocol/${name}.txt`), 'utf8').split('\n')
  for (const [index, line] of lines.entries()) {
    const [side, message = '', ...args] = words(line)
    if (side === 'C') client.socket.write(clientMessage(message, args))
    if (side !== 'S') continue
    const received = await client.next()
    const got = received === null ? 'the connection is closed' : serverLine(received)
    expect(`line ${index + 1}: S ${got}`).toBe(`line ${index + 1}: ${line}`)
  }
  client.send('X')
})

// pg-cursor closes its portal behind the Sync that follows an error, and waits for ReadyForQuery.
test('the answer to Sync leaves whatever has come behind it; so does an error', async () => {
  const client = new RawClient(port)
  await client.logIn()
  client.socket.write(Buffer.concat([message('P', '\0select * from nowhere\0', int16(0)), message('D', 'S\0')]))
  await client.until('E')
  client.socket.write(Buffer.concat([message('S'), message('C', 'P\0')]))
  await client.until('Z')
  client.socket.write(Buffer.concat([message('S'), message('P', '\0select 1\0', int16(0))]))
  await client.until('Z')
  client.send('X')
})

test('texts that are no UTF-8 are refused, not stored with replacements', async () => {
  const client = new RawClient(port)
  await client.logIn()
  const codeOf = async (): Promise<string | undefined> => {
    const error = await client.until('E')
    await client.until('Z')
    return /\0C(\w+)/.exec(error?.body.toString('latin1') ?? '')?.[1]
  }
  const bad = Buffer.from('caf\xe9', 'latin1')
  client.send('Q', Buffer.concat([Buffer.from("select '"), bad, Buffer.from("'\0")]))
  expect(await codeOf()).toBe('22021')
  client.send('P', '\0select $1::text\0', int16(0))
  client.send('B', '\0\0', int16(0), int16(1), int32(bad.length), bad, int16(0))
  client.send('E', '\0', int32(0))
  client.send('S')
  expect(await codeOf()).toBe('22021')
  client.send('Q', "select '\ufffd'\0")
  await client.until('Z')
  client.send('X')
})

// NONSENSE ----------------------------------------------------------------------------------------------------------

const conversation = [
  message('Q', 'select 1\0'),
  message('P', 's\0select $1::int\0', int16(1), int32(23)),
  message('B', '\0s\0', int16(1), int16(1), int16(1), int32(4), int32(7), int16(0)),
  message('D', 'P\0'),
  message('E', '\0', int32(0)),
  message('S'),
  message('Q', 'create table if not exists fuzz (ts timestamp, n int) timestamp(ts) partition by day\0'),
  message('Q', 'copy fuzz from stdin (format binary)\0'),
  message('d', copySignature, int32(0), int32(0), int16(2), int32(8), Buffer.alloc(8)),
  message('d', int32(4), int32(1), int16(-1)),
  message('c'),
  message('C', 'Ss\0'),
  message('S'),
]

test('nonsense harms nobody else', async () => {
  const seed = Number(process.env['SEED'] ?? 20260101)
  const random = createRandom(seed)
  const constantWithin = new RawClient(port)
  await constantWithin.logIn()
  for (let round = 0; round < 150; round++) {
    const client = new RawClient(port)
    if (random.between(0, 4) > 0) await client.logIn()
    else if (random.between(0, 1) === 0) client.socket.write(startUp())
    let bytes = Buffer.concat(conversation.filter(() => random.between(0, 3) > 0))
    for (let edit = random.between(0, 4); edit > 0 && bytes.length > 0; edit--) {
      const at = random.between(0, bytes.length - 1)
      const kind = random.between(0, 3)
      if (kind === 0) bytes[at] = random.between(0, 255)
      else if (kind === 1) bytes = bytes.subarray(0, at)
      else if (kind === 2) bytes = Buffer.concat([bytes.subarray(0, at), bytes.subarray(at + random.between(1, 9))])
      else bytes = Buffer.concat([bytes.subarray(0, at), Buffer.alloc(random.between(1, 9), 0xff), bytes.subarray(at)])
    }
    for (let at = 0; at < bytes.length; ) {
      const end = at + random.between(1, 200)
      client.socket.write(bytes.subarray(at, end))
      at = end
    }
    if (random.between(0, 1) === 0) client.socket.end()
    else client.socket.destroySoon()
    if (round % 10 !== 0) continue
    constantWithin.send('Q', 'select 42 a\0')
    const row = await constantWithin.until('D')
    expect(row === null ? null : rowStrings(row.body), `round ${round}, seed ${seed}`).toEqual(['42'])
    await constantWithin.until('Z')
  }
  const metrics = await (await fetch(`http://${server.address('http')}/metrics`)).text()
  expect(/^svc_unhandled_errors 0$/m.test(metrics), metrics.match(/svc_unhandled.*/g)?.join()).toBe(true)
  constantWithin.send('X')
})
