// Goal: a pod made from the Kubernetes manifests becomes ready. Method: a real server gets the settings of the
// manifests, which require a password, and each probe of the container is sent to it. Also: the manifests and the
// copies of rules and dashboard in the Helm chart are current, and the alert rules select labels that the server's
// metrics have.

import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { chartHash } from '../../deploy/kubernetes/render.js'
import { repositoryRoot } from '../support/docs/source-tree.js'
import { TestServer } from '../support/server.js'

const manifests = readFileSync(join(repositoryRoot, 'deploy/kubernetes/penstock.yaml'), 'utf8')
const folder = mkdtempSync(join(tmpdir(), 'penstock-secret-'))
const secret = join(folder, 'password')
const password = 'p w/#"é'

/** The ConfigMap, as settings of a server on this machine. */
function settings(): string[] {
  const entries = [...manifests.matchAll(/^ {2}PENSTOCK_(\w+): "?(.*?)"?$/gm)]
  return entries.map(([, name = '', value = '']) => {
    const key = name.toLowerCase().replaceAll('_', '.')
    return `${key}=${value.replace('/etc/penstock-secret', folder)}`
  })
}

const probes = [...manifests.matchAll(/^ +(\w+)Probe:\n +httpGet: \{ path: (\S+), port: (\w+) \}$/gm)].map(
  ([, name = '', path = '', port = '']) => ({ name, path, port }),
)

const server = new TestServer([...settings(), 'memory.bytes=512m', 'query.threads=1'])

beforeAll(async () => {
  writeFileSync(secret, `${password}\n`)
  await server.start()
})

afterAll(async () => {
  await server.remove()
  rmSync(folder, { recursive: true, force: true })
})

test('the manifests are rendered from the chart: node deploy/kubernetes/render.js', () => {
  expect(/^# chart: sha256 (\w+)$/m.exec(manifests)?.[1]).toBe(chartHash())
})

test.each(['files/rules.yml', 'files/dashboard.json'])('%s of the chart is current: npm run docs', (file) => {
  const source = file === 'files/rules.yml' ? 'deploy/prometheus/rules.yml' : 'deploy/grafana/penstock.json'
  const text = readFileSync(join(repositoryRoot, 'deploy/helm', file), 'utf8')
  expect(text).toBe(readFileSync(join(repositoryRoot, source), 'utf8'))
})

test('the manifests set a password, and the server wants it', async () => {
  expect(settings().map((text) => text.split('=')[0])).toContain('http.password.file')
  const url = `http://${server.address('http')}/exec?query=SELECT+1`
  expect((await fetch(url)).status).toBe(403)
  const authorization = `Basic ${Buffer.from(`admin:${password}`).toString('base64')}`
  expect((await fetch(url, { headers: { authorization } })).status).toBe(200)
  const client = await server.connect({ password })
  expect((await client.query('SELECT 1 x')).rows).toEqual([{ x: 1 }])
})

test.each(probes)('the $name probe succeeds', async ({ path, port }) => {
  // A container port has the name of the listener.
  expect(port === 'http' || port === 'health').toBe(true)
  const address = server.address(port === 'http' ? 'http' : 'health')
  expect((await fetch(`http://${address}${path}`)).status).toBe(200)
})

test('there are three probes', () => {
  expect(probes.map(({ name }) => name)).toEqual(['startup', 'readiness', 'liveness'])
})

test('the alert rules select label values that exist', async () => {
  const metrics = await (await fetch(`http://${server.address('health')}/metrics`)).text()
  const rules = readFileSync(join(repositoryRoot, 'deploy/prometheus/rules.yml'), 'utf8')
  const selected = [...rules.matchAll(/(svc_\w+)\{(\w+="\w+")\}/g)]
  expect(selected.length).toBeGreaterThan(0)
  for (const [selector, name, label] of selected)
    expect(new RegExp(`^${name}\\{[^}]*${label}`, 'm').test(metrics), selector).toBe(true)
})
