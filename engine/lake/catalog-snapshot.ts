// Builds pieces of a new snapshot of an Iceberg table in an external catalog: the entry for a manifest in the manifest
// list, the totals in the snapshot's summary, what its commit requires, and which snapshots it removes.

import { type CatalogMetadata, type CatalogSnapshot, currentSchemaOf, snapshotOf } from './catalog-metadata.js'
import { type DataFile, intBytes } from './manifest-files.js'
import type { ListedFile, ListedManifest, NewSnapshot } from './manifest-lists.js'

/** In the summaries of this server's snapshots. */
export const rootMember = 'penstock.root'
export const commitMember = 'penstock.commit'
/** Older snapshots of this server are removed from the metadata. */
const snapshotsMax = 100

/** A manifest of new files as a list describes it; its numbers are those of the snapshot. */
export function addedManifest(path: string, bytes: number, specId: number, added: readonly DataFile[]): ListedManifest {
  const partitions = added.flatMap(({ partition }) => partition ?? [])
  return {
    ...{ manifest_path: path, manifest_length: BigInt(bytes), partition_spec_id: specId, content: 0 },
    ...{ sequence_number: 0n, min_sequence_number: 0n, added_snapshot_id: 0n },
    ...{ added_files_count: added.length, existing_files_count: 0, deleted_files_count: 0 },
    added_rows_count: BigInt(added.reduce((sum, { rows }) => sum + rows, 0)),
    ...{ existing_rows_count: 0n, deleted_rows_count: 0n, key_metadata: null },
    partitions: partitions.length === 0 ? null : [boundsOf(partitions)],
  }
}

export function numbersOf({ id, sequenceNumber }: NewSnapshot): Partial<ListedManifest> {
  return { sequence_number: sequenceNumber, min_sequence_number: sequenceNumber, added_snapshot_id: id }
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

/** Totals of the whole table; none if the snapshot before does not say them. */
export function totalsOf(
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

/** Snapshots of this server that are not listed any more, unless a branch or a tag needs them. */
export function expiredSnapshots({ snapshots = [], refs = {} }: CatalogMetadata, rootId: string): string[] {
  const named = new Set(Object.values(refs).map((ref) => ref['snapshot-id']))
  const own = snapshots.filter(({ summary }) => summary[rootMember] === rootId)
  const old = own.sort((x, y) => x['sequence-number'] - y['sequence-number']).slice(0, -snapshotsMax)
  return old.map((snapshot) => snapshot['snapshot-id']).filter((id) => !named.has(id))
}

/** Nobody has changed columns or rows since, so neither what other servers have of them: see catalog-share.ts. */
export function unchanged(metadata: CatalogMetadata): object[] {
  const id = snapshotOf(metadata)?.['snapshot-id'] ?? null
  return [
    { type: 'assert-current-schema-id', 'current-schema-id': currentSchemaOf(metadata)['schema-id'] },
    { type: 'assert-ref-snapshot-id', ref: 'main', 'snapshot-id': id },
  ]
}
