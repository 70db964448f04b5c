// Table of the settings of object storage. Included in settings-table.ts.

import type { SettingsTable } from './setting-row.js'

const MIB = 1024 ** 2

export const objectStoreSettings = {
  'object.store.url': {
    type: 'words',
    initial: '',
    description: 'Object storage: `s3://bucket/prefix` of any S3-compatible service, or `file:///path`. Empty: none.',
  },
  'object.store.s3.endpoint': {
    type: 'words',
    initial: '',
    description: 'URL of the S3 service, such as `http://127.0.0.1:9100`; empty: that of AWS in the region.',
  },
  'object.store.s3.region': { type: 'words', initial: 'us-east-1', description: 'Region of the bucket.' },
  'object.store.s3.path.style': {
    type: 'choice',
    initial: 'auto',
    choices: ['auto', 'true', 'false'],
    description:
      'Name the bucket in the path of requests instead of the host name; `auto`: if an endpoint is set, or the name contains a dot.',
  },
  'object.store.credentials': {
    type: 'choice',
    initial: 'auto',
    choices: ['auto', 'setting', 'environment', 'file', 'role'],
    description:
      'Source of the keys: the settings below, `AWS_ACCESS_KEY_ID` and `AWS_SECRET_ACCESS_KEY`, a credentials file, or the role of the container or instance; `auto`: the first of these that has keys.',
  },
  'object.store.access.key.id': { type: 'words', initial: '', description: 'Id of the access key.' },
  'object.store.secret.access.key': { type: 'secret', initial: '', description: 'The secret access key.' },
  'object.store.session.token': { type: 'secret', initial: '', description: 'Session token of temporary keys.' },
  'object.store.credentials.path': {
    type: 'words',
    initial: '',
    description: 'Credentials file with profiles; empty: `AWS_SHARED_CREDENTIALS_FILE`, or `~/.aws/credentials`.',
  },
  'object.store.credentials.profile': {
    type: 'words',
    initial: '',
    description: 'Profile in that file; empty: `AWS_PROFILE`, or `default`.',
  },
  'object.store.read.buckets': {
    type: 'list',
    initial: '',
    description:
      "Further buckets of the service that `read_parquet('s3://..')` and `iceberg('s3://..')` may read, separated by commas; `*`: any that the keys permit.",
  },
  'object.store.connections': {
    type: 'integer',
    initial: '16',
    min: 1,
    max: 256,
    description: 'Limit of connections to the service.',
  },
  'object.store.timeout': {
    type: 'duration',
    initial: '10s',
    min: 100,
    max: 600_000,
    description: 'How long one request may wait for its response.',
  },
  'object.store.retry.time': {
    type: 'duration',
    initial: '30s',
    min: 0,
    max: 3_600_000,
    description: 'How long an operation is retried, with growing delays, before it fails.',
  },
  'object.store.multipart.size': {
    type: 'size',
    initial: '16m',
    min: 5 * MIB,
    max: 1024 * MIB,
    description: 'Larger objects are uploaded in parts of this size.',
  },
  'object.store.cache.size': {
    type: 'size',
    initial: '4g',
    min: 16 * MIB,
    description:
      'Limit of the local cache of objects that `read_parquet()` and `iceberg()` read, below `tmp/objects/`; the least recently used are removed, those of the last ten minutes above twice the limit.',
  },
  'object.store.part.cache.size': {
    type: 'size',
    initial: '8g',
    min: 16 * MIB,
    description:
      'Limit of the local cache of parts whose rows are only in the object store, below `tmp/parts/`; what was read least recently is removed.',
  },
  'object.store.delete.grace': {
    type: 'duration',
    initial: '7d',
    min: 1000,
    description:
      'Objects of this root that nothing names are removed after this time: longer than queries run, and than backups are kept that need the objects.',
  },
  'lake.commit.lag': {
    type: 'duration',
    initial: '10s',
    min: 1000,
    max: 86_400_000,
    description:
      'For how long the Iceberg table of a table with `LAKE ON` may lack its changes, before a commit of them begins.',
  },
  'lake.catalog.url': {
    type: 'words',
    initial: '',
    description:
      'Iceberg REST catalog to which tables with `LAKE ON` are committed, such as `http://127.0.0.1:8181/catalog`, without `/v1`. Empty: this server is their catalog.',
  },
  'lake.catalog.warehouse': {
    type: 'words',
    initial: '',
    description: 'Warehouse of that catalog; empty: its default.',
  },
  'lake.catalog.namespace': {
    type: 'words',
    initial: 'qdb',
    description: 'Namespace of the tables in that catalog; a dot separates levels. It is created if it does not exist.',
  },
  'lake.catalog.token': { type: 'secret', initial: '', description: 'Bearer token for that catalog.' },
  'lake.catalog.client.id': {
    type: 'words',
    initial: '',
    description: 'Client that requests tokens for that catalog (OAuth2, client_credentials).',
  },
  'lake.catalog.client.secret': { type: 'secret', initial: '', description: 'The secret of that client.' },
  'lake.catalog.scope': { type: 'words', initial: 'catalog', description: 'Scope of the tokens; empty: none.' },
  'lake.catalog.token.url': {
    type: 'words',
    initial: '',
    description: 'Where tokens are requested; empty: `/v1/oauth/tokens` of the catalog.',
  },
  'lake.catalog.timeout': {
    type: 'duration',
    initial: '30s',
    min: 100,
    max: 600_000,
    description: 'How long one request to that catalog may wait for its response.',
  },
  'lake.credentials.vend': {
    type: 'choice',
    initial: 'off',
    choices: ['off', 'static', 'sts'],
    description:
      'Keys of the object store that the Iceberg catalog hands out to whoever may read: none; those of the next two settings; or temporary keys of a security token service (STS), which can only read the objects of one table.',
  },
  'lake.credentials.access.key.id': {
    type: 'words',
    initial: '',
    description:
      'Id of a second access key. With `static` it is handed out, and should only be able to read. With `sts` it signs the requests to the service; empty: the keys of the server do.',
  },
  'lake.credentials.secret.access.key': { type: 'secret', initial: '', description: 'Its secret access key.' },
  'lake.credentials.sts.endpoint': {
    type: 'words',
    initial: '',
    description:
      'Address of the security token service; empty: that of `object.store.s3.endpoint`, as with MinIO, or that of AWS in the region.',
  },
  'lake.credentials.sts.role.arn': {
    type: 'words',
    initial: '',
    description: 'Role whose temporary keys are handed out (AssumeRole). MinIO needs none.',
  },
  'lake.credentials.sts.external.id': {
    type: 'words',
    initial: '',
    description: 'External id that the trust policy of the role asks for; empty: none.',
  },
  'lake.credentials.sts.duration': {
    type: 'duration',
    initial: '1h',
    min: 900_000,
    max: 43_200_000,
    description:
      'How long these keys are valid. They are handed out again until a quarter of it is left, and then replaced.',
  },
} as const satisfies SettingsTable
