// Derives the options of the lake (tables that are also Iceberg tables in object storage) from the settings: the folder
// of its temporary files, the time for which changes may wait for a commit, the external catalog if there is one, and
// the storage properties that the built-in Iceberg catalog passes to readers. Also defines the lake's metrics and
// warnings.

import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { type EngineOptions, type LakeStatistics, storePlace } from '../engine/engine.js'
import { type Metric, reportedMetric } from '../gateways/common/metric.js'
import { type LakeKeys, lakeKeys, noKeys } from './lake-keys.js'
import { type Settings, SettingsError } from './settings/settings.js'

export interface ServerLake {
  readonly engine: NonNullable<EngineOptions['objectStore']>['lake']
  /** How readers of Iceberg tables reach the object store. */
  readonly config: Readonly<Record<string, string>>
  readonly keys: LakeKeys
  readonly metrics: readonly Metric[]
  readonly warnings: () => readonly string[]
}

/** Throws SettingsError if the settings do not fit together. */
export function openLake(settings: Settings, root: string): ServerLake {
  const config = readerConfig(settings)
  const keys = settings['object.store.url'].startsWith('s3:') ? lakeKeys(settings) : noKeys
  const catalog = catalogOptions(settings)
  const directory = join(root, 'tmp', 'lake')
  // Files that a crash has left.
  rmSync(directory, { recursive: true, force: true })
  let statistics: LakeStatistics | null = null
  return {
    engine: {
      directory,
      catalog,
      lagMs: () => settings['lake.commit.lag'],
      report: (latest) => {
        statistics = latest
      },
    },
    config,
    keys,
    metrics: lakeMetrics(() => statistics),
    warnings: () => warningsOf(statistics, settings['object.store.url'] !== ''),
  }
}

/** Null: this server is the catalog. */
function catalogOptions(settings: Settings): ServerLake['engine']['catalog'] {
  const url = settings['lake.catalog.url']
  const tokenUrl = settings['lake.catalog.token.url']
  const [id, secret] = [settings['lake.catalog.client.id'], settings['lake.catalog.client.secret']]
  if (url === '') return null
  for (const [name, value] of Object.entries({ 'lake.catalog.url': url, 'lake.catalog.token.url': tokenUrl })) {
    if (value !== '' && !isHttpUrl(value))
      throw new SettingsError(`bad value of ${name}: expected http://host/path or https`)
  }
  if ((id === '') !== (secret === '')) {
    throw new SettingsError('lake.catalog.client.id and lake.catalog.client.secret must be set together')
  }
  if (id !== '' && settings['lake.catalog.token'] !== '') {
    throw new SettingsError('lake.catalog.token and lake.catalog.client.id cannot both be set')
  }
  const namespace = settings['lake.catalog.namespace'].split('.')
  if (namespace.includes('')) throw new SettingsError('bad value of lake.catalog.namespace: expected name or name.name')
  return {
    ...{
      url: url.replace(/\/+$/, '').replace(/\/v1$/, ''),
      namespace,
      tokenUrl,
      token: settings['lake.catalog.token'],
    },
    client: id === '' ? null : { id, secret },
    warehouse: settings['lake.catalog.warehouse'],
    scope: settings['lake.catalog.scope'],
    timeoutMs: settings['lake.catalog.timeout'],
  }
}

/** Without user and password, which messages would show. */
function isHttpUrl(text: string): boolean {
  return /^https?:\/\/[^/@?#\s]+(\/[^?#@\s]*)?$/.test(text)
}

function warningsOf(statistics: LakeStatistics | null, isConfigured: boolean): string[] {
  if (statistics === null || statistics.waiting === 0) return []
  const tables = `[tables=${statistics.waiting}]`
  if (!isConfigured)
    return [`tables of the lake wait: no object store is configured ${tables} [setting=object.store.url]`]
  return statistics.failure === null
    ? []
    : [`tables of the lake wait for their commit ${tables}: ${statistics.failure}`]
}

/** Names of properties are those of Iceberg's implementations. */
function readerConfig(settings: Settings): Record<string, string> {
  const url = settings['object.store.url']
  if (!url.startsWith('s3:')) return {}
  const place = storePlace(url)
  const endpoint = settings['object.store.s3.endpoint']
  const region = settings['object.store.s3.region']
  const style = settings['object.store.s3.path.style']
  const isDotted = place.kind === 's3' && place.bucket.includes('.')
  const isPathStyle = style === 'auto' ? endpoint !== '' || isDotted : style === 'true'
  return {
    ...(endpoint === '' ? {} : { 's3.endpoint': endpoint }),
    ...{ 's3.region': region, 'client.region': region },
    's3.path-style-access': `${isPathStyle}`,
  }
}

export function lakeMetrics(statisticsOf: () => LakeStatistics | null): Metric[] {
  const metric = reportedMetric('svc_lake', statisticsOf)
  return [
    metric(
      'waiting_tables',
      'gauge',
      'Tables of the lake with changes that are not committed.',
      ({ waiting }) => waiting,
    ),
    metric('commits_total', 'counter', 'Commits to Iceberg tables.', ({ commits }) => commits),
    metric(
      'conflicts_total',
      'counter',
      'Commits to Iceberg tables that began again because another writer had committed.',
      ({ conflicts }) => conflicts,
    ),
    metric('files_total', 'counter', 'Data files written for Iceberg tables.', ({ files }) => files),
    metric('bytes_total', 'counter', 'Bytes of data files written for Iceberg tables.', ({ bytes }) => bytes),
    metric(
      'failures_total',
      'counter',
      'Failed commits to Iceberg tables. They are retried.',
      ({ failures }) => failures,
    ),
  ]
}
