// The SQL editor: a plain text area over the same text with syntax colours, so that undo, input methods and screen
// readers work as in any text area.

import { byId } from './element.js'

const keywords = new Set(
  `add all alter and any as asc asof attach by bypass cancel case cast checkpoint column copy create cross dedup delete
  desc detach distinct drop else end except exists explain fill from full grant group having if in index inner insert
  intersect into is join keys latest left like ilike limit lt not null offset on or order outer over partition pivot
  query refresh rename right sample select set show splice table tables then to tolerance trace truncate ttl union unnest
  update upsert user using vacuum values view wal when where window with within align calendar first last observation
  prev linear none true false`.split(/\s+/),
)
const tokens =
  /(--[^\n]*|\/\*[\s\S]*?(?:\*\/|$))|('(?:[^']|'')*'?)|("(?:[^"]|"")*"?)|(\b\d[\w.]*)|([A-Za-z_]\w*)(\s*\()?|[\s\S]/g
const paintedMax = 100_000

const area = byId('sql')
const paint = byId('paint')

export function openEditor(run) {
  area.value = localStorage.getItem('sql') ?? 'select * from tables();\n'
  area.addEventListener('input', changed)
  area.addEventListener('scroll', follow)
  area.addEventListener('keydown', (event) => {
    if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) {
      event.preventDefault()
      run()
    } else if (event.key === 'Tab' && !event.shiftKey) {
      event.preventDefault()
      insertText('  ')
    }
  })
  changed()
}

export function insertText(text) {
  area.focus()
  area.setRangeText(text, area.selectionStart, area.selectionEnd, 'end')
  changed()
}

/** Appends a statement and places the cursor in it. */
export function appendStatement(text) {
  const before = area.value.trimEnd()
  area.value = `${before === '' ? '' : `${before}\n\n`}${text}\n`
  area.selectionStart = area.value.length - 1
  area.selectionEnd = area.value.length - 1
  area.scrollTop = area.scrollHeight
  changed()
  area.focus()
}

/** Returns the selection, or the statement at the cursor, as {text, start}. */
export function currentStatement() {
  const { value, selectionStart, selectionEnd } = area
  if (selectionEnd > selectionStart) return trimmed(value.slice(selectionStart, selectionEnd), selectionStart)
  let start = 0
  for (const match of value.matchAll(tokens)) {
    if (match[0] !== ';') continue
    if (match.index >= selectionStart) return trimmed(value.slice(start, match.index), start)
    // With the cursor after a semicolon on the same line, the statement before it is chosen.
    const rest = value.slice(match.index + 1, selectionStart)
    if (rest.trim() === '' && !rest.includes('\n')) return trimmed(value.slice(start, match.index), start)
    start = match.index + 1
  }
  const last = trimmed(value.slice(start), start)
  if (last.text !== '') return last
  const whole = value.slice(0, Math.max(0, start - 1))
  const from = whole.lastIndexOf(';') + 1
  return trimmed(whole.slice(from), from)
}

/** Moves the cursor to the position of an error. */
export function selectAt(position) {
  const { value } = area
  let end = position
  while (end < value.length && /\w/.test(value[end])) end++
  area.focus()
  area.setSelectionRange(position, Math.max(end, position + 1))
}

function trimmed(text, start) {
  const lead = text.length - text.trimStart().length
  return { text: text.trim(), start: start + lead }
}

function changed() {
  localStorage.setItem('sql', area.value.slice(0, paintedMax))
  paintText(area.value)
  follow()
}

function follow() {
  paint.scrollTop = area.scrollTop
  paint.scrollLeft = area.scrollLeft
}

function paintText(text) {
  const nodes = []
  let plain = ''
  const flush = () => {
    if (plain !== '') nodes.push(plain)
    plain = ''
  }
  for (const match of text.slice(0, paintedMax).matchAll(tokens)) {
    const kind = kindOf(match)
    if (kind === null) {
      plain += match[0]
      continue
    }
    flush()
    const span = document.createElement('span')
    span.className = kind
    span.textContent = match[5] ?? match[0]
    nodes.push(span)
    if (match[6] !== undefined) plain += match[6]
  }
  flush()
  // A trailing newline keeps the scroll heights of both layers equal.
  paint.replaceChildren(...nodes, text.slice(paintedMax), '\n')
}

function kindOf([, comment, string, , number, word, call]) {
  if (comment !== undefined) return 'comment'
  if (string !== undefined) return 'string'
  if (number !== undefined) return 'number'
  if (word === undefined) return null
  if (keywords.has(word.toLowerCase())) return 'keyword'
  return call === undefined ? null : 'function'
}
