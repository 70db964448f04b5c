// Goal: doors that stand open are told, a strict server does not start with them, and half a setting is a mistake.

import { expect, test } from 'vitest'
import { checkSecurity, configuredNames, openDoors } from '../../deploy/security.js'
import { loadSettings, type Settings } from '../../deploy/settings.js'

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
  ['nothing is served', ['http.enabled=false', 'pg.enabled=false', 'line.tcp.enabled=false'], []],
])('%s', (_name, assignments, wanted) => {
  const doors = openDoors(settings(...assignments))
  expect(doors.length).toBe(wanted.length)
  for (const [index, words] of wanted.entries()) expect(doors[index]).toMatch(new RegExp(`^${words}`))
  const strict = (): void => checkSecurity(settings(...assignments, 'security.strict=true'))
  if (wanted.length > 0) expect(strict).toThrow('security.strict')
  else expect(strict).not.toThrow()
})

test.each([
  ['http.user=u', 'need each other'],
  ['http.password=p', 'need each other'],
  ['pg.security.required=true', 'needs pg.security.enabled'],
  ['http.cors.enabled=true', 'needs http.cors.allow.origin'],
])('%s alone is a mistake', (assignment, message) => {
  expect(() => checkSecurity(settings(assignment))).toThrow(message)
})

test('users that settings name cannot be made by SQL', () => {
  const names = configuredNames(settings(...closed, 'pg.readonly.user.enabled=true'))
  expect(names.map(({ name }) => name).sort()).toEqual(['admin', 'u', 'user'])
})
