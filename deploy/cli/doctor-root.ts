// Checks of `penstock doctor` on a root folder: its file system, permissions, settings, damage, and how the last server
// ended. Nothing is written.

import { accessSync, constants, existsSync, readdirSync, readFileSync, statfsSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { nodeFiles } from '../../engine/base/files.js'
import { checkDatabase } from '../../engine/engine.js'
import { checkSecurity, exposures, sideEffects } from '../settings/security.js'
import { type LoadedSettings, loadSettings } from '../settings/settings.js'
import type { settingsTable } from '../settings/settings-table.js'
import { settingSources } from './cli-config.js'
import { type Finding, found } from './doctor-machine.js'

/** More than this is left to `penstock check`. */
const checkedBytesMax = 1024 ** 3

/** File systems by the magic number of statfs, with what to know about them. */
const fileSystems: ReadonlyMap<
  number,
  { readonly name: string; readonly level: Finding['level']; readonly why: string }
> = new Map([
  [0xef53, { name: 'ext4', level: 'ok', why: '' }],
  [0x58465342, { name: 'XFS', level: 'ok', why: '' }],
  [0x794c7630, { name: 'overlay', level: 'warning', why: 'data in the layer of a container go with the container' }],
  [0x01021994, { name: 'tmpfs', level: 'warning', why: 'the data are in memory, and gone after a restart' }],
  [0x9123683e, { name: 'btrfs', level: 'ok', why: 'files are rewritten in place: chattr +C keeps the log fast' }],
  [0x2fc12fc1, { name: 'ZFS', level: 'ok', why: '' }],
  [0x6969, { name: 'NFS', level: 'warning', why: 'two machines must never start on it' }],
  [0xff534d42, { name: 'SMB', level: 'warning', why: 'two machines must never start on it' }],
  [0xfe534d42, { name: 'SMB', level: 'warning', why: 'two machines must never start on it' }],
  [0x01021997, { name: '9p', level: 'warning', why: 'two machines must never start on it' }],
  [0x65735546, { name: 'FUSE', level: 'warning', why: 'whether a sync reaches the disk depends on its program' }],
])

export function checkFileSystem(folder: string): Finding {
  const type = process.platform === 'linux' ? statfsSync(folder).type : 0
  const known = fileSystems.get(type)
  if (known === undefined) return found('ok', 'file system', `type 0x${type.toString(16)}`)
  const { name, level, why } = known
  const text = why === '' ? name : `${name}: ${why}`
  return found(level, 'file system', text, level === 'warning' ? 'use a local disk, or a volume of its own' : '')
}

/** Permissions of the folders and of what lies in them, for the user who runs this command. */
export function checkPermissions(root: string): Finding[] {
  const user = process.getuid?.()
  const owner = statSync(root).uid
  const findings: Finding[] = []
  for (const name of ['', 'conf', 'db', 'log', 'tmp']) {
    const folder = join(root, name)
    if (!existsSync(folder)) continue
    const paths = [folder, ...readable(folder)]
    const closed = paths.filter((path) => !isOpen(path))
    if (closed.length > 0) {
      const text = `${closed[0]}${closed.length > 1 ? ` and ${closed.length - 1} more` : ''} cannot be read and written`
      findings.push(
        found('problem', 'permissions', text, `run as the user with the id ${owner}, or chown -R the folder`),
      )
    }
    const strange = paths.filter((path) => statSync(path, { throwIfNoEntry: false })?.uid !== owner)
    if (strange.length > 0) {
      const text = `${strange[0]}${strange.length > 1 ? ` and ${strange.length - 1} more` : ''} has another owner than the root`
      findings.push(found('warning', 'permissions', text, `chown -R ${owner} ${root}`))
    }
  }
  if (user === 0 && owner !== 0) {
    const text = `the folder belongs to the user with the id ${owner}`
    findings.push(found('warning', 'permissions', text, 'do not start the server as root: its files would be of root'))
  }
  return findings.length > 0 ? findings : [found('ok', 'permissions', 'folders and files can be read and written')]
}

function isOpen(path: string): boolean {
  try {
    accessSync(path, constants.R_OK | constants.W_OK)
    return true
  } catch {
    return false
  }
}

/** Entries of a folder; sockets and links of running servers are left out. */
function readable(folder: string): string[] {
  try {
    return readdirSync(folder, { withFileTypes: true })
      .filter((entry) => entry.isFile() || entry.isDirectory())
      .map(({ name }) => join(folder, name))
  } catch {
    return []
  }
}

export interface CheckedSettings {
  /** Null: a start would fail. */
  readonly loaded: LoadedSettings<typeof settingsTable> | null
  readonly findings: readonly Finding[]
}

export function checkSettings(root: string): CheckedSettings {
  try {
    const loaded = loadSettings(settingSources(root, []))
    checkSecurity(loaded.values)
    const findings = [
      ...loaded.warnings.map((text) => found('warning', 'settings', text)),
      ...exposures(loaded.values).map((text) => found('warning', 'security', text)),
      ...sideEffects(loaded.values).map((text) => found('warning', 'settings', text)),
    ]
    const changed = Object.values(loaded.texts).filter(({ origin }) => origin !== 'default').length
    return { loaded, findings: [found('ok', 'settings', `${changed} of them are set`), ...findings] }
  } catch (error) {
    const text = error instanceof Error ? error.message : String(error)
    return { loaded: null, findings: [found('problem', 'settings', text, 'correct it: a start fails')] }
  }
}

/** Damage; `isServed`: a running server changes the files meanwhile, so nothing is said about them. */
export function checkData(root: string, isServed: boolean): Finding[] {
  const directory = join(root, 'db').replaceAll('\\', '/')
  const findings: Finding[] = []
  const orphans = existsSync(join(root, 'orphans')) ? readdirSync(join(root, 'orphans')).length : 0
  if (orphans > 0) {
    const text = `${orphans} files in ${join(root, 'orphans')} were set aside by a repair`
    findings.push(found('warning', 'data', text, 'look at them, then remove them'))
  }
  if (!existsSync(join(directory, 'manifest'))) {
    const hasFiles =
      existsSync(directory) && readdirSync(directory).some((name) => /^[^.]/.test(name) && name !== 'reserve')
    if (!hasFiles) return [...findings, found('ok', 'data', 'none yet')]
    const advice = 'penstock repair lists what can be done'
    return [...findings, found('problem', 'data', 'there are files, but no manifest', advice)]
  }
  if (isServed) return [...findings, found('ok', 'data', 'a server uses them: penstock check verifies them beside it')]
  const bytes = sizeBelow(directory)
  if (bytes > checkedBytesMax) {
    const text = `${Math.round(bytes / 1024 ** 2)} MiB, not verified here`
    return [...findings, found('ok', 'data', text, `penstock check -d ${root} verifies every checksum`)]
  }
  const result = checkDatabase({ files: nodeFiles(), directory })
  for (const { file, message } of result.findings.slice(0, 20))
    findings.push(found('problem', 'data', `${file}: ${message}`, adviceFor(message)))
  const text = `${result.tables} tables, ${result.rows} rows in ${result.parts} parts, every checksum is right`
  return result.findings.length > 0 ? findings : [...findings, found('ok', 'data', text)]
}

function adviceFor(message: string): string {
  return /newer|format|version/.test(message)
    ? 'it was written by a newer version: use that version, or restore a backup'
    : 'restore a backup, or see what penstock repair would do'
}

/** Bytes of all files below a folder, until the limit is passed. */
function sizeBelow(folder: string): number {
  let bytes = 0
  for (const entry of readdirSync(folder, { withFileTypes: true, recursive: true })) {
    if (!entry.isFile()) continue
    bytes += statSync(join(entry.parentPath, entry.name), { throwIfNoEntry: false })?.size ?? 0
    if (bytes > 1024 * checkedBytesMax) break
  }
  return bytes
}

/** Latest time of change of a file of the log or the manifest; 0 for none. */
export function newestChangeMs(root: string): number {
  const times = ['db/wal', 'db/manifest', 'db', 'log'].flatMap((name) =>
    readable(join(root, name)).map((path) => statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0),
  )
  return Math.max(0, ...times)
}

/**
 * How the last process that had the root ended: a server, or a program with the embedded database. Nothing, if its log
 * does not have its start, as with log.level = W.
 */
export function checkLastEnd(root: string, isServed: boolean): Finding[] {
  const folder = join(root, 'log')
  if (isServed || !existsSync(folder)) return []
  let records: readonly LogRecord[] = []
  // A file has the records of a day.
  const days = readdirSync(folder).filter((name) => /^stdout-.*\.txt$/.test(name))
  for (const name of days.sort().reverse()) {
    const lines = readFileSync(join(folder, name), 'utf8').trimEnd().split('\n').map(recordOf)
    const start = lines.findLastIndex(({ logger, message }) => logger === 'server' && message.startsWith('starting '))
    records = [...lines.slice(Math.max(0, start)), ...records]
    if (start >= 0) return [lastEnd(folder, records)]
  }
  return []
}

/** Last records of a server, and of the embedded database. */
const cleanEnds = ['ended', 'closed']

function lastEnd(folder: string, records: readonly LogRecord[]): Finding {
  const critical = records.findLast(({ level }) => level === 'C')
  if (critical !== undefined) {
    const text = `the log of the last server has: ${`${critical.logger} ${critical.message}`.slice(0, 200)}`
    return found('warning', 'last server', text, `read ${join(folder, 'penstock-latest.log')}`)
  }
  if (records.some(({ logger, message }) => logger === 'server' && cleanEnds.includes(message)))
    return found('ok', 'last server', 'ended cleanly')
  return found('ok', 'last server', 'was ended from outside; the next start replays its log')
}

interface LogRecord {
  readonly level: string
  readonly logger: string
  readonly message: string
}

/** Reads a record in either form (setting log.format). */
function recordOf(line: string): LogRecord {
  const [, level = '', logger = '', message = ''] = /^\S+ ([IWEC]) (\S+) (.*)$/.exec(line) ?? []
  if (!line.startsWith('{')) return { level, logger, message }
  try {
    const record: Readonly<Record<string, unknown>> = JSON.parse(line)
    return { level: String(record.level), logger: String(record.logger), message: String(record.message) }
  } catch {
    return { level, logger, message }
  }
}
