// Signs requests to S3-compatible services and to security token services (AWS signature version 4). No other module of
// the engine uses the package aws4fetch, which is loaded on first use, since most servers have no object storage.

import { createHash } from 'node:crypto'
import { createRequire } from 'node:module'
import type { S3Credentials } from './s3-credentials.js'

export interface UnsignedRequest {
  readonly method: string
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: Uint8Array
}

export interface SignedHead {
  readonly url: URL
  readonly headers: Record<string, string>
}

/** What is used of aws4fetch. */
interface Signing {
  readonly AwsV4Signer: new (
    options: Readonly<Record<string, unknown>>,
  ) => { sign(): Promise<{ readonly url: URL; readonly headers: Headers }> }
}

export class RequestSigner {
  readonly #service: string
  readonly #region: string
  readonly #signing: Signing = createRequire(import.meta.url)('aws4fetch')
  /** Of derived keys. */
  readonly #keys = new Map<string, ArrayBuffer>()

  /** `service`: as the signature names it. */
  constructor(service: string, region: string) {
    this.#service = service
    this.#region = region
  }

  async sign({ method, url, headers, body }: UnsignedRequest, credentials: S3Credentials): Promise<SignedHead> {
    const { accessKeyId, secretAccessKey, sessionToken } = credentials
    const signer = new this.#signing.AwsV4Signer({
      ...{ method, url, accessKeyId, secretAccessKey, service: this.#service, region: this.#region },
      ...(sessionToken === '' ? {} : { sessionToken }),
      headers: { ...headers, 'x-amz-content-sha256': createHash('sha256').update(body).digest('hex') },
      cache: this.#keys,
    })
    const signed = await signer.sign()
    return { url: signed.url, headers: Object.fromEntries(signed.headers) }
  }
}
