// A simulated disk behind the Files interface, for crash tests: a simulated power loss drops, reorders and garbles
// data that was not synced, and tests can make operations fail.
//
//   const disk = createFaultyDisk()
//   disk.inject(atOperation(17, { kind: 'crash' }))      the 17th operation throws SimulatedCrash, and all after it
//   ...run something over disk.files...
//   disk.crash(seed)                                     power loss; or disk.kill(): only the process dies
//   ...open again over disk.files...
//
// It guarantees what the Files interface guarantees, and nothing more:
//
//   file data      survives a power loss after sync(). Otherwise each sector written since then is, drawn by the seed,
//                  old, new, or garbage; sectors have 512 or 4096 bytes, drawn as well. In a garbled sector, synced
//                  bytes are lost, too. The file size is the old one, the new one, or between; bytes in it that were
//                  never written are zero or garbage.
//   names          survive after syncDirectory() of their directory. Otherwise each create, remove and rename is kept
//                  or lost independently; a rename as a whole. A new directory that is lost takes its content along.
//   failed sync    throws; some sectors reached the disk. The others count as clean: reads return what was written, but
//                  no later sync writes it, as on Linux.
//   failed write   throws; with 'short', a part of the data was written.
//
// atOperation(n, fault) counts operations of all kinds from 1; `counts` has the number of operations of each kind.

import { FileError } from '../../../engine/base/errors.js'
import type { File, Files, OpenMode } from '../../../engine/base/files.js'
import { createRandom, type Random } from '../random.js'
import { createInode, type FaultyInode } from './faulty-inode.js'
import { createTree, type FaultyTree } from './faulty-tree.js'

/** What the storage engine asks of `Files`. */
export const engineOperations = [
  'open',
  'read',
  'write',
  'sync',
  'truncate',
  'makeDirectory',
  'list',
  'remove',
  'removeDirectory',
  'rename',
  'size',
  'syncDirectory',
] as const

/** With those of the process around it. */
export const operationKinds = [...engineOperations, 'freeBytes'] as const
export type OperationKind = (typeof operationKinds)[number]

export interface Operation {
  readonly kind: OperationKind
  readonly path: string
  /** Of all operations, from 1. */
  readonly index: number
  /** Of the operations of this kind, from 1. */
  readonly kindIndex: number
}

export type Fault =
  /** The operation fails; nothing is done (sync: see above). */
  | { readonly kind: 'error'; readonly code: string }
  /** A write fails when a part has landed. Other operations: as 'error'. */
  | { readonly kind: 'short'; readonly code: string }
  /** The machine stops: of a write, a part may have landed. */
  | { readonly kind: 'crash' }

export type Injector = (operation: Operation) => Fault | undefined

/** Thrown by the operation at which the machine stops, and by all after it. Nobody may catch it but the test. */
export class SimulatedCrash extends Error {
  constructor() {
    super('simulated crash')
    this.name = 'SimulatedCrash'
  }
}

export interface FaultyDisk {
  readonly files: Files
  readonly operations: number
  readonly counts: Readonly<Record<OperationKind, number>>
  /** Kinds at which an injected fault struck. */
  readonly struck: ReadonlySet<string>
  /** Replaces the injector; undefined: nothing fails. */
  inject(injector: Injector | undefined): void
  /** Power loss: what was not synced is decided by the seed. Open files are gone. */
  crash(seed: number): void
  /** The process dies, the machine stays: everything written is there. Open files are gone. */
  kill(): void
  /** Changes durable bytes behind everybody's back. */
  damage(path: string, position: number, bytes: Uint8Array): void
  /** The bytes that a reader would see now; counts as no operation. */
  peek(path: string): Uint8Array
}

export function atOperation(index: number, fault: Fault): Injector {
  return (operation) => (operation.index === index ? fault : undefined)
}

export function atNth(kind: OperationKind, kindIndex: number, fault: Fault): Injector {
  return (operation) => (operation.kind === kind && operation.kindIndex === kindIndex ? fault : undefined)
}

interface DiskState {
  readonly tree: FaultyTree
  readonly counts: Record<OperationKind, number>
  readonly struck: Set<string>
  readonly open: Map<number, FaultyInode>
  readonly random: Random
  operations: number
  injector: Injector | undefined
  crashed: boolean
  nextDescriptor: number
}

/** The seed decides what faults leave behind: how much of a short write, which sectors of a failed sync. */
export function createFaultyDisk(seed = 1): FaultyDisk {
  const state: DiskState = {
    tree: createTree(),
    counts: Object.fromEntries(operationKinds.map((kind) => [kind, 0])) as Record<OperationKind, number>,
    struck: new Set(),
    open: new Map(),
    random: createRandom(seed),
    operations: 0,
    injector: undefined,
    crashed: false,
    nextDescriptor: 1000,
  }
  return {
    files: faultyFiles(state),
    get operations() {
      return state.operations
    },
    counts: state.counts,
    struck: state.struck,
    inject: (injector) => {
      state.injector = injector
    },
    crash: (crashSeed) => {
      state.tree.crash(createRandom(crashSeed))
      forgetProcess(state)
    },
    kill: () => forgetProcess(state),
    damage: (path, position, bytes) => state.tree.file(path).damage(position, bytes),
    peek: (path) => state.tree.file(path).content(),
  }
}

function forgetProcess(state: DiskState): void {
  state.open.clear()
  state.crashed = false
  state.injector = undefined
}

function faultyFiles(state: DiskState): Files {
  const { tree } = state
  return {
    open: (path, mode) => openFile(state, path, mode),
    syncDescriptor: (descriptor) => syncInode(state, openInode(state, descriptor, `descriptor ${descriptor}`)),
    makeDirectory: (path) => run(state, 'makeDirectory', path, () => tree.makeDirectory(path)),
    list: (directory) => run(state, 'list', directory, () => tree.list(directory)),
    remove: (path) => run(state, 'remove', path, () => tree.remove(path)),
    removeDirectory: (path) => run(state, 'removeDirectory', path, () => tree.removeDirectory(path)),
    rename: (source, target) => run(state, 'rename', source, () => tree.rename(source, target)),
    exists: (path) => run(state, 'size', path, () => tree.exists(path)),
    size: (path) => run(state, 'size', path, () => tree.file(path).size()),
    syncDirectory: (path) => run(state, 'syncDirectory', path, () => tree.syncDirectory(path)),
    freeBytes: (directory) => run(state, 'freeBytes', directory, () => 1024 ** 4),
  }
}

/** Counts the operation, and does it unless a fault strikes. */
function run<T>(
  state: DiskState,
  kind: OperationKind,
  path: string,
  work: () => T,
  onFault?: (fault: Fault) => void,
): T {
  if (state.crashed) throw new SimulatedCrash()
  state.operations++
  state.counts[kind]++
  const fault = state.injector?.({ kind, path, index: state.operations, kindIndex: state.counts[kind] })
  if (fault === undefined) return work()
  state.struck.add(kind)
  onFault?.(fault)
  if (fault.kind !== 'crash') throw new FileError(`injected failure [operation=${kind}, path=${path}]`, fault.code)
  state.crashed = true
  throw new SimulatedCrash()
}

function openFile(state: DiskState, path: string, mode: OpenMode): File {
  const inode = run(state, 'open', path, () => {
    if (mode !== 'create') return state.tree.file(path)
    const created = createInode()
    state.tree.create(path, created)
    return created
  })
  const descriptor = state.nextDescriptor++
  state.open.set(descriptor, inode)
  const live = () => openInode(state, descriptor, path)
  return {
    path,
    descriptor,
    read: (target, position) => run(state, 'read', path, () => live().read(target, position)),
    write: (chunks, position) => writeChunks(state, path, live(), chunks, position, mode),
    sync: () => syncInode(state, live()),
    truncate: (size) => run(state, 'truncate', path, () => live().truncate(size)),
    size: () => run(state, 'size', path, () => live().size()),
    close: () => void state.open.delete(descriptor),
  }
}

function openInode(state: DiskState, descriptor: number, path: string): FaultyInode {
  const inode = state.open.get(descriptor)
  if (inode !== undefined) return inode
  if (state.crashed) throw new SimulatedCrash()
  throw new FileError(`file is not open [path=${path}]`, 'EBADF')
}

function writeChunks(
  state: DiskState,
  path: string,
  inode: FaultyInode,
  chunks: readonly Uint8Array[],
  position: number,
  mode: OpenMode,
): void {
  if (mode === 'read') throw new FileError(`file is open for reading [path=${path}]`, 'EBADF')
  const bytes = Buffer.concat(chunks)
  const work = () => inode.write(bytes, position)
  run(state, 'write', path, work, (fault) => {
    if (fault.kind !== 'error') inode.write(bytes.subarray(0, state.random.below(bytes.length + 1)), position)
  })
}

function syncInode(state: DiskState, inode: FaultyInode): void {
  run(
    state,
    'sync',
    '',
    () => inode.sync(),
    (fault) => {
      if (fault.kind !== 'crash') inode.failSync(state.random)
    },
  )
}
