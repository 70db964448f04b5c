// `node .ci/console.mjs HTTP_PORT [--sign-in]`: uses the web console in a real browser, as a person would: the first
// visit, a query, a chart, an import and the live page; in light and dark colours, on a wide and on a narrow screen,
// and once by keyboard alone. Checks that the accessibility checker axe finds nothing serious, that the page is small,
// and that the browser reports no exception and no violation of the page's Content-Security-Policy. With `--sign-in` it
// only tests signing in, on a server with http.user=admin and http.password=quest. Screenshots are in tmp/console/.

import { readFileSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { openBrowser } from './browser.mjs'

const [port, mode] = process.argv.slice(2)
const base = `http://127.0.0.1:${port}`
const screenshots = fileURLToPath(new URL('../tmp/console', import.meta.url))
const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')
const weightMax = 500_000
const firstPaintMsMax = 5000
/** Width and height, in pixels. */
const desk = [1360, 860]
const phone = [390, 844]

/** Wrong statements and refused sign-ins are part of the walk. */
const page = await openBrowser(screenshots, /\/((exec|session|settings|alerts|saved)$|imp\?)/)
/** What axe calls serious or critical. */
const findings = []
const views = ['query', 'dashboards', 'import', 'live', 'start']
/** The address of the dashboard that the walk makes. */
const board = '#dashboards?name=Cold+rooms&user=admin'
const shadow = `document.querySelector('#editor').shadowRoot`
const cell = (row, column) => `document.querySelector('[data-row="${row}"] [data-column="${column}"]')?.textContent`
const status = `document.querySelector('#result .status')?.textContent ?? ''`

try {
  if (mode === '--sign-in') await walkSignIn()
  else await walk()
  if (page.complaints.length > 0) throw new Error(`the browser complains: ${page.complaints.join('; ')}`)
  console.log(`the console works; screenshots are in ${screenshots}`)
} finally {
  await page.close()
}

async function walk() {
  await prepare()
  await page.size(...desk)
  await page.colours('light')
  await firstVisit()
  await queries()
  await charts()
  await editing()
  await imports()
  await details()
  await forms()
  await livePage()
  await alerts()
  await dashboards()
  await keyboardAlone()
  await everywhere()
  check(findings.length === 0, `axe has nothing serious: ${findings.join('\n')}`)
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
  await exec('create table if not exists console_text (c varchar, ts timestamp) timestamp(ts) partition by day')
  await exec(
    'insert into console_text values (\'<img src=x onerror="document.title=1"><script>document.title=2</script>\', now())',
  )
  await exec(
    "create table many_series as (select rnd_symbol(60, 3, 3, 0) symbol, rnd_double() * 100 price, timestamp_sequence('2026-01-01T00:00:00Z', 60000000L) ts from long_sequence(6000)) timestamp(ts) partition by day",
  )
  await exec('create view big_rooms as (select * from console_text)').catch(() => {})
}

// The first visit: the tour, sample data, a row from any language.

async function firstVisit() {
  await page.goTo(`${base}/console/`)
  await page.until(`!document.querySelector('#view-start').hidden`)
  await page.until(`document.querySelectorAll('#tables [role=treeitem]').length >= 2`)
  const paint = await page.evaluate(`performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? 0`)
  const bytes = await page.evaluate(
    `performance.getEntriesByType('resource').concat(performance.getEntriesByType('navigation')).filter(({ name }) => name.includes('/console/')).reduce((sum, { encodedBodySize }) => sum + encodedBodySize, 0)`,
  )
  console.log(`first paint after ${Math.round(paint)} ms, ${Math.round(bytes / 1000)} KB`)
  check(paint > 0 && paint < firstPaintMsMax, 'the first paint comes soon')
  check(bytes > 50_000 && bytes < weightMax, 'the page is light')
  const origins = await page.evaluate(
    `performance.getEntriesByType('resource').map(({ name }) => new URL(name).origin).filter((origin) => origin !== location.origin)`,
  )
  check(origins.length === 0, `nothing comes from elsewhere ${origins}`)
  check(
    await page.evaluate(`document.querySelector('#start pre').textContent.includes('${base}/write')`),
    'its own address',
  )
  await page.click('#start button.main')
  await page.until(`document.querySelector('#start output').textContent.includes('are loaded')`)
  const [[readings]] = (await exec('select count() from readings')).dataset
  check(readings === 15968, `the sample data are complete: ${readings}`)
  await page.screenshot('start-light')
}

// Rows.

async function run(sql) {
  await write(sql)
  await page.press('Control+Enter')
  await page.until(
    `!!document.querySelector('#result .status, #result .message') && document.querySelector('#cancel').disabled`,
  )
}

/** Replaces the text of the editor. */
async function write(text) {
  await page.evaluate(
    `document.querySelector('#result').replaceChildren(); ${shadow}.querySelector('.cm-content').focus()`,
  )
  await page.press('Control+a')
  await page.type(text)
}

async function queries() {
  await page.click('a[href="#query"]')
  await page.until(`!document.querySelector('#view-query').hidden`)
  await run('select * from console_text')
  await page.until(`${cell(0, 0)}?.startsWith('<img')`)
  check(
    await page.evaluate(
      `document.querySelectorAll('#result img, #result script').length === 0 && document.title === 'Penstock console'`,
    ),
    'a value is never markup',
  )
  await run("select 9007199254740993 l, null::varchar n, '' e")
  await page.until(`${cell(0, 0)} === '9007199254740993'`)
  check(
    await page.evaluate(`document.querySelector('[data-row="0"] .null')?.textContent === 'NULL'`),
    'NULL is visible',
  )

  await run('select x from long_sequence(123456)')
  await page.until(`/^first 10,000 rows of more/.test(${status}) && ${cell(0, 0)} === '1'`)
  await page.evaluate(`document.querySelector('.grid').scrollTop = 1e9`)
  await page.until(`/^first 20,000 rows of more/.test(${status})`)
  await page.evaluate(
    `[...document.querySelectorAll('.result-tools button')].find((one) => one.textContent === 'Count all').click()`,
  )
  await page.until(`/^123,456 rows/.test(${status})`)
  await page.until(`document.querySelector('.grid-space').clientHeight > 123456`)
  await page.evaluate(`document.querySelector('.grid').scrollTop = 1e9`)
  await page.until(`${cell(123455, 0)} === '123456'`)
  await sorting()

  await run('select nope from console_text')
  await page.until(`document.querySelector('#result [role=alert]')?.textContent.includes('nope')`)
  await page.until(`${shadow}.querySelector('.cm-lintRange-error')?.textContent === 'nope'`)
  await page.screenshot('error-light')

  await write('select 1 a;\nselect 2 b;\nselect nope;\nselect 4')
  await page.press('Control+Shift+Enter')
  await page.until(`document.querySelectorAll('#result-tabs button').length === 4`)
  await page.until(
    `document.querySelectorAll('#result-tabs .state-cancelled').length === 1 && document.querySelector('#cancel').disabled`,
  )
  check(await page.evaluate(`document.querySelectorAll('#result-tabs .state-done').length === 2`), 'a result for each')
}

/** The order that was chosen last wins, however fast one clicks and whatever is drawn meanwhile. */
async function sorting() {
  const head = '.grid-head [data-column="0"] .name'
  const order = `document.querySelector('.grid-head [data-column="0"]').ariaSort`
  const isSorted = `!document.querySelector('.grid').ariaBusy`
  await page.click(head)
  await page.click(head)
  await page.until(`${order} === 'descending' && ${isSorted}`)
  await page.evaluate(`document.querySelector('.grid').scrollTop = 0`)
  await page.until(`${cell(0, 0)} === '123456'`)
  // Rows that arrive between press and release do not swallow the click.
  await page.click(head, () =>
    page.evaluate(
      `new Promise((resolve) => { document.querySelector('.grid').dispatchEvent(new Event('scroll')); requestAnimationFrame(() => requestAnimationFrame(resolve)) })`,
    ),
  )
  await page.until(`${order} === 'none' && ${isSorted} && ${cell(0, 0)} === '1'`)
}

async function charts() {
  await run("SELECT ts, sensor, avg(temperature) AS temperature FROM readings WHERE room LIKE 'chiller%' SAMPLE BY 1h")
  await page.evaluate(
    `[...document.querySelectorAll('.segments button')].find((one) => one.textContent === 'Chart').click()`,
  )
  await page.until(`document.querySelector('.plot canvas') !== null`)
  await page.screenshot('chart-light')
  await page.drag('.u-over', [0.3, 0.5], [0.4, 0.5])
  await page.until(`/SAMPLE BY (1|2|5)m/.test(document.querySelector('.chart-tools').textContent)`)
  await page.screenshot('chart-zoomed-light')
  await page.evaluate(
    `[...document.querySelectorAll('.chart-tools button')].find((one) => one.textContent === 'Whole range').click()`,
  )
  await page.until(`/SAMPLE BY 1h/.test(document.querySelector('.chart-tools').textContent)`)
  for (const style of ['area', 'bars', 'points', 'heat']) {
    await page.evaluate(
      `(() => { const kind = document.querySelector('.chart-tools select'); kind.value = '${style}'; kind.dispatchEvent(new Event('change')) })()`,
    )
    await page.until(`document.querySelectorAll('.plot canvas').length === 1`)
    await page.screenshot(`chart-${style}-light`)
  }
  await run('select ts, symbol, avg(price) price from many_series sample by 2h')
  await page.evaluate(
    `[...document.querySelectorAll('.segments button')].find((one) => one.textContent === 'Chart').click()`,
  )
  await page.until(`/40 of \\d+ series/.test(document.querySelector('.legend')?.textContent ?? '')`)
  await page.screenshot('chart-many-light')
}

async function editing() {
  await write('')
  await page.type('select temp')
  await page.press('Control+ ')
  await page.until(`${shadow}.querySelector('.cm-tooltip-autocomplete') !== null`)
  await page.press('Escape')
  await write('select r. from readings r')
  for (let step = 0; step < ' from readings r'.length; step++) await page.press('ArrowLeft')
  await page.press('Control+ ')
  await page.until(`${shadow}.querySelector('.cm-tooltip-autocomplete')?.textContent.includes('humidity')`)
  await page.screenshot('completion-light')
  await page.press('Escape')
  await write('select sensor, count() from readings where humidity is null group by sensor order by 2 desc')
  await page.click('#format')
  await page.until(`${shadow}.querySelectorAll('.cm-line').length === 5`)
  await page.click('#saved summary')
  await page.click('#saved-list input')
  await page.type('dry sensors')
  await page.press('Enter')
  await page.until(`/dry sensors.*private/.test(document.querySelector('#saved-list .saved-query')?.textContent)`)
  await page.evaluate(
    `[...document.querySelectorAll('#saved-list button')].find((one) => one.textContent === 'Share').click()`,
  )
  await page.until(`/dry sensors.*shared/.test(document.querySelector('#saved-list .saved-query')?.textContent)`)
  await page.press('Escape')
  await page.evaluate(`${shadow}.querySelector('.cm-content').focus()`)
  await page.press('Alt+t')
  await page.type('select 2')
  await page.until(`localStorage.getItem('penstock.tabs').includes('select 2')`)
  await page.goTo(`${base}/console/?again#query`)
  await page.until(`document.querySelectorAll('#tabs .tab').length === 2`)
  await page.until(`${shadow}.querySelector('.cm-content').textContent === 'select 2'`)
  check(
    await page.evaluate(`document.querySelectorAll('#history-list button').length > 4`),
    'the history survives a reload',
  )
}

async function imports() {
  const file = join(page.profile, 'console_import.csv')
  writeFileSync(
    file,
    'city,ts,v\nOslo,2026-01-01T00:00:00.000Z,1\nRome,2026-01-02T00:00:00.000Z,x\nBern,2026-01-03T00:00:00.000Z,3\n',
  )
  await page.click('a[href="#import"]')
  await page.chooseFiles('#import-file', [file])
  await page.until(`document.querySelectorAll('.preview tbody tr').length === 3`)
  await page.evaluate(`(() => {
    const type = document.querySelector('[aria-label="Type of v"]'); type.value = 'INT'; type.dispatchEvent(new Event('change'))
    document.querySelector('[name=atomicity]').value = 'skipRow'
  })()`)
  await page.screenshot('import-light')
  await page.click('.import-form button.main')
  await page.until(
    `/2 rows stored in console_import, 1 rejected/.test(document.querySelector('.import-result').textContent)`,
  )
  await page.until(`document.querySelector('.import-result').textContent.includes('Rejected rows')`)
  await page.screenshot('import-done-light')
  await importParquet()
  const lines = join(page.profile, 'rows.lp')
  writeFileSync(lines, 'console_lines v=1i 1772409600000000000\nconsole_lines v=2i 1772409601000000000\n')
  await page.chooseFiles('#import-file', [lines])
  await page.until(`document.querySelector('.import-card pre')?.textContent.includes('console_lines')`)
  await page.click('.import-form button.main')
  await page.until(`document.querySelector('.import-result').textContent.includes('2 lines stored')`)
  await page.until(
    `[...document.querySelectorAll('#tables .name')].some((name) => name.textContent === 'console_lines')`,
  )
}

/** A Parquet file: a column gets another name, a text becomes a number, and the row that has none is listed. */
async function importParquet() {
  const query =
    "select timestamp_sequence('2026-01-01', 3600000000L) ts, 'r' || x room, case when x = 2 then 'two' else x::varchar end n from long_sequence(250)"
  const answer = await fetch(`${base}/exp?${new URLSearchParams({ query, fmt: 'parquet' })}`)
  const broken = join(page.profile, 'broken.parquet')
  writeFileSync(broken, 'PAR1, and nothing of a Parquet file')
  await page.chooseFiles('#import-file', [broken])
  await page.until(`document.querySelector('#import-pane form [role=alert]') !== null`)
  const buttons = `[...document.querySelectorAll('#import-pane form button')].map((one) => one.textContent).join()`
  check((await page.evaluate(buttons)) === 'Choose another file,Try again', 'a broken file has a way on')
  await serious('a broken Parquet file')
  const file = join(page.profile, 'console_parquet.parquet')
  writeFileSync(file, Buffer.from(await answer.arrayBuffer()))
  await page.chooseFiles('#import-file', [file])
  await page.until(`document.querySelectorAll('.preview tbody tr').length === 100`)
  await page.until(`document.querySelector('.import-form').textContent.includes('250 rows')`)
  await page.evaluate(`(() => {
    const name = document.querySelector('[aria-label="Name of room"]'); name.value = 'place'; name.dispatchEvent(new Event('input'))
    const type = document.querySelector('[aria-label="Type of n"]'); type.value = 'INT'; type.dispatchEvent(new Event('change'))
    document.querySelector('[name=atomicity]').value = 'skipRow'
  })()`)
  await page.screenshot('import-parquet-light')
  await serious('the preview of a Parquet file')
  await page.click('.import-form button.main')
  await page.until(
    `/249 rows stored in console_parquet, 1 rejected/.test(document.querySelector('.import-result').textContent)`,
  )
  await page.until(`/Row.*2.*n.*value=two/s.test(document.querySelector('.import-result').textContent)`)
  const columns = (await exec('show columns from console_parquet')).dataset.map(([name, type]) => `${name} ${type}`)
  check(columns.join() === 'ts TIMESTAMP,place VARCHAR,n INT', `names and types are those of the form: ${columns}`)
}

async function details() {
  await page.click('a[href="#query"]')
  await page.click('#tables [data-key="readings"]')
  await page.until(`document.querySelectorAll('#tables [data-key^="readings."]').length === 7`)
  await page.evaluate(`document.querySelector('#tables [data-key="readings"] .tree-buttons button:last-child').click()`)
  await page.until(`document.querySelector('#details .code')?.textContent.includes('DEDUP UPSERT KEYS')`)
  await page.screenshot('details-light')
  await serious('details')
  await page.press('Escape')
  await page.until(`!document.querySelector('#details').open`)
}

/** A table by form, with the statement shown. */
async function forms() {
  await page.click('#new-table')
  await page.until(`document.querySelector('#details .code')?.textContent.startsWith('CREATE TABLE new_table (')`)
  await page.type('by_form')
  await page.until(`document.querySelector('#details .code').textContent.startsWith('CREATE TABLE by_form (')`)
  await page.screenshot('create-light')
  await serious('the form of a new table')
  await page.click('#details button.main')
  await page.until(`document.querySelector('#tables [data-key="by_form"]') !== null`)
  await page.evaluate(`document.querySelector('#tables [data-key="by_form"] .tree-buttons button:last-child').click()`)
  await page.until(`document.querySelector('#details .code')?.textContent.includes('by_form')`)
  await page.evaluate(
    `[...document.querySelectorAll('#details button')].find((one) => one.textContent === 'Change …').click()`,
  )
  await page.until(`document.querySelector('#details .code').textContent.startsWith('ALTER TABLE by_form ADD COLUMN')`)
  await page.evaluate(`document.querySelector('#details .fields input').focus()`)
  await page.type('extra')
  await page.click('#details button.main')
  await page.until(`!document.querySelector('#details').open`)
  const columns = (await exec('show columns from by_form')).dataset.map(([name]) => name)
  check(columns.join() === 'ts,name,value,extra', `the forms work: ${columns}`)
}

async function livePage() {
  await page.click('a[href="#live"]')
  await page.until(`document.querySelectorAll('.live-memory meter').length >= 4`)
  await page.until(`document.querySelector('.live-connections tbody tr') !== null`)
  const running = fetch(
    `${base}/exec?${new URLSearchParams({ query: 'select count() from readings a cross join long_sequence(2000000) b' })}`,
  )
  await page.until(`document.querySelector('.live-running tbody')?.textContent.includes('long_sequence') === true`)
  await page.until(`document.querySelector('.live-running progress') !== null`)
  await page.screenshot('live-light')
  // Selected text stays while the rest is redrawn.
  await page.evaluate(`getSelection().selectAllChildren(document.querySelector('.live-running code'))`)
  const duration = `document.querySelector('.live-running tbody td:nth-child(3)').textContent`
  const before = await page.evaluate(duration)
  await page.until(`${duration} !== ${JSON.stringify(before)}`)
  check((await page.evaluate(`String(getSelection())`)).includes('long_sequence'), 'selected text stays selected')
  await page.evaluate(`getSelection().removeAllRanges()`)
  const pressRunning = (text) =>
    page.evaluate(
      `[...document.querySelectorAll('.live-running button')].find((one) => one.textContent === '${text}').click()`,
    )
  await pressRunning('Plan')
  await page.until(`/Cross Join/.test(document.querySelector('#details[open] .code')?.textContent ?? '')`)
  await serious('a plan')
  await page.press('Escape')
  await page.until(`!document.querySelector('#details').open`)
  await page.click('.live-running button[title^="Cancel"]')
  check((await running).status === 400, 'a statement is cancelled')
  // The list is read again while the focus is in it.
  await page.until(`document.querySelector('.live-running')?.textContent.includes('long_sequence') === false`)
}

/** An alert by form: refused, defined, firing, changed, removed. */
async function alerts() {
  const rows = `[...document.querySelectorAll('.live-alerts tbody tr')].map((row) => row.textContent).join()`
  const set = (index, value) =>
    page.evaluate(
      `document.querySelectorAll('.live-alerts input, .live-alerts textarea')[${index}].value = ${JSON.stringify(value)}`,
    )
  const press = (text) =>
    page.evaluate(
      `[...document.querySelectorAll('.live-alerts button')].find((one) => one.textContent === ${JSON.stringify(text)}).click()`,
    )
  await page.click('.live-alerts summary')
  await set(0, 'dry air')
  await set(1, '1s')
  await set(3, 'select nope from readings')
  await press('Save the alert')
  await page.until(`document.querySelector('.live-alerts [role=alert]').textContent.includes('nope')`)
  await set(3, 'select sensor from readings where humidity < 1000 limit 1')
  await press('Save the alert')
  await page.until(`/dry air.*firing/.test(${rows})`)
  await page.screenshot('alerts-light')
  await serious('alerts')
  await set(3, 'select sensor from readings where humidity < -1000')
  await press('Save the alert')
  await page.until(`/dry air.*inactive/.test(${rows})`)
  await press('Remove')
  await page.until(`!${rows}.includes('dry air')`)
}

/** A dashboard over the sample data: variables, range, errors, a panel by keyboard; what is saved survives a reload. */
async function dashboards() {
  const panel = (index) => `document.querySelectorAll('.panels > .panel')[${index}]`
  const number = (index) => `(${panel(index)}?.querySelector('.panel-number')?.textContent ?? '')`
  const press = (text) =>
    page.evaluate(
      `[...document.querySelectorAll('#dashboards button, #details button')].find((one) => one.textContent === ${JSON.stringify(text)}).click()`,
    )
  await page.click('a[href="#dashboards"]')
  await page.until(`document.querySelector('#dashboards button.main') !== null`)
  await press('Example over the sample data')
  await press('Save the dashboard')
  await page.until(`${number(1)} === '15,968' && ${panel(3)}.querySelector('.plot canvas') !== null`)
  await page.until(`${panel(5)}.querySelectorAll('.grid-row').length === 4`)
  await page.screenshot('dashboard-light')
  await serious('a dashboard')
  // A variable, and a range that is dragged over, are in the address; the browser goes back.
  await page.click('.variables summary')
  await page.evaluate(`document.querySelector('.variables input').click()`)
  await page.click('.variables summary')
  await page.until(
    `location.hash.includes('var.room=chiller-1') && /room: chiller-1/.test(document.querySelector('.variables').textContent) && ${number(1)} === '3,872'`,
  )
  await page.until(`document.querySelector('.panel[aria-busy=true]') === null`)
  await page.drag('.panels .u-over', [0.3, 0.5], [0.6, 0.5])
  await page.until(`location.hash.includes('range=') && ${number(1)} !== '3,872' && ${number(1)} !== ''`)
  await page.evaluate('history.go(-2)')
  await page.until(`${number(1)} === '15,968' && !location.hash.includes('var.')`)
  // By keyboard: a panel is moved, another one is added with an error, which stays in it.
  await page.evaluate(`${panel(2)}.focus()`)
  await page.press('Alt+ArrowLeft')
  await page.until(`document.activeElement === ${panel(1)} && ${panel(1)}.textContent.includes('Silent')`)
  await press('Add a panel')
  await page.until(`document.querySelector('#details').open`)
  await page.type('Broken')
  await page.evaluate(`document.querySelector('.panel-editor').shadowRoot.querySelector('.cm-content').focus()`)
  await page.type('drop table readings')
  await page.press('Control+Enter')
  await page.until(`document.querySelector('.panel-preview .panel-problem')?.textContent.includes('read-only')`)
  await page.evaluate(`document.querySelector('#details input').focus()`)
  await page.screenshot('dashboard-form-light')
  await serious('the form of a panel')
  await press('Done')
  await page.until(`${panel(6)}?.querySelector('.panel-problem')?.textContent.includes('read-only')`)
  check(
    await page.evaluate(`document.querySelectorAll('.panels .panel-problem').length === 1`),
    'an error stays in its panel',
  )
  await press('Save')
  await page.until(`document.querySelector('.dashboard-head').textContent.includes('private')`)
  await page.goTo(`${base}/console/?saved${await page.evaluate('location.hash')}`)
  await page.until(`document.querySelectorAll('.panels > .panel').length === 7 && ${number(2)} === '15,968'`)
  await page.evaluate(`${panel(6)}.focus()`)
  await page.press('Delete')
  await page.until(`document.querySelectorAll('.panels > .panel').length === 6`)
  await press('Save')
  await page.until(`document.querySelector('.dashboard-head').textContent.includes('private')`)
}

/** From the tree to the editor to the rows, without a mouse. */
async function keyboardAlone() {
  await page.goTo(`${base}/console/?keyboard#query`)
  await page.until(`document.querySelectorAll('#tables [role=treeitem]').length > 3`)
  await page.press('F6')
  await page.until(`document.activeElement.getAttribute('role') === 'treeitem'`)
  const focused = async () => page.evaluate('document.activeElement.dataset.key')
  for (let step = 0; step < 30 && (await focused()) !== 'readings'; step++) await page.press('ArrowDown')
  await page.press('ArrowRight')
  await page.until(`document.querySelector('[data-key="readings.ts"]') !== null`)
  await page.press('Enter')
  await page.until(`document.querySelector('.grid') !== null`)
  await page.press('F6')
  await page.press('F6')
  await page.until(`document.activeElement.className === 'grid' || document.activeElement.id !== ''`)
  await page.evaluate(`document.querySelector('.grid').focus()`)
  for (const key of ['ArrowDown', 'ArrowDown', 'ArrowRight', 'Shift+ArrowDown', 'Shift+ArrowRight'])
    await page.press(key)
  await page.until(`document.querySelectorAll('.grid .cell.selected').length === 4`)
  await page.screenshot('keyboard-light')
  await page.press('Enter')
  await page.until(
    `!document.querySelector('.row-detail').hidden && document.querySelector('.row-detail').contains(document.activeElement)`,
  )
  await page.screenshot('row-light')
  await page.press('Escape')
  await page.until(`document.activeElement.className === 'grid'`)
  await page.press('Control+ArrowUp')
  await page.press('ArrowUp')
  await page.press('Enter')
  await page.until(`document.querySelector('.grid [aria-sort=ascending]') !== null`)
}

// Every view in each colour and size.

async function everywhere() {
  await run('SELECT ts, room, avg(temperature) AS temperature, max(humidity) AS humidity FROM readings SAMPLE BY 1h')
  await page.until(`document.querySelectorAll('.grid-row').length > 5`)
  for (const colour of ['light', 'dark']) {
    await page.colours(colour)
    for (const [size, [width, height]] of [
      ['desk', desk],
      ['phone', phone],
    ]) {
      await page.size(width, height, size === 'phone')
      for (const view of views) {
        const hash = view === 'dashboards' ? board : `#${view}`
        await page.evaluate(`location.hash = ${JSON.stringify(hash)}`)
        await page.until(`!document.querySelector('#view-${view}').hidden`)
        if (view === 'dashboards') await page.until(`document.querySelector('.panels .grid-row') !== null`)
        if (view === 'live') await page.until(`document.querySelector('.live-memory meter') !== null`)
        await page.until(`document.querySelector('main [aria-busy=true]') === null`)
        await page.screenshot(`${view}-${size}-${colour}`)
        const overflow = await page.evaluate('document.documentElement.scrollWidth - innerWidth')
        check(overflow <= 0, `${view} fits on a ${size}: ${overflow} pixels too wide`)
        await serious(`${view} ${size} ${colour}`)
      }
    }
    await page.size(...phone, true)
    await page.evaluate(`location.hash = '#query'`)
    await page.click('#drawer')
    await page.until(`document.querySelector('#side').classList.contains('open')`)
    await page.screenshot(`tables-phone-${colour}`)
    await page.click('#drawer')
  }
  await page.size(...desk)
  await page.evaluate(`location.hash = '#query'`)
  await page.evaluate(
    `[...document.querySelectorAll('.segments button')].find((one) => one.textContent === 'Chart').click()`,
  )
  await page.until(`document.querySelector('.plot canvas') !== null`)
  await page.screenshot('chart-dark')
  await serious('chart dark')
}

/** Asks axe for what is serious or critical. */
async function serious(where) {
  if ((await page.evaluate('typeof axe')) === 'undefined') await page.evaluate(axe)
  const found = await page.evaluate(
    `axe.run(document, { resultTypes: ['violations'] }).then(({ violations }) => violations.filter(({ impact }) => impact === 'serious' || impact === 'critical').map(({ id, nodes }) => id + ': ' + nodes.slice(0, 3).map(({ html, failureSummary }) => html.slice(0, 200) + ' ' + failureSummary).join(' | ')))`,
  )
  if (found.length > 0) findings.push(`${where}: ${found.join('\n')}`)
}

// Sign-in.

async function walkSignIn() {
  await page.size(...desk)
  await page.goTo(`${base}/console/#query`)
  await page.until(`document.querySelector('#sign-in').open`)
  await page.screenshot('sign-in')
  await serious('sign-in')
  check(findings.length === 0, `axe has nothing serious: ${findings.join('\n')}`)
  await page.type('admin')
  await page.press('Tab')
  await page.type('wrong')
  await page.press('Enter')
  await page.until(`document.querySelector('#sign-in-note').textContent.includes('wrong')`)
  await page.type('quest')
  await page.press('Enter')
  await page.until(
    `!document.querySelector('#sign-in').open && document.querySelector('#who-name').textContent === 'admin'`,
  )
  await run('select 1 one')
  await page.until(`${cell(0, 0)} === '1'`)
  const [cookie] = await page.cookies()
  check(cookie?.httpOnly && cookie.sameSite === 'Strict' && cookie.expires > Date.now() / 1000, 'the cookie is safe')
  check(
    (await page.evaluate('document.cookie + JSON.stringify({ ...localStorage })')).includes('quest') === false,
    'nothing is stored',
  )
  await page.goTo(`${base}/console/?again#query`)
  await page.until(`document.querySelector('#who-name').textContent === 'admin'`)
  check(!(await page.evaluate(`document.querySelector('#sign-in').open`)), 'a reload stays signed in')
  await page.click('#who summary')
  await page.screenshot('signed-in')
  await page.evaluate(
    `[...document.querySelectorAll('#who button')].find((one) => one.textContent === 'Sign out').click()`,
  )
  await page.until(`document.querySelector('#sign-in')?.open === true`)
  check((await page.cookies()).length === 0, 'the cookie is gone')
}

function check(condition, what) {
  if (!condition) throw new Error(`not so: ${what}`)
}
