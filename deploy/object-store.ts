// Opens the object storage (S3 or a shared folder) that the settings configure and tests in the background whether it
// works, because a server starts and runs without it. Reports its state in object_store() and /warnings.

import { randomUUID } from 'node:crypto'
import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Log } from '../engine/base/log.js'
import {
  type EngineOptions,
  type ObjectStoreOptions,
  openStoreClient,
  type StoreCapabilities,
  type StoreClient,
  StoreError,
  type SweepStatistics,
  storePlace,
  type UploadStatistics,
  type VirtualRelation,
} from '../engine/engine.js'
import { type Metric, reportedMetric } from '../gateways/common/metric.js'
import type { RemoteFilesOptions } from '../pipeline/ingest.js'
import { openLake } from './lake.js'
import type { LakeKeys } from './lake-keys.js'
import { freeBytesMin } from './settings/machine.js'
import { type Settings, SettingsError } from './settings/settings.js'
import { storeOptions } from './settings/store-options.js'

export interface ServerStore {
  /** Null: none is configured. */
  readonly client: StoreClient | null
  /** What the engine carries out storage policies with. */
  readonly policies: NonNullable<EngineOptions['objectStore']>
  readonly relation: VirtualRelation
  /** How readers of Iceberg tables reach the store. */
  readonly lakeConfig: Readonly<Record<string, string>>
  readonly lakeKeys: LakeKeys
  readonly metrics: readonly Metric[]
  /** What an administrator should act on. */
  readonly warnings: () => readonly { readonly tag: string; readonly warning: string }[]
  close(): Promise<void>
}

type State =
  | { readonly kind: 'none' | 'probing' }
  | { readonly kind: 'ready'; readonly capabilities: StoreCapabilities }
  | { readonly kind: 'unavailable'; readonly reason: string }

/** Between probes of a store that cannot be reached. */
const probeAgainMs = 10_000

/** Throws SettingsError if the settings do not fit together. */
export function openObjectStore(settings: Settings, root: string, log: Log): ServerStore {
  const options = objectStoreOptions(settings)
  const blocks = {
    directory: join(root, 'tmp', 'parts'),
    bytesMax: settings['object.store.part.cache.size'],
    freeBytesMin: freeBytesMin(settings['disk.free.bytes.min'], root),
  }
  const client = options === null ? null : openStoreClient({ ...options, blocks })
  const lake = openLake(settings, root)
  let state: State = { kind: client === null ? 'none' : 'probing' }
  const isReady = (): boolean => state.kind === 'ready' && state.capabilities.putIfAbsent
  let uploads: UploadStatistics | null = null
  let sweeps: SweepStatistics | null = null
  const isConfigured = client !== null && options?.url !== ''
  const rootId = isConfigured ? rootIdOf(root) : ''
  const policies = {
    store: isConfigured ? client : null,
    rootId,
    ready: isReady,
    blocks: blocks.directory,
    lake: lake.engine,
    sweep: {
      graceMs: () => settings['object.store.delete.grace'],
      directory: root,
      fingerprint: isConfigured ? fingerprintOf(root) : '',
      report: (latest: SweepStatistics) => {
        sweeps = latest
      },
    },
    report: (statistics: UploadStatistics) => {
      uploads = statistics
    },
  }
  const closing = new AbortController()
  const tell = (next: State): void => {
    if (next.kind === 'unavailable' && (state.kind !== 'unavailable' || state.reason !== next.reason)) {
      log('W', 'object-store', `the object store cannot be used: ${next.reason}`)
    }
    if (next.kind === 'ready') log('I', 'object-store', `ready [url=${options?.url}]`)
    state = next
    for (const warning of warningsOf(next)) if (next.kind === 'ready') log('W', 'object-store', warning)
  }
  if (client !== null && isConfigured) void probeUntilReady(client, tell, closing.signal)
  return {
    client,
    policies,
    relation: storeRelation(options, () => state),
    ...{ lakeConfig: lake.config, lakeKeys: lake.keys },
    metrics: [
      ...storeMetrics(
        () => state,
        () => uploads,
      ),
      ...sweepMetrics(() => sweeps),
      ...lake.metrics,
    ],
    warnings: () =>
      [
        ...[...warningsOf(state), ...waitingText(uploads, isConfigured), ...sweepWarnings(sweeps)],
        ...lake.warnings(),
      ].map((warning) => ({
        tag: 'object-store',
        warning,
      })),
    close: async () => {
      closing.abort()
      await Promise.all([lake.keys.close(), client?.close()])
    },
  }
}

/** Null when the settings name no store. Throws SettingsError. */
function objectStoreOptions(settings: Settings): ObjectStoreOptions | null {
  const url = settings['object.store.url']
  if (url === '' && settings['object.store.read.buckets'].length === 0) return null
  try {
    if (url !== '') storePlace(url)
  } catch (error) {
    throw new SettingsError(`bad value of object.store.url: ${error instanceof Error ? error.message : ''}`, {
      cause: error,
    })
  }
  return storeOptions(settings, url)
}

/** What statements may read: the bucket of the store, and those that the settings add. */
export function remoteFileOptions(
  settings: Settings,
  root: string,
  tools: Pick<RemoteFilesOptions, 'client' | 'clock'>,
): RemoteFilesOptions {
  const url = settings['object.store.url']
  const place = url === '' ? null : storePlace(url)
  const buckets = [...(place?.kind === 's3' ? [place.bucket] : []), ...settings['object.store.read.buckets']]
  const directory = join(root, 'tmp', 'objects')
  return { ...tools, buckets, directory, bytesMax: settings['object.store.cache.size'] }
}

/** The folder that is the object store; null: it is none. */
export function storeFolder(settings: Settings): string | null {
  const url = settings['object.store.url']
  const place = url === '' ? null : storePlace(url)
  return place?.kind === 'folder' ? place.folder : null
}

async function probeUntilReady(client: StoreClient, tell: (state: State) => void, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    try {
      tell({ kind: 'ready', capabilities: await client.probe() })
      return
    } catch (error) {
      if (signal.aborted) return
      if (!(error instanceof StoreError)) throw error
      tell({ kind: 'unavailable', reason: error.message })
    }
    await sleep(probeAgainMs, undefined, { signal, ref: false }).catch(() => undefined)
  }
}

function warningsOf(state: State): string[] {
  if (state.kind === 'unavailable') return [`the object store cannot be used: ${state.reason}`]
  if (state.kind !== 'ready' || state.capabilities.putIfAbsent) return []
  return [
    `the object store does not honour conditional writes, so nothing is written to it: ${state.capabilities.reason}`,
  ]
}

function waitingText(uploads: UploadStatistics | null, isConfigured: boolean): string[] {
  if (uploads === null) return []
  if (uploads.waiting === 0 && uploads.droppable > 0 && uploads.failure !== null) {
    return [`local files of uploaded parts wait to be dropped [parts=${uploads.droppable}]: ${uploads.failure}`]
  }
  if (uploads.waiting === 0) return []
  const parts = `[parts=${uploads.waiting}]`
  if (!isConfigured) return [`storage policies wait: no object store is configured ${parts} [setting=object.store.url]`]
  return uploads.failure === null
    ? []
    : [`parts wait for their upload to the object store ${parts}: ${uploads.failure}`]
}

/** Created at the first start with a store. A copy of the root that is to live on its own needs another one. */
export function rootIdOf(root: string): string {
  const path = join(root, 'root.id')
  if (existsSync(path)) return readFileSync(path, 'utf8').trim()
  const id = randomUUID()
  writeFileSync(path, `${id}\n`, { flag: 'wx', flush: true })
  return id
}

/** The inode of the file, which a copy of the root does not keep. */
function fingerprintOf(root: string): string {
  return `inode ${statSync(join(root, 'root.id')).ino}`
}

function sweepWarnings(sweeps: SweepStatistics | null): string[] {
  if (sweeps === null || sweeps.failure === null) return []
  return [`objects that nothing names are not removed from the object store: ${sweeps.failure}`]
}

export function sweepMetrics(sweepsOf: () => SweepStatistics | null): Metric[] {
  const metric = reportedMetric('svc_object_store', sweepsOf)
  return [
    metric(
      'unnamed_objects',
      'gauge',
      'Objects of this root that nothing names any more and that are not removed yet.',
      ({ unnamed }) => unnamed,
    ),
    metric(
      'removed_objects_total',
      'counter',
      'Objects removed because nothing had named them for the grace period.',
      ({ removed }) => removed,
    ),
  ]
}

export function storeMetrics(stateOf: () => State, uploadsOf: () => UploadStatistics | null): Metric[] {
  const upload = reportedMetric('svc_object_store', uploadsOf)
  return [
    upload('waiting_parts', 'gauge', 'Parts that wait for their upload to the object store.', ({ waiting }) => waiting),
    upload('uploaded_parts_total', 'counter', 'Parts uploaded to the object store.', ({ uploaded }) => uploaded),
    upload('uploaded_bytes_total', 'counter', 'Bytes of parts uploaded to the object store.', ({ bytes }) => bytes),
    upload(
      'dropped_parts_total',
      'counter',
      'Uploaded parts whose local files were dropped.',
      ({ dropped }) => dropped,
    ),
    upload(
      'upload_failures_total',
      'counter',
      'Failed uploads of parts and failed drops of local files. They are retried.',
      ({ failures }) => failures,
    ),
    {
      name: 'svc_object_store_available',
      type: 'gauge',
      description: 'Set to 1 if the object store was available when it was last probed; 0 if not, or without one.',
      read: () => (stateOf().kind === 'ready' ? 1 : 0),
    },
  ]
}

function storeRelation(options: ObjectStoreOptions | null, stateOf: () => State): VirtualRelation {
  return {
    name: 'object_store',
    columns: [
      { name: 'url', type: 'VARCHAR' },
      { name: 'endpoint', type: 'VARCHAR' },
      { name: 'state', type: 'VARCHAR' },
      { name: 'put_if_absent', type: 'BOOLEAN' },
      { name: 'multipart_if_absent', type: 'BOOLEAN' },
      { name: 'reason', type: 'VARCHAR' },
    ],
    rows: () => {
      if (options === null) return []
      const state = stateOf()
      const capabilities = state.kind === 'ready' ? state.capabilities : null
      const reason = state.kind === 'unavailable' ? state.reason : (capabilities?.reason ?? '')
      const { url, s3 } = options
      const [absent, multipart] = [capabilities?.putIfAbsent ?? false, capabilities?.multipartIfAbsent ?? false]
      return [
        [url, s3.endpoint === '' ? null : s3.endpoint, state.kind, absent, multipart, reason === '' ? null : reason],
      ]
    },
  }
}
