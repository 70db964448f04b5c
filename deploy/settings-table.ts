// The one table of settings: name, type, default and a sentence. The reader of conf/server.conf, the environment names,
// docs/settings.md, the sample configuration and the types of the values derive from it.

import { securitySettings } from './settings-security.js'

export type SettingType =
  | ('boolean' | 'integer' | 'size' | 'duration' | 'address' | 'choice' | 'secret')
  /** `text` is not empty, `words` may be. */
  | ('text' | 'words')
  /** Texts between commas, blanks around them dropped. */
  | 'list'

export interface SettingRow {
  readonly type: SettingType
  /** As it would stand in conf/server.conf. */
  readonly initial: string
  readonly says: string
  /** Of type choice. */
  readonly choices?: readonly string[]
  /** Of type choice: the class names of Kafka Connect's converters stand for their formats. */
  readonly aliases?: 'connect'
  /** Bounds of integers, sizes (bytes) and durations (milliseconds), inclusive. */
  readonly min?: number
  readonly max?: number
  /** Texts: what they look like. */
  readonly pattern?: RegExp
  /** Changes while the server runs, by reload_config() or SIGHUP. */
  readonly reload?: true
}

export type SettingsTable = Readonly<Record<string, SettingRow>>

const GIB = 1024 ** 3

export const settingsTable = {
  'http.enabled': { type: 'boolean', initial: 'true', says: 'Serve HTTP.' },
  'http.net.bind.to': { type: 'address', initial: '0.0.0.0:9000', says: 'Address of the HTTP server.' },
  'http.net.connection.limit': {
    reload: true,
    type: 'integer',
    initial: '256',
    min: 1,
    says: 'HTTP connections at one time. Further ones are closed at once.',
  },
  'http.net.connection.timeout': {
    reload: true,
    type: 'duration',
    initial: '5m',
    min: 1000,
    says: 'An HTTP connection without a request for this long is closed.',
  },
  'http.request.header.bytes.max': {
    type: 'size',
    initial: '1m',
    min: 64 * 1024,
    max: 64 * 1024 ** 2,
    says: 'Bytes of the request line and the headers of one HTTP request; the SQL text is part of them.',
  },
  'http.receive.buffer.size': {
    type: 'size',
    initial: '1m',
    min: 64 * 1024,
    max: 16 * 1024 ** 2,
    says: 'Bytes of a request body that are handled at one time: the block size of imports, and at most 1m of line protocol.',
  },
  'http.send.buffer.size': {
    type: 'size',
    initial: '2m',
    min: 64 * 1024,
    max: 64 * 1024 ** 2,
    reload: true,
    says: 'Encoded bytes of an answer that wait for its reader; a query whose reader is slower holds no thread.',
  },
  'http.import.expanded.bytes.max': {
    type: 'size',
    initial: '64g',
    min: 1024 ** 2,
    says: 'Bytes that the compressed body of an import may expand to.',
  },
  'http.console.enabled': {
    type: 'boolean',
    initial: 'true',
    says: 'Serve the web console at `/console/`.',
  },
  'http.context.execute': {
    type: 'text',
    initial: '/exec',
    says: 'Path that runs SQL and answers JSON; `/exec` answers as well.',
  },
  'http.context.export': {
    type: 'text',
    initial: '/exp',
    says: 'Path that answers the rows of a SELECT as a file; `/exp` answers as well.',
  },
  'http.context.import': {
    type: 'text',
    initial: '/imp',
    says: 'Path that takes CSV files; `/imp` answers as well.',
  },
  'http.import.connection.limit': {
    reload: true,
    type: 'integer',
    initial: '-1',
    min: -1,
    says: 'Imports of CSV files that run at one time; -1 sets no limit.',
  },
  'http.export.connection.limit': {
    reload: true,
    type: 'integer',
    initial: '-1',
    min: -1,
    says: 'Exports that run at one time; -1 sets no limit.',
  },
  'http.export.default.timeout': {
    reload: true,
    type: 'duration',
    initial: '60s',
    says: 'Deadline of a Parquet export that names none itself; 0 sets none.',
  },
  'http.export.parquet.tmp.dir': {
    reload: true,
    type: 'text',
    initial: 'tmp',
    says: 'Directory where Parquet files are completed before they are sent; a relative path is below the root folder.',
  },
  'http.json.query.max.response.rows': {
    reload: true,
    type: 'integer',
    initial: '10000',
    min: 0,
    says: 'Rows of one JSON answer. `count=true` counts all rows of the result.',
  },
  'http.security.max.response.rows': {
    reload: true,
    type: 'integer',
    initial: '-1',
    min: -1,
    says: 'A second bound of the rows of one answer, whoever asks; -1 sets none.',
  },
  'http.json.query.connection.limit': {
    reload: true,
    type: 'integer',
    initial: '-1',
    min: -1,
    says: 'SQL requests over HTTP that run at one time; -1 sets no limit.',
  },
  'http.ilp.connection.limit': {
    reload: true,
    type: 'integer',
    initial: '-1',
    min: -1,
    says: 'Line protocol requests over HTTP that run at one time; -1 sets no limit.',
  },
  'http.pessimistic.health.check.enabled': {
    reload: true,
    type: 'boolean',
    initial: 'false',
    says: 'Health checks answer 500 once any unhandled error has occurred.',
  },
  'http.min.enabled': {
    type: 'boolean',
    initial: 'true',
    says: 'Serve health checks on a port and thread of their own, never logged.',
  },
  'http.min.net.bind.to': { type: 'address', initial: '0.0.0.0:9003', says: 'Address of the health check server.' },
  'metrics.enabled': { reload: true, type: 'boolean', initial: 'true', says: 'Answer `/metrics`.' },
  'metrics.prefix': {
    type: 'text',
    initial: 'svc_',
    pattern: /^[a-zA-Z_:][a-zA-Z0-9_:]*$/,
    says: 'What the names of metrics begin with.',
  },
  'telemetry.enabled': {
    type: 'boolean',
    initial: 'true',
    reload: true,
    says: 'Keep events (start, stop, tables made, queries run) in the table `telemetry`. Nothing leaves the machine, and no SQL text is kept.',
  },
  'telemetry.queue.capacity': {
    type: 'integer',
    initial: '512',
    min: 1,
    max: 1_000_000,
    says: 'Events that wait to be stored, which happens once a second. Further ones are dropped and counted.',
  },
  'telemetry.hide.tables': {
    type: 'boolean',
    initial: 'false',
    reload: true,
    says: 'Hide the table `telemetry` from `tables()` and from queries.',
  },
  'telemetry.table.ttl.weeks': {
    type: 'integer',
    initial: '4',
    min: 0,
    max: 5200,
    says: 'Weeks that events are kept; 0 keeps them all.',
  },
  'query.tracing.enabled': {
    type: 'boolean',
    initial: 'false',
    reload: true,
    says: 'Allow `SET query.trace = true`: the statements of that connection are kept for a day in the table `_query_trace`.',
  },
  'disk.free.bytes.min': {
    type: 'size',
    initial: '64m',
    reload: true,
    says: 'Writes are refused (503, Retry-After) while the file system of the data has less room, though no more than a tenth of its size; 0 never refuses. Queries and what makes room go on.',
  },
  'line.http.enabled': {
    type: 'boolean',
    initial: 'true',
    says: 'Take line protocol on `/write` and `/api/v2/write`.',
  },
  'line.http.body.bytes.max': {
    reload: true,
    type: 'size',
    initial: '100m',
    min: 1024,
    max: GIB,
    says: 'Bytes of the body of one line protocol request, after decompression.',
  },
  'line.http.bodies.bytes.max': {
    type: 'size',
    initial: '256m',
    min: 1024 ** 2,
    max: 2 * GIB,
    says: 'Bytes of all line protocol bodies that wait in memory; further requests wait for room before they are read.',
  },
  'line.tcp.enabled': { type: 'boolean', initial: 'true', says: 'Take line protocol over TCP.' },
  'line.tcp.net.bind.to': { type: 'address', initial: '0.0.0.0:9009', says: 'Address of line protocol over TCP.' },
  'line.tcp.net.connection.limit': {
    reload: true,
    type: 'integer',
    initial: '256',
    min: 1,
    says: 'Line protocol connections at one time. Further ones are closed at once.',
  },
  'line.tcp.bad.line': {
    reload: true,
    type: 'choice',
    initial: 'close',
    choices: ['close', 'skip'],
    says: 'After a line that cannot be stored: `close` the connection, or `skip` the line. It is recorded either way.',
  },
  'copy.import.root': {
    type: 'text',
    initial: 'import',
    says: 'Directory from which COPY reads files; a relative path is below the root folder.',
  },
  'copy.export.root': {
    type: 'text',
    initial: 'export',
    says: 'Directory to which COPY writes files, and from which it reads them again; a relative path is below the root folder.',
  },
  'pg.enabled': {
    type: 'boolean',
    initial: 'true',
    says: 'Serve the PostgreSQL wire protocol.',
  },
  'pg.net.bind.to': { type: 'address', initial: '0.0.0.0:8812', says: 'Address of the PostgreSQL wire protocol.' },
  'pg.net.connection.limit': {
    reload: true,
    type: 'integer',
    initial: '256',
    min: 1,
    says: 'Connections of the PostgreSQL wire protocol at one time. Further ones are refused.',
  },
  'wal.commit.mode': {
    type: 'choice',
    initial: 'sync',
    choices: ['sync', 'async', 'nosync'],
    says: '`sync`: an acknowledged row survives power loss. `async`: synced every `wal.commit.interval`. `nosync`: when the system likes.',
  },
  'wal.commit.interval': {
    type: 'duration',
    initial: '200ms',
    min: 1,
    max: 60_000,
    says: 'Time between two syncs of the log in the mode `async`.',
  },
  'wal.bytes.max': {
    type: 'size',
    initial: '512m',
    min: 128 * 1024 ** 2,
    says: 'Bytes of log that are kept before tables are flushed; they bound the time of a restart.',
  },
  'storage.flush.rows': {
    type: 'integer',
    initial: '1000000',
    min: 1000,
    max: 8_000_000,
    says: 'Rows in the memory of a table that make it write them to parts.',
  },
  'storage.flush.bytes': {
    type: 'size',
    initial: '256m',
    min: 1024 ** 2,
    says: 'Bytes in the memory of a table that make it write them to parts; a shortage of memory does so earlier.',
  },
  'storage.flush.age': {
    type: 'duration',
    initial: '10m',
    min: 100,
    says: 'Time after which the rows in the memory of a table are written to parts, however few they are.',
  },
  'storage.carry.bytes.max': {
    type: 'size',
    initial: '1m',
    max: 64 * 1024 ** 2,
    says: 'When the log is full, tables with fewer bytes in memory move to its head instead of being written to parts.',
  },
  'storage.merge.parts.min': {
    type: 'integer',
    initial: '4',
    min: 2,
    max: 100,
    says: 'Parts of like size in a partition that are joined into one, large ones only where their times overlap.',
  },
  'storage.merge.rows.max': {
    type: 'integer',
    initial: '4194304',
    min: 1000,
    max: 8_388_608,
    says: 'Rows of the largest part that joining makes.',
  },
  'memory.bytes': {
    type: 'size',
    initial: '0',
    max: 3.5 * GIB,
    says: 'Shared memory of the engine, at least 512 MiB; 0 takes a quarter of the memory of the machine or container below 8 GiB, else half, at most 3.5 GiB.',
  },
  'query.threads': {
    type: 'integer',
    initial: '0',
    min: 0,
    max: 64,
    says: 'Threads that run queries, flushes and merges; 0 takes one for each core.',
  },
  'query.timeout': {
    reload: true,
    type: 'duration',
    initial: '0',
    says: 'Deadline of a statement that names none itself; 0 sets none.',
  },
  'query.jit.mode': {
    type: 'choice',
    initial: 'on',
    choices: ['on', 'off'],
    says: 'Compile hot parts of queries at run time. The answers are the same.',
  },
  'connection.log.entries': {
    type: 'integer',
    initial: '10000',
    min: 0,
    max: 1_000_000,
    says: 'Entries that `sys.connection_log` keeps.',
  },
  'log.sql.query.progress.exe': {
    reload: true,
    type: 'boolean',
    initial: 'false',
    says: 'Log each statement with its time.',
  },
  'log.format': {
    type: 'choice',
    initial: 'text',
    choices: ['text', 'json'],
    says: 'Records as `<timestamp> <level> <logger> <message>`, or as one JSON object a line.',
  },
  'log.level': {
    type: 'choice',
    initial: 'I',
    choices: ['I', 'W', 'E', 'C'],
    reload: true,
    says: 'The least level that is logged: information, warnings, errors, or what is critical.',
  },
  'log.days.kept': {
    reload: true,
    type: 'integer',
    initial: '30',
    min: 0,
    says: 'Days that log files are kept; 0 keeps them all.',
  },
  'shutdown.timeout': {
    reload: true,
    type: 'duration',
    initial: '10s',
    says: 'Time that running requests get to finish at a shutdown.',
  },
  ...securitySettings,
} as const satisfies SettingsTable
