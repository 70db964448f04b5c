// `node dist/test/crash/overload.js [--rows n] [--memory 1g]`: a producer sends much faster than the server stores
// rows, while queries run. Prints the largest RSS and the slowest query, and checks that every accepted row is stored.

import { parseArgs } from 'node:util'
import type { SenderOptions } from '../bench/line-sender.js'
import { startPenstock } from '../bench/peers.js'
import { queryRows, runModule, usageOf } from '../bench/processes.js'
import { percentile } from '../bench/suite-latency.js'

const { values } = parseArgs({
  options: {
    rows: { type: 'string', default: '40000000' },
    memory: { type: 'string', default: '1g' },
  },
})
const rssMarginMebibytes = 400

function mebibytes(size: string): number {
  const unit = size.at(-1)
  return unit === 'g' ? Number.parseFloat(size) * 1024 : Number.parseFloat(size)
}

async function main(): Promise<void> {
  const peer = await startPenstock([`memory.bytes=${values.memory}`])
  const options: SenderOptions = {
    protocol: 'tcp',
    port: peer.server.linePort,
    connections: 8,
    rows: Number(values.rows),
    templateRows: 200_000,
    batchRows: 10_000,
    shape: 'trades',
    order: 'shuffled',
    table: 'flood',
    startSeconds: 1_704_067_200,
  }
  const latencies: number[] = []
  let rss = 0
  let over = false
  const watch = (async () => {
    while (!over) {
      const start = performance.now()
      await queryRows(peer.server.httpPort, 'select 1').catch(() => [])
      latencies.push(performance.now() - start)
      rss = Math.max(rss, usageOf(peer.server.pid).rssBytes / 1024 / 1024)
      await new Promise((resolve) => setTimeout(resolve, 50))
    }
  })()
  await runModule('./line-sender.js', options, () => {})
  const counted = await settledCount(peer.server.httpPort, options.rows)
  over = true
  await watch
  await peer.end()
  const allowed = mebibytes(values.memory) + rssMarginMebibytes
  const slowest = percentile(latencies, 1)
  process.stdout.write(
    `${counted} of ${options.rows} rows, RSS ${rss.toFixed(0)} of ${allowed} MiB, queries p99 ${percentile(latencies, 0.99).toFixed(1)} ms, slowest ${slowest.toFixed(0)} ms\n`,
  )
  if (counted !== options.rows || rss > allowed) process.exitCode = 1
}

/** The count when it has stopped growing or is complete. */
async function settledCount(port: number, wanted: number): Promise<number> {
  let last = -1
  for (;;) {
    const rows = await queryRows(port, 'select count() from flood')
    const counted = Number(rows[0]?.[0])
    if (counted === wanted || counted === last) return counted
    last = counted
    await new Promise((resolve) => setTimeout(resolve, 2000))
  }
}

await main()
