// Goal: readers of an Iceberg table get temporary keys that can only read the objects of this table. They are requested
// with a correct signature, handed out again until they are about to expire, and requested once for all that wait.
// While the service is away, keys that are still valid are handed out. Errors of the service have no key in them.

import { afterAll, beforeEach, expect, test } from 'vitest'
import { StoreError } from '../../../engine/object-store/object-store.js'
import { type ReaderKeysOptions, ReaderKeysProvider, readPolicy } from '../../../engine/object-store/reader-keys.js'
import { openStsService } from '../../support/lake/sts-service.js'

const service = await openStsService()
const { accessKeyId, secretAccessKey } = service
afterAll(() => service.close())

const minute = 60_000
const location = 's3://history/lake/root/lake/1-abc'
let nowMs = 0
let forgotten = 0

beforeEach(() => {
  service.requests.length = 0
  service.refuse = null
  service.expiration = null
  nowMs = Date.now()
  forgotten = 0
})

function provider(changes: Partial<ReaderKeysOptions> = {}): ReaderKeysProvider {
  const setting = { accessKeyId, secretAccessKey, sessionToken: '' }
  const options: ReaderKeysOptions = {
    ...{
      endpoint: service.endpoint,
      region: 'us-east-1',
      roleArn: 'arn:aws:iam::1:role/readers',
      externalId: 'team/7',
    },
    ...{ durationMs: 60 * minute, timeoutMs: 3000 },
    credentials: { source: 'setting', setting, file: '', profile: '' },
    ...changes,
  }
  const credentials = { current: async () => options.credentials.setting, forget: () => void forgotten++ }
  return new ReaderKeysProvider(options, credentials, () => nowMs)
}

async function failure(promise: Promise<unknown>): Promise<string> {
  const error = await promise.then(
    () => null,
    (thrown: unknown) => thrown,
  )
  if (error instanceof StoreError) return `${error.kind}: ${error.message}`
  throw new Error(`it did not fail as expected: ${error}`)
}

test('the request names the role and a policy for the table', async () => {
  const keys = await provider().of(location)
  expect(keys).toMatchObject({ accessKeyId: 'TEMPORARY1', secretAccessKey: 'hidden/1&x', sessionToken: 'token==1' })
  expect(keys.expiresMs - nowMs).toBeGreaterThan(59 * minute)
  const [form = new URLSearchParams()] = service.requests
  const { Policy: policy = '', ...others } = Object.fromEntries(form)
  expect(others).toEqual({
    ...{ Action: 'AssumeRole', Version: '2011-06-15', RoleSessionName: 'penstock', DurationSeconds: '3600' },
    ...{ RoleArn: 'arn:aws:iam::1:role/readers', ExternalId: 'team/7' },
  })
  expect(JSON.parse(policy)).toEqual({
    Version: '2012-10-17',
    Statement: [
      { Effect: 'Allow', Action: ['s3:GetObject'], Resource: ['arn:aws:s3:::history/lake/root/lake/1-abc/*'] },
      {
        ...{ Effect: 'Allow', Action: ['s3:ListBucket'], Resource: ['arn:aws:s3:::history'] },
        Condition: { StringLike: { 's3:prefix': ['lake/root/lake/1-abc/*'] } },
      },
      { Effect: 'Allow', Action: ['s3:GetBucketLocation'], Resource: ['arn:aws:s3:::history'] },
    ],
  })
})

test('what is not set is not sent, and the partition is that of the role', async () => {
  await provider({ roleArn: '', externalId: '' }).of(location)
  const [form = new URLSearchParams()] = service.requests
  expect([form.has('RoleArn'), form.has('ExternalId')]).toEqual([false, false])
  expect(JSON.stringify(readPolicy('aws-cn', location))).toContain('arn:aws-cn:s3:::history/lake/root')
  expect(() => readPolicy('aws', 's3://history')).toThrow('keys are for a place in a bucket')
})

test('keys are handed out again until a quarter of their time is left', async () => {
  const keys = provider()
  const all = await Promise.all([keys.of(location), keys.of(location), keys.of('s3://history/other')])
  const [first, second, other] = all.map((one) => one.accessKeyId)
  expect(second).toBe(first)
  expect(new Set([first, other])).toEqual(new Set(['TEMPORARY1', 'TEMPORARY2']))
  nowMs += 44 * minute
  const before = await keys.of(location)
  expect(service.requests.length).toBe(2)
  nowMs += 2 * minute
  const after = await Promise.all([keys.of(location), keys.of(location)])
  expect(service.requests.length).toBe(3)
  expect(new Set(after.map((one) => one.accessKeyId))).toEqual(new Set(['TEMPORARY3']))
  expect(before.accessKeyId).not.toBe('TEMPORARY3')
})

test('while the service gives no keys, the known ones are handed out as long as they are valid', async () => {
  const keys = provider()
  await keys.of(location)
  service.refuse = { status: 503, code: '', message: '' }
  nowMs += 50 * minute
  expect((await keys.of(location)).accessKeyId).toBe('TEMPORARY1')
  expect((await keys.of(location)).accessKeyId).toBe('TEMPORARY1')
  expect(service.requests.length).toBe(2)
  nowMs += minute
  expect((await keys.of(location)).accessKeyId).toBe('TEMPORARY1')
  expect(service.requests.length).toBe(3)
  nowMs += 9 * minute
  expect(await failure(keys.of(location))).toMatch(/^unavailable: .*status 503$/)
  service.refuse = null
  service.expiration = new Date(nowMs + 60 * minute).toISOString()
  expect((await keys.of(location)).accessKeyId).toBe('TEMPORARY5')
})

test('keys with less time than requested are handed out again, too', async () => {
  const keys = provider({ durationMs: 12 * 60 * minute })
  service.expiration = new Date(nowMs + 60 * minute).toISOString()
  await keys.of(location)
  nowMs += 44 * minute
  expect((await keys.of(location)).accessKeyId).toBe('TEMPORARY1')
  nowMs += 2 * minute
  expect((await keys.of(location)).accessKeyId).toBe('TEMPORARY2')
})

test('places that a policy cannot name are refused', () => {
  for (const place of ['s3://history/a*', 's3://history/a?', `s3://history/\${aws:username}`])
    expect(() => readPolicy('aws', place)).toThrow('the policy of keys cannot name this place')
  expect(JSON.stringify(readPolicy('aws', 's3://history/a$b{c}'))).toContain('history/a$b{c}/*')
})

test('errors have the code of the service, its message is their cause, and the next call asks again', async () => {
  const keys = provider()
  service.refuse = { status: 403, code: 'AccessDenied', message: 'not authorized to perform sts:AssumeRole' }
  expect(await failure(keys.of(location))).toBe(
    'denied: the security token service gives no keys for readers: status 403: AccessDenied',
  )
  service.refuse.message = 'Expected: POST\nx-amz-date:1\nx-amz-security-token:secret/token==\n\nend'
  const error: unknown = await keys.of(location).catch((thrown: unknown) => thrown)
  expect(error instanceof Error && error.cause instanceof Error ? error.cause.message : '').toBe(
    'Expected: POST x-amz-date:1 x-amz-security-token:... end',
  )
  service.refuse = { status: 503, code: '', message: '' }
  expect(await failure(keys.of(location))).toMatch(/^unavailable: .*status 503$/)
  service.refuse = { status: 400, code: 'ExpiredToken', message: 'expired' }
  expect(await failure(keys.of(location))).toMatch(/ExpiredToken/)
  expect(forgotten).toBe(1)
  service.refuse = null
  expect((await keys.of(location)).accessKeyId).toBe('TEMPORARY6')
  service.expiration = 'tomorrow'
  expect(await failure(keys.of('s3://history/b'))).toContain('no valid Expiration')
  const wrong = { accessKeyId, secretAccessKey: 'wrong', sessionToken: '' }
  const signed = provider({ credentials: { source: 'setting', setting: wrong, file: '', profile: '' } })
  expect(await failure(signed.of(location))).toContain('SignatureDoesNotMatch')
  expect(await failure(provider({ endpoint: 'http://127.0.0.1:1' }).of(location))).toMatch(
    /^unavailable: the security token service cannot be reached/,
  )
})
