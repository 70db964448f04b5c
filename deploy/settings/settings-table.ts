// The table of all settings: name, type, default and description. The parser of conf/server.conf, the environment
// variables, docs/settings.md, the sample configuration and the types of the values derive from it.

import type { SettingsTable } from './setting-row.js'
import { objectStoreSettings } from './settings-object-store.js'
import { qwpSettings } from './settings-qwp.js'
import { securitySettings } from './settings-security.js'

const GIB = 1024 ** 3

const pathText = /^\/[\w.~!$&'()*+,;=:@%/-]+$/

export const settingsTable = {
  'http.enabled': { type: 'boolean', initial: 'true', description: 'Serve HTTP.' },
  'http.net.bind.to': { type: 'address', initial: '0.0.0.0:9000', description: 'Address of the HTTP server.' },
  'http.net.connection.limit': {
    reload: true,
    type: 'integer',
    initial: '256',
    min: 1,
    description:
      'Limit of HTTP connections. Further ones get 503 and are closed; connections without a completed request are evicted first.',
  },
  'http.net.connection.timeout': {
    reload: true,
    type: 'duration',
    initial: '5m',
    min: 1000,
    description: 'Idle HTTP connections are closed after this time.',
  },
  'http.request.header.bytes.max': {
    type: 'size',
    initial: '1m',
    min: 64 * 1024,
    max: 64 * 1024 ** 2,
    description: 'Size limit of the request line and headers of one HTTP request, including the SQL text.',
  },
  'http.receive.buffer.size': {
    type: 'size',
    initial: '1m',
    min: 64 * 1024,
    max: 16 * 1024 ** 2,
    description:
      'Bytes of a request body processed at a time: the block size of imports, and at most 1m for line protocol.',
  },
  'http.send.buffer.size': {
    type: 'size',
    initial: '2m',
    min: 64 * 1024,
    max: 64 * 1024 ** 2,
    reload: true,
    description:
      'Backpressure window: encoded bytes of a response that may wait for a slow reader. A query that waits occupies no thread.',
  },
  'http.import.expanded.bytes.max': {
    type: 'size',
    initial: '64g',
    min: 1024 ** 2,
    description: 'Limit of the decompressed size of an import.',
  },
  'http.console.enabled': {
    type: 'boolean',
    initial: 'true',
    description: 'Serve the web console at `/console/`.',
  },
  'http.context.execute': {
    type: 'text',
    initial: '/exec',
    pattern: pathText,
    description: 'Path that runs SQL and returns JSON.',
  },
  'http.context.export': {
    type: 'text',
    initial: '/exp',
    pattern: pathText,
    description: 'Path that returns the rows of a SELECT as a file.',
  },
  'http.context.import': {
    type: 'text',
    initial: '/imp',
    pattern: pathText,
    description: 'Path that imports CSV files.',
  },
  'http.import.connection.limit': {
    reload: true,
    type: 'integer',
    initial: '-1',
    min: -1,
    description: 'Limit of concurrent CSV imports; -1: no limit.',
  },
  'http.export.connection.limit': {
    reload: true,
    type: 'integer',
    initial: '-1',
    min: -1,
    description: 'Limit of concurrent exports; -1: no limit.',
  },
  'http.export.default.timeout': {
    reload: true,
    type: 'duration',
    initial: '60s',
    description: 'Default deadline of Parquet exports; 0: none.',
  },
  'http.export.parquet.tmp.dir': {
    reload: true,
    type: 'text',
    initial: 'tmp',
    description:
      'Directory where Parquet files are completed before they are sent; a relative path is below the root folder.',
  },
  'http.json.query.max.response.rows': {
    reload: true,
    type: 'integer',
    initial: '10000',
    min: 0,
    description: 'Row limit of one JSON response. `count=true` counts all rows of the result.',
  },
  'http.security.max.response.rows': {
    reload: true,
    type: 'integer',
    initial: '-1',
    min: -1,
    description: 'A second row limit of one response, for all users; -1: no limit.',
  },
  'http.json.query.connection.limit': {
    reload: true,
    type: 'integer',
    initial: '-1',
    min: -1,
    description: 'Limit of concurrent SQL requests over HTTP; -1: no limit.',
  },
  'http.ilp.connection.limit': {
    reload: true,
    type: 'integer',
    initial: '-1',
    min: -1,
    description: 'Limit of concurrent line protocol requests over HTTP; -1: no limit.',
  },
  'http.pessimistic.health.check.enabled': {
    reload: true,
    type: 'boolean',
    initial: 'false',
    description: 'Health checks return 500 after an unhandled error.',
  },
  'http.min.enabled': {
    type: 'boolean',
    initial: 'true',
    description: 'Serve health checks on a separate port and thread; they are not logged.',
  },
  'http.min.net.bind.to': {
    type: 'address',
    initial: '0.0.0.0:9003',
    description: 'Address of the health check server.',
  },
  'net.connection.limit.per.address': {
    reload: true,
    type: 'integer',
    initial: '-1',
    min: -1,
    description:
      'Limit of connections per client address, on each port. -1 and 0: no limit; behind a proxy or load balancer all clients share an address.',
  },
  'metrics.enabled': { reload: true, type: 'boolean', initial: 'true', description: 'Serve `/metrics`.' },
  'metrics.prefix': {
    type: 'text',
    initial: 'svc_',
    pattern: /^[a-zA-Z_:][a-zA-Z0-9_:]*$/,
    description: 'Prefix of metric names.',
  },
  'telemetry.enabled': {
    type: 'boolean',
    initial: 'true',
    reload: true,
    description:
      'Store events (start, stop, tables created, queries run) in the table `telemetry`. Nothing leaves the machine, and no SQL is stored.',
  },
  'telemetry.queue.capacity': {
    type: 'integer',
    initial: '512',
    min: 1,
    max: 1_000_000,
    description: 'Limit of events buffered until they are stored, once a second. Further ones are dropped and counted.',
  },
  'telemetry.hide.tables': {
    type: 'boolean',
    initial: 'false',
    reload: true,
    description: 'Hide the table `telemetry` from `tables()` and from queries.',
  },
  'telemetry.table.ttl.weeks': {
    type: 'integer',
    initial: '4',
    min: 0,
    max: 5200,
    description: 'Weeks to keep events; 0: forever.',
  },
  'query.tracing.enabled': {
    type: 'boolean',
    initial: 'false',
    reload: true,
    description:
      'Allow `SET query.trace = true`: the statements of that connection are kept for a day in the table `_query_trace`.',
  },
  'disk.free.bytes.min': {
    type: 'size',
    initial: '64m',
    reload: true,
    description:
      'Writes are rejected (503, Retry-After) while the file system of the data has less free space, but at most a tenth of its size; 0: never. Queries and statements that free space continue.',
  },
  'line.http.enabled': {
    type: 'boolean',
    initial: 'true',
    description:
      'Accept line protocol on `/write`, `/api/v2/write` and `/api/v3/write_lp`, and `/query` for its clients.',
  },
  'line.http.body.bytes.max': {
    reload: true,
    type: 'size',
    initial: '100m',
    min: 1024,
    max: GIB,
    description: 'Size limit of a line protocol request body, after decompression.',
  },
  'line.http.bodies.bytes.max': {
    type: 'size',
    initial: '256m',
    min: 1024 ** 2,
    max: 2 * GIB,
    description: 'Memory budget for line protocol request bodies; further requests wait before they are read.',
  },
  'line.http.table.prefix': {
    reload: true,
    type: 'list',
    initial: '',
    choices: ['org', 'bucket', 'db', 'rp'],
    description:
      'Parameters of write requests (`org`, `bucket`, `db`, `rp`) whose values precede the names of tables, each with an underscore: with `bucket`, rows of `cpu` in the bucket `office` are stored in the table `office_cpu`. Empty: the parameters mean nothing.',
  },
  'line.name.replacement': {
    type: 'words',
    initial: '',
    pattern: /^(|[A-Za-z0-9_]{1,8})$/,
    description:
      'Replacement for each character that table and column names of line protocol cannot contain (`0.005`, `+Inf`, `km/h`), of letters, digits and underscores, such as `_`. Empty: such lines are rejected.',
  },
  'line.tcp.enabled': { type: 'boolean', initial: 'true', description: 'Accept line protocol over TCP.' },
  'line.tcp.net.bind.to': {
    type: 'address',
    initial: '0.0.0.0:9009',
    description: 'Address of line protocol over TCP.',
  },
  'line.tcp.net.connection.limit': {
    reload: true,
    type: 'integer',
    initial: '256',
    min: 1,
    description:
      'Limit of line protocol connections. Further ones are closed at once; connections that have sent no row are evicted first.',
  },
  'line.tcp.bad.line': {
    reload: true,
    type: 'choice',
    initial: 'close',
    choices: ['close', 'skip'],
    description:
      'After a line that cannot be stored: `close` the connection, or `skip` the line. The line is reported in `sys.rejects` either way.',
  },
  'copy.import.root': {
    type: 'text',
    initial: 'import',
    description: 'Directory from which COPY reads files; a relative path is below the root folder.',
  },
  'copy.export.root': {
    type: 'text',
    initial: 'export',
    description:
      'Directory to which COPY writes files, and from which it reads them again; a relative path is below the root folder.',
  },
  'pg.enabled': {
    type: 'boolean',
    initial: 'true',
    description: 'Serve the PostgreSQL wire protocol.',
  },
  'pg.net.bind.to': {
    type: 'address',
    initial: '0.0.0.0:8812',
    description: 'Address of the PostgreSQL wire protocol.',
  },
  'pg.net.connection.limit': {
    reload: true,
    type: 'integer',
    initial: '256',
    min: 1,
    description:
      'Limit of PostgreSQL connections. Further ones are rejected; connections that have not signed in are evicted first.',
  },
  'pg.server.version': {
    type: 'choice',
    initial: '14.0',
    choices: ['12.3', '13.0', '14.0', '15.0', '16.0', '17.0'],
    description:
      'PostgreSQL version reported to clients: Django 5 requires 14, some clients expect the 12.3 of this dialect.',
  },
  'wal.commit.mode': {
    type: 'choice',
    initial: 'sync',
    choices: ['sync', 'async', 'nosync'],
    description:
      '`sync`: an acknowledged row survives power loss. `async`: synced every `wal.commit.interval`. `nosync`: synced by the operating system.',
  },
  'wal.commit.interval': {
    type: 'duration',
    initial: '200ms',
    min: 1,
    max: 60_000,
    description: 'Interval between syncs of the log in mode `async`.',
  },
  'wal.bytes.max': {
    type: 'size',
    initial: '512m',
    min: 128 * 1024 ** 2,
    description: 'Size of the log at which tables are flushed; bounds the time of a restart.',
  },
  'storage.flush.rows': {
    type: 'integer',
    initial: '1000000',
    min: 1000,
    max: 8_000_000,
    description: 'Number of rows at which a memtable is flushed to parts.',
  },
  'storage.flush.bytes': {
    type: 'size',
    initial: '256m',
    min: 1024 ** 2,
    description: 'Size at which a memtable is flushed to parts; a shortage of memory flushes earlier.',
  },
  'storage.flush.age': {
    type: 'duration',
    initial: '10m',
    min: 100,
    description: 'Age at which a memtable is flushed to parts, whatever its size.',
  },
  'storage.carry.bytes.max': {
    type: 'size',
    initial: '1m',
    max: 64 * 1024 ** 2,
    description:
      'When the log is full, memtables with fewer bytes are relocated to the log head instead of being flushed.',
  },
  'storage.merge.parts.min': {
    type: 'integer',
    initial: '4',
    min: 2,
    max: 100,
    description:
      'Number of parts of similar size in a partition that are compacted into one; large ones only where their time ranges overlap.',
  },
  'storage.merge.rows.max': {
    type: 'integer',
    initial: '4194304',
    min: 1000,
    max: 8_388_608,
    description: 'Row limit of a part that compaction writes.',
  },
  'memory.bytes': {
    type: 'size',
    initial: '0',
    max: 3.5 * GIB,
    description:
      'Shared memory of the engine, at least 512 MiB; 0: a quarter of the memory of the machine or container below 8 GiB, else half, at most 3.5 GiB.',
  },
  'query.threads': {
    type: 'integer',
    initial: '0',
    min: 0,
    max: 64,
    description: 'Threads that run queries, flushes and compactions; 0: one per core.',
  },
  'query.spill.bytes.max': {
    type: 'size',
    initial: '0',
    description:
      'Limit of the bytes that one query may hold in temporary files, to which it spills what does not fit in memory; 0: no limit but the free space of the disk.',
  },
  'query.timeout': {
    reload: true,
    type: 'duration',
    initial: '0',
    description: 'Default deadline of statements; 0: none.',
  },
  'query.jit.mode': {
    type: 'choice',
    initial: 'on',
    choices: ['on', 'off'],
    description: 'Compile hot parts of queries at run time. Results do not change.',
  },
  'query.view.rewrite': {
    type: 'choice',
    initial: 'on',
    choices: ['on', 'off', 'exact'],
    description:
      'Answer SAMPLE BY and GROUP BY over a table from the stored buckets of its materialized views where these give the same result. exact: no results that differ in the last digits, such as sums of floating-point numbers.',
  },
  'query.view.read': {
    type: 'choice',
    initial: 'fresh',
    choices: ['fresh', 'stored'],
    description:
      'How a query reads a materialized view that it names. fresh: what is not stored, or has changed since, is computed. stored: only the buckets that are stored, as they are. The hints view_fresh and view_stored of a SELECT override it.',
  },
  'connection.log.entries': {
    type: 'integer',
    initial: '10000',
    min: 0,
    max: 1_000_000,
    description: 'Number of entries in `sys.connection_log`.',
  },
  'log.sql.query.progress.exe': {
    reload: true,
    type: 'boolean',
    initial: 'false',
    description: 'Log each statement with its duration.',
  },
  'log.format': {
    type: 'choice',
    initial: 'text',
    choices: ['text', 'json'],
    description: 'Records as `<timestamp> <level> <logger> <message>`, or as one JSON object a line.',
  },
  'log.level': {
    type: 'choice',
    initial: 'I',
    choices: ['I', 'W', 'E', 'C'],
    reload: true,
    description: 'Minimum level of log records: information, warnings, errors, or critical ones.',
  },
  'log.days.kept': {
    reload: true,
    type: 'integer',
    initial: '30',
    min: 0,
    description: 'Days to keep log files; 0: forever.',
  },
  'shutdown.timeout': {
    reload: true,
    type: 'duration',
    initial: '10s',
    description: 'Grace period for running requests at shutdown.',
  },
  ...objectStoreSettings,
  'backup.object.store': {
    reload: true,
    type: 'words',
    initial: '',
    description:
      'Where BACKUP writes: a folder as `file:///path`, or `s3://bucket/prefix` of the service that `object.store.s3.*` describes. Empty: BACKUP is refused.',
  },
  'backup.cleanup.keep.latest.n': {
    reload: true,
    type: 'integer',
    initial: '5',
    min: 1,
    description: 'Backups that an object store keeps; older ones are removed after a backup. A folder has one.',
  },
  ...qwpSettings,
  ...securitySettings,
} as const satisfies SettingsTable
