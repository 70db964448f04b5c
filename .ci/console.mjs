// `node .ci/console.mjs HTTP_PORT [SCREENSHOT]`: the web console in a real browser without a window. It runs statements,
// draws a chart, imports a file, shows an error's place and lists tables; values that look like markup stay text; the
// browser reports neither an exception nor a violated policy.

import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { WebSocket } from 'undici'

const [port, screenshot] = process.argv.slice(2)
const base = `http://127.0.0.1:${port}`
const profile = mkdtempSync(join(tmpdir(), 'penstock-chromium-'))
const command = process.env.CHROMIUM ?? 'chromium'
const flags = ['--headless=new', '--no-sandbox', '--disable-gpu', '--window-size=1300,800', '--remote-debugging-port=0']
const browser = spawn(command, [...flags, `--user-data-dir=${profile}`, 'about:blank'])
const complaints = []
/** A wrong statement answers 400: it is asked for. */
const requested = /\/exec$/

try {
  await prepare()
  await drive(await openPage(await debuggerUrl()))
  if (complaints.length > 0) throw new Error(`the browser complains: ${complaints.join('; ')}`)
  console.log('the console works, and nothing in it is markup but its own')
} finally {
  browser.kill('SIGKILL')
  await new Promise((resolve) => setTimeout(resolve, 200))
  rmSync(profile, { recursive: true, force: true, maxRetries: 5 })
}

async function exec(query) {
  const answer = await (await fetch(`${base}/exec?${new URLSearchParams({ query })}`)).json()
  if (answer.error !== undefined) throw new Error(`${query}: ${answer.error}`)
  return answer
}

async function prepare() {
  const health = await fetch(base, { redirect: 'manual' })
  check((await health.text()) === 'OK', 'GET / answers OK')
  check(health.headers.get('refresh') === '0; url=/console/', 'browsers are sent to the console')
  await exec(
    "create table console_trades as (select rnd_symbol('BTC','ETH') symbol, rnd_double() * 100 price, timestamp_sequence('2026-01-01T00:00:00Z', 60000000L) ts from long_sequence(2000)) timestamp(ts) partition by day",
  )
  // A name that looks like markup is refused, which is as good as being shown as text.
  await exec('create table "console <b>evil" (v int, ts timestamp) timestamp(ts) partition by day').catch(() => {})
  await exec('create table if not exists console_text (c varchar, ts timestamp) timestamp(ts) partition by day')
  await exec(
    'insert into console_text values (\'<img src=x onerror="document.title=1"><script>document.title=2</script>\', now())',
  )
}

async function debuggerUrl() {
  let text = ''
  for await (const chunk of browser.stderr) {
    text += chunk
    const match = /DevTools listening on (ws:\S+)/.exec(text)
    if (match !== null) {
      browser.stderr.resume()
      return match[1]
    }
  }
  throw new Error(`the browser did not start: ${text}`)
}

/** Sends commands of the browser's debugging protocol to one page. */
async function openPage(url) {
  const socket = new WebSocket(url)
  await new Promise((resolve, reject) => {
    socket.onopen = resolve
    socket.onerror = () => reject(new Error('the browser takes no commands'))
  })
  const waiting = new Map()
  let lastId = 0
  let session
  socket.onmessage = ({ data }) => {
    const { id, method, params, result, error } = JSON.parse(data)
    if (id !== undefined) waiting.get(id)?.(error === undefined ? result : { error })
    else if (method === 'Runtime.exceptionThrown')
      complaints.push(params.exceptionDetails.exception?.description ?? params.exceptionDetails.text)
    else if (method === 'Log.entryAdded' && params.entry.level === 'error' && !requested.test(params.entry.url ?? ''))
      complaints.push(`${params.entry.text} ${params.entry.url ?? ''}`)
  }
  const send = (method, params = {}) =>
    new Promise((resolve) => {
      const id = ++lastId
      waiting.set(id, resolve)
      socket.send(JSON.stringify({ id, method, params, ...(session === undefined ? {} : { sessionId: session }) }))
    })
  const { targetId } = await send('Target.createTarget', { url: 'about:blank' })
  session = (await send('Target.attachToTarget', { targetId, flatten: true })).sessionId
  for (const domain of ['Runtime', 'Log', 'Page', 'DOM']) await send(`${domain}.enable`)
  return send
}

async function drive(send) {
  const evaluate = async (expression) => {
    const { result, exceptionDetails } = await send('Runtime.evaluate', {
      expression,
      awaitPromise: true,
      returnByValue: true,
    })
    if (exceptionDetails !== undefined) throw new Error(`${expression}: ${exceptionDetails.exception?.description}`)
    return result.value
  }
  const until = async (expression) => {
    for (let attempt = 0; attempt < 100; attempt++) {
      if (await evaluate(expression)) return
      await new Promise((resolve) => setTimeout(resolve, 100))
    }
    throw new Error(`never true: ${expression} (${await evaluate('document.body.innerText')})`)
  }
  const run = async (sql) => {
    await evaluate(
      `sql.value = ${JSON.stringify(sql)}; sql.selectionStart = sql.selectionEnd = 0; sql.dispatchEvent(new Event('input')); document.getElementById('status').textContent = ''; document.getElementById('run').click()`,
    )
    await until(`/rows|OK|Failed/.test(document.getElementById('status').textContent)`)
  }
  await send('Page.navigate', { url: `${base}/console/` })
  await until(`document.readyState === 'complete' && document.querySelectorAll('#tables li').length >= 3`)
  check(await evaluate(`document.querySelectorAll('#tables b').length === 0`), 'names of tables are text')

  await run('select * from console_text')
  check(
    await evaluate(`document.querySelector('#grid .row .cell').textContent.startsWith('<img')`),
    'a value is shown as it is',
  )
  check(
    await evaluate(
      `document.querySelectorAll('#grid img, #grid script').length === 0 && document.title === 'Penstock console'`,
    ),
    'a value is never markup',
  )

  await run('select 9007199254740993 l')
  check(await evaluate(`document.querySelector('#grid .row .cell').textContent === '9007199254740993'`), 'every digit')
  await run('select x from long_sequence(1001)')
  check(
    await evaluate(`/^first 1.000 rows; there are more/.test(document.getElementById('status').textContent)`),
    'a result that is cut says so',
  )

  await run('select nope from console_trades')
  check(
    await evaluate(`!problem.hidden && problem.textContent.includes('nope') && sql.selectionStart === 7`),
    'an error shows its place',
  )

  await importFile(send, evaluate, until)
  await run('select ts, symbol, avg(price) price from console_trades sample by 1h')
  check(await evaluate(`document.querySelectorAll('#grid .row').length > 5`), 'rows are shown')
  await evaluate(`document.getElementById('tab-chart').click()`)
  await until(`document.querySelector('#chart canvas') !== null`)
  if (screenshot !== undefined) {
    const { data } = await send('Page.captureScreenshot', { format: 'png' })
    writeFileSync(screenshot, Buffer.from(data, 'base64'))
  }
}

async function importFile(send, evaluate, until) {
  const path = join(profile, 'console_import.csv')
  writeFileSync(path, 'city,ts,v\nOslo,2026-01-01T00:00:00.000Z,1\nRome,2026-01-02T00:00:00.000Z,2\n')
  await evaluate(`document.getElementById('open-import').click()`)
  const { root } = await send('DOM.getDocument')
  const { nodeId } = await send('DOM.querySelector', { nodeId: root.nodeId, selector: '#import-file' })
  await send('DOM.setFileInputFiles', { nodeId, files: [path] })
  await evaluate(`document.getElementById('import-start').click()`)
  await until(`document.getElementById('import-result').textContent.includes('2 rows stored')`)
  await evaluate(`document.getElementById('import').close()`)
  await until(`[...document.querySelectorAll('#tables .name')].some((name) => name.textContent === 'console_import')`)
}

function check(condition, what) {
  if (!condition) throw new Error(`not so: ${what}`)
}
