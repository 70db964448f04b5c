// `node .ci/prometheus.mjs HTTP_PORT HEALTH_PORT`: tests the metrics with Prometheus. promtool accepts them, apart from
// names that the specification fixes. A real Prometheus scrapes both servers and finds them up; with the rules of
// deploy/prometheus it fires an alert when an alert that is defined in the server fires.

import { spawn, spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { freePort, until } from './processes.mjs'

const [http, health] = process.argv.slice(2)
/** What the linter says of names that are given, by the specification or by the client library. */
const given =
  /^svc_(memory_(free|malloc)_count|query_cache_(hits|misses)|query_error_counter|reader_leak_counter|unhandled_errors|nodejs_active_\w+_total) /
const rules = fileURLToPath(new URL('../deploy/prometheus/rules.yml', import.meta.url))
const scratch = mkdtempSync(join(tmpdir(), 'penstock-prometheus-'))

try {
  for (const port of [http, health]) await lint(port)
  await scrape()
} finally {
  rmSync(scratch, { recursive: true, force: true })
}

async function lint(port) {
  const text = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text()
  const { stdout, stderr, status } = spawnSync('promtool', ['check', 'metrics'], { input: text, encoding: 'utf8' })
  const findings = `${stdout}${stderr}`.split('\n').filter((line) => line !== '' && !given.test(line))
  if (findings.length > 0 || (status !== 0 && status !== 3))
    throw new Error(`promtool: ${findings.join('; ')} [status=${status}]`)
  console.log(`promtool takes the metrics of port ${port}: ${text.split('\n').length} lines`)
}

async function scrape() {
  const port = await freePort()
  const targets = JSON.stringify([`127.0.0.1:${http}`, `127.0.0.1:${health}`])
  const config = `global: {scrape_interval: 1s, evaluation_interval: 1s}
rule_files: [${JSON.stringify(rules)}]
scrape_configs: [{job_name: penstock, static_configs: [{targets: ${targets}}]}]\n`
  writeFileSync(join(scratch, 'prometheus.yml'), config)
  const args = ['--config.file', join(scratch, 'prometheus.yml'), '--storage.tsdb.path', join(scratch, 'data')]
  const prometheus = spawn('prometheus', [...args, `--web.listen-address=127.0.0.1:${port}`], { stdio: 'ignore' })
  try {
    const seen = async (expression, value, what) =>
      until(async () => (await query(port, expression)) === value, 30, `Prometheus never saw that ${what}`)
    await seen('sum(up)', '2', 'both servers are up')
    await seen('count(svc_commit_duration_seconds_bucket{le="+Inf"})', '2', 'both have a histogram')
    await defineAlert()
    const firing = 'ALERTS{alertname="PenstockAlertFiring",alert="always",alertstate="firing"}'
    await seen(firing, '1', 'the alert of the server fires')
    const failed = await query(port, 'sum(scrape_samples_scraped == 0)')
    if (failed !== undefined) throw new Error('a scrape brought nothing')
    console.log(`Prometheus scrapes ${await query(port, 'sum(scrape_samples_scraped)')} samples`)
  } finally {
    prometheus.kill('SIGTERM')
  }
}

async function defineAlert() {
  const body = JSON.stringify({ name: 'always', query: 'SELECT 1', every: '1s' })
  const answer = await fetch(`http://127.0.0.1:${http}/api/v1/alerts`, { method: 'PUT', body })
  if (answer.status !== 200) throw new Error(`the alert is refused: ${await answer.text()}`)
}

async function query(port, expression) {
  const url = `http://127.0.0.1:${port}/api/v1/query?query=${encodeURIComponent(expression)}`
  const answer = await fetch(url)
    .then((response) => response.json())
    .catch(() => null)
  return answer?.data?.result?.[0]?.value?.[1]
}
