// Goal: insecure settings are reported, a server in strict mode does not start with them, and incomplete or
// contradictory settings are errors. Settings that also close line protocol (a password, read-only mode) are reported.

import { expect, test } from 'vitest'
import { httpOptions, lineTcpOptions, pgOptions } from '../../../deploy/gateway-options.js'
import {
  checkSecurity,
  configuredNames,
  exposures,
  lineAuthCause,
  nameSecretOf,
  sideEffects,
} from '../../../deploy/settings/security.js'
import { loadSettings, type Settings } from '../../../deploy/settings/settings.js'

function settings(...assignments: string[]): Settings {
  return loadSettings({ file: null, environment: {}, assignments }).values
}

const closed = ['http.user=u', 'http.password=p', 'pg.password=p', 'line.tcp.auth.required=true']
const inner = ['http', 'pg', 'line.tcp'].map((name) => `${name}.net.bind.to=127.0.0.1:0`)

test.each([
  ['a new server', [], ['HTTP', 'PostgreSQL', 'line protocol']],
  ['everything closed', closed, []],
  ['own machine', inner, []],
  ['own machine, IPv6', [...inner, 'http.net.bind.to=[::1]:0'], []],
  ['all IPv6 addresses', [...inner, 'http.net.bind.to=[::]:0'], ['HTTP']],
  ['users by SQL alone', [...closed.slice(2), 'http.auth.required=true'], []],
  ['the default password of the reader', [...closed, 'pg.readonly.user.enabled=true'], ['PostgreSQL']],
  ['a file of keys', [...closed.slice(0, 3), 'line.tcp.auth.db.path=keys.txt'], []],
  ['datagrams', [...closed, 'qwp.udp.enabled=true'], ['QWP over UDP']],
  ['datagrams of this machine', [...closed, 'qwp.udp.enabled=true', 'qwp.udp.bind.to=127.0.0.1:0'], []],
  ['datagrams that are dropped', [...closed, 'qwp.udp.enabled=true', 'http.security.readonly=true'], []],
  ['nothing is served', ['http.enabled=false', 'pg.enabled=false', 'line.tcp.enabled=false'], []],
])('%s', (_name, assignments, wanted) => {
  const exposed = exposures(settings(...assignments))
  expect(exposed.length).toBe(wanted.length)
  for (const [index, words] of wanted.entries()) expect(exposed[index]).toMatch(new RegExp(`^${words}`))
  const strict = (): void => checkSecurity(settings(...assignments, 'security.strict=true'))
  if (wanted.length > 0) expect(strict).toThrow('security.strict')
  else expect(strict).not.toThrow()
})

test.each([
  ['http.user=u', 'must be set together'],
  ['http.password=p', 'must be set together'],
  ['pg.security.required=true', 'needs pg.security.enabled'],
  ['http.cors.enabled=true', 'needs http.cors.allow.origin'],
])('%s alone is a mistake', (assignment, message) => {
  expect(() => checkSecurity(settings(assignment))).toThrow(message)
})

test.each([
  ['http.context.execute=/exp', 'the path is already used by http.context.execute [path=/exp]'],
  ['http.context.import=/write', 'the path is already used by the server [path=/write]'],
  ['http.context.export=/console/x', 'the path is already used by the console'],
])('%s is a mistake', (assignment, message) => {
  expect(() => checkSecurity(settings(assignment))).toThrow(message)
})

test('paths may change places, and are paths', () => {
  expect(() => checkSecurity(settings('http.context.execute=/exp', 'http.context.export=/exec'))).not.toThrow()
  expect(() => settings('http.context.execute=sql')).toThrow('bad value of http.context.execute')
})

test('users that settings name cannot be made by SQL', () => {
  const names = configuredNames(settings(...closed, 'pg.readonly.user.enabled=true'))
  expect(names.map(({ name }) => name).sort()).toEqual(['admin', 'u', 'user'])
})

test.each([
  ['a new server', [], null],
  ['a user over HTTP', ['http.user=u', 'http.password=p'], 'http.user'],
  ['users by SQL', ['http.auth.required=true'], 'http.auth.required'],
  ['a password of the wire protocol', ['pg.password=p'], 'pg.password'],
  ['the default password, said', ['pg.password=quest'], null],
  ['HTTP is switched off', ['http.enabled=false', 'http.user=u', 'http.password=p'], null],
  ['the wire protocol is switched off', ['pg.enabled=false', 'pg.password=p'], null],
  ['a file of keys', ['line.tcp.auth.db.path=keys.txt'], 'line.tcp.auth.db.path'],
  ['said so', ['line.tcp.auth.required=true'], 'line.tcp.auth.required'],
  ['said not', ['line.tcp.auth.required=false', 'http.user=u', 'http.password=p', 'pg.password=p'], null],
])('keys of line protocol over TCP: %s', (_name, assignments, cause) => {
  const loaded = settings(...assignments)
  expect(lineAuthCause(loaded)).toBe(cause)
  const isReported = cause !== null && !cause.startsWith('line.tcp.')
  expect(sideEffects(loaded).length).toBe(isReported ? 1 : 0)
  if (isReported) expect(sideEffects(loaded)[0]).toContain(`[setting=${cause}, line.tcp.auth.required=auto]`)
  expect(lineTcpOptions(loaded)).toMatchObject({ authRequired: cause !== null, closed: null })
})

const bothReadOnly = ['http.security.readonly=true', 'pg.security.readonly=true']

test.each([
  ['a new server', [], [false, false, false], ['http', 'tcp', 'pgwire']],
  ['HTTP alone', ['http.security.readonly=true'], [true, false, false], ['tcp', 'pgwire']],
  ['the wire protocol alone', ['pg.security.readonly=true'], [false, true, false], ['http', 'tcp']],
  ['both', bothReadOnly, [true, true, true], []],
  ['both, and senders with keys', [...bothReadOnly, 'line.tcp.auth.required=true'], [true, true, false], ['tcp']],
  ['both, and anybody may send', [...bothReadOnly, 'line.tcp.auth.required=false'], [true, true, false], ['tcp']],
  ['everything', ['security.readonly=true'], [true, true, true], []],
  [
    'everything, whatever else is said',
    ['security.readonly=true', 'line.tcp.auth.required=false'],
    [true, true, true],
    [],
  ],
])('read-only: %s', (_name, assignments, closed, accepting) => {
  const loaded = settings(...assignments)
  const http = httpOptions(loaded, '0', '/')
  const line = lineTcpOptions(loaded).closed
  expect([http.readOnly, pgOptions(loaded).readOnly, line !== null]).toEqual(closed)
  expect(http.acceptingWrites).toEqual(accepting)
  expect(sideEffects(loaded).length).toBe(line === null ? 0 : 1)
})

test('what unknown names are asked stays the same after a restart, but cannot be guessed from an inode', () => {
  const root = { ino: 1234n, birthtimeNs: 1_772_409_600_123_456_789n }
  expect(nameSecretOf(root)).toEqual(nameSecretOf(root))
  expect(nameSecretOf(root)).not.toEqual(nameSecretOf({ ...root, ino: 1235n }))
  const unknown = { ino: 1234n, birthtimeNs: 0n }
  expect(nameSecretOf(unknown)).toHaveLength(32)
  expect(nameSecretOf(unknown)).not.toEqual(nameSecretOf(unknown))
})
