// The directory tree of the simulated disk: creates, removes and renames survive a crash only after syncDirectory().
// See faulty-files.ts.

import { FileError } from '../../../engine/base/errors.js'
import type { Random } from '../random.js'
import type { FaultyInode } from './faulty-inode.js'

interface Directory {
  readonly seen: Map<string, Directory | FaultyInode>
  readonly disk: Map<string, Directory | FaultyInode>
}

interface Change {
  readonly directory: Directory
  readonly name: string
  /** Undefined: the name is gone. */
  readonly entry: Directory | FaultyInode | undefined
}

export interface FaultyTree {
  file(path: string): FaultyInode
  exists(path: string): boolean
  create(path: string, inode: FaultyInode): void
  makeDirectory(path: string): void
  list(path: string): string[]
  remove(path: string): void
  removeDirectory(path: string): void
  rename(source: string, target: string): void
  syncDirectory(path: string): void
  crash(random: Random): void
}

export function createTree(): FaultyTree {
  const root = emptyDirectory()
  /** Changes that belong together, in order; those of one operation are kept or lost as a whole. */
  let pending: Change[][] = []
  const apply = (...changes: Change[]) => {
    for (const { directory, name, entry } of changes) setEntry(directory.seen, name, entry)
    pending.push(changes)
  }
  return {
    file: (path) => fileAt(root, path),
    exists: (path) => find(root, path) !== undefined,
    create: (path, inode) => {
      const { directory, name } = parentOf(root, path)
      if (directory.seen.has(name)) throw refusal('EEXIST', path)
      apply({ directory, name, entry: inode })
    },
    makeDirectory: (path) => {
      for (const change of missingDirectories(root, path)) apply(change)
    },
    list: (path) => [...directoryAt(root, path).seen.keys()].sort(),
    remove: (path) => {
      fileAt(root, path)
      apply({ ...parentOf(root, path), entry: undefined })
    },
    removeDirectory: (path) => {
      if (find(root, path) !== undefined) apply({ ...parentOf(root, path), entry: undefined })
    },
    rename: (source, target) => {
      const entry = find(root, source)
      if (entry === undefined) throw refusal('ENOENT', source)
      apply({ ...parentOf(root, source), entry: undefined }, { ...parentOf(root, target), entry })
    },
    syncDirectory: (path) => {
      const directory = directoryAt(root, path)
      const touches = (changes: Change[]) => changes.some((change) => change.directory === directory)
      for (const changes of pending.filter(touches)) keep(changes)
      pending = pending.filter((changes) => !touches(changes))
    },
    crash: (random) => {
      const calm = random.next()
      for (const changes of pending) if (random.chance(calm)) keep(changes)
      pending = []
      crashDirectory(root, random)
    },
  }
}

function emptyDirectory(): Directory {
  return { seen: new Map(), disk: new Map() }
}

function keep(changes: readonly Change[]): void {
  for (const { directory, name, entry } of changes) setEntry(directory.disk, name, entry)
}

function setEntry<T>(entries: Map<string, T>, name: string, entry: T | undefined): void {
  if (entry === undefined) entries.delete(name)
  else entries.set(name, entry)
}

function crashDirectory(directory: Directory, random: Random): void {
  directory.seen.clear()
  for (const [name, entry] of directory.disk) {
    directory.seen.set(name, entry)
    if (isDirectory(entry)) crashDirectory(entry, random)
    else entry.crash(random)
  }
}

function isDirectory(entry: Directory | FaultyInode): entry is Directory {
  return 'seen' in entry
}

function partsOf(path: string): string[] {
  return path.split('/').filter((part) => part !== '' && part !== '.')
}

/** Goes by the separators: an array of names for each operation was a fiftieth of the simulator. */
function find(root: Directory, path: string): Directory | FaultyInode | undefined {
  let entry: Directory | FaultyInode | undefined = root
  for (let from = 0; from < path.length; ) {
    const slash = path.indexOf('/', from)
    const end = slash < 0 ? path.length : slash
    const part = path.slice(from, end)
    from = end + 1
    if (part === '' || part === '.') continue
    if (entry === undefined || !isDirectory(entry)) return undefined
    entry = entry.seen.get(part)
  }
  return entry
}

function fileAt(root: Directory, path: string): FaultyInode {
  const entry = find(root, path)
  if (entry === undefined) throw refusal('ENOENT', path)
  if (isDirectory(entry)) throw refusal('EISDIR', path)
  return entry
}

function directoryAt(root: Directory, path: string): Directory {
  const entry = find(root, path)
  if (entry === undefined) throw refusal('ENOENT', path)
  if (!isDirectory(entry)) throw refusal('ENOTDIR', path)
  return entry
}

function parentOf(root: Directory, path: string): { directory: Directory; name: string } {
  const slash = path.lastIndexOf('/')
  const name = path.slice(slash + 1)
  if (name === '' || name === '.') throw refusal('EINVAL', path)
  return { directory: directoryAt(root, path.slice(0, Math.max(0, slash))), name }
}

/** The new directories on the way, outermost first; each is created in the one before it. */
function missingDirectories(root: Directory, path: string): Change[] {
  const changes: Change[] = []
  let directory = root
  for (const name of partsOf(path)) {
    const entry = directory.seen.get(name)
    if (entry !== undefined && !isDirectory(entry)) throw refusal('ENOTDIR', path)
    const next: Directory = entry ?? emptyDirectory()
    if (entry === undefined) changes.push({ directory, name, entry: next })
    directory = next
  }
  return changes
}

function refusal(code: string, path: string): FileError {
  return new FileError(`simulated disk refuses [path=${path}, code=${code}]`, code)
}
