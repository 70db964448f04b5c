// Benchmark of line protocol with random shapes of rows (random-lines.ts). Sends each shape to every server, and prints
// rows per second and processor seconds for each. At the end it prints, over all shapes, the geometric mean and the
// minimum of our rate divided by that of the first peer.

import type { Peer } from './peers.js'
import { describeShape, randomShape, rowsOf, tableOf } from './random-lines.js'
import { lineReport, measureLines } from './suite-lines.js'
import { exec, queryClient } from './suite-scan.js'

export interface RandomOptions {
  readonly seed: number
  readonly seeds: number
  /** At most; fewer where lines are long or batches short. */
  readonly rows: number
  readonly protocol: 'tcp' | 'http'
  readonly connections: number
}

export async function randomLoads(
  peers: readonly Peer[],
  { seed: first, seeds, rows: rowsMax, protocol, connections }: RandomOptions,
  print: (line: string) => void,
): Promise<void> {
  const ratios: number[] = []
  for (let seed = first; seed < first + seeds; seed++) {
    const shape = randomShape(seed)
    const rows = rowsOf(shape, rowsMax)
    print(`seed ${seed}: ${describeShape(shape)}`)
    const table = `random_${seed}`
    const counts = new Map<string, number>()
    for (let row = 0; row < rows; row++) {
      const name = tableOf(table, shape, row)
      counts.set(name, (counts.get(name) ?? 0) + 1)
    }
    const { order, batchRows } = shape
    const load = { shape: seed, order, protocol, connections, rows, table, templateRows: rows, batchRows, counts }
    const rates: number[] = []
    for (const peer of peers) {
      const measured = await measureLines(peer, load)
      print(lineReport(peer.server.name, load, measured))
      rates.push(measured.rowsPerSecond)
      await dropTables(peer, counts.keys())
    }
    const [ours = 0, theirs] = rates
    if (theirs !== undefined) ratios.push(ours / theirs)
  }
  if (ratios.length === 0) return
  const mean = Math.exp(ratios.reduce((sum, ratio) => sum + Math.log(ratio), 0) / ratios.length)
  print(`ratio to ${peers[1]?.server.name}: geometric mean ${mean.toFixed(2)}, worst ${Math.min(...ratios).toFixed(2)}`)
}

/** So that ten shapes fit the disk. */
async function dropTables({ server }: Peer, tables: Iterable<string>): Promise<void> {
  const client = queryClient(server.httpPort)
  for (const table of tables) await exec(client, `drop table ${table}`)
  await client.close()
}
