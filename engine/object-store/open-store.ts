// Opens the object store that a URL names: an S3 bucket for `s3://bucket/prefix`, or a folder for `file:///path`.

import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { type Clock, systemClock } from '../base/clock.js'
import { type Files, nodeFiles } from '../base/files.js'
import { FolderDriver } from './folder-driver.js'
import { textFetcher } from './http-transport.js'
import { type ObjectStore, StoreError } from './object-store.js'
import { reliableStore } from './reliable-store.js'
import { Retrier, type RetryOptions } from './retry.js'
import type { S3Options } from './s3-client.js'
import { type CredentialsOptions, CredentialsProvider } from './s3-credentials.js'
import { S3Driver } from './s3-driver.js'

/** Plain data, so that it can be sent to a thread. */
export interface ObjectStoreOptions {
  readonly url: string
  readonly s3: Omit<S3Options, 'bucket' | 'prefix'>
  readonly credentials: CredentialsOptions
  /** An operation is retried for this time. */
  readonly retryMs: number
}

interface StoreContext {
  readonly clock: Clock
  readonly files: Files
  readonly environment: Readonly<Record<string, string | undefined>>
}

export type StorePlace =
  | { readonly kind: 'folder'; readonly folder: string }
  | { readonly kind: 's3'; readonly bucket: string; readonly prefix: string }

const firstDelayMs = 100
const delayMsMax = 5000
const credentialsTimeoutMs = 2000

/** Throws StoreError for a URL that names no store. */
export function storePlace(url: string): StorePlace {
  const [, bucket, prefix = ''] = /^s3:\/\/([a-z0-9][a-z0-9.-]{1,61}[a-z0-9])(?:\/(.*))?$/.exec(url) ?? []
  if (bucket !== undefined) return { kind: 's3', bucket, prefix: prefix.replace(/^\/+|\/+$/g, '') }
  const folder = folderOf(url)
  if (folder !== null) return { kind: 'folder', folder }
  throw new StoreError('rejected', `expected s3://bucket/prefix or file:///path [url=${url}]`)
}

export function openStore(
  options: ObjectStoreOptions,
  { clock, files, environment }: StoreContext = {
    clock: systemClock,
    files: nodeFiles(),
    environment: process.env,
  },
): ObjectStore {
  const retry: RetryOptions = {
    ...{ totalMs: options.retryMs, firstDelayMs, delayMsMax, clock, random: Math.random },
    sleep: (ms) => sleep(ms),
  }
  const place = storePlace(options.url)
  if (place.kind === 'folder') {
    return reliableStore(new FolderDriver({ files, folder: place.folder, clock }), retry)
  }
  const { bucket, prefix } = place
  const tools = { environment, files, clock, fetchText: textFetcher(credentialsTimeoutMs) }
  const credentials = new CredentialsProvider(options.credentials, tools)
  return reliableStore(new S3Driver({ ...options.s3, bucket, prefix }, credentials, new Retrier(retry)), retry)
}

function folderOf(url: string): string | null {
  if (!url.startsWith('file://')) return null
  try {
    const path = fileURLToPath(url).replace(/\/+$/, '')
    return path === '' ? null : path
  } catch {
    return null
  }
}
