// Implements `penstock doctor`: reports problems of this machine or of a root folder, and how to solve them. Exits with
// status 1 if there is a problem.

import { existsSync, statSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { isServed } from '../root/root-lock.js'
import {
  checkClock,
  checkDiskSpeed,
  checkFileLimit,
  checkKernel,
  checkMemory,
  checkNode,
  checkPorts,
  checkSpace,
  type Finding,
  found,
} from './doctor-machine.js'
import {
  checkData,
  checkFileSystem,
  checkLastEnd,
  checkPermissions,
  checkSettings,
  newestChangeMs,
} from './doctor-root.js'
import { ToolError } from './http-client.js'

export interface DoctorFlags {
  readonly dir: string
  readonly json?: boolean
}

export async function runDoctor({ dir, json }: DoctorFlags): Promise<void> {
  const findings = await examine(resolve(dir))
  if (json === true) process.stdout.write(`${JSON.stringify(findings, null, 2)}\n`)
  else process.stdout.write(findings.map(lineOf).join(''))
  const count = (level: Finding['level']): number => findings.filter((finding) => finding.level === level).length
  if (json !== true) process.stdout.write(`\n${count('problem')} problems, ${count('warning')} warnings\n`)
  if (count('problem') > 0) throw new ToolError(`there are problems [count=${count('problem')}]`)
}

async function examine(root: string): Promise<Finding[]> {
  const { loaded, findings: ofSettings } = checkSettings(root)
  const findings = [checkNode(), ...checkFileLimit(), ...checkKernel()]
  if (loaded !== null) findings.push(checkMemory(loaded.values))
  const exists = existsSync(root) && statSync(root).isDirectory()
  const served = exists && (await isServed(root))
  const place = exists ? root : existingParent(root)
  if (served)
    findings.push(
      found('ok', 'root', `${root}: a server uses it. Settings by its --set or environment are not seen here`),
    )
  else findings.push(found('ok', 'root', exists ? root : `${root} does not exist: a start creates it`))
  findings.push(checkFileSystem(place))
  if (loaded !== null) findings.push(...checkSpace(loaded.values, place))
  if (exists) findings.push(...checkPermissions(root))
  const temporary = join(root, 'tmp')
  if (exists && existsSync(temporary)) findings.push(...attempted('disk speed', () => checkDiskSpeed(temporary)))
  findings.push(checkClock(exists ? newestChangeMs(root) : 0), ...ofSettings)
  if (loaded !== null && !served) findings.push(...(await checkPorts(loaded.values)))
  if (exists) findings.push(...checkLastEnd(root, served), ...checkData(root, served))
  return findings
}

/** A check that the file system may refuse. */
function attempted(subject: string, check: () => Finding): Finding[] {
  try {
    return [check()]
  } catch (error) {
    return [found('problem', subject, error instanceof Error ? error.message : String(error))]
  }
}

function existingParent(path: string): string {
  for (let parent = path; ; parent = dirname(parent)) if (existsSync(parent)) return parent
}

const marks = { ok: 'ok      ', warning: 'warning ', problem: 'PROBLEM ' } as const

function lineOf({ level, subject, text, advice }: Finding): string {
  return `${marks[level]} ${subject.padEnd(12)} ${text}\n${advice === '' ? '' : `${' '.repeat(22)}-> ${advice}\n`}`
}
