// Finds the access keys for an S3 service: in the settings, in the environment, in a file of profiles, or from the
// cloud provider for the role of the machine or container. The keys of a role expire, so they are fetched again before
// that. Any keys are read or fetched again when the service rejects them as expired.

import type { Files } from '../base/files.js'
import { StoreError } from './object-store.js'

export interface S3Credentials {
  readonly accessKeyId: string
  readonly secretAccessKey: string
  /** Of temporary keys; empty otherwise. */
  readonly sessionToken: string
}

type CredentialsSource = 'auto' | 'setting' | 'environment' | 'file' | 'role'

export interface CredentialsOptions {
  readonly source: CredentialsSource
  /** Of the settings; empty keys: not set. */
  readonly setting: S3Credentials
  /** File with profiles, as the tools of AWS write it. */
  readonly file: string
  readonly profile: string
}

/** One small HTTP request to a credentials service. */
export type FetchText = (
  url: string,
  options: { readonly method: 'GET' | 'PUT'; readonly headers: Readonly<Record<string, string>> },
) => Promise<{ readonly status: number; readonly text: string }>

export interface CredentialsTools {
  readonly environment: Readonly<Record<string, string | undefined>>
  readonly files: Files
  readonly clock: { nowMicros(): number }
  readonly fetchText: FetchText
}

interface Found extends S3Credentials {
  /** Milliseconds since the epoch. */
  readonly expiresMs: number
}

const refreshBeforeMs = 5 * 60_000
const instanceService = 'http://169.254.169.254'
const containerService = 'http://169.254.170.2'
const fileBytesMax = 1024 * 1024

export class CredentialsProvider {
  readonly #options: CredentialsOptions
  readonly #tools: CredentialsTools
  #found: Found | null = null
  #pending: Promise<Found> | null = null

  constructor(options: CredentialsOptions, tools: CredentialsTools) {
    this.#options = options
    this.#tools = tools
  }

  /** Rejects with StoreError 'denied' if there are none. */
  async current(): Promise<S3Credentials> {
    const nowMs = this.#tools.clock.nowMicros() / 1000
    if (this.#found !== null && nowMs < this.#found.expiresMs - refreshBeforeMs) return this.#found
    this.#pending ??= this.#fetch().finally(() => {
      this.#pending = null
    })
    this.#found = await this.#pending
    return this.#found
  }

  /** The service has refused them as expired: the next call fetches them again. */
  forget(): void {
    this.#found = null
  }

  async #fetch(): Promise<Found> {
    const { source } = this.#options
    const steps = {
      setting: () => permanent(this.#options.setting),
      environment: () => permanent(ofEnvironment(this.#tools.environment)),
      file: () => permanent(this.#ofFile()),
      role: () => (source === 'auto' ? this.#ofRole().catch(nullIfUnreachable) : this.#ofRole()),
    }
    const order = source === 'auto' ? (['setting', 'environment', 'file', 'role'] as const) : [source]
    for (const name of order) {
      const found = await steps[name]()
      if (found !== null) return found
    }
    throw new StoreError('denied', `no credentials for object storage were found [object.store.credentials=${source}]`)
  }

  #ofFile(): S3Credentials | null {
    const { environment, files } = this.#tools
    const home = environment['HOME'] ?? ''
    const usual = environment['AWS_SHARED_CREDENTIALS_FILE'] ?? `${home}/.aws/credentials`
    const path = this.#options.file === '' ? usual : this.#options.file
    if (!files.exists(path)) return null
    const file = files.open(path, 'read')
    try {
      const content = new Uint8Array(Math.min(fileBytesMax, file.size()))
      file.read(content, 0)
      const profile = this.#options.profile === '' ? (environment['AWS_PROFILE'] ?? 'default') : this.#options.profile
      return profileOf(new TextDecoder().decode(content), profile)
    } finally {
      file.close()
    }
  }

  /** Of the container if it has one, else of the instance. */
  async #ofRole(): Promise<Found | null> {
    const { environment } = this.#tools
    const relative = environment['AWS_CONTAINER_CREDENTIALS_RELATIVE_URI']
    const full = environment['AWS_CONTAINER_CREDENTIALS_FULL_URI']
    if (relative !== undefined || full !== undefined) {
      const token = environment['AWS_CONTAINER_AUTHORIZATION_TOKEN']
      const headers = token === undefined ? {} : { authorization: token }
      return roleKeys(await this.#ask('GET', full ?? `${containerService}${relative}`, headers))
    }
    const base = environment['AWS_EC2_METADATA_SERVICE_ENDPOINT']?.replace(/\/+$/, '') ?? instanceService
    const token = await this.#ask('PUT', `${base}/latest/api/token`, {
      'x-aws-ec2-metadata-token-ttl-seconds': '21600',
    })
    const headers = { 'x-aws-ec2-metadata-token': token }
    const roles = `${base}/latest/meta-data/iam/security-credentials/`
    const [role = ''] = (await this.#ask('GET', roles, headers)).split('\n')
    return roleKeys(await this.#ask('GET', `${roles}${role.trim()}`, headers))
  }

  async #ask(method: 'GET' | 'PUT', url: string, headers: Readonly<Record<string, string>>): Promise<string> {
    const { status, text } = await this.#tools.fetchText(url, { method, headers })
    if (status === 200) return text
    throw new StoreError('denied', `the credentials service of the role answers with status ${status}`)
  }
}

/** Outside of a cloud there is no such service. */
function nullIfUnreachable(error: unknown): null {
  if (error instanceof StoreError) return null
  throw error
}

function permanent(found: S3Credentials | null): Found | null {
  if (found === null || found.accessKeyId === '' || found.secretAccessKey === '') return null
  return { ...found, expiresMs: Number.POSITIVE_INFINITY }
}

function ofEnvironment(environment: Readonly<Record<string, string | undefined>>): S3Credentials {
  return {
    accessKeyId: environment['AWS_ACCESS_KEY_ID'] ?? '',
    secretAccessKey: environment['AWS_SECRET_ACCESS_KEY'] ?? '',
    sessionToken: environment['AWS_SESSION_TOKEN'] ?? '',
  }
}

/** `[profile]` and below it `key = value`. */
function profileOf(text: string, profile: string): S3Credentials | null {
  const values = new Map<string, string>()
  let isWanted = false
  for (const raw of text.split(/\r?\n/)) {
    const line = raw.trim()
    const [, section] = /^\[\s*(?:profile\s+)?([^\]]+?)\s*\]$/.exec(line) ?? []
    if (section !== undefined) isWanted = section === profile
    const equals = line.indexOf('=')
    if (isWanted && section === undefined && equals > 0)
      values.set(line.slice(0, equals).trim(), line.slice(equals + 1).trim())
  }
  const accessKeyId = values.get('aws_access_key_id')
  const secretAccessKey = values.get('aws_secret_access_key')
  if (accessKeyId === undefined || secretAccessKey === undefined) return null
  return { accessKeyId, secretAccessKey, sessionToken: values.get('aws_session_token') ?? '' }
}

/** JSON of instances and containers. */
function roleKeys(text: string): Found {
  const said: unknown = JSON.parse(text)
  const word = (name: string): string => {
    const value: unknown = typeof said === 'object' && said !== null ? Reflect.get(said, name) : undefined
    if (typeof value === 'string') return value
    throw new StoreError('denied', `the credentials service of the role does not tell its ${name}`)
  }
  return {
    accessKeyId: word('AccessKeyId'),
    secretAccessKey: word('SecretAccessKey'),
    sessionToken: word('Token'),
    expiresMs: Date.parse(word('Expiration')),
  }
}
