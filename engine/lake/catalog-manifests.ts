// The manifests that a new snapshot of an Iceberg table in an external catalog takes over from the snapshot before. One
// that lists removed files is written again with their entries marked as deleted, and many small ones of this server
// are joined.

import type { ReadSnapshot } from './catalog-reader.js'
import { isLive } from './catalog-snapshot.js'
import { type ListedManifest, type Manifest, mayJoin, type NewSnapshot, rewritten } from './manifest-lists.js'

/** Where manifests of this server are. */
export interface ManifestPlaces {
  isOwn(uri: string): boolean
  newName(): string
  uri(name: string): string
  put(name: string, bytes: Buffer): Promise<void>
}

/** More manifests of this server than this are joined into one. */
const manifestsMax = 24
/** Those with more files are left as they are. */
const joinedFilesMax = 4000

/** The manifests of the current snapshot without the removed files; many small ones of this server are joined. */
export async function keptManifests(
  { manifests, listed }: ReadSnapshot,
  snapshot: NewSnapshot,
  removed: ReadonlySet<string>,
  places: ManifestPlaces,
): Promise<ListedManifest[]> {
  const touched = manifests.filter(({ files }) => files.some(({ path }) => removed.has(path)))
  const small = manifests.filter(
    ({ files, manifest }) => places.isOwn(manifest.listed.manifest_path) && files.length < joinedFilesMax,
  )
  const joined = small.length < manifestsMax ? touched : [...new Set([...touched, ...small])]
  const again = new Set(joined.map(({ manifest }) => manifest.listed.manifest_path))
  const kept = listed.filter(({ manifest_path: path }) => !again.has(path))
  const groups: (typeof joined)[] = []
  for (const one of joined) {
    const group = groups.find(([first]) => first !== undefined && mayBeOne(first.manifest, one.manifest, places))
    if (group === undefined) groups.push([one])
    else group.push(one)
  }
  for (const group of groups) {
    const name = places.newName()
    const all = group.map(({ manifest }) => manifest)
    const made = rewritten(all, removed, snapshot, places.uri(name))
    await places.put(name, made.bytes)
    kept.push(made.listed)
  }
  return kept.filter(isLive(snapshot.id))
}

/** Others' manifests stay on their own. */
function mayBeOne(one: Manifest, other: Manifest, { isOwn }: ManifestPlaces): boolean {
  return [one, other].every(({ listed }) => isOwn(listed.manifest_path)) && mayJoin(one, other)
}
