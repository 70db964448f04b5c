// Converts the settings of object storage to options of the engine, for the folder or bucket of one URL, such as
// object.store.url.

import type { ObjectStoreOptions } from '../../engine/engine.js'
import { type Settings, SettingsError } from './settings.js'

/** Throws SettingsError if the settings do not fit together. */
export function storeOptions(settings: Settings, url: string): ObjectStoreOptions {
  const endpoint = settings['object.store.s3.endpoint']
  if (endpoint !== '' && !/^https?:\/\/[^/@?#]+(\/[^?#@]*)?$/.test(endpoint)) {
    throw new SettingsError('bad value of object.store.s3.endpoint: expected http://host:port or https://host')
  }
  const accessKeyId = settings['object.store.access.key.id']
  const secretAccessKey = settings['object.store.secret.access.key']
  if ((accessKeyId === '') !== (secretAccessKey === '')) {
    throw new SettingsError('object.store.access.key.id and object.store.secret.access.key must be set together')
  }
  if (settings['object.store.credentials'] === 'setting' && accessKeyId === '') {
    throw new SettingsError('object.store.credentials is setting, but object.store.access.key.id is not set')
  }
  return {
    url,
    s3: {
      endpoint,
      region: settings['object.store.s3.region'],
      pathStyle: settings['object.store.s3.path.style'],
      connections: settings['object.store.connections'],
      timeoutMs: settings['object.store.timeout'],
      multipartBytes: settings['object.store.multipart.size'],
    },
    credentials: {
      source: settings['object.store.credentials'],
      setting: { accessKeyId, secretAccessKey, sessionToken: settings['object.store.session.token'] },
      file: settings['object.store.credentials.path'],
      profile: settings['object.store.credentials.profile'],
    },
    retryMs: settings['object.store.retry.time'],
  }
}
