// `npm run bench -- [suite] [options]`: measures our server beside its peers, interleaved in the same run.
//
//   lines      sustained line protocol      --shape cpu|trades --order sorted|late|shuffled --protocol tcp|http
//                                           --connections n --rows n --runs n
//   --peer questdb                          runs a real QuestDB as well (needs Java and Maven)
//   --set key=value                         a setting of our server

import { cpus, totalmem } from 'node:os'
import { parseArgs } from 'node:util'
import type { RowOrder, Shape } from './line-template.js'
import { type Peer, startPenstock, startQuestdb } from './peers.js'
import { type LineLoad, lineReport, measureLines } from './suite-lines.js'

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    peer: { type: 'string', multiple: true, default: [] },
    set: { type: 'string', multiple: true, default: [] },
    shape: { type: 'string', default: 'cpu' },
    order: { type: 'string', default: 'sorted' },
    protocol: { type: 'string', default: 'tcp' },
    connections: { type: 'string', default: '4' },
    rows: { type: 'string', default: '2000000' },
    runs: { type: 'string', default: '1' },
  },
})

async function startPeers(): Promise<Peer[]> {
  const peers = [await startPenstock(values.set)]
  if (values.peer.includes('questdb')) peers.push(await startQuestdb())
  return peers
}

async function lines(peers: readonly Peer[]): Promise<void> {
  const load: LineLoad = {
    shape: values.shape as Shape,
    order: values.order as RowOrder,
    protocol: values.protocol as 'tcp' | 'http',
    connections: Number(values.connections),
    rows: Number(values.rows),
  }
  for (let run = 0; run < Number(values.runs); run++) {
    for (const peer of peers)
      process.stdout.write(`${lineReport(peer.server.name, load, await measureLines(peer, load))}\n`)
  }
}

const suites: Record<string, (peers: readonly Peer[]) => Promise<void>> = { lines }

async function main(): Promise<void> {
  const name = positionals[0] ?? 'lines'
  const suite = suites[name]
  if (suite === undefined) throw new Error(`unknown suite [suite=${name}, known=${Object.keys(suites).join(', ')}]`)
  process.stdout.write(
    `${cpus().length} x ${cpus()[0]?.model}, ${(totalmem() / 2 ** 30).toFixed(0)} GiB, Node ${process.version}\n`,
  )
  const peers = await startPeers()
  try {
    await suite(peers)
  } finally {
    for (const peer of peers) await peer.end()
  }
}

await main()
