// Implements `penstock repair` and `penstock user reset`: offline maintenance of a root folder that no server uses.

import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { nodeFiles } from '../../engine/base/files.js'
import {
  applyRepair,
  needsRepair,
  planRepair,
  type RepairItem,
  type RepairPlan,
  resetUsers,
} from '../../engine/engine.js'
import { locateRoot } from '../root/root-folder.js'
import { lockRoot } from '../root/root-lock.js'
import { exitCodes, ToolError } from './http-client.js'

export interface RepairFlags {
  readonly dir: string
  readonly apply?: boolean
  readonly json?: boolean
}

export async function runRepair({ dir, apply, json }: RepairFlags): Promise<void> {
  await alone(dir, 'repair', (root, directory) => {
    const options = { files: nodeFiles(), directory }
    const plan = planRepair(options)
    const needed = needsRepair(plan)
    if (json === true) {
      const { adopted, orphans, missing, manifest } = plan
      const status = needed ? (apply === true ? 'repaired' : 'needed') : 'OK'
      process.stdout.write(`${JSON.stringify({ status, manifest, adopted, orphans, missing })}\n`)
    } else reportPlan(plan, root)
    if (!needed) return
    if (apply === true) applyRepair(options, plan)
    if (json === true) return
    const done = 'done: start the server, and run `penstock check`'
    process.stdout.write(`${apply === true ? done : 'nothing was written: --apply does it'}\n`)
  })
}

function reportPlan(plan: RepairPlan, root: string): void {
  const { adopted, orphans, missing, manifest } = plan
  process.stdout.write(manifest === null ? 'the manifest is intact\n' : `the manifest must be rewritten: ${manifest}\n`)
  for (const item of adopted) reportItem('adopt', item)
  for (const item of orphans) reportItem('move aside', item)
  for (const item of missing) reportItem('strike off', item)
  const counts = `${adopted.length} data files adopted, ${orphans.length} moved to ${join(root, 'orphans')}`
  process.stdout.write(needsRepair(plan) ? `${counts}, ${missing.length} struck off\n` : 'nothing is to be repaired\n')
}

function reportItem(verb: string, { file, table, rows, reason }: RepairItem): void {
  const what = table === '' ? '' : ` [table=${table}, rows=${rows}]`
  process.stdout.write(`${verb}: ${file}${what}: ${reason}\n`)
}

export async function runUserReset({ dir }: RepairFlags): Promise<void> {
  await alone(dir, 'user reset', (_, directory) => {
    const suffix = new Date().toISOString().replaceAll(/[:.]/g, '-')
    const aside = resetUsers(nodeFiles(), directory, suffix)
    if (aside !== undefined) process.stdout.write(`the file of before is kept: ${aside}\n`)
    process.stdout.write('now the only users are those of the settings (http.user, pg.user)\n')
  })
}

/** Locks the root against servers and other tools while `work` runs. */
async function alone(dir: string, purpose: string, work: (root: string, directory: string) => void): Promise<void> {
  if (!existsSync(join(dir, 'db'))) throw new ToolError(`no data in this folder: ${dir}`, exitCodes.usage)
  const root = locateRoot(dir)
  const directory = join(root, 'db').replaceAll('\\', '/')
  const lock = await lockRoot(root, { purpose })
  try {
    work(root, directory)
  } finally {
    lock.release()
  }
}
