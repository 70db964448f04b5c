// `node dist/test/crash/idle-sockets.js [--sockets n] [--tls]`: occupies every port with idle connections, of each kind
// that an unauthenticated client can open, and probes the port. Then it opens as many working connections from one
// address as the limit allows. `--tls`: the kinds of TLS alone.
//
// Method: a kind opens its sockets, sends its bytes, and keeps them open; the kinds run one after the other. A probe of
// the same port must be answered within two seconds (more on a busy machine), at once and again after the grace period
// for idle connections. Soon afterwards the server must have closed enough of the idle sockets that they hold at most
// half of the allowed connections. Kinds: no bytes, garbage, an HTTP head or body that stops, no credentials,
// PostgreSQL logins that stop at each step, a wrong password, cancel requests, half a line, an unanswered challenge of
// line protocol, an unfinished TLS handshake.

import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { request as requestTls } from 'node:https'
import { connect, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { connect as connectTls } from 'node:tls'
import { parseArgs } from 'node:util'
import pg from 'pg'
import { TestServer } from '../support/server.js'

const { values } = parseArgs({ options: { sockets: { type: 'string', default: '300' }, tls: { type: 'boolean' } } })
const socketCount = Number(values.sockets)
const limit = 256
const graceMs = 4000
/** On a quiet machine idle sockets are evicted within the grace; a busy one may be late. */
const evictionMsMax = 20_000
/** Limit for a probe, beyond many times what it takes without idle sockets. */
const probeMs = 2000
const slowerMax = 20
const credentials = { authorization: `Basic ${Buffer.from('root:pw').toString('base64')}` }

type Port = 'http' | 'postgres' | 'line protocol' | 'health'

interface Kind {
  readonly name: string
  readonly port: Port
  readonly sends: string | Buffer
}

const startUp = Buffer.from('\0\x03\0\0user\0admin\0\0', 'latin1')
const withLength = (body: Buffer): Buffer => {
  const length = Buffer.alloc(4)
  length.writeInt32BE(body.length + 4)
  return Buffer.concat([length, body])
}
const wrongPassword = Buffer.concat([Buffer.from('p'), withLength(Buffer.from('wrong\0'))])

const kinds: readonly Kind[] = [
  { name: 'silent', port: 'http', sends: '' },
  { name: 'garbage', port: 'http', sends: 'XX\r\n\r\n' },
  { name: 'a slow head', port: 'http', sends: 'GET /exec HTTP/1.1\r\nHost: x\r\nA: ' },
  { name: 'no credentials', port: 'http', sends: 'GET /exec?query=select+1 HTTP/1.1\r\nHost: x\r\n\r\n' },
  {
    name: 'a body that stops',
    port: 'http',
    sends: 'POST /write HTTP/1.1\r\nHost: x\r\nContent-Length: 9999\r\n\r\na',
  },
  { name: 'silent', port: 'health', sends: '' },
  { name: 'garbage', port: 'health', sends: 'XX\r\n\r\n' },
  { name: 'silent', port: 'postgres', sends: '' },
  { name: 'SSLRequest', port: 'postgres', sends: withLength(Buffer.from([4, 210, 22, 47])) },
  { name: 'half a start-up', port: 'postgres', sends: withLength(startUp).subarray(0, 12) },
  { name: 'no password', port: 'postgres', sends: withLength(startUp) },
  { name: 'a wrong password', port: 'postgres', sends: Buffer.concat([withLength(startUp), wrongPassword]) },
  {
    name: 'cancel requests',
    port: 'postgres',
    sends: withLength(Buffer.from([4, 210, 22, 46, 0, 0, 0, 1, 0, 0, 0, 2])),
  },
  { name: 'silent', port: 'line protocol', sends: '' },
  { name: 'half a line', port: 'line protocol', sends: 'a b=' },
]

let failures = 0

function check(what: string, holds: boolean): void {
  if (!holds) failures++
  process.stdout.write(`${holds ? 'ok    ' : 'FAILED'} ${what}\n`)
}

function portOf(server: TestServer, port: Port): number {
  return Number(server.address(port).split(':')[1])
}

function open(port: number, sends: string | Buffer, secure = false): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const options = { host: '127.0.0.1', port, allowHalfOpen: true }
    const socket = secure ? connectTls({ ...options, rejectUnauthorized: false }) : connect(options)
    socket.once('error', reject)
    socket.once(secure ? 'secureConnect' : 'connect', () => {
      socket.off('error', reject).on('error', () => {})
      socket.resume()
      if (sends.length > 0) socket.write(sends)
      resolve(socket)
    })
  })
}

/** Whether the other side still keeps it: a socket that it has ended is closed. */
function isKept(socket: Socket): boolean {
  return !socket.destroyed && !socket.readableEnded
}

type Probe = () => Promise<void>

function probes(server: TestServer, secure: boolean): Record<Port, Probe> {
  const statusOf = secure ? askSecurely : askPlainly
  const ask = async (port: Port, path: string): Promise<void> => {
    const status = await statusOf(portOf(server, port), path)
    if (status !== 200) throw new Error(`status ${status}`)
  }
  let lines = 0
  return {
    http: () => ask('http', '/exec?query=select+1'),
    health: () => ask('health', '/'),
    postgres: async () => {
      const client = new pg.Client(server.login)
      await client.connect()
      await client.query('select 1')
      await client.end()
    },
    'line protocol': async () => {
      lines++
      const socket = await open(portOf(server, 'line protocol'), `probe${lines} a=1i\n`, secure)
      const closed = new Promise((resolve) => socket.once('close', resolve))
      socket.end()
      await closed
      // The first words of the table of the probe.
      const path = `/exec?query=select+count()+from+probe${lines}`
      const status = await statusOf(portOf(server, 'http'), path)
      if (status !== 200) throw new Error('the row is missing')
    },
  }
}

async function askPlainly(port: number, path: string): Promise<number> {
  const answer = await fetch(`http://127.0.0.1:${port}${path}`, { headers: { ...credentials, connection: 'close' } })
  await answer.arrayBuffer()
  return answer.status
}

function askSecurely(port: number, path: string): Promise<number> {
  return new Promise((resolve, reject) => {
    const options = { host: '127.0.0.1', port, path, rejectUnauthorized: false, agent: false, headers: credentials }
    const requested = requestTls(options, (answer) => {
      answer.resume()
      answer.once('end', () => resolve(answer.statusCode ?? 0))
    })
    requested.once('error', reject)
    requested.end()
  })
}

/** Time of a probe without idle sockets: the median of some. */
async function usualMs(probe: Probe): Promise<number> {
  const times: number[] = []
  for (let round = 0; round < 5; round++) {
    const begin = performance.now()
    await probe()
    times.push(performance.now() - begin)
  }
  return times.toSorted((x, y) => x - y)[2] ?? 0
}

/** Checks that the probe is answered in time, and reports how long it took. */
async function checkProbe(what: string, probe: Probe, usual: number): Promise<void> {
  const limitMs = probeMs + usual * slowerMax
  const begin = performance.now()
  const late = new Promise<string>((resolve) => setTimeout(() => resolve('no answer'), limitMs).unref())
  const answered = probe().then(
    () => '',
    (error: Error) => error.message,
  )
  const failure = await Promise.race([answered, late])
  check(`${what} ${failure === '' ? `after ${Math.round(performance.now() - begin)} ms` : failure}`, failure === '')
}

async function hold(server: TestServer, { name, port, sends }: Kind, probe: Probe): Promise<void> {
  const usual = await usualMs(probe)
  const sockets: Socket[] = []
  for (let index = 0; index < socketCount; index++) sockets.push(await open(portOf(server, port), sends))
  await checkProbe(`${port}, ${name}: a probe beside ${socketCount} of them`, probe, usual)
  await new Promise((resolve) => setTimeout(resolve, graceMs))
  await checkProbe(`${port}, ${name}: a probe ${graceMs} ms later`, probe, usual)
  let kept = sockets.filter(isKept).length
  for (let ms = 0; kept > limit / 2 && ms < evictionMsMax; ms += graceMs / 4) {
    await new Promise((resolve) => setTimeout(resolve, graceMs / 4))
    kept = sockets.filter(isKept).length
  }
  check(`${port}, ${name}: ${kept} are kept`, kept <= limit / 2)
  for (const socket of sockets) socket.destroy()
}

/** All are open at one time before the first one is asked. */
async function work(server: TestServer): Promise<void> {
  const asks = 'GET / HTTP/1.1\r\nHost: x\r\nAuthorization: '
  for (const port of ['http', 'health'] as const) {
    const sockets: Socket[] = []
    let answers = 0
    for (let index = 0; index < limit; index++) {
      const socket = await open(portOf(server, port), '')
      socket.on('data', (bytes) => {
        if (bytes.includes('HTTP/1.1 200')) answers++
      })
      sockets.push(socket)
    }
    for (let round = 1; round <= 2; round++) {
      for (const socket of sockets) socket.write(`${asks}${credentials.authorization}\r\n\r\n`)
      const end = performance.now() + 10_000
      while (answers < round * limit && performance.now() < end) await new Promise((resolve) => setTimeout(resolve, 20))
      check(`${port}: ${answers} answers over ${limit} connections, round ${round}`, answers === round * limit)
    }
    for (const socket of sockets) socket.destroy()
  }
  const clients = Array.from({ length: limit }, () => new pg.Client(server.login))
  await Promise.all(clients.map((client) => client.connect()))
  const results = await Promise.all(clients.map((client) => client.query('select 1')))
  check(`postgres: ${results.length} sessions at one time`, results.length === limit)
  const more = new pg.Client(server.login)
  const refused = await more.connect().then(
    () => '',
    (error: { code?: string }) => error.code ?? 'no code',
  )
  check(`postgres: one more is refused with ${refused}`, refused === '53300')
  const idle = await open(portOf(server, 'postgres'), '')
  await new Promise((resolve) => setTimeout(resolve, graceMs))
  check('postgres: a silent one beyond the limit is not kept', !isKept(idle))
  await Promise.all(clients.map((client) => client.end()))
}

function certificate(folder: string): string {
  const [key, shown, both] = ['key.pem', 'certificate.pem', 'both.pem'].map((name) => join(folder, name)) as [string, string, string] // biome-ignore format: one line
  const subject = ['-nodes', '-days', '2', '-subj', '/CN=localhost']
  execFileSync('openssl', ['req', '-x509', '-newkey', 'rsa:2048', '-keyout', key, '-out', shown, ...subject], { stdio: 'ignore' }) // biome-ignore format: one line
  writeFileSync(both, readFileSync(shown, 'utf8') + readFileSync(key, 'utf8'))
  return both
}

async function plain(): Promise<void> {
  const settings = ['http.user=root', 'http.password=pw', 'line.tcp.auth.required=false', 'memory.bytes=600m']
  const server = new TestServer(settings)
  try {
    await server.start()
    const requested = probes(server, false)
    for (const kind of kinds) await hold(server, kind, requested[kind.port])
    await work(server)
    await server.restartWith([...settings.slice(0, 2), 'memory.bytes=600m'])
    await heldChallenges(server)
  } finally {
    await server.remove()
  }
}

/** Whoever has a key gets its challenge beside those who do not answer theirs. */
async function heldChallenges(server: TestServer): Promise<void> {
  const challenged: Probe = async () => {
    const socket = await open(portOf(server, 'line protocol'), 'somebody\n')
    await new Promise((resolve, reject) => socket.once('data', resolve).once('end', reject))
    socket.destroy()
  }
  const kind = { name: 'a challenge', port: 'line protocol', sends: 'somebody\n' } as const
  await hold(server, kind, challenged)
}

async function encrypted(): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'penstock-tls-'))
  const path = certificate(folder)
  const tls = ['http', 'http.min', 'line.tcp', 'pg'].flatMap((prefix) => [
    `${prefix}.security.enabled=true`,
    `${prefix}.security.keystore.path=${path}`,
  ])
  const settings = ['http.user=root', 'http.password=pw', 'line.tcp.auth.required=false', 'memory.bytes=600m']
  const server = new TestServer([...tls, ...settings])
  const hello = Buffer.from([22, 3, 1, 2, 0, 1, 0, 1, 252, 3, 3])
  try {
    await server.start()
    const requested = probes(server, true)
    const half = [
      ['http', hello],
      ['health', hello],
      ['postgres', withLength(Buffer.from([4, 210, 22, 47]))],
      ['postgres', hello],
      ['line protocol', hello],
    ] as const
    for (const [port, sends] of half)
      await hold(server, { name: 'half a handshake of TLS', port, sends }, requested[port])
  } finally {
    await server.remove()
    rmSync(folder, { recursive: true, force: true })
  }
}

if (!values.tls) await plain()
await encrypted()
process.stdout.write(`${failures} failures\n`)
process.exitCode = failures === 0 ? 0 : 1
