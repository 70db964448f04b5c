// Goal: every kind of key store (PEM, PKCS12, JKS) works for TLS, an invalid one is rejected with the reason, and a
// changed one is loaded while the server runs. The key stores in support/keys were created with openssl and keytool.

import { copyFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { connect, createServer, type TlsOptions } from 'node:tls'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { readKeyStore } from '../../../gateways/common/key-store.js'
import { closeServer, listen } from '../../../gateways/common/listen.js'
import { openTlsKeys } from '../../../gateways/common/tls.js'
import { repositoryRoot } from '../../support/docs/source-tree.js'
import { until } from '../../support/gateway.js'

const keys = join(repositoryRoot, 'test/support/keys')
const pair = (name: string): string => `${join(keys, `${name}cert.pem`)},${join(keys, `${name}key.pem`)}`
let folder = ''

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'penstock-tls-'))
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

/** Serial number of the certificate that a server with these options shows. */
async function shown(options: TlsOptions): Promise<string> {
  const server = createServer(options, (socket) => socket.end())
  const { port } = await listen(server, { host: '127.0.0.1', port: 0 })
  const serial = await new Promise<string>((resolve, reject) => {
    const socket = connect({ host: '127.0.0.1', port, rejectUnauthorized: false }, () => {
      resolve(socket.getPeerCertificate().serialNumber)
      socket.destroy()
    })
    socket.on('error', reject)
  })
  await closeServer(server)
  return serial
}

test.each([
  ['PEM, two files', pair('')],
  ['PEM, a folder', keys],
  ['PKCS12', join(keys, 'modern.p12')],
  ['PKCS12 with old ciphers', join(keys, 'legacy.p12')],
  ['JKS', join(keys, 'java.jks')],
])('%s', async (_kind, path) => {
  expect(await shown(readKeyStore(path, 'changeit'))).toMatch(/^[0-9A-F]+$/)
})

test('PEM, one file', async () => {
  const path = join(folder, 'both.pem')
  const { cert = '', key = '' } = readKeyStore(pair(''), '')
  writeFileSync(path, `${key}\n${cert}\n`)
  expect(await shown(readKeyStore(path, ''))).toBe(await shown(readKeyStore(pair(''), '')))
})

test.each([
  [join(keys, 'modern.p12'), 'nope', 'its password is another one'],
  [join(keys, 'legacy.p12'), 'nope', 'its password is another one'],
  [join(keys, 'java.jks'), 'nope', 'its password is another one'],
  [join(keys, 'cert.pem'), '', 'it contains no private key'],
  [join(keys, 'key.pem'), '', 'it contains no certificate'],
  [`${join(keys, 'cert.pem')},${join(keys, 'rsa-key.pem')}`, '', 'its key belongs to another certificate'],
  [join(keys, 'missing.p12'), '', 'cannot be read'],
  [join(repositoryRoot, 'package.json'), '', 'it contains no certificate'],
])('%s is refused', (path, password, reason) => {
  expect(() => readKeyStore(path, password)).toThrow(reason)
})

test('a changed key store is taken over; a broken one is not', async () => {
  const path = join(folder, 'store')
  mkdirSync(path)
  const put = (name: string): void => {
    copyFileSync(join(keys, `${name}cert.pem`), join(path, 'tls.crt'))
    copyFileSync(join(keys, `${name}key.pem`), join(path, 'tls.key'))
  }
  put('')
  const logged: string[] = []
  const changed: string[] = []
  const opened = openTlsKeys({
    ...{ keyStorePath: path, keyStorePassword: '', name: 'test', watchMs: 5, nowMs: Date.now },
    log: (level, name, message) => void logged.push(`${level} ${name} ${message}`),
  })
  opened.onChange((options) => void changed.push(options.cert ?? ''))
  const before = await shown(opened.options)
  await new Promise((resolve) => setTimeout(resolve, 30))
  put('rsa-')
  await until(() => changed.length > 0 && logged.some((line) => line.includes('was reloaded')))
  const after = await shown(opened.options)
  expect(after).not.toBe(before)
  writeFileSync(join(path, 'tls.key'), 'nonsense')
  await until(() => logged.some((line) => line.startsWith('E test the old certificate remains in use')))
  expect(await shown(opened.options)).toBe(after)
  opened.close()
})

test('a certificate that expires soon is reported', () => {
  const logged: string[] = []
  const options = { keyStorePath: pair(''), keyStorePassword: '', name: 'test' }
  const log = (level: string, _name: string, message: string): void => void logged.push(`${level} ${message}`)
  openTlsKeys({ ...options, log, nowMs: () => Date.parse('2126-10-27') }).close()
  expect(logged.join()).toMatch(/^W the certificate expires on .* 2126/)
})
