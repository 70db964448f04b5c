// The page's client of the server's HTTP API. Statements are sent as JSON bodies, which a page of another site cannot
// send. User name and password are kept in memory only, while the page is open.

let authorization = null
let askLogin = async () => false

/** Registers the login dialog: `ask(message)` resolves with {user, password}, or null. */
export function onLogin(ask) {
  askLogin = async (words) => {
    const answer = await ask(words)
    if (answer === null) return false
    const bytes = new TextEncoder().encode(`${answer.user}:${answer.password}`)
    authorization = `Basic ${btoa(String.fromCharCode(...bytes))}`
    return true
  }
}

async function send(path, options = {}) {
  for (let attempt = 0; ; attempt++) {
    const headers = { ...options.headers, ...(authorization === null ? {} : { authorization }) }
    const response = await fetch(path, { ...options, headers, credentials: 'same-origin', cache: 'no-store' })
    const refused = response.status === 401 || response.status === 403
    if (!refused || attempt > 2 || !(await mayRetry(response, attempt))) return response
  }
}

/** Prompts for missing or wrong credentials; other rejections (missing right, read-only) are final. */
async function mayRetry(response, attempt) {
  if (!response.headers.has('www-authenticate')) return false
  return askLogin(attempt === 0 ? 'This server wants a name and a password.' : 'That was not right. Once more?')
}

const usual = { execute: '/exec', export: '/exp', import: '/imp' }
let moved = null

/** Returns the path of an endpoint, which settings may have changed. */
async function pathOf(what) {
  if (moved === null) {
    const response = await send('../settings')
    // After a failed request the next call asks again.
    if (!response.ok) return `..${usual[what]}`
    moved = (await response.json()).config ?? {}
  }
  return `..${moved[`http.context.${what}`] ?? usual[what]}`
}

export class QueryError extends Error {
  constructor(message, position) {
    super(message)
    this.position = position
  }
}

/** Quotes integers that exceed the precision of a JavaScript number, so that they stay exact. */
export function exactNumbers(json) {
  return json.replace(/"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g, (token) =>
    /^-?\d{16,}$/.test(token) ? `"${token}"` : token,
  )
}

/**
 * Runs a statement and returns {columns, dataset, count, ddl, ...}; `more`: the result has more rows than `limit` or
 * than the server sends. Throws QueryError.
 */
export async function execute(query, { limit, signal, explain = false } = {}) {
  const body = JSON.stringify({
    query,
    ...(limit === undefined ? {} : { limit: String(limit + 1) }),
    timings: true,
    explain,
  })
  const headers = { 'content-type': 'application/json' }
  const response = await send(await pathOf('execute'), { method: 'POST', headers, body, signal })
  const text = await response.text()
  let answer
  try {
    answer = JSON.parse(exactNumbers(text))
  } catch {
    throw new QueryError(text.trim() || `the server answered ${response.status}`, 0)
  }
  if (!response.ok || answer.error !== undefined) throw new QueryError(errorText(answer, text), answer.position ?? 0)
  return limited(answer, limit)
}

function errorText({ error, hint }, text) {
  return hint === undefined ? (error ?? text) : `${error}; ${hint}`
}

/** Drops the extra row that was requested to find out whether there are more. */
function limited(answer, limit = Number.POSITIVE_INFINITY) {
  const { dataset } = answer
  if (dataset === undefined) return answer
  if (dataset.length <= limit) return { ...answer, more: answer.capped === true }
  return { ...answer, dataset: dataset.slice(0, limit), count: limit, more: true }
}

/** Downloads the rows of a statement as a file. */
export async function download(query, format) {
  const response = await send(`${await pathOf('export')}?${new URLSearchParams({ query, fmt: format })}`)
  if (!response.ok) {
    const text = await response.text()
    let message = text
    try {
      message = JSON.parse(text).error ?? text
    } catch {
      // Not JSON: the text is the message.
    }
    throw new QueryError(message, 0)
  }
  const link = document.createElement('a')
  link.href = URL.createObjectURL(await response.blob())
  link.download = `penstock-${Date.now()}.${format}`
  link.click()
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000)
}

/** Sends a CSV file; resolves with the result of the import or throws QueryError. */
export async function importCsv(file, parameters) {
  const form = new FormData()
  form.append('data', file, file.name)
  const response = await send(`${await pathOf('import')}?${new URLSearchParams({ fmt: 'json', ...parameters })}`, {
    method: 'POST',
    body: form,
  })
  const text = await response.text()
  let answer
  try {
    answer = JSON.parse(text)
  } catch {
    throw new QueryError(text.trim(), 0)
  }
  if (!response.ok) throw new QueryError(answer.status ?? answer.error ?? text, 0)
  return answer
}
