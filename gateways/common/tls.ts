// TLS for every port: certificate and key from a key store, read again when its files change, so that a renewed
// certificate serves new connections without a restart. A key store that has become unreadable leaves the old one in use.

import { stat } from 'node:fs/promises'
import { createSecureContext, type SecureContext, type SecureContextOptions } from 'node:tls'
import type { Log } from '../../engine/base/log.js'
import { certificateOf, keyStoreFiles, readKeyStore, type TlsMaterial } from './key-store.js'

interface TlsSettings {
  readonly keyStorePath: string
  readonly keyStorePassword: string
}

/** What `https.createServer`, `tls.createServer` and `setSecureContext` take. */
export type TlsServerOptions = TlsMaterial & Pick<SecureContextOptions, 'minVersion' | 'honorCipherOrder'>

export interface TlsKeys {
  readonly options: TlsServerOptions
  /** For a socket that becomes secure later (`new TLSSocket(socket, { isServer: true, secureContext })`). */
  readonly context: SecureContext
  /** Called with every new key store. */
  onChange(listener: (options: TlsServerOptions) => void): void
  /** Reads the key store now; false when it cannot be used. */
  reload(): boolean
  close(): void
}

export interface TlsKeysOptions extends TlsSettings {
  /** Of the listener, for the log. */
  readonly name: string
  readonly log: Log
  readonly nowMs: () => number
  /** How often the files are looked at. */
  readonly watchMs?: number
}

const watchMsDefault = 1000
const expiryWarningMs = 14 * 86_400_000

/** Throws NetworkError when the key store cannot be used. */
export function openTlsKeys(options: TlsKeysOptions): TlsKeys {
  const { keyStorePath, keyStorePassword, name, log, watchMs = watchMsDefault } = options
  const load = (): TlsServerOptions => secure(readKeyStore(keyStorePath, keyStorePassword))
  let current = load()
  let context = createSecureContext(current)
  const listeners: ((options: TlsServerOptions) => void)[] = []
  warnOfExpiry(current, options)

  const reload = (): boolean => {
    try {
      current = load()
      context = createSecureContext(current)
    } catch (error) {
      log('E', name, `the old certificate stays in use: ${error instanceof Error ? error.message : String(error)}`)
      return false
    }
    log('I', name, `the certificate was read again [path=${keyStorePath}]`)
    warnOfExpiry(current, options)
    for (const listener of listeners) listener(current)
    return true
  }
  const watch = watchFiles(keyStorePath, watchMs, reload)
  return {
    get options() {
      return current
    },
    get context() {
      return context
    },
    onChange: (listener) => void listeners.push(listener),
    reload,
    close: () => clearInterval(watch),
  }
}

function secure(material: TlsMaterial): TlsServerOptions {
  return { ...material, minVersion: 'TLSv1.2', honorCipherOrder: true }
}

/** By size, time and number of the files: those change when a link is set to another file, too. */
function watchFiles(path: string, everyMs: number, changed: () => void): NodeJS.Timeout {
  let seen: string | null = null
  const look = async (): Promise<void> => {
    const now = await fingerprint(path)
    if (now === null) return
    if (seen !== null && now !== seen) changed()
    seen = now
  }
  void look()
  const timer = setInterval(() => void look(), everyMs)
  timer.unref()
  return timer
}

/** Null while a file is missing: it is being replaced. */
async function fingerprint(path: string): Promise<string | null> {
  try {
    const stats = await Promise.all(keyStoreFiles(path).map((file) => stat(file)))
    return stats.map(({ size, mtimeMs, ino }) => `${size} ${mtimeMs} ${ino}`).join(', ')
  } catch {
    return null
  }
}

function warnOfExpiry(options: TlsMaterial, { name, log, nowMs }: TlsKeysOptions): void {
  const certificate = certificateOf(options)
  if (certificate === null) return
  const leftMs = Date.parse(certificate.validTo) - nowMs()
  if (leftMs < expiryWarningMs) log('W', name, `the certificate is good until ${certificate.validTo} only`)
}
