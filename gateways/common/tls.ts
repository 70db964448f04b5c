// Loads certificate and key for every TLS port and reloads them when their files change, so that a renewed
// certificate serves new connections without a restart. If the new files cannot be read, the old certificate stays in
// use.

import { stat } from 'node:fs/promises'
import { createSecureContext, type SecureContext, type SecureContextOptions } from 'node:tls'
import type { Log } from '../../engine/base/log.js'
import { certificateOf, keyStoreFiles, readKeyStore, type TlsMaterial } from './key-store.js'

interface TlsSettings {
  readonly keyStorePath: string
  readonly keyStorePassword: string
}

/** Accepted by `https.createServer`, `tls.createServer` and `setSecureContext`. */
export type TlsServerOptions = TlsMaterial & Pick<SecureContextOptions, 'minVersion' | 'honorCipherOrder'>

export interface TlsKeys {
  readonly options: TlsServerOptions
  /** For a socket that is upgraded later (`new TLSSocket(socket, { isServer: true, secureContext })`). */
  readonly context: SecureContext
  /** The listener is called after every reload. */
  onChange(listener: (options: TlsServerOptions) => void): void
  /** Reloads the key store now; returns false when it cannot be used. */
  reload(): boolean
  close(): void
}

export interface TlsKeysOptions extends TlsSettings {
  /** Name of the listener, for log records. */
  readonly name: string
  readonly log: Log
  readonly nowMs: () => number
  /** How often the files are checked. */
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
      log('E', name, `the old certificate remains in use: ${error instanceof Error ? error.message : String(error)}`)
      return false
    }
    log('I', name, `the certificate was reloaded [path=${keyStorePath}]`)
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

/**
 * Detects changes by size, time and inode of the files, which also covers a link that is pointed to another file.
 */
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

/** Returns null while a file is missing because it is being replaced. */
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
  if (leftMs < expiryWarningMs) log('W', name, `the certificate expires on ${certificate.validTo}`)
}
