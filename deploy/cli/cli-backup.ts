// Implements `penstock check`, `backup` and `restore`, which work on the files of a root folder. A backup in object
// storage is restored with stored-backup.ts.
//
// A backup is a folder with a database directory, which `check` and `restore` read like any other. The server pins a
// version (CHECKPOINT CREATE), the tool copies the files that the backup lacks, and then releases the version.

import { existsSync, readdirSync, rmSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { nodeFiles } from '../../engine/base/files.js'
import {
  type CheckFinding,
  type CheckResult,
  type CopyResult,
  checkDatabase,
  copyDatabase,
} from '../../engine/engine.js'
import { locateRoot } from '../root/root-folder.js'
import { FolderInUse, isServed, lockRoot, type RootLock } from '../root/root-lock.js'
import { type Client, exitCodes, openClient, refusalText, type ServerFlags, ToolError } from './http-client.js'
import { openProgress } from './progress.js'
import { openBackup, type RestoreFlags } from './stored-backup.js'

export interface CheckFlags {
  readonly dir: string
  readonly json?: boolean
}

export interface BackupFlags extends ServerFlags {
  readonly dir: string
  readonly json?: boolean
}

const findingsShown = 1000

export async function runCheck({ dir, json }: CheckFlags): Promise<void> {
  const directory = databaseOf(dir)
  const lock = await lockUnlessServed(resolve(dir))
  try {
    checkBeside(directory, lock === null, json)
  } finally {
    lock?.release()
  }
}

/** Null: a server uses the folder, so changes during the check are not damage. */
async function lockUnlessServed(folder: string): Promise<RootLock | null> {
  try {
    return await lockRoot(folder, { purpose: 'check' })
  } catch (error) {
    if (error instanceof FolderInUse) return null
    throw error
  }
}

function checkBeside(directory: string, served: boolean, json: boolean | undefined): void {
  let result = checked(directory)
  // A running server creates and removes files: only what a second check also finds is damage.
  if (served && result.findings.length > 0) result = again(result, checked(directory))
  if (json === true)
    process.stdout.write(`${JSON.stringify({ status: result.findings.length === 0 ? 'OK' : 'damaged', ...result })}\n`)
  else reportCheck(result, served)
  if (result.findings.length > 0) throw new ToolError(`damage was found [findings=${result.findings.length}]`)
}

function checked(directory: string): CheckResult {
  const progress = openProgress('check')
  try {
    return checkDatabase({ files: nodeFiles(), directory, progress: progress.set })
  } finally {
    progress.end()
  }
}

/** Copies with the progress shown. */
function copied(label: string, source: string, manifest: string, target: string): CopyResult {
  const progress = openProgress(label)
  try {
    return copyDatabase({ files: nodeFiles(), source, manifest, target, progress: progress.set })
  } finally {
    progress.end()
  }
}

function again(first: CheckResult, second: CheckResult): CheckResult {
  const keys = new Set(first.findings.map(({ file, message }) => `${file} ${message}`))
  return { ...second, findings: second.findings.filter(({ file, message }) => keys.has(`${file} ${message}`)) }
}

function reportCheck({ tables, parts, rows, logFrames, bytes, findings }: CheckResult, served: boolean): void {
  const log = logFrames === null ? 'no log' : `${logFrames} log frames`
  const counts = `${tables} tables, ${parts} parts with ${rows} rows, ${log}, ${bytes} bytes read`
  process.stdout.write(`${counts}${served ? ' (a server uses this folder)' : ''}\n`)
  if (logFrames === null) {
    process.stdout.write(
      'there is no log, as in a backup: of a server that has run here, rows that were in no part are lost\n',
    )
  }
  for (const finding of findings.slice(0, findingsShown)) process.stdout.write(`${findingText(finding)}\n`)
  if (findings.length === 0) process.stdout.write('every checksum is right\n')
}

function findingText({ file, offset, message }: CheckFinding): string {
  return `damaged: ${file}, offset ${offset}: ${message}`
}

/** Accepts a root folder, a backup, or a database directory. */
function databaseOf(folder: string): string {
  const candidates = [join(resolve(folder), 'db'), resolve(folder)]
  const found = candidates.find((path) => existsSync(join(path, 'manifest')))
  if (found === undefined) throw new ToolError(`no data in this folder: ${folder}`, exitCodes.usage)
  return found.replaceAll('\\', '/')
}

export async function runBackup(target: string, flags: BackupFlags): Promise<void> {
  const root = resolve(flags.dir)
  const source = join(root, 'db').replaceAll('\\', '/')
  if (resolve(target) === root || resolve(target).startsWith(`${source}/`)) {
    throw new ToolError('the backup needs a separate folder', exitCodes.usage)
  }
  if (!(await isServed(root))) {
    throw new ToolError(`no server uses the folder ${root}: start it, or name its folder with --dir`)
  }
  const client = openClient(flags)
  try {
    const before = snapshotNames(source)
    await statement(client, 'CHECKPOINT CREATE')
    try {
      if (snapshotNames(source) === before)
        throw new ToolError(`the server at ${flags.url} uses another folder than ${root}`)
      const result = copied('backup', source, `${source}/backup`, join(resolve(target), 'db').replaceAll('\\', '/'))
      reportCopy('backup', result, resolve(target), flags.json)
    } finally {
      await statement(client, 'CHECKPOINT RELEASE')
    }
  } finally {
    await client.close()
  }
}

function snapshotNames(source: string): string {
  const folder = `${source}/backup`
  return existsSync(folder) ? readdirSync(folder).join() : ''
}

async function statement(client: Client, query: string): Promise<void> {
  const reply = await client.get('exec', { query })
  if (reply.status !== 200) throw new ToolError(`${query}: ${await refusalText(reply)}`)
  await reply.body.text()
}

export async function runRestore(backup: string, flags: RestoreFlags): Promise<void> {
  const { dir, json } = flags
  const stored = backup.startsWith('s3://') ? await openBackup(backup, flags) : null
  try {
    const source = stored === null ? databaseOf(backup) : ''
    const root = locateRoot(dir)
    const lock = await lockRoot(root, { purpose: 'restore' })
    try {
      await restoreTo(
        root,
        json,
        (target) => stored?.fetch(target) ?? copied('restore', source, `${source}/manifest`, target),
      )
    } finally {
      lock.release()
    }
  } finally {
    await stored?.close()
  }
}

/** Fills a new database directory. */
type Fill = (target: string) => CopyResult | Promise<CopyResult>

async function restoreTo(root: string, json: boolean | undefined, fill: Fill): Promise<void> {
  const target = join(root, 'db').replaceAll('\\', '/')
  if (readdirSync(target).length > 0) {
    throw new ToolError(`the folder ${target} is not empty: a backup is restored to a root without data`)
  }
  const unfinished = `${target}.restoring`
  rmSync(unfinished, { recursive: true, force: true })
  const files = nodeFiles()
  const result = await fill(unfinished)
  const { findings } = checked(unfinished)
  const [finding] = findings
  if (finding !== undefined) throw new ToolError(`the backup is damaged: ${findingText(finding)}`)
  rmSync(target, { recursive: true, force: true })
  files.rename(unfinished, target)
  files.syncDirectory(root.replaceAll('\\', '/'))
  reportCopy('restore', result, root, json)
}

function reportCopy(what: string, result: CopyResult, folder: string, json: boolean | undefined): void {
  const { tables, parts, rows, copiedParts, copiedBytes, removedParts } = result
  if (json === true) process.stdout.write(`${JSON.stringify({ status: 'OK', folder, ...result })}\n`)
  else {
    const has = `${tables} tables, ${parts} parts, ${rows} rows`
    process.stdout.write(
      `${what}: ${has}; ${copiedParts} parts copied, ${removedParts} removed, ${copiedBytes} bytes, to ${folder}\n`,
    )
  }
}
