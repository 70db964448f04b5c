// Temporary access keys for readers of Iceberg tables, requested by the action AssumeRole of a security token service
// (STS). AWS has such a service; MinIO and others offer it at the address of their S3 API. The session policy of the
// keys permits only to list and read the objects of one table, whatever the role may do. Keys appear in no message.
//
//   request    POST <endpoint>/   Action=AssumeRole&Version=2011-06-15&RoleArn=..&Policy=..&DurationSeconds=..
//   response   AssumeRoleResult { Credentials { AccessKeyId, SecretAccessKey, SessionToken, Expiration } }

import { systemClock } from '../base/clock.js'
import { nodeFiles } from '../base/files.js'
import { type HttpTransport, httpTransport, textFetcher } from './http-transport.js'
import { StoreError } from './object-store.js'
import { RequestSigner } from './request-signer.js'
import { type CredentialsOptions, CredentialsProvider, type S3Credentials } from './s3-credentials.js'
import { elementText } from './s3-xml.js'

export interface ReaderKeysOptions {
  readonly endpoint: string
  readonly region: string
  /** Empty: the service needs none. */
  readonly roleArn: string
  /** Empty: the role asks for none. */
  readonly externalId: string
  readonly durationMs: number
  readonly timeoutMs: number
  /** What requests are signed with. */
  readonly credentials: CredentialsOptions
}

export interface ReaderKeys extends S3Credentials {
  /** Milliseconds since the epoch, as are all times here. */
  readonly expiresMs: number
}

/** The keys for a location. */
interface Place {
  /** Null: none so far. */
  keys: { readonly keys: ReaderKeys; readonly issuedMs: number } | null
  /** Null: none is under way. */
  request: Promise<ReaderKeys> | null
  /** When the last request failed. */
  failedMs: number
}

/** Keys are replaced when less than this part of their time is left, so that a query has time to end. */
const renewedPart = 1 / 4
/** While the service gives no new keys, keys with more time left are handed out, and it is asked this often. */
const usableMs = 60_000
const retryMs = 15_000
const tablesMax = 1000
const detailMax = 1000
const credentialsTimeoutMs = 2000
const form = 'application/x-www-form-urlencoded; charset=utf-8'

export class ReaderKeysProvider {
  readonly #options: ReaderKeysOptions
  readonly #nowMs: () => number
  readonly #credentials: Pick<CredentialsProvider, 'current' | 'forget'>
  readonly #signer: RequestSigner
  readonly #transport: HttpTransport
  /** By location. */
  readonly #places = new Map<string, Place>()

  constructor(
    options: ReaderKeysOptions,
    credentials: Pick<CredentialsProvider, 'current' | 'forget'>,
    nowMs: () => number,
  ) {
    this.#options = options
    this.#nowMs = nowMs
    this.#credentials = credentials
    this.#signer = new RequestSigner('sts', options.region)
    this.#transport = httpTransport('the security token service', { connections: 2, timeoutMs: options.timeoutMs })
  }

  /** Keys for the objects below a location, `s3://bucket/prefix`. Rejects with StoreError. */
  async of(location: string): Promise<ReaderKeys> {
    const place = this.#places.get(location) ?? { keys: null, request: null, failedMs: Number.NEGATIVE_INFINITY }
    const { keys } = place
    const isUsable = keys !== null && keys.keys.expiresMs - this.#nowMs() > usableMs
    if (keys !== null && this.#isFresh(keys)) return keys.keys
    if (isUsable && this.#nowMs() - place.failedMs < retryMs) return keys.keys
    place.request ??= this.#renew(place, location)
    try {
      return await place.request
    } catch (error) {
      if (isUsable) return keys.keys
      throw error
    }
  }

  close(): Promise<void> {
    return this.#transport.close()
  }

  #isFresh({ keys, issuedMs }: NonNullable<Place['keys']>): boolean {
    return keys.expiresMs - this.#nowMs() > (keys.expiresMs - issuedMs) * renewedPart
  }

  async #renew(place: Place, location: string): Promise<ReaderKeys> {
    this.#remember(location, place)
    try {
      const keys = await this.#request(location)
      place.keys = { keys, issuedMs: this.#nowMs() }
      return keys
    } catch (error) {
      place.failedMs = this.#nowMs()
      throw error
    } finally {
      place.request = null
    }
  }

  #remember(location: string, place: Place): void {
    this.#places.delete(location)
    this.#places.set(location, place)
    const [oldest] = this.#places.keys()
    if (this.#places.size > tablesMax && oldest !== undefined) this.#places.delete(oldest)
  }

  async #request(location: string): Promise<ReaderKeys> {
    const body = Buffer.from(this.#form(location))
    const first = await this.#send(body)
    if (!isExpired(first)) return keysOf(first)
    this.#credentials.forget()
    return keysOf(await this.#send(body))
  }

  #form(location: string): string {
    const { roleArn, externalId, durationMs } = this.#options
    const partition = /^arn:([^:]+):/.exec(roleArn)?.[1] ?? 'aws'
    return new URLSearchParams({
      ...{ Action: 'AssumeRole', Version: '2011-06-15', RoleSessionName: 'penstock' },
      ...(roleArn === '' ? {} : { RoleArn: roleArn }),
      ...(externalId === '' ? {} : { ExternalId: externalId }),
      DurationSeconds: `${Math.floor(durationMs / 1000)}`,
      Policy: JSON.stringify(readPolicy(partition, location)),
    }).toString()
  }

  async #send(body: Uint8Array): Promise<StsResponse> {
    const url = `${this.#options.endpoint.replace(/\/+$/, '')}/`
    const request = { method: 'POST', url, headers: { 'content-type': form }, body }
    const signed = await this.#signer.sign(request, await this.#credentials.current())
    const { status, content } = await this.#transport.send(signed.url, {
      method: 'POST',
      headers: signed.headers,
      body,
    })
    return { status, xml: new TextDecoder().decode(content) }
  }
}

export function openReaderKeys(options: ReaderKeysOptions): ReaderKeysProvider {
  const credentials = new CredentialsProvider(options.credentials, {
    ...{ environment: process.env, files: nodeFiles(), clock: systemClock },
    fetchText: textFetcher(credentialsTimeoutMs),
  })
  return new ReaderKeysProvider(options, credentials, () => systemClock.nowMicros() / 1000)
}

/** Whether the policy of a location can name it: these characters mean something else in a policy. */
export function isNamedInPolicies(location: string): boolean {
  return !/[*?]|\$\{/.test(location)
}

/** Permits to read and list the objects below the location. */
export function readPolicy(partition: string, location: string): object {
  const [, bucket = '', prefix = ''] = /^s3:\/\/([^/]+)\/(.+?)\/*$/.exec(location) ?? []
  if (bucket === '' || prefix === '')
    throw new StoreError('rejected', `keys are for a place in a bucket [location=${location}]`)
  if (!isNamedInPolicies(location))
    throw new StoreError('rejected', `the policy of keys cannot name this place [location=${location}]`)
  const arn = `arn:${partition}:s3:::${bucket}`
  return {
    Version: '2012-10-17',
    Statement: [
      { Effect: 'Allow', Action: ['s3:GetObject'], Resource: [`${arn}/${prefix}/*`] },
      {
        ...{ Effect: 'Allow', Action: ['s3:ListBucket'], Resource: [arn] },
        Condition: { StringLike: { 's3:prefix': [`${prefix}/*`] } },
      },
      { Effect: 'Allow', Action: ['s3:GetBucketLocation'], Resource: [arn] },
    ],
  }
}

interface StsResponse {
  readonly status: number
  readonly xml: string
}

function isExpired({ status, xml }: StsResponse): boolean {
  return status >= 400 && /^(ExpiredToken|ExpiredTokenException|InvalidToken)$/.test(elementText(xml, 'Code') ?? '')
}

/** For the log: the service may quote the request, whose header has the token of the server. */
function detailOf(message: string): string {
  return message
    .replace(/(x-amz-security-token\s*[:=]\s*)[^\s&;,]+/gi, '$1...')
    .replace(/\s+/g, ' ')
    .trim()
    .slice(0, detailMax)
}

/** The error's message is for readers; its cause says what the service says, which may name users and roles. */
function keysOf({ status, xml }: StsResponse): ReaderKeys {
  if (status !== 200) {
    const code = (elementText(xml, 'Code') ?? '').replace(/\W/g, '').slice(0, 100)
    const isAway = status >= 500 || status === 429
    const detail = detailOf(elementText(xml, 'Message') ?? '')
    throw new StoreError(
      isAway ? 'unavailable' : 'denied',
      `the security token service gives no keys for readers: status ${status}${code === '' ? '' : `: ${code}`}`,
      detail === '' ? {} : { cause: new Error(detail) },
    )
  }
  const word = (name: string): string => {
    const text = elementText(xml, name)?.trim() ?? ''
    if (text !== '') return text
    throw new StoreError('rejected', `the response of the security token service lacks its ${name}`)
  }
  const expiresMs = Date.parse(word('Expiration'))
  if (Number.isNaN(expiresMs))
    throw new StoreError('rejected', 'the response of the security token service has no valid Expiration')
  return {
    ...{ accessKeyId: word('AccessKeyId'), secretAccessKey: word('SecretAccessKey') },
    ...{ sessionToken: word('SessionToken'), expiresMs },
  }
}
