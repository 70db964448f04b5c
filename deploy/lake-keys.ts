// Derives from the settings which keys of the object store the Iceberg catalog hands out to readers: none, a second
// pair that can only read, or temporary keys of a security token service.

import { isNamedInPolicies, openReaderKeys, type ReaderKeysOptions, type ReaderKeysProvider } from '../engine/engine.js'
import { type Settings, SettingsError } from './settings/settings.js'
import { storeOptions } from './settings/store-options.js'

export interface LakeKeys {
  /** Properties of Iceberg's file access for the objects below a location. Rejects with StoreError. */
  readonly of: (location: string) => Promise<Readonly<Record<string, string>>>
  /** Whether the keys expire, so that readers must be able to fetch them again. */
  readonly expire: boolean
  readonly close: () => Promise<void>
}

export const noKeys: LakeKeys = { of: async () => ({}), expire: false, close: async () => {} }

/** Throws SettingsError if the settings do not fit together. */
export function lakeKeys(settings: Settings): LakeKeys {
  const vend = settings['lake.credentials.vend']
  if (vend === 'off') return noKeys
  const pair = keyPair(settings)
  if (vend === 'static') {
    if (pair === null) {
      throw new SettingsError(
        'lake.credentials.vend is static, but lake.credentials.access.key.id or lake.credentials.secret.access.key is not set',
      )
    }
    if (pair.accessKeyId === settings['object.store.access.key.id']) {
      throw new SettingsError(
        'lake.credentials.access.key.id is the key of the server: hand out a second one that can only read',
      )
    }
    const keys = { 's3.access-key-id': pair.accessKeyId, 's3.secret-access-key': pair.secretAccessKey }
    return { ...noKeys, of: async () => keys }
  }
  const options = stsOptions(settings, pair)
  let provider: ReaderKeysProvider | null = null
  return {
    of: async (location) => {
      provider ??= openReaderKeys(options)
      const { accessKeyId, secretAccessKey, sessionToken, expiresMs } = await provider.of(location)
      return {
        ...{ 's3.access-key-id': accessKeyId, 's3.secret-access-key': secretAccessKey },
        ...{ 's3.session-token': sessionToken, 's3.session-token-expires-at-ms': `${expiresMs}` },
      }
    },
    expire: true,
    close: async () => provider?.close(),
  }
}

type Pair = { readonly accessKeyId: string; readonly secretAccessKey: string }

function keyPair(settings: Settings): Pair | null {
  const accessKeyId = settings['lake.credentials.access.key.id']
  const secretAccessKey = settings['lake.credentials.secret.access.key']
  if (accessKeyId === '' && secretAccessKey === '') return null
  if (accessKeyId !== '' && secretAccessKey !== '') return { accessKeyId, secretAccessKey }
  throw new SettingsError('lake.credentials.access.key.id and lake.credentials.secret.access.key must be set together')
}

/** Requests are signed with the second pair if there is one, else with the keys of the server. */
function stsOptions(settings: Settings, pair: Pair | null): ReaderKeysOptions {
  const given = settings['lake.credentials.sts.endpoint']
  const store = settings['object.store.s3.endpoint']
  const region = settings['object.store.s3.region']
  const roleArn = settings['lake.credentials.sts.role.arn']
  if (given !== '' && !/^https?:\/\/[^/@?#\s]+(\/[^?#@\s]*)?$/.test(given))
    throw new SettingsError('bad value of lake.credentials.sts.endpoint: expected http://host:port or https://host')
  if (given === '' && store === '' && roleArn === '')
    throw new SettingsError('lake.credentials.vend is sts, but lake.credentials.sts.role.arn is not set')
  const url = settings['object.store.url']
  if (!isNamedInPolicies(url))
    throw new SettingsError(
      'bad value of object.store.url: with lake.credentials.vend = sts, its prefix cannot have *, ? or ${, which have a meaning in policies',
    )
  const { credentials } = storeOptions(settings, url)
  return {
    ...{ region, roleArn, externalId: settings['lake.credentials.sts.external.id'] },
    endpoint: given !== '' ? given : store !== '' ? store : `https://sts.${region}.amazonaws.com`,
    durationMs: settings['lake.credentials.sts.duration'],
    timeoutMs: settings['object.store.timeout'],
    credentials:
      pair === null ? credentials : { ...credentials, source: 'setting', setting: { ...pair, sessionToken: '' } },
  }
}
