// Implements `penstock demo`: creates the tables of the documentation's examples on a running server, or removes them.

import { demoLines, demoTables, sensorsInsert } from '../../gateways/common/demo-data.js'
import { parseResponse } from './exec-response.js'
import { type Client, openClient, refusalText, type ServerFlags, ToolError } from './http-client.js'

export interface DemoFlags extends ServerFlags {
  readonly replace?: boolean
  readonly remove?: boolean
}

const names = Object.keys(demoTables)

export async function runDemo(flags: DemoFlags): Promise<void> {
  const client = openClient(flags)
  try {
    await prepare(client, flags)
    if (flags.remove === true) process.stdout.write('removed the tables of the demo\n')
    else process.stdout.write(await load(client))
  } finally {
    await client.close()
  }
}

/** Drops the tables of an earlier run where that is asked for. Tables of others with these names are never touched. */
async function prepare(client: Client, { replace, remove }: DemoFlags): Promise<void> {
  const found = await tablesWithSuchNames(client)
  for (const [name, isOurs] of found)
    if (!isOurs) throw new ToolError(`there is another table with the name ${name}: rename it first`)
  if (found.size === 0) return
  if (replace !== true && remove !== true)
    throw new ToolError(`the demo is loaded already [tables=${[...found.keys()].join(', ')}]; --replace loads it again`)
  for (const name of found.keys()) await exec(client, `DROP TABLE ${name}`)
}

/** Existing tables with the names of the demo's, and whether each has the columns of the demo's. */
async function tablesWithSuchNames(client: Client): Promise<Map<string, boolean>> {
  const found = new Map<string, boolean>()
  const list = names.map((name) => `'${name}'`).join(', ')
  const existing = await exec(client, `SELECT table_name FROM tables() WHERE lower(table_name) IN (${list})`)
  for (const [table] of existing) {
    const name = String(table)
    const columns = await exec(client, `SELECT "column" FROM table_columns('${name}')`)
    found.set(name, columns.map(([column]) => String(column)).join() === columnsOf(name.toLowerCase()).join())
  }
  return found
}

/** Column names in a CREATE TABLE statement of the demo. */
function columnsOf(name: string): string[] {
  const [, list = ''] = /\(([^()]*)\)/.exec(demoTables[name] ?? '') ?? []
  return list.split(',').map((column) => column.trim().split(' ')[0] ?? '')
}

async function load(client: Client): Promise<string> {
  for (const name of names) await exec(client, demoTables[name] ?? '')
  await exec(client, sensorsInsert())
  const reply = await client.post('write', {}, demoLines(), 'text/plain')
  if (reply.status !== 204) throw new ToolError(await refusalText(reply))
  await reply.body.text()
  const counts = await Promise.all(
    names.map(async (name) => `${name}: ${(await exec(client, `SELECT count() FROM ${name}`))[0]?.[0]} rows\n`),
  )
  return counts.join('')
}

/** The rows of a statement. */
async function exec(client: Client, query: string): Promise<readonly (readonly unknown[])[]> {
  const reply = await client.get('exec', { query })
  if (reply.status !== 200) throw new ToolError(await refusalText(reply))
  return parseResponse(await reply.body.text()).dataset ?? []
}
