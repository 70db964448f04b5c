// The live view of the console: rates, warnings, alerts, running queries, memory, connections, connectors and rejected
// rows of the server, read every two seconds from /metrics, /warnings and system tables while the view is visible.

import { AlertsPanel, alertsQuery } from './alerts.js'
import { execute, metricsText, rowsOf, type Warning, warnings } from './api.js'
import { button, byId, drawReleased, element, errorText, notify } from './dom.js'
import { byLabel, parseMetrics, quantile, type Reading, rate, total } from './metrics-text.js'
import { patchChildren } from './patch.js'
import { Sparkline } from './sparkline.js'
import { plainTable } from './table-details.js'
import { durationText, grouped, type Row, sizeText } from './values.js'

const intervalMs = 2000
const listedMax = 100
/** Share of a budget's limit that is worth a warning. */
const fullShare = 0.9
const diskBytesLow = 5e9
/** Ends the statements of this page, which are not listed among the running ones. */
const mark = '/* live page */'

export class LivePage {
  readonly #host = byId('live', HTMLElement)
  readonly #tiles = new Map<string, Tile>()
  readonly #parts = new Map<string, HTMLElement>()
  readonly #alerts = new AlertsPanel()
  #timer: ReturnType<typeof setInterval> | undefined
  #abort = new AbortController()
  #before: Reading | undefined
  /** Rows that each connection had sent at the last reading. */
  #received = new Map<string, number>()
  #receivedMs = 0

  constructor() {
    const tiles = element('div', { className: 'tiles' })
    for (const [id, title] of [
      ...[
        ['rows', 'Rows in'],
        ['statements', 'Statements'],
        ['commit', 'Commit, 99 %'],
        ['lag', 'Log lag'],
      ],
      ...[
        ['connections', 'Connections'],
        ['amplification', 'Write amplification'],
        ['disk', 'Disk free'],
        ['rejected', 'Rows rejected'],
      ],
    ] as const) {
      const tile = new Tile(title ?? '')
      this.#tiles.set(id ?? '', tile)
      tiles.append(tile.host)
    }
    this.#host.append(this.#part('warnings'), tiles, this.#alerts.host)
    for (const id of ['running', 'ingest', 'memory', 'connections', 'connectors', 'rejects'])
      this.#host.append(this.#part(id))
    document.addEventListener('visibilitychange', () => this.#tick())
  }

  #part(id: string): HTMLElement {
    const made = element('section', { className: `live-part live-${id}` })
    this.#parts.set(id, made)
    return made
  }

  start(): void {
    this.stop()
    this.#abort = new AbortController()
    this.#timer = setInterval(() => this.#tick(), intervalMs)
    this.#tick()
  }

  stop(): void {
    clearInterval(this.#timer)
    this.#timer = undefined
    this.#abort.abort()
  }

  #tick(): void {
    const { signal } = this.#abort
    if (document.visibilityState !== 'visible' || this.#timer === undefined) return
    this.#update().catch((error: unknown) => {
      if (!signal.aborted)
        this.#fill('warnings', 'Warnings', [element('p', { className: 'problem' }, errorText(error))])
    })
  }

  async #update(): Promise<void> {
    const { signal } = this.#abort
    const ask = (sql: string): Promise<readonly Row[]> => rowsOf(`${sql} ${mark}`, signal)
    const optional = (sql: string): Promise<readonly Row[]> => ask(sql).catch(() => [])
    const [text, advised, connections, running, rejects, connectors, alerts] = await Promise.all([
      metricsText(signal),
      warnings(signal),
      ask(
        'SELECT id, protocol, principal, application, remote_address, state, rows_received, rows_rejected, bytes_in, bytes_out, connected_at FROM sys.connections ORDER BY id DESC',
      ),
      ask(
        'SELECT query_id, username, query_start, rows_read, rows_total, query FROM query_progress() ORDER BY query_start',
      ),
      ask(`SELECT ts, table_name, line, reason FROM sys.rejects ORDER BY ts DESC LIMIT ${listedMax}`),
      optional('SELECT * FROM sys.connectors'),
      ask(alertsQuery),
    ])
    const now: Reading = { atMs: performance.now(), samples: parseMetrics(text) }
    this.#paintTiles(now, connections.length)
    this.#paintWarnings(now, advised)
    this.#paintRunning(running)
    this.#alerts.paint(alerts)
    this.#paintIngest(connections)
    this.#paintMemory(now)
    this.#paintConnections(connections)
    await this.#paintConnectors(connectors)
    this.#paintRejects(rejects)
    this.#before = now
  }

  #paintTiles(now: Reading, connections: number): void {
    const before = this.#before
    const value = (name: string): number => total(now.samples, name)
    const rows = rate(before, now, 'svc_committed_rows_total')
    const statements = rate(before, now, 'svc_queries_total')
    const commit = quantile(before, now, 'svc_commit_duration_seconds', 0.99)
    const lag = value('svc_wal_apply_lag_seconds')
    this.#tiles.get('rows')?.show(`${grouped(Math.round(rows))}/s`, rows)
    this.#tiles.get('statements')?.show(`${grouped(Math.round(statements))}/s`, statements)
    this.#tiles.get('commit')?.show(commit === null ? '–' : `≤ ${durationText(commit * 1000)}`, commit ?? 0)
    this.#tiles.get('lag')?.show(lag === 0 ? 'none' : durationText(lag * 1000), lag)
    this.#tiles.get('connections')?.show(grouped(connections), connections)
    const amplification = value('svc_write_amplification')
    this.#tiles.get('amplification')?.show(amplification === 0 ? '–' : `${amplification.toFixed(2)}×`, amplification)
    this.#tiles.get('disk')?.show(sizeText(value('svc_disk_free_bytes')), value('svc_disk_free_bytes'))
    const rejected = rate(before, now, 'svc_rows_rejected_total')
    this.#tiles.get('rejected')?.show(grouped(value('svc_rows_rejected_total')), rejected)
  }

  #paintWarnings(now: Reading, advised: readonly Warning[]): void {
    const found = [...advised.map(adviceOf), ...measured(now)]
    const items = found.map(({ text, what, page }) =>
      element(
        'li',
        {},
        element('strong', {}, text),
        ' ',
        what,
        ' ',
        element('a', { href: page, target: '_blank' }, 'More'),
      ),
    )
    this.#fill('warnings', found.length === 0 ? 'No warnings' : `Warnings (${found.length})`, [
      element('ul', { className: 'warnings' }, ...items),
    ])
  }

  #paintRunning(running: readonly Row[]): void {
    const rows = running
      .filter(([, , , , , sql]) => !String(sql).endsWith(mark))
      .map(([id, user, begun, read, total, sql]) => {
        const forMs = Math.max(0, Date.now() - Date.parse(String(begun)))
        const cancel = button('Cancel', () => void cancelQuery(String(id)), { title: `Cancel statement ${id}` })
        const plan = button('Plan', () => void showPlan(String(id), String(sql)), { title: `Plan of statement ${id}` })
        return [
          String(id),
          String(user ?? ''),
          durationText(forMs),
          progressOf(String(id), read, total),
          element('code', {}, String(sql).slice(0, 400)),
          element('div', { className: 'bar' }, plan, cancel),
        ]
      })
    this.#table(
      'running',
      'Running statements',
      ['Id', 'User', 'For', 'Rows read', 'Statement', ''],
      rows,
      new Set([0, 2]),
    )
  }

  /** Rows that connections of each protocol have sent since the last reading. */
  #paintIngest(connections: readonly Row[]): void {
    const now = performance.now()
    const seconds = (now - this.#receivedMs) / 1000
    const isFirst = this.#receivedMs === 0
    const byProtocol = new Map<string, { open: number; rows: number; received: number; rejected: number }>()
    const received = new Map<string, number>()
    for (const [id, protocol, , , , , rows, rejected] of connections) {
      const entry = byProtocol.get(String(protocol)) ?? { open: 0, rows: 0, received: 0, rejected: 0 }
      byProtocol.set(String(protocol), entry)
      received.set(String(id), Number(rows))
      entry.open++
      entry.received += Number(rows)
      entry.rejected += Number(rejected)
      if (!isFirst) entry.rows += Number(rows) - (this.#received.get(String(id)) ?? 0)
    }
    this.#received = received
    this.#receivedMs = now
    const rows = [...byProtocol].map(([protocol, entry]) => [
      ...[protocol, grouped(entry.open), `${grouped(Math.round(Math.max(0, entry.rows) / seconds))}/s`],
      ...[grouped(entry.received), grouped(entry.rejected)],
    ])
    const heads = ['Interface', 'Open', 'Rows', 'Rows of open connections', 'Rejected']
    this.#table('ingest', 'Ingest by interface', heads, rows, new Set([1, 2, 3, 4]))
  }

  #paintMemory({ samples }: Reading): void {
    const limits = byLabel(samples, 'svc_memory_limit_bytes', 'budget')
    const rows = [...byLabel(samples, 'svc_memory_used_bytes', 'budget')].map(([budget, used]) => {
      const limit = limits.get(budget) ?? 0
      const meter = element('meter', {
        min: 0,
        max: Math.max(1, limit),
        value: used,
        high: limit * fullShare,
        ariaLabel: budget,
      })
      return [budget, meter, sizeText(used), sizeText(limit)]
    })
    this.#table('memory', 'Memory by budget', ['Budget', '', 'Used', 'Limit'], rows, new Set([2, 3]))
  }

  #paintConnections(connections: readonly Row[]): void {
    const rows = connections
      .slice(0, listedMax)
      .map(([id, protocol, user, application, address, state, received, , bytesIn, bytesOut]) => [
        ...[
          String(id),
          String(protocol),
          String(user ?? ''),
          String(application ?? ''),
          String(address ?? ''),
          String(state),
        ],
        ...[grouped(String(received)), sizeText(Number(bytesIn)), sizeText(Number(bytesOut))],
      ])
    const heads = ['Id', 'Protocol', 'User', 'Application', 'Address', 'State', 'Rows', 'In', 'Out']
    this.#table('connections', `Connections (${connections.length})`, heads, rows, new Set([0, 6, 7, 8]))
  }

  async #paintConnectors(connectors: readonly Row[]): Promise<void> {
    if (connectors.length === 0) {
      this.#parts.get('connectors')?.replaceChildren()
      return
    }
    const answer = await execute(`SELECT * FROM sys.connectors ${mark}`, { signal: this.#abort.signal })
    if (answer.kind !== 'rows') return
    const rows = answer.rows.map((row) => row.map((value) => (value === null ? '' : String(value))))
    this.#table(
      'connectors',
      'Connectors',
      answer.columns.map(({ name }) => name),
      rows,
      new Set(),
    )
  }

  #paintRejects(rejects: readonly Row[]): void {
    const rows = rejects.map(([ts, table, line, reason]) => [
      String(ts),
      String(table),
      grouped(String(line)),
      String(reason),
    ])
    this.#table('rejects', 'Rejected rows', ['Time', 'Table', 'Line', 'Reason'], rows, new Set([2]))
  }

  #table(
    id: string,
    title: string,
    heads: readonly string[],
    rows: readonly (readonly (string | Node)[])[],
    right: ReadonlySet<number>,
  ): void {
    this.#fill(id, title, [
      rows.length === 0 ? element('p', { className: 'quiet' }, 'None.') : plainTable(heads, rows, right),
    ])
  }

  #fill(id: string, title: string, content: readonly HTMLElement[]): void {
    const host = this.#parts.get(id)
    if (host === undefined) return
    for (const part of content) {
      if (!part.matches('.table-scroll')) continue
      part.ariaLabel = title
      part.role = 'region'
    }
    drawReleased(host, () => {
      const hadFocus = host.contains(document.activeElement)
      patchChildren(host, [element('h2', {}, title), ...content])
      // The keyboard stays here when a row with the focus has gone.
      const table = host.querySelector('[tabindex="0"]')
      if (hadFocus && !host.contains(document.activeElement) && table instanceof HTMLElement) table.focus()
    })
  }
}

/** A bar with the rows that the scans of a statement have read; a dash while that is not known. */
function progressOf(id: string, read: Row[number] | undefined, total: Row[number] | undefined): Node | string {
  const [done, all] = [Number(read ?? 0), Number(total ?? 0)]
  if (all === 0) return '–'
  const percent = Math.floor((100 * done) / all)
  const text = `${percent} % of ${grouped(all)}`
  const bar = element('progress', { max: 100, value: percent, ariaLabel: `Rows read by statement ${id}` })
  return element('div', { className: 'share', title: `${grouped(done)} of ${grouped(all)} rows` }, bar, text)
}

/** The plan that the statement would get now; values of its parameters are not known. */
async function showPlan(id: string, sql: string): Promise<void> {
  const dialog = byId('details', HTMLDialogElement)
  const body = element('div', { className: 'details-body' })
  try {
    const answer = await execute(sql, { explain: true })
    const lines = answer.kind === 'rows' ? answer.rows.map(([line]) => String(line)) : [answer.text]
    body.append(element('pre', { className: 'code', tabIndex: 0, ariaLabel: 'Plan' }, lines.join('\n')))
  } catch (error) {
    body.append(element('p', { className: 'problem', role: 'alert' }, errorText(error)))
  }
  body.append(element('pre', { className: 'code', tabIndex: 0, ariaLabel: 'Statement' }, sql))
  const close = button('', () => dialog.close(), { icon: 'close', title: 'Close (Escape)', className: 'quiet' })
  const title = element('h2', { id: 'details-title' }, `Plan of statement ${id}`)
  dialog.replaceChildren(element('div', { className: 'dialog-head' }, title, close), body)
  if (!dialog.open) dialog.showModal()
}

async function cancelQuery(id: string): Promise<void> {
  try {
    await execute(`CANCEL QUERY ${id}`)
    notify(`Statement ${id} is cancelled.`)
  } catch (error) {
    notify(errorText(error))
  }
}

interface Advice {
  readonly text: string
  /** What to do. */
  readonly what: string
  readonly page: string
}

function adviceOf({ tag, warning }: Warning): Advice {
  if (tag === 'security') {
    return {
      text: warning,
      what: 'Set credentials, or bind the port to this machine.',
      page: '/docs/security.html#authentication',
    }
  }
  if (/disk|space/.test(warning)) {
    return {
      text: warning,
      what: 'Free space, or drop old partitions.',
      page: '/docs/operations.html#when-the-disk-is-full',
    }
  }
  return { text: warning, what: '', page: '/docs/operations.html' }
}

/** Warnings from metrics. */
function measured({ samples }: Reading): Advice[] {
  const found: Advice[] = []
  const free = total(samples, 'svc_disk_free_bytes')
  if (free > 0 && free < diskBytesLow) {
    found.push({
      text: `Only ${sizeText(free)} of disk are free.`,
      what: 'Free space, or drop old partitions.',
      page: '/docs/operations.html#when-the-disk-is-full',
    })
  }
  if (total(samples, 'svc_unhandled_errors') > 0) {
    found.push({
      text: 'Unexpected errors have occurred.',
      what: 'The log of the server names them; please report them.',
      page: '/docs/operations.html#logs',
    })
  }
  const limits = byLabel(samples, 'svc_memory_limit_bytes', 'budget')
  for (const [budget, used] of byLabel(samples, 'svc_memory_used_bytes', 'budget')) {
    const limit = limits.get(budget) ?? 0
    if (budget === 'cache' || limit === 0 || used < limit * fullShare) continue
    found.push({
      text: `The memory budget "${budget}" is almost used up.`,
      what: 'Give the server more memory by memory.bytes.',
      page: '/docs/settings.html',
    })
  }
  return found
}

/** A number with its course over the last minutes. */
class Tile {
  readonly host: HTMLElement
  readonly #value = element('div', { className: 'tile-value' }, '–')
  readonly #line = new Sparkline()

  constructor(title: string) {
    this.host = element(
      'div',
      { className: 'tile' },
      element('div', { className: 'tile-title' }, title),
      this.#value,
      this.#line.host,
    )
  }

  show(text: string, value: number): void {
    this.#value.textContent = text
    this.#line.add(value)
  }
}
