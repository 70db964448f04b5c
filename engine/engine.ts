// Entry point of the engine, which stores rows and executes SQL. The layers above it (pipeline, gateways, connectors)
// import its functions from this file only; types, errors and limits they may import directly.

export type {
  Backups,
  Connector,
  DraftedStatement,
  Engine,
  EngineMetrics,
  EngineObserver,
  RowTransaction,
  TransactionMark,
} from './api/engine.js'
export type {
  CsvDecoding,
  CsvLoad,
  LinePrecision,
  LineRequest,
  LineSourcePosition,
  LineTicket,
  LoadOptions,
  TableShape,
} from './api/ingest.js'
export type { CatalogTable, LakeCatalog, LakeStatistics } from './api/lake.js'
export { noLake } from './api/lake.js'
export {
  internalSession,
  type NamedStatements,
  type OwnRows,
  type PendingChange,
  type ReadSnapshot,
  type Session,
  type StoredUser,
  type UserDirectory,
} from './api/session.js'
export type {
  BackupService,
  BackupTable,
  ChangePreview,
  Copier,
  CopyRequest,
  Description,
  DoneResult,
  ExecuteOptions,
  ParsedStatement,
  PlanResult,
  ReadyRows,
  ResultColumn,
  RowsResult,
  StatementResult,
  StopSignal,
  VirtualRelation,
} from './api/statements.js'
export { isNullWord, parseField } from './csv/convert.js'
export type { CsvBatch, CsvColumn, CsvReject, CsvShape } from './csv/shape.js'
export { batchRoomBytes } from './exec/encode/encode-qwp.js'
export {
  falsePositiveRateDefault,
  type ParquetCodec,
  type ParquetEncoding,
  parquetCodec,
  parquetDefaults,
  parquetLevel,
} from './exec/encode/parquet-encoding.js'
export type { Encoding, PgEncoding } from './exec/run/messages.js'
export type { ForeignDataFile } from './lake/foreign-manifests.js'
export { type ForeignMetadata, ForeignTableError, parseForeignMetadata } from './lake/foreign-metadata.js'
export type { TableDeletes, TableFiles, TableReader } from './lake/foreign-table.js'
export { loadForeignTables } from './lake/foreign-tables.js'
export { refusedCast } from './lines/convert.js'
export { blockEnd, countLines, lastLineEnd, lineEnd } from './lines/line-ends.js'
export type { Histogram } from './memory/metrics.js'
export { type StoreCapabilities, StoreError } from './object-store/object-store.js'
export { type ObjectStoreOptions, openStore, storePlace } from './object-store/open-store.js'
export {
  isNamedInPolicies,
  openReaderKeys,
  type ReaderKeysOptions,
  type ReaderKeysProvider,
} from './object-store/reader-keys.js'
export type { DeleteSource, ForeignTable } from './parquet/foreign-file.js'
export { mayHoldSmallest } from './parquet/smallest.js'
export type { BindShape } from './pg/bind-rows.js'
export type { BoundParameters } from './pg/collect-insert.js'
export { packedReader } from './pg/own-rows.js'
export type { Mark } from './pg/row-collector.js'
export type { BindRun } from './pg/row-window.js'
export { deferral, isLoneMessage, varint } from './qwp/message.js'
export { type QueryRequest, RequestError, readWireRequest, type WireRequest } from './qwp/query-request.js'
export { packedValues } from './session/insert-new.js'
export type { EngineHooks } from './session/local-options.js'
export { type EngineOptions, openEngine } from './session/open-engine.js'
export type { SweepStatistics } from './session/store-sweeper.js'
export type { UploadStatistics } from './session/uploader.js'
export type { ConfiguredName } from './session/user-catalog.js'
export type { TransactionModes } from './sql/ast/ast-statements.js'
export type { Backend } from './sql/catalog.js'
export { type Dialect, nativeDialect, postgresDialect } from './sql/dialect.js'
export { functionsDocument } from './sql/functions/registry/document.js'
export { typeOid } from './sql/pg-catalog/types.js'
export { isOwnCounter } from './sql/relations/counters.js'
export { diskFormats } from './storage/disk-formats.js'
export type { LineReject, PackedBatch, PackedColumn, PackedRows, Receipt } from './storage/jobs/messages.js'
export { type CopyResult, copyDatabase } from './storage/maintenance/backup.js'
export { downloadDatabase, listBackups, type StoredBackup } from './storage/maintenance/backup-objects.js'
export { type CheckFinding, type CheckResult, checkDatabase } from './storage/maintenance/check.js'
export { applyRepair, needsRepair, planRepair, type RepairItem, type RepairPlan } from './storage/maintenance/repair.js'
export { resetUsers } from './storage/manifest/users.js'
export { type BackupTask, type RunningBackup, startBackup } from './threads/backup-client.js'
export { openStoreClient, type StoreClient } from './threads/store-client.js'
export type { ColumnCondition } from './types/bounds.js'
export { convertValue, displayText } from './types/convert.js'
export {
  type EpochScale,
  type EpochUnit,
  epochScale,
  epochUnit,
  fractionDigits,
  looksLikeTime,
  parseFileTime,
} from './types/file-time.js'
export { quoteIdent } from './types/identifier.js'
export { decodeParameter } from './types/pg-decode-value.js'
export type { KafkaPosition } from './wal/source-position.js'
