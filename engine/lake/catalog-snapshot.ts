// Builds pieces of a new snapshot of an Iceberg table in an external catalog: its numbers, the entry for a manifest in
// the manifest list, the totals in the snapshot's summary, what its commit requires, and which snapshots it removes.

import { type CatalogMetadata, type CatalogSnapshot, currentSchemaOf, snapshotOf } from './catalog-metadata.js'
import { countsOf, type LakeChange, operationOf } from './committed-table.js'
import { type DataFile, intBytes } from './manifest-files.js'
import type { ListedFile, ListedManifest, NewSnapshot } from './manifest-lists.js'
import { type NextOffsets, nestedStreams, sourcesMember } from './source-offsets.js'

/** In the summaries of this server's snapshots. */
const rootMember = 'penstock.root'
const commitMember = 'penstock.commit'
/** Older snapshots of this server are removed from the metadata. */
const snapshotsMax = 100

/** What a commit is to do. */
export interface PlannedSnapshot {
  readonly id: bigint
  readonly change: LakeChange
  /** The removed files. */
  readonly gone: readonly ListedFile[]
  /** Number of the server's commit. */
  readonly commit: number
  readonly offsets: NextOffsets
}

/** The numbers of the next snapshot. */
export function nextSnapshot(metadata: CatalogMetadata, id: bigint): NewSnapshot {
  const parentId = snapshotOf(metadata)?.['snapshot-id'] ?? null
  return {
    id,
    parentId: parentId === null ? null : BigInt(parentId),
    sequenceNumber: BigInt((metadata['last-sequence-number'] ?? 0) + 1),
    firstRowId: metadata['format-version'] === 3 ? BigInt(metadata['next-row-id'] ?? 0) : null,
  }
}

/** What the metadata says of a snapshot. `nextRowId`: of the list; null: in format version 2. */
export function describedSnapshot(
  metadata: CatalogMetadata,
  { id, parentId, sequenceNumber, firstRowId }: NewSnapshot,
  nextRowId: bigint | null,
  rest: Pick<CatalogSnapshot, 'manifest-list' | 'timestamp-ms' | 'summary'>,
): CatalogSnapshot {
  return {
    ...rest,
    'snapshot-id': `${id}`,
    ...(parentId === null ? {} : { 'parent-snapshot-id': `${parentId}` }),
    'sequence-number': Number(sequenceNumber),
    'timestamp-ms': Math.max(rest['timestamp-ms'], metadata['last-updated-ms'] ?? 0),
    'schema-id': metadata['current-schema-id'],
    ...(firstRowId === null || nextRowId === null
      ? {}
      : { 'first-row-id': Number(firstRowId), 'added-rows': Number(nextRowId - firstRowId) }),
  }
}

/** A manifest of new files as a list describes it; its numbers are those of the snapshot. */
export function addedManifest(path: string, bytes: number, specId: number, added: readonly DataFile[]): ListedManifest {
  const partitions = added.flatMap(({ partition }) => partition ?? [])
  return {
    ...{ manifest_path: path, manifest_length: BigInt(bytes), partition_spec_id: specId, content: 0 },
    ...{ sequence_number: 0n, min_sequence_number: 0n, added_snapshot_id: 0n },
    ...{ added_files_count: added.length, existing_files_count: 0, deleted_files_count: 0 },
    added_rows_count: BigInt(added.reduce((sum, { rows }) => sum + rows, 0)),
    ...{ existing_rows_count: 0n, deleted_rows_count: 0n, key_metadata: null, first_row_id: null },
    partitions: partitions.length === 0 ? null : [boundsOf(partitions)],
  }
}

export function numbersOf({ id, sequenceNumber }: NewSnapshot): Partial<ListedManifest> {
  return { sequence_number: sequenceNumber, min_sequence_number: sequenceNumber, added_snapshot_id: id }
}

/** Whether it is the commit with this number of the server with this root. */
export function isCommit({ summary }: CatalogSnapshot, rootId: string, commit: number): boolean {
  return summary[commitMember] === `${commit}` && summary[rootMember] === rootId
}

/** Manifests without files, but for those that say what the snapshot has deleted, are listed no more. */
export function isLive(id: bigint): (manifest: ListedManifest) => boolean {
  return (manifest) =>
    manifest.added_snapshot_id === id || manifest.added_files_count + manifest.existing_files_count > 0
}

function boundsOf(partitions: readonly number[]): NonNullable<ListedManifest['partitions']>[number] {
  const low = partitions.reduce((least, value) => Math.min(least, value), Number.POSITIVE_INFINITY)
  const high = partitions.reduce((most, value) => Math.max(most, value), Number.NEGATIVE_INFINITY)
  return { contains_null: false, contains_nan: false, lower_bound: intBytes(low), upper_bound: intBytes(high) }
}

export function summaryOf(
  metadata: CatalogMetadata,
  rootId: string,
  { change, gone, commit, offsets }: PlannedSnapshot,
): Record<string, string> {
  return {
    ...{ operation: operationOf(change), [rootMember]: rootId, [commitMember]: `${commit}` },
    ...countsOf('added', 'added-files-size', change.added),
    ...countsOf('deleted', 'removed-files-size', gone),
    ...totalsOf(snapshotOf(metadata), change.added, gone),
    ...(offsets.size === 0 ? {} : { [sourcesMember]: JSON.stringify(nestedStreams(offsets)) }),
  }
}

/** Totals of the whole table; none if the snapshot before does not say them. */
function totalsOf(
  parent: CatalogSnapshot | null,
  added: readonly ListedFile[],
  gone: readonly ListedFile[],
): Record<string, string> {
  const sum = (files: readonly ListedFile[], value: (file: ListedFile) => number): number =>
    files.reduce((all, file) => all + value(file), 0)
  const totals: Record<string, string> = {}
  const total = (member: string, value: (file: ListedFile) => number): void => {
    const before = parent === null ? 0 : Number(parent.summary[member] ?? Number.NaN)
    const after = before + sum(added, value) - sum(gone, value)
    if (Number.isFinite(after)) totals[member] = `${after}`
  }
  total('total-data-files', () => 1)
  total('total-records', ({ rows }) => rows)
  total('total-files-size', ({ bytes }) => bytes)
  for (const member of ['total-delete-files', 'total-position-deletes', 'total-equality-deletes'])
    total(member, () => 0)
  return totals
}

/** Updates that remove old snapshots of this server, unless a branch or a tag needs them. */
export function expirations({ snapshots = [], refs = {} }: CatalogMetadata, rootId: string): object[] {
  const named = new Set(Object.values(refs).map((ref) => ref['snapshot-id']))
  const own = snapshots.filter(({ summary }) => summary[rootMember] === rootId)
  const old = own.sort((x, y) => x['sequence-number'] - y['sequence-number']).slice(0, -snapshotsMax)
  const ids = old.map((snapshot) => snapshot['snapshot-id']).filter((id) => !named.has(id))
  return ids.map((id) => ({ action: 'remove-snapshots', 'snapshot-ids': [id] }))
}

/** Nobody has changed columns or rows since, so neither what other servers have of them: see catalog-share.ts. */
export function unchanged(metadata: CatalogMetadata): object[] {
  const id = snapshotOf(metadata)?.['snapshot-id'] ?? null
  return [
    { type: 'assert-current-schema-id', 'current-schema-id': currentSchemaOf(metadata)['schema-id'] },
    { type: 'assert-ref-snapshot-id', ref: 'main', 'snapshot-id': id },
  ]
}
