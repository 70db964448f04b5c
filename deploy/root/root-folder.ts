// Creates and checks the root folder of a server: conf/ db/ log/ tmp/, and the initial server.conf. A folder that
// cannot hold data is rejected at once.

import {
  accessSync,
  constants,
  existsSync,
  lstatSync,
  readFileSync,
  readlinkSync,
  statfsSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { homedir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { makeDirectories } from '../../engine/base/files.js'
import { sampleConfiguration } from '../settings/settings-text.js'

export interface RootFolder {
  readonly path: string
  readonly logFolder: string
  readonly configuration: { readonly path: string; readonly text: string }
}

/** Undefined where the process has no home: no HOME, and no passwd entry for its user, as in containers. */
export const defaultRoot = rootBelow(homedir)

export function rootBelow(home: () => string): string | undefined {
  try {
    const folder = home()
    return folder === '' ? undefined : join(folder, '.penstock')
  } catch {
    return undefined
  }
}

/** Pseudo file systems of the kernel, which cannot hold data, by the magic number of statfs. */
const kernelFileSystems: ReadonlyMap<number, string> = new Map([
  [0x9fa0, 'proc'],
  [0x62656572, 'sysfs'],
  [0x27e0eb, 'cgroup'],
  [0x63677270, 'cgroup2'],
  [0x64626720, 'debugfs'],
  [0x74726163, 'tracefs'],
  [0x62656570, 'configfs'],
  [0x73636673, 'securityfs'],
  [0xcafe4a11, 'bpf'],
  [0x1cd1, 'devpts'],
])

const reasons: Readonly<Record<string, string>> = {
  EACCES: 'no permission',
  EPERM: 'no permission',
  EROFS: 'the file system is read-only',
  ENOSPC: 'the file system is full',
  EDQUOT: 'the quota of the file system is used up',
  ENOTDIR: 'a part of the path is not a folder',
  ELOOP: 'links lead in a circle',
  ENAMETOOLONG: 'the path is too long',
}

/**
 * Creates the root and the folders that its lock needs. Throws with the reason where a server cannot store data.
 */
export function locateRoot(path: string): string {
  const root = resolve(path)
  for (const folder of [root, join(root, 'db'), join(root, 'tmp')]) requireFolder(root, folder)
  for (const folder of [join(root, 'db'), join(root, 'tmp')]) requireWritable(root, folder)
  return root
}

/** Creates what is missing. */
export function openRootFolder(path: string): RootFolder {
  const root = locateRoot(path)
  for (const name of ['conf', 'log']) requireFolder(root, join(root, name))
  const configurationPath = join(root, 'conf', 'server.conf')
  if (!existsSync(configurationPath)) writeFileSync(configurationPath, sampleConfiguration())
  return {
    path: root,
    logFolder: join(root, 'log'),
    configuration: { path: configurationPath, text: readFileSync(configurationPath, 'utf8') },
  }
}

/** Creates the folder if it is missing. */
function requireFolder(root: string, folder: string): void {
  const existing = nearestExisting(root, folder)
  const system = kernelFileSystems.get(fileSystemOf(existing))
  if (system !== undefined) throw refused(root, `${existing} is in a file system of the kernel (${system})`)
  if (!statSync(existing).isDirectory()) throw refused(root, `${existing} is not a folder`)
  if (existing === folder) return
  try {
    makeDirectories(folder)
  } catch (error) {
    throw refused(root, `${folder} cannot be made: ${reasonOf(error)}`)
  }
}

/** The folder, or its nearest existing parent. */
function nearestExisting(root: string, folder: string): string {
  for (let path = folder; ; path = dirname(path)) {
    try {
      statSync(path)
      return path
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException
      const link = linkTarget(path)
      if (code === 'ENOENT' && link !== null) throw refused(root, `${path} is a link to ${link}, which does not exist`)
      if (code === 'ENOTDIR') continue
      if (code !== 'ENOENT' || path === dirname(path)) throw refused(root, `${path}: ${reasonOf(error)}`)
    }
  }
}

/** Null: the path is not a link. */
function linkTarget(path: string): string | null {
  try {
    return lstatSync(path).isSymbolicLink() ? readlinkSync(path) : null
  } catch {
    return null
  }
}

function requireWritable(root: string, folder: string): void {
  try {
    accessSync(folder, constants.R_OK | constants.W_OK | constants.X_OK)
  } catch (error) {
    throw refused(root, `${folder} cannot be written: ${reasonOf(error)}`)
  }
}

function fileSystemOf(path: string): number {
  try {
    return process.platform === 'linux' ? statfsSync(path).type : 0
  } catch {
    return 0
  }
}

function refused(root: string, reason: string): Error {
  return new Error(`the folder ${root} cannot hold a server's data: ${reason}`)
}

function reasonOf(error: unknown): string {
  const { code = '', message } = error as NodeJS.ErrnoException
  return reasons[code] ?? message
}
