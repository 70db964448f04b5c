// Goal: the S3 client handles situations that only an S3 service can cause: it reads back whether a write without a
// response has succeeded, repeats failed parts of an upload, detects services without conditional writes, takes access
// keys from each source, and shows them in no message.

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { afterAll, beforeEach, expect, test } from 'vitest'
import { systemClock } from '../../../engine/base/clock.js'
import { nodeFiles } from '../../../engine/base/files.js'
import { bodyOf, type ObjectStore, StoreError } from '../../../engine/object-store/object-store.js'
import { openStore, storePlace } from '../../../engine/object-store/open-store.js'
import type { CredentialsOptions } from '../../../engine/object-store/s3-credentials.js'
import { fetchFile, uploadFile } from '../../../engine/object-store/transfer.js'
import { openS3Service } from '../../support/lake/s3-service.js'
import { createRandom } from '../../support/random.js'

const service = await openS3Service()
const folder = mkdtempSync(`${tmpdir()}/penstock-s3-`)
afterAll(async () => {
  await service.close()
  rmSync(folder, { recursive: true, force: true })
})

const MIB = 1024 * 1024
const keys = { accessKeyId: service.accessKeyId, secretAccessKey: service.secretAccessKey, sessionToken: '' }
const noKeys = { accessKeyId: '', secretAccessKey: '', sessionToken: '' }
const body = (text: string) => bodyOf(new TextEncoder().encode(text))

function open(
  credentials: Partial<CredentialsOptions> = {},
  environment: Readonly<Record<string, string>> = {},
  retryMs = 10_000,
): ObjectStore {
  return openStore(
    {
      url: `s3://${service.bucket}/p`,
      s3: {
        ...{ endpoint: service.endpoint, region: 'us-east-1', pathStyle: 'auto' },
        ...{ connections: 4, timeoutMs: 3000, multipartBytes: 5 * MIB },
      },
      credentials: { source: 'auto', setting: keys, file: '', profile: '', ...credentials },
      retryMs,
    },
    { clock: systemClock, files: nodeFiles(), environment },
  )
}

const store = open()

beforeEach(() => {
  service.objects.clear()
  service.fail = null
  service.ignoresConditions = false
  service.requests.length = 0
})

async function failure(promise: Promise<unknown>): Promise<StoreError> {
  const error = await promise.then(
    () => new Error('no error'),
    (thrown: unknown) => thrown,
  )
  if (error instanceof StoreError) return error
  throw error
}

test('a write whose response was lost has succeeded', async () => {
  let failures = 1
  service.fail = ({ method }) => (method === 'PUT' && failures-- > 0 ? { status: 500, applied: true } : null)
  expect(await store.putIfAbsent('once', body('x'))).toMatchObject({ key: 'once', bytes: 1 })
  expect(await store.putIfAbsent('once', body('x'))).toBeNull()
})

test('412 for a write that was applied is distinguished from 412 because of another writer', async () => {
  let failures = 1
  service.fail = ({ method }) => (method === 'PUT' && failures-- > 0 ? { status: 412, applied: true } : null)
  expect(await store.putIfAbsent('mine', body('x'))).not.toBeNull()
  await store.put('theirs', body('x'))
  expect(await store.putIfAbsent('theirs', body('x'))).toBeNull()
})

test('409 is repeated, and connections that break too', async () => {
  const failures: (409 | 'reset')[] = [409, 'reset', 409]
  service.fail = ({ method }) => {
    const next = method === 'PUT' ? failures.shift() : undefined
    return next === 409 ? { status: 409, applied: false } : (next ?? null)
  }
  expect(await store.putIfAbsent('twice', body('x'))).not.toBeNull()
  expect(failures).toEqual([])
})

test('a failed part of an upload is sent again alone', async () => {
  let failures = 2
  service.fail = ({ url }) =>
    /partNumber=2/.test(url ?? '') && failures-- > 0 ? { status: 503, applied: false } : null
  const large = createRandom(3).fill(new Uint8Array(12 * MIB))
  await store.put('large', bodyOf(large))
  expect(Buffer.compare(service.objects.get('p/large')?.content ?? Buffer.from(''), large)).toBe(0)
  expect(service.requests.filter((text) => text.includes('partNumber=1'))).toHaveLength(1)
})

test('an upload whose completion was lost has succeeded; one that fails for good is aborted', async () => {
  await store.probe()
  let failures = 1
  service.fail = ({ method, url }) =>
    method === 'POST' && /uploadId/.test(url ?? '') && failures-- > 0 ? { status: 500, applied: true } : null
  const large = bodyOf(new Uint8Array(11 * MIB))
  expect(await store.putIfAbsent('lost', large)).toMatchObject({ bytes: 11 * MIB })
  service.fail = ({ url }) => (/partNumber/.test(url ?? '') ? { status: 403, applied: false } : null)
  expect((await failure(store.put('denied', large))).kind).toBe('denied')
  expect(service.requests.filter((text) => text.startsWith('DELETE /history/p/denied?uploadId='))).toHaveLength(1)
})

test('a service that ignores conditions is found out', async () => {
  service.ignoresConditions = true
  const { putIfAbsent, multipartIfAbsent, reason } = await store.probe()
  expect([putIfAbsent, multipartIfAbsent]).toEqual([false, false])
  expect(reason).toBe(
    'PutObject ignores If-None-Match: * and overwrites; CompleteMultipartUpload ignores If-None-Match: * and overwrites',
  )
  expect([...service.objects.keys()]).toEqual([])
})

test('retries end with the time of the operation', async () => {
  const impatient = open({}, {}, 300)
  service.fail = () => ({ status: 503, applied: false })
  expect(await failure(impatient.get('x'))).toMatchObject({ kind: 'unavailable' })
  expect(service.requests.length).toBeGreaterThan(1)
  await impatient.close()
})

test('garbled content is noticed', async () => {
  await store.put('garbled', body('abc'))
  const found = service.objects.get('p/garbled')
  if (found !== undefined) found.content[1] = 0
  expect((await failure(store.get('garbled'))).kind).toBe('damaged')
  expect((await failure(fetchFile(store, nodeFiles(), 'garbled', `${folder}/garbled`))).kind).toBe('damaged')
  expect(nodeFiles().exists(`${folder}/garbled`)).toBe(false)
})

test('files go there and back', async () => {
  const content = createRandom(9).fill(new Uint8Array(20 * MIB + 5))
  writeFileSync(`${folder}/there`, content)
  const sent = await uploadFile(store, nodeFiles(), `${folder}/there`, 'file')
  expect(sent.bytes).toBe(content.length)
  expect(await fetchFile(store, nodeFiles(), 'file', `${folder}/back`)).toEqual(sent)
  expect((await failure(uploadFile(store, nodeFiles(), `${folder}/there`, 'file'))).kind).toBe('conflict')
})

test('keys from the environment, a file and a role', async () => {
  const { accessKeyId, secretAccessKey } = service
  const environment = { AWS_ACCESS_KEY_ID: accessKeyId, AWS_SECRET_ACCESS_KEY: secretAccessKey }
  const path = `${folder}/credentials`
  writeFileSync(
    path,
    `[default]\naws_access_key_id = no\naws_secret_access_key = no\n[other]\naws_access_key_id=${accessKeyId}\naws_secret_access_key = ${secretAccessKey}\n`,
  )
  const loop = createServer((request, response) => {
    const isToken = request.url === '/latest/api/token' && request.method === 'PUT'
    if (!isToken && request.headers['x-aws-ec2-metadata-token'] !== 'tok') return response.writeHead(401).end()
    if (isToken) return response.end('tok')
    if (request.url === '/latest/meta-data/iam/security-credentials/') return response.end('reader')
    const answer = {
      AccessKeyId: accessKeyId,
      SecretAccessKey: secretAccessKey,
      Token: 't',
      Expiration: '2999-01-01T00:00:00Z',
    }
    return response.end(JSON.stringify(answer))
  })
  await new Promise<void>((listening) => loop.listen(0, '127.0.0.1', listening))
  const metadata = `http://127.0.0.1:${(loop.address() as AddressInfo).port}`
  const stores = [
    open({ source: 'environment', setting: noKeys }, environment),
    open({ source: 'file', setting: noKeys, file: path, profile: 'other' }),
    open({ source: 'role', setting: noKeys }, { AWS_EC2_METADATA_SERVICE_ENDPOINT: metadata }),
    open({ source: 'auto', setting: noKeys }, { HOME: folder, AWS_EC2_METADATA_SERVICE_ENDPOINT: metadata }),
  ]
  for (const [index, one] of stores.entries()) {
    await one.put(`by/${index}`, body('x'))
    await one.close()
  }
  expect(service.objects.size).toBe(stores.length)
  loop.close()
})

test('no message shows a key', async () => {
  const wrong = { accessKeyId: service.accessKeyId, secretAccessKey: 'very-secret-word', sessionToken: 'token-word' }
  const refused = await failure(open({ setting: wrong }).get('x'))
  expect(refused.kind).toBe('denied')
  const unreachable = open({ setting: wrong }, {}, 0)
  service.fail = () => 'reset'
  const lost = await failure(unreachable.get('x'))
  expect(lost.kind).toBe('unavailable')
  for (const { message, stack } of [refused, lost]) expect(`${message} ${stack}`).not.toMatch(/very-secret|token-word/)
  const none = open({ source: 'environment', setting: noKeys }, {})
  expect((await failure(none.get('x'))).message).toContain('no credentials for object storage were found')
})

test('places', () => {
  expect(storePlace('s3://b-1.x/a/b/')).toEqual({ kind: 's3', bucket: 'b-1.x', prefix: 'a/b' })
  expect(storePlace('s3://bucket')).toEqual({ kind: 's3', bucket: 'bucket', prefix: '' })
  expect(storePlace('file:///var/a%20b/')).toEqual({ kind: 'folder', folder: '/var/a b' })
  for (const url of ['', 's3://', 's3://UPPER/x', 'gs://b', 'file://host/x', 'file:///', '/var']) {
    expect(() => storePlace(url)).toThrow(/expected s3:\/\/bucket\/prefix or file:/)
  }
})
